"""Runs as rows of a table for papers: one row for the seeds of a setting."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from udml_core.base.errors import UserError, quoted
from udml_core.exploration.paper_tables import Cell, Over, PaperTable
from udml_core.methods import find_method
from udml_core.numerics.measures import MAIN_MEASURES, MEASURES
from udml_core.runs.folder import Run
from udml_core.runs.run_comparison import differing_settings, grouped_by_seed, settings_of, share_images
from udml_core.runs.verdict import standing

UNNAMED = ("seed", "encoder")
"""Settings that do not name a row: its seeds, and the many values of an encoder, whose name is enough."""


def table_of_runs(runs: Sequence[Run], measures: Sequence[str] = (), titles: Sequence[str] | None = None,
                  over: Over = "seeds") -> PaperTable:
    """Return a row for each group of runs that are equal but for the seed, with their measures after training.

    Args:
        runs: Finished runs with labels on the same test images.
        measures: Keys of measures; R@1 and MAP@R by default.
        titles: A name for each group; by default the method, with the settings that tell equal methods apart.
        over: What the differences of R@1 and MAP@R are tested over. Queries need the images and a ranking of all of
            them, and test whether other images would say the same, not other seeds.

    Raises:
        UserError: A run has none of the measures, or no run has one of them, the runs search different images, or
            queries are asked for and the images are missing.
    """
    names = measures or [measure.key for measure in reversed(MAIN_MEASURES)]
    if not share_images(runs):
        raise UserError("The runs search different test images, so their measures cannot stand in one table. Choose "
                        "runs on the same data set and split that leave out the same images.")
    groups = grouped_by_seed(runs)
    rows: dict[str, dict[str, Cell]] = {}
    for title, members in zip(titles or _titles(groups), groups, strict=True):
        of_seed = {name: {run.spec().seed: value for run in members
                          if (value := standing(run.evaluation(), name).after) is not None} for name in names}
        of_query = _values_by_query(members) if over == "queries" else {}
        ids = {run.spec().seed: run.id for run in members}
        rows[title] = {name: replace(Cell.of_seeds(values), by_query=of_query.get(name, {}), run_by_seed=ids)
                       for name, values in of_seed.items() if values}
        if not rows[title]:
            raise UserError(f"The run {members[0].id} has none of these measures: {', '.join(names)}. They need "
                            "classes, and a run that is done.")
    absent = [name for name in names if not any(name in row for row in rows.values())]
    if absent and measures:
        known = dict.fromkeys(name for run in runs for name in (run.evaluation() or {}).get("final") or {}
                              if name in MEASURES)
        raise UserError(f"No run has the measure {quoted(absent[0])}. Choose among {', '.join(known)}.")
    return PaperTable(f"{runs[0].spec().dataset_title}, test images of the split {runs[0].spec().split}.", rows,
                      over, runs[0].spec().split)


def _values_by_query(members: Sequence[Run]) -> dict[str, Mapping[int, float]]:
    """Return the percentages of each query by measure: means over runs that differ only in the seed."""
    from udml_core.runs.search import Retrieval  # loads torch, which a table over seeds does not need

    opened = [Retrieval(run) for run in members]
    ranked = [retrieval.ranked() for retrieval in opened]
    scores = {"recall@1": [of.first_hits for of in ranked], "map@r": [of.average_precisions for of in ranked]}
    means = {name: 100 * np.mean(values, axis=0) for name, values in scores.items()}
    return {name: {int(query): float(value) for query, value in zip(opened[0].split.test, of, strict=True)
                   if not np.isnan(value)} for name, of in means.items()}


def _titles(groups: Sequence[Sequence[Run]]) -> list[str]:
    """Name each group by its method, its encoder, and the settings in which groups of both differ.

    The encoder is left out where it is the same in all groups.
    """
    methods = [find_method(members[0].spec().method).card.title for members in groups]
    backbones = [members[0].spec().encoder.backbone for members in groups]
    titles = methods if len(set(backbones)) == 1 else [
        f"{method}, {backbone}" for method, backbone in zip(methods, backbones, strict=True)]
    count, named = Counter(titles), list(titles)
    for title in (name for name, number in count.items() if number > 1):
        at = [position for position, name in enumerate(titles) if name == title]
        settings = [{name: value for name, value in settings_of(groups[position][0]).items() if name not in UNNAMED}
                    for position in at]
        for name, values in differing_settings(settings).items():
            for position, value in zip(at, values, strict=True):
                named[position] += "" if value is None else f", {name} {value}"
    return [title if named.count(title) == 1 else f"{title}, {groups[position][0].id}"
            for position, title in enumerate(named)]
