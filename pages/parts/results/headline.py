"""The result of a record in one sentence: what stands on top of its chart, beside what was not trained."""

from __future__ import annotations

from collections.abc import Mapping

from udml_core.numerics.measures import LOWER, Measure, measure_of
from udml_core.results.records import Row, Table


def headline(table: Table, measure: str, claim: str = "") -> str:
    """Return the sentence above a chart.

    Args:
        table: The table that the chart shows.
        measure: Key of the measure.
        claim: The sentence of a record without untrained rows; the first row if empty.
    """
    shown = measure_of(measure)
    words = shown.plain.lower() or shown.name
    trained, untrained = _best(table.rows, shown), _best(table.references, shown)
    if trained is None or untrained is None:
        best = trained or untrained
        first = "" if best is None else f"{best[0]} is first: {words} {shown.text(best[1])}"
        return claim or first or table.title
    apart = _apart(trained[1], untrained[1], shown)
    if _is_better(trained[1], untrained[1], shown):
        return (f"{trained[0]} is first: {words} {shown.text(trained[1])}, {apart} better than the best without "
                f"training, {untrained[0]}")
    return (f"{untrained[0]} is first without training: {words} {shown.text(untrained[1])}; the best training, "
            f"{trained[0]}, is {apart} behind" if trained[1] != untrained[1] else
            f"{trained[0]} is level with {untrained[0]}, which is not trained: {words} {shown.text(trained[1])}")


def _best(rows: Mapping[str, Row], measure: Measure) -> tuple[str, float] | None:
    """Return the best row and its mean; None if no row has the measure."""
    means = {name: row[measure.key][0] for name, row in rows.items() if measure.key in row}
    if not means:
        return None
    name = (min if measure.better == LOWER else max)(means, key=means.__getitem__)
    return name, means[name]


def _is_better(first: float, second: float, measure: Measure) -> bool:
    return first < second if measure.better == LOWER else first > second


def _apart(first: float, second: float, measure: Measure) -> str:
    """Return the difference of two values: points of a percentage, else in the unit of the measure."""
    if measure.is_percent:
        return f"{abs(first - second):.1f} points"
    return measure.text(abs(first - second))
