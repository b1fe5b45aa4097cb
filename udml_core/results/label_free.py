"""What the benchmark says of a method where no labels can tell: its changes against frozen features."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from udml_core.results.benchmark import Benchmark, DataSet, read

COMPARED = ("recall@1", "map@r")
"""The compared measures."""
FROZEN = "frozen"
SUPPORTED = "whiten"
"""The method without labels that the benchmark supports on every data set; `supported_methods` computes it."""
UNHARMED = 0.3
"""Points of a measure that a supported method loses at most on any data set; on the digits a test image is 0.1."""


@dataclass(frozen=True)
class Change:
    """The change of a measure against frozen features, in points.

    Attributes:
        low: On the data set where it is smallest, the mean over the seeds.
        high: On the data set where it is largest.
        datasets: Number of data sets.
    """

    low: float
    high: float
    datasets: int


def changes_of(method: str, benchmark: Benchmark | None = None) -> dict[str, Change]:
    """Return the changes of R@1 and MAP@R that a method makes; empty if the benchmark did not measure it.

    Args:
        method: Name of the method.
        benchmark: The record; the project's by default.
    """
    benchmark = benchmark or read()
    if benchmark is None or method == FROZEN:
        return {}
    found = [(values, frozen) for dataset in benchmark.datasets.values()
             if (values := _means(dataset, method)) and (frozen := _means(dataset, FROZEN))]
    changes = {name: [values[name] - frozen[name] for values, frozen in found] for name in COMPARED}
    return {name: Change(min(of), max(of), len(of)) for name, of in changes.items() if of}


def _means(dataset: DataSet, method: str) -> Mapping[str, float]:
    """Return the means of a method itself over its seeds; empty if it was not measured."""
    for entry in dataset.entries.values():
        if entry.is_method and entry.method == method and set(COMPARED) <= set(entry.summary):
            return {name: entry.summary[name][0] for name in COMPARED}
    return {}


def supported_methods(benchmark: Benchmark | None = None) -> list[str]:
    """List the methods without labels that lower neither measure on any data set and raise one somewhere."""
    benchmark = benchmark or read()
    if benchmark is None:
        return []
    names = dict.fromkeys(entry.method for dataset in benchmark.datasets.values() for entry in dataset.entries.values()
                          if entry.is_method and entry.supervision == "none")
    changes = {name: changes_of(name, benchmark) for name in names}
    return [name for name, of in changes.items() if of and max(change.high for change in of.values()) > UNHARMED
            and all(change.low >= -UNHARMED and change.datasets == len(benchmark.datasets) for change in of.values())]


def record_words(method: str, subject: str = "it") -> str:
    """State in a sentence what the benchmark measured of a method; empty if it did not measure it.

    Args:
        method: Name of the method.
        subject: The method in the sentence.
    """
    changes = changes_of(method)
    if not changes:
        return ""
    first, groups = changes["recall@1"], changes["map@r"]
    return (f"{subject[:1].upper()}{subject[1:]} found {more_words(first.low, first.high)} right first images in 100 "
            f"searches than the plain search, on {first.datasets} data sets with known classes; the score of whole "
            f"groups (0 to 100) changed by {_signed(groups.low)} to {_signed(groups.high)}.")


def more_words(low: float, high: float) -> str:
    """Return a range of changes in words, such as "0.1 to 2.0 fewer" or "0.5 fewer to 1.0 more"."""
    if low < 0 < high:
        return f"{-low:.1f} fewer to {high:.1f} more"
    near, far = sorted((abs(low), abs(high)))
    return f"{near:.1f} to {far:.1f} {'fewer' if low < 0 else 'more'}"


def _signed(value: float) -> str:
    return f"{value:+.1f}".replace("-", "−")
