"""Compare runs: the fields in which they differ, and runs that are equal but for the seed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from udml_core.base.errors import UserError
from udml_core.runs.folder import Run

NOT_COMPARED = ("created", "fingerprint", "versions", "given_labels", "fields_format", "dataset_title",
                "weights", "exclusions")
"""Settings that do not change a result, or that others state: `encoder` has the hash of the weights, and `excluded` the
digest of the excluded images."""


def settings_of(run: Run) -> dict[str, Any]:
    """Return a run's options and hyper-parameters by name; stored values for an unknown method."""
    spec = run.spec()
    try:
        fields = spec.build_method().model_dump()
    except UserError:
        fields = spec.fields
    return spec.model_dump(exclude={"fields", *NOT_COMPARED}) | {"excluded": spec.excluded.words} | fields


def share_images(runs: Iterable[Run]) -> bool:
    """Return whether runs search the same test images: of one data set and split, without the same excluded images."""
    return len({(run.spec().fingerprint, run.spec().split, run.spec().excluded.digest) for run in runs}) == 1


def differing_settings(settings: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Return the settings that are not equal in all runs, in order.

    Returns:
        Values by name, one for each run; None where a run has no such setting.
    """
    names = dict.fromkeys(name for row in settings for name in row)
    columns = {name: [row.get(name) for row in settings] for name in names}
    return {name: values for name, values in columns.items() if any(value != values[0] for value in values)}


def seed_groups(settings: Sequence[Mapping[str, Any]]) -> list[list[int]]:
    """Group the positions of runs that are equal but for the seed, in order of their first run.

    A repetition with the same seed is in a group of its own, because a spread over seeds needs different seeds.
    """
    groups: list[tuple[dict[str, Any], list[int]]] = []
    for position, row in enumerate(settings):
        rest = {name: value for name, value in row.items() if name != "seed"}
        members = next((members for known, members in groups if known == rest and all(
            settings[other].get("seed") != row.get("seed") for other in members)), None)
        if members is None:
            groups.append((rest, [position]))
        else:
            members.append(position)
    return [members for _, members in groups]


def grouped_by_seed(runs: Sequence[Run]) -> list[list[Run]]:
    """Group runs that are equal but for the seed, in order of their first run."""
    return [[runs[position] for position in group] for group in seed_groups([settings_of(run) for run in runs])]


@dataclass(frozen=True)
class Spread:
    """Mean and standard deviation of a measure over seeds.

    Attributes:
        mean: The mean.
        deviation: The sample's standard deviation, with n − 1; None for a single run.
    """

    mean: float
    deviation: float | None


def spread(values: Sequence[float | None]) -> Spread | None:
    """Return the mean and the spread of the measured values; None if no value was measured."""
    known = [value for value in values if value is not None]
    if not known:
        return None
    mean = sum(known) / len(known)
    if len(known) == 1:
        return Spread(mean, None)
    return Spread(mean, math.sqrt(sum((value - mean) ** 2 for value in known) / (len(known) - 1)))
