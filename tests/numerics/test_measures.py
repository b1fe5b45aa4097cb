"""The table of measures: whatever is shown has an entry with a meaning and a direction, and a value has one format."""

from __future__ import annotations

import json
from typing import Any, get_args

import numpy as np
import pytest

from pages.parts.draw.figures import HIDDEN
from pages.parts.draw.tables import EVALUATION_ROWS
from pages.parts.refine.recipe_effect import SHOWN
from udml_core.base.paths import ASSETS
from udml_core.methods import METHODS
from udml_core.numerics.evaluation import evaluate
from udml_core.numerics.measures import CURVES, MEASURES, Better, Measure, curve_of, measure_of
from udml_core.numerics.refinement.ranking_measures import label_free_measures, retrieval_measures
from udml_core.results import benchmark, records
from udml_core.runs import example_runs
from udml_core.work.jobs.presets import KINDS, read_preset
from udml_core.work.sweeps import CRITERIA

ENTRIES = [pytest.param(measure, id=f"{table}: {measure.key}")
           for table, entries in (("measure", MEASURES), ("curve", CURVES)) for measure in entries.values()]


@pytest.mark.parametrize("measure", ENTRIES)
def test_every_entry_has_a_sentence_of_help_and_a_direction(measure: Measure) -> None:
    assert measure.name
    assert measure.help[0].isupper() or measure.help[0].isdigit()
    assert measure.help.endswith(".")
    assert measure.better in get_args(Better)
    assert "%" not in measure.name, "the unit says it"


def _evaluated() -> set[str]:
    """Return what evaluations and refinements contain, with classes of every size and official queries."""
    random = np.random.default_rng(0)
    points, labels = random.normal(size=(60, 4)).astype(np.float32), np.arange(60) % 5
    order = np.argsort(random.normal(size=(60, 12)), axis=1)
    return {*evaluate(points, labels, points, queries=np.arange(60) < 30), *evaluate(points, None, points),
            *retrieval_measures(order, labels, labels, True), *label_free_measures(order, order)}


def _curves() -> set[str]:
    """Return the curves of the example runs and of all records."""
    rows: list[Any] = [row for run in example_runs() for row in run.metrics()[0]]
    for finding in records.findings():
        rows += [row for table in records.read(finding).tables for of_row in table.curves.values() for row in of_row]
    return {name for row in rows for name in row} - set(HIDDEN)


def test_every_measure_that_is_shown_has_an_entry() -> None:
    record = benchmark.read()
    assert record is not None
    measured = {name for dataset in record.datasets.values() for entry in dataset.entries.values()
                for name in entry.summary}
    shown = {"evaluation": _evaluated(), "table": set(EVALUATION_ROWS), "benchmark": measured,
             "printed": {table.printed for table in record.papers},
             "refinement": {measure.key for measure in SHOWN}, "presets": _reported()}
    assert {where: names - MEASURES.keys() for where, names in shown.items() if names - MEASURES.keys()} == {}
    assert (_curves() | set(CRITERIA)) - CURVES.keys() == set()


def _reported() -> set[str]:
    """Return the measures that papers report."""
    return {name for method in METHODS for kind in KINDS if (preset := read_preset(method.card.name, kind))
            for name in preset.measures}


def test_counts_rank_no_method() -> None:
    assert {MEASURES[name].better for name in benchmark.NOT_RANKED} == {"neither"}


def test_a_value_has_one_format() -> None:
    assert MEASURES["map@r"].text(85.46) == "85.5 %"
    assert [MEASURES["recall@1"].text(value) for value in (99.94, 99.96, 100.0)] == ["99.9 %", "> 99.9 %", "100.0 %"]
    assert MEASURES["effective rank"].text(1234.56) == "1,234.6"
    assert MEASURES["dimension"].text(512.0) == "512"
    assert [MEASURES["hubness"].text(value) for value in (-0.123, -0.001)] == ["−0.12", "0.00"]
    assert [MEASURES["nmi"].text(value) for value in (None, float("nan"))] == ["–", "–"]


def test_a_measure_without_an_entry_goes_by_its_key() -> None:
    assert (measure_of("user seconds").title, measure_of("nml_step").title) == ("User seconds", "nml_step")
    assert (curve_of("new loss").name, curve_of("new loss").axis_title) == ("New loss", "new loss")


def test_the_examples_are_read_as_percentages_where_they_are_shares() -> None:
    """A curve in percent is stored between 0 and 1; another would be shown a hundred times too large."""
    for path in sorted((ASSETS / "examples").glob("*/metrics.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            for name, value in json.loads(line).items():
                assert not curve_of(name).is_percent or value is None or 0 <= value <= 1, (path.parent.name, name)
