"""What blind judgments say of a search that a race judged."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from udml_core.base.errors import UserError
from udml_core.exploration.race import Outcome, Race
from udml_core.exploration.race_figures import setup_words
from udml_core.numerics.second_opinion import Verdict
from udml_core.runs import Run, find_run, runs_folder
from udml_core.runs.search.differing import Comparison, Results, Side, compare, side_name
from udml_core.runs.search.judged_runs import judged_galleries, judgments_words
from udml_core.runs.search.query import Gallery
from udml_core.work.jobs.advising import judged_in_race, refinement_of

from .cached import load_dataset, load_retrieval
from .run_hash import RUN_HASH
from .run_status import escaped

START_FRAMES = ("frozen", "initial", "final")
"""Names under which the features of a run without training are judged."""


def race_judgments(runs: Sequence[Run], frame: str, names: Sequence[str], results: Results, said: Verdict) -> str:
    """Return what blind judgments of a race's search say in Markdown, and whether they agree with it; empty without.

    Args:
        runs: The run of the frozen features, whose embedding has several names, and the run of the search.
        frame: The embedding of the search.
        names: Names of both in words.
        results: What is judged.
        said: The race's verdict on the second.
    """
    first, second = (f"**{escaped(name)}**" for name in names)
    sentences = []
    try:
        dataset = load_dataset(runs[0].spec().dataset)
        for own in START_FRAMES:
            keys = side_name(runs[0].id, own), side_name(runs[1].id, frame)
            for gallery in judged_galleries(dataset, keys, results):
                comparison = _comparison(runs[0], runs[1], own, frame, gallery, results, dataset.fingerprint)
                sentences.append(judgments_words(comparison, (first, second), said, "the race"))
    except UserError:  # the images or an embedding are missing, which other pages say
        return ""
    return " ".join(filter(None, sentences))


def outcome_judgments(race: Race, outcome: Outcome, asked: Sequence[Results]) -> str:
    """Return what blind judgments say of a candidate against the frozen features, in Markdown; empty without.

    Args:
        race: The race.
        outcome: A judged candidate.
        asked: What was judged, in the order of the sentences.
    """
    try:
        runs = [find_run(name, runs_folder()) for name in (race.run, outcome.run)]
    except UserError:  # a run was removed, which the page says
        return ""
    frame = refinement_of(outcome).id if outcome.setup.recipe else "final"
    verdicts = dict(zip(("first", "ten"), race.verdicts(outcome), strict=True))
    names = "the frozen features", setup_words(race, outcome.setup)
    return " ".join(filter(None, (race_judgments(runs, frame, names, results, verdicts[results]) for results in asked)))


def show_judgments_of(run: Run, recipe: str) -> bool:
    """Show what blind judgments say of a run's search that a race judged; return whether there are any."""
    judged = judged_in_race(run, recipe)
    said = "" if judged is None else outcome_judgments(*judged, ("first", "ten"))
    if said:
        st.caption(f":material/thumbs_up_down: {said}")
    return bool(said)


@st.cache_resource(max_entries=4, ttl="10m", show_spinner=False, hash_funcs=RUN_HASH)
def _comparison(first: Run, second: Run, own: str, frame: str, gallery: Gallery, results: Results,
                fingerprint: str) -> Comparison:  # noqa: ARG001 (compared again when the data set changes)
    return compare(Side(load_retrieval(first), own), Side(load_retrieval(second), frame), gallery, results)
