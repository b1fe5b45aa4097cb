"""What judges say of a search against another one: each is a run's embedding, or a refinement of it."""

from __future__ import annotations

import numpy as np

from udml_core.base.arrays import Integers, evenly_spaced, rows_of
from udml_core.data.dataset import Dataset
from udml_core.data.judge_names import WEAK
from udml_core.runs import Run
from udml_core.runs.analyses import REFINED, find_analysis
from udml_core.runs.analyses.kinds.opinion import JUDGES, Opinions
from udml_core.runs.opinions import judge_weights, stored_judges
from udml_core.runs.search import FINAL, Retrieval

MOST_COMPARED = 5_000
"""Largest number of test images on which two searches are compared while a page waits."""


def run_against_run(run: Run, other: Run, dataset: Dataset, frame: str = FINAL, own: str = FINAL) -> Opinions | None:
    """Let judges compare one run's embedding, or a refinement of it, with another's.

    A judge counts as in the runs' second opinions or a race on their images; without them all count the same.

    Args:
        run: The run whose embedding is judged, under the name "final".
        other: The run that it is compared with.
        dataset: The data set of both.
        frame: The other run's embedding: after training, or the id of a finished refinement of all its images.
        own: The judged embedding of the run, named in the same way.

    Returns:
        The opinion of the judges that took part in neither run, without raw pixels, whose whitening takes a minute on a
        page; None if the runs search different images or more than `MOST_COMPARED`, or no judge's features are stored.

    Raises:
        UserError: The stored embeddings are damaged.
    """
    from udml_core.numerics.changed_groups import changed_both
    from udml_core.numerics.second_opinion import QUERIES, Judge, judge_rankings

    test, tested = run.spec().halves(dataset).test, other.spec().halves(dataset).test
    if len(test) > MOST_COMPARED or not np.array_equal(test, tested):
        return None
    features = stored_judges(run, dataset, test, [judge for judge in JUDGES if judge not in WEAK])
    judges = {judge: Judge.of(of) for judge, of in stored_judges(other, dataset, test, list(features)).items()}
    if not judges:
        return None
    depth, queries = min(judge.group for judge in judges.values()), evenly_spaced(len(test), QUERIES)
    before, after = (_results_of(*search, dataset, test, queries, depth) for search in ((other, frame), (run, own)))
    depth = min(before.shape[1], after.shape[1])
    before, after = before[:, :depth], after[:, :depth]
    if min(before.min(), after.min()) < 0:
        return None
    return Opinions(other.id, {FINAL: {name: judge_rankings(judge, queries, before, after)
                                       for name, judge in judges.items()}},
                    judge_weights((run, other), judges), depth,
                    {FINAL: {name: changed_both(judge, queries, before, after) for name, judge in judges.items()}},
                    recipe=_recipe_of(other, frame), steps=_recipe_of(run, own))


def _recipe_of(run: Run, frame: str) -> str:
    """Return the recipe of a refinement; empty for another embedding."""
    return str(find_analysis(run, frame).spec().recipe) if frame.startswith(REFINED) else ""


def _results_of(run: Run, frame: str, dataset: Dataset, test: Integers, queries: Integers, depth: int) -> Integers:
    """Return the rows (q, k) of the first results among the searched images; a refinement may store fewer than depth.

    A row is −1 if a stored result is not searched.
    """
    from udml_core.numerics.neighbors import nearest

    if frame == FINAL:
        return nearest(np.asarray(run.embeddings("final"))[test], depth, own=queries)[1]
    searched = np.zeros(len(dataset), dtype=bool)
    searched[test] = True
    found = Retrieval(run, dataset).frames.frame(frame).index.neighbors(test[queries], depth, searched)[0]
    return rows_of(test, found)
