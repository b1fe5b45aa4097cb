"""The page Results through Streamlit's AppTest: every record, its measures, and links that are wrong."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from tests.app.opening import opened, texts
from udml_core.errors import UserError
from udml_core.results import records as experiments

NAMES = [one.name for one in experiments.findings()]


@pytest.mark.parametrize("name", NAMES)
def test_every_record_is_shown_with_its_figures(name: str) -> None:
    test = opened("results", record=name)
    assert not test.exception
    assert not test.error
    found = experiments.read(next(one for one in experiments.findings() if one.name == name))
    assert found.finding.says in texts(test)
    assert len(test.dataframe) == len(found.tables)
    for shown, table in zip(test.dataframe, found.tables, strict=True):
        assert set(table.rows) | set(table.beside) <= set(shown.value.index)
    assert found.made["command"] in [one.value for one in test.code]


def test_figures_are_written_as_measured_and_as_printed() -> None:
    frame = opened("results", record="fashion-mnist-ssdml").dataframe[0].value
    mean, deviation = experiments.read(next(one for one in experiments.findings() if one.name == "fashion-mnist-ssdml")
                                       ).tables[0].rows["SSDML"]["recall@1"]
    assert frame.loc["SSDML", "Recall@1"] == f"{mean:.1f} ± {deviation:.1f}"
    assert frame.loc["SSDML, printed", "Recall@1"] == "77.6"
    assert frame.loc["SSDML, printed", "MAP@R"] == ""


def test_printed_figures_of_another_budget_are_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = experiments.read

    def smaller(finding: experiments.Finding) -> experiments.Experiment:
        found = usual(finding)
        return replace(found, tables=tuple(replace(table, comparable=False) for table in found.tables))

    monkeypatch.setattr(experiments, "read", smaller)
    test = opened("results", record="fashion-mnist-ssdml")
    assert "SSDML, printed*" in test.dataframe[0].value.index
    assert "SSDML, printed" not in test.dataframe[0].value.index
    assert any("Not comparable with what was measured here" in one.value for one in test.caption)


@pytest.mark.parametrize("name", ["fashion-mini-zero-shot", "nml-digits"])
def test_another_measure_is_drawn_when_it_is_chosen(name: str) -> None:
    test = opened("results", record=name)
    box = next(one for one in test.selectbox if one.label == "Measure")
    for option in box.options:
        box.select(option).run()
        assert not test.exception
        assert box.value is not None


@pytest.mark.parametrize("record", ["nothing", "../../spec", "[x]"])
def test_a_link_to_no_record_shows_the_first(record: str) -> None:
    test = opened("results", record=record)
    assert not test.exception
    assert test.selectbox[0].value == NAMES[0]


def test_a_list_that_cannot_be_read_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise UserError("must list the records")

    monkeypatch.setattr(experiments, "findings", broken)
    test = opened("results")
    assert not test.exception
    assert re.search("must list the records", test.error[0].value)
