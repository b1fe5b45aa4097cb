"""The page Results through Streamlit's AppTest."""

from __future__ import annotations

import itertools
import re
import statistics
from dataclasses import replace

import plotly.graph_objects as go
import pytest

from pages.parts.draw.figures import BREAK
from pages.parts.results import charts
from pages.parts.results.headline import headline
from pages.parts.results.table import number_frame, paper_table
from tests.app.opening import opened, texts
from tests.tiers import fast_first
from udml_core.base.errors import UserError
from udml_core.base.spreadsheets import inert
from udml_core.numerics.measures import MEASURES
from udml_core.results import records
from udml_core.results.axis import outer_fence

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
        assert set(map(inert, {**table.rows, **table.references})) <= set(shown.value.index)
    assert experiment.provenance["command"] in [code.value for code in test.code]


def test_the_summary_of_all_records_is_shown() -> None:
    assert records.summary() in texts(opened("results"))


def test_measured_values_have_a_deviation_and_reported_values_do_not() -> None:
    frame = opened("results", record="fashion-mnist-ssdml").dataframe[0].value
    mean, deviation = records.read(FINDINGS["fashion-mnist-ssdml"]).tables[0].rows["SSDML"]["recall@1"]
    assert frame.loc["SSDML", "R@1, %"] == f"{mean:.1f} ± {deviation:.1f}"
    assert frame.loc["SSDML, reported*", "R@1, %"] == "77.6"
    assert frame.loc["SSDML, reported*", "MAP@R, %"] == ""


def test_tables_for_papers_test_over_the_seeds_and_numbers_stay_numbers() -> None:
    (table,) = records.read(FINDINGS["fashion-mnist-ssdml"]).tables
    written = paper_table(table)
    cell = written.rows["SSDML"]["recall@1"]
    assert sorted(cell.by_seed) == [0, 1, 2]
    assert statistics.mean(cell.by_seed.values()) == pytest.approx(cell.mean, abs=0.01)
    assert statistics.stdev(cell.by_seed.values()) == pytest.approx(cell.deviation, abs=0.01)
    assert any(written.different("recall@1").values())
    text = written.written("latex")
    assert r"$^\dagger$" in text
    assert re.search(r"& \d+ &", text), "a dimension has no decimals"
    frame = number_frame(table)
    assert frame.loc["SSDML", "R@1, %"] == cell.mean
    assert frame.loc["SSDML", "R@1, %, deviation"] == cell.deviation
    assert frame.loc["SSDML, reported", "R@1, %"] == 77.6
    assert set(frame.dtypes.astype(str)) == {"float64"}


@pytest.mark.parametrize("name", FINDINGS)
def test_the_seeds_of_every_record_have_its_mean(name: str) -> None:
    for table in records.read(FINDINGS[name]).tables:
        for row, cells in paper_table(table).rows.items():
            for measure, cell in cells.items():
                assert not cell.by_seed or statistics.mean(cell.by_seed.values()) == pytest.approx(
                    cell.mean, abs=0.02, rel=0.02), (row, measure)


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


def test_a_long_name_is_shown_whole_in_lines_that_leave_room_for_the_points() -> None:
    long = "PCA (centered) of Learning rate 0; PLM; Learning rate 0, batch statistics; PLM, batch statistics; ISIF"
    lines = charts.wrapped(long).split(BREAK)
    assert " ".join(lines) == long
    assert len(lines) == 3
    assert max(map(len, lines)) <= charts.LONGEST_LINE


def test_rows_have_room_for_all_lines_of_their_labels() -> None:
    table = records.read(FINDINGS["birds100-heads"]).tables[0]
    labels = {name: charts.label_of(name) for name in table.ranked("map@r")}
    places, length = charts.row_places(labels)
    halves = {name: charts.LINE * (1 + label.count(BREAK)) / 2 for name, label in labels.items()}
    ends = [(places[name] - halves[name], places[name] + halves[name]) for name in labels]
    assert all(below > above for (_, above), (below, _) in itertools.pairwise(ends)), "labels never overlap"
    assert ends[0][0] >= 0
    assert ends[-1][1] <= length


def test_a_long_chart_shows_its_best_rows_and_the_best_without_training() -> None:
    table = records.read(FINDINGS["birds100-heads"]).tables[0]
    top = charts.top_rows(table, "map@r")
    assert top.ranked("map@r") == table.ranked("map@r")[:charts.TOP]
    worse = replace(table, rows={name: row for name, row in table.rows.items() if name.startswith("PSLR")}
                    | {f"A {number}": {"map@r": (90.0 + number, 0.0)} for number in range(9)})
    assert top.references
    shown = charts.top_rows(worse, "map@r")
    best = next(name for name in worse.ranked("map@r") if name in worse.references)
    assert list(shown.references) == [best], "the level to beat stays in sight"
    series = records.read(FINDINGS["digits-low-dimension"]).tables[0]
    assert charts.top_rows(series, "map@r") is series, "a series of values is shown whole"


def test_rows_say_in_plain_words_what_their_method_does() -> None:
    assert charts.plain_words("ISIF, one-sided") == "Two views together, other images apart"
    assert charts.plain_words("Start of RPML; RPML, α = 15°") == ""
    assert charts.plain_words("L_z + L_r") == ""
    assert "Keeps the directions" in charts.label_of("PCA (centered), 128 dimensions")


def test_an_axis_that_does_not_begin_at_0_says_how_much_it_shows() -> None:
    map_at_r = MEASURES["map@r"]
    assert "differ by 2.0 points" in charts.span_words([32.5, 34.5, 20.0], 30.0, map_at_r)
    assert charts.span_words([20.0, 34.5], None, map_at_r) == ""
    assert charts.span_words([], None, map_at_r) == ""


def test_the_headline_names_the_top_of_the_chart_beside_what_was_not_trained() -> None:
    table = records.read(FINDINGS["birds100-heads"]).tables[0]
    first, trained = table.ranked("map@r")[0], next(name for name in table.ranked("map@r") if name in table.rows)
    assert headline(table, "map@r") == (
        f"{first} is first without training: whole group found 34.5 %; the best training, {trained}, is 0.4 "
        "points behind")
    shown = "\n".join(element.value for element in opened("results", record="birds100-heads").markdown)
    assert "Whitening is first without training" in shown


@pytest.mark.parametrize(("trained", "untrained", "measure", "words"), [
    (60.0, 62.5, "map@r", "PCA is first without training: whole group found 62.5 %; the best "
                               "training, RPML, is 2.5 points behind"),
    (60.0, 60.0, "map@r", "RPML is level with PCA, which is not trained: whole group found 60.0 %"),
    (3.0, 5.0, "hubness", "RPML is first: Hubness 3.00, 2.00 better than the best without training, PCA"),
    (5.0, 3.0, "hubness", "PCA is first without training: Hubness 3.00; the best training, RPML, is 2.00 behind")])
def test_the_headline_says_which_side_is_better(trained: float, untrained: float, measure: str, words: str) -> None:
    table = records.Table("Birds", {"RPML": {measure: (trained, 0.0)}}, {"PCA": {measure: (untrained, 0.0)}})
    assert headline(table, measure, "A claim.") == words
    assert headline(replace(table, references={}), measure, "A claim.") == "A claim."


def test_an_outlier_is_a_triangle_with_its_value_at_the_end_of_the_axis() -> None:
    values = {f"row {number}": (30.0 + number, 0.5) for number in range(8)} | {"far": (2.0, 0.1)}
    fence = outer_fence([mean for mean, _ in values.values()])
    figure = go.Figure()
    charts.add_marks(figure, values, "trained", {"color": "#000000", "size": 9}, fence, 29.0, MEASURES["map@r"])
    inside, beyond = figure.data
    assert list(inside.y) == list(values)[:-1]
    assert (list(beyond.y), list(beyond.text), beyond.marker.symbol) == (["far"], ["2.0 %"], "triangle-left")
    assert list(beyond.x) == [29.0]
