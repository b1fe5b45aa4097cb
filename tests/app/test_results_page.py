"""The page Results through Streamlit's AppTest."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from pages.parts.results import charts
from tests.app.opening import opened, texts
from tests.tiers import fast_first
from udml_core.base.errors import UserError
from udml_core.results import records

FINDINGS = {finding.name: finding for finding in records.findings()}


@pytest.mark.parametrize("name", fast_first(FINDINGS, 12))
def test_every_record_is_shown_with_its_values(name: str) -> None:
    test = opened("results", record=name)
    assert not test.exception
    assert not test.error
    experiment = records.read(FINDINGS[name])
    assert experiment.finding.text in texts(test)
    assert len(test.dataframe) == len(experiment.tables)
    for shown, table in zip(test.dataframe, experiment.tables, strict=True):
        assert set(table.rows) | set(table.references) <= set(shown.value.index)
    assert experiment.provenance["command"] in [code.value for code in test.code]


def test_the_summary_of_all_records_is_shown() -> None:
    assert records.summary() in texts(opened("results"))


def test_measured_values_have_a_deviation_and_reported_values_do_not() -> None:
    frame = opened("results", record="fashion-mnist-ssdml").dataframe[0].value
    mean, deviation = records.read(FINDINGS["fashion-mnist-ssdml"]).tables[0].rows["SSDML"]["recall@1"]
    assert frame.loc["SSDML", "R@1, %"] == f"{mean:.1f} ± {deviation:.1f}"
    assert frame.loc["SSDML, reported*", "R@1, %"] == "77.6"
    assert frame.loc["SSDML, reported*", "MAP@R, %"] == ""


def test_only_reported_values_of_another_budget_are_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    read = records.read

    def read_comparable(finding: records.Finding) -> records.Experiment:
        experiment = read(finding)
        return replace(experiment, tables=tuple(replace(table, comparable=True) for table in experiment.tables))

    note = "Not comparable with the measurements here"
    test = opened("results", record="fashion-mnist-ssdml")
    assert "SSDML, reported" not in test.dataframe[0].value.index
    assert any(note in caption.value for caption in test.caption)
    monkeypatch.setattr(records, "read", read_comparable)
    test = opened("results", record="fashion-mnist-ssdml")
    assert "SSDML, reported" in test.dataframe[0].value.index
    assert "SSDML, reported*" not in test.dataframe[0].value.index
    assert not any(note in caption.value for caption in test.caption)


@pytest.mark.parametrize("name", ["fashion-mini-heads", "nml-digits"])
def test_every_measure_can_be_chosen_for_the_chart(name: str) -> None:
    test = opened("results", record=name)
    box = next(box for box in test.selectbox if box.label == "Measure")
    for option in box.options:
        box.select(option).run()
        assert not test.exception
        assert box.value is not None


@pytest.mark.parametrize("record", ["nothing", "../../spec", "[x]"])
def test_a_link_to_an_unknown_record_shows_the_first(record: str) -> None:
    test = opened("results", record=record)
    assert not test.exception
    assert test.selectbox[0].value == next(iter(FINDINGS))


def test_an_unreadable_list_of_records_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise UserError("must list the records")

    monkeypatch.setattr(records, "findings", broken)
    test = opened("results")
    assert not test.exception
    assert re.search("must list the records", test.error[0].value)


def test_a_long_name_leaves_room_for_the_points_of_the_chart() -> None:
    long = "PCA (centered) of RPML, RPML, unit length, RPML, start PCA"
    assert charts.shorten(long) == "PCA (centered) of RPML, RPML, unit leng…"
    assert charts.shorten(long[:charts.LONGEST_LABEL]) == long[:charts.LONGEST_LABEL]
    assert charts.shorten("PCA (centered) of RPML, RPML, unit len,,and") == "PCA (centered) of RPML, RPML, unit len…"
