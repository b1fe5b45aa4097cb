"""What blind judgments say of a search that a race judged."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import streamlit as st

from udml_core.base.errors import UserError
from udml_core.data.dataset import Dataset
from udml_core.exploration.race import Outcome, Race, Setup
from udml_core.exploration.race_figures import recipe_words
from udml_core.exploration.search_names import named_search, plain_name, recipe_once, with_recipe, without_recipe
from udml_core.numerics.refinement import Recipe
from udml_core.numerics.second_opinion import Verdict
from udml_core.runs import Run, find_run, runs_folder
from udml_core.runs.analyses import REFINED, find_analysis
from udml_core.runs.search import FROZEN, OF_ALL, RECIPE, frame_words
from udml_core.runs.search.differing import Results
from udml_core.runs.search.judged_runs import is_frozen, judged_starts, judged_with, judgments_words
from udml_core.runs.search.query import Gallery
from udml_core.work.jobs.advising import refinement_of
from udml_core.work.jobs.concluding import ANSWERED_BY, START, compared, ticket_of
from udml_core.work.jobs.raced import judged_in_race

from .cached import load_dataset
from .run_status import escaped, run_title, search_title


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
        for start, own, gallery in judged_starts(runs[0], runs[1], frame, results, dataset):
            comparison = compared(start, runs[1], own, frame, gallery, results, dataset, ticket_of(runs[1], frame))
            sentences.append(judgments_words(comparison, (first, second), said, "the race", has_plain=True))
    except UserError:  # the images or an embedding are missing, which other pages say
        return ""
    return " ".join(filter(None, sentences))


def outcome_judgments(race: Race, outcome: Outcome, asked: Sequence[Results]) -> str:
    """Return what blind judgments say of a candidate against the frozen features, in Markdown; empty without.

    Args:
        race: The race.
        outcome: A judged candidate.
        asked: What is asked, in the order of the sentences; see `ANSWERED_BY`.
    """
    try:
        runs = [find_run(name, runs_folder()) for name in (race.run, outcome.run)]
    except UserError:  # a run was removed, which the page says
        return ""
    frame = refinement_of(outcome).id if outcome.setup.recipe else "final"
    verdicts = _by_results(race, outcome)
    named = named_search(race, outcome.setup)

    def said_of(results: Results) -> str:
        return race_judgments(runs, frame, (START, named), results, verdicts[results])

    said = [next(filter(None, map(said_of, ANSWERED_BY[results])), "") for results in asked]
    return " ".join(recipe_once(filter(None, said), escaped(named)))


def _by_results(race: Race, outcome: Outcome) -> dict[Results, Verdict]:
    """Return the verdicts of a race on a candidate by what people judge of them."""
    first, groups = race.verdicts(outcome)
    return {"first": first, "ten": groups, "group": groups}


def show_judgments_of(run: Run, recipe: str) -> bool:
    """Show what blind judgments say of a run's search that a race judged; return whether there are any."""
    judged = judged_in_race(run, recipe)
    said = "" if judged is None else outcome_judgments(*judged, ("first", "group"))
    if said:
        st.caption(f":material/thumbs_up_down: {said}")
    return bool(said)


def run_judgments(run: Run) -> list[tuple[str, tuple[str, str], Results]]:
    """Return what blind judgments say of each pair of embeddings of which a run has one, in Markdown.

    Returns:
        Of each pair a sentence, the names of the embeddings, RUN:FRAME, and what was judged.
    """
    sentences = []
    try:
        dataset = load_dataset(run.spec().dataset)
        for names, gallery, results in judged_with(run.id, dataset):
            with suppress(UserError):  # a run or a refinement was removed, or an embedding is missing
                sentences.append((_pair_words(names, gallery, results, dataset), names, results))
    except UserError:  # the images are missing, which other pages say
        return []
    return [of for of in sentences if of[0]]


def _pair_words(names: Sequence[str], gallery: Gallery, results: Results, dataset: Dataset) -> str:
    """Return what blind judgments say of two embeddings; the frozen features come first, as in each verdict."""
    sides = [(find_run(run_id, runs_folder()), frame) for run_id, _, frame in (name.partition(":") for name in names)]
    sides.sort(key=lambda side: side_words(*side) != START)
    (first, own), (second, frame) = sides
    comparison = compared(first, second, own, frame, gallery, results, dataset, ticket_of(second, frame))
    verdict = None
    recipe = recipe_of(second, frame)
    if side_words(first, own) == START and recipe is not None and (judged := judged_in_race(second, recipe)):
        verdict = _by_results(*judged)[results]
    with_plain, named = is_frozen(first, own), search_name(second, frame)
    names = (START, named) if with_plain else tuple(side_words(*side) for side in sides)
    marked = f"**{escaped(names[0])}**", f"**{escaped(names[1])}**"
    said = judgments_words(comparison, marked, verdict, "the race", with_plain)
    return recipe_once([said], escaped(named))[0]


def side_words(run: Run, frame: str) -> str:
    """Return the name of an embedding in words, such as "whitening", of which run it is if that is trained."""
    recipe = recipe_of(run, frame)
    if is_frozen(run, frame):
        return START
    own = "" if run.spec().method == FROZEN else run_title(run)
    if not recipe:
        return own if recipe is not None else f"{own}, {frame_words(frame, run)}"
    return ", then ".join(filter(None, (own, recipe_words(Recipe.parse(recipe)))))


def search_kind(run: Run, frame: str) -> str:
    """Return the plain name of a run's search, such as "the trained search"."""
    return without_recipe(search_name(run, frame))


def search_name(run: Run, frame: str) -> str:
    """Return the plain name of a run's search with its recipe, as the race names it that judged it."""
    recipe = recipe_of(run, frame) or ""
    if frame != FROZEN and (judged := judged_in_race(run, recipe)) is not None:
        return named_search(judged[0], judged[1].setup)
    if is_frozen(run, frame):
        return START
    setup = Setup(backbone=run.spec().backbone, method=run.spec().method, recipe=recipe)
    own = "" if setup.method == FROZEN else search_title(run)
    steps = recipe_words(setup.parsed, is_brief=True)
    return with_recipe(plain_name(setup, setup), ", then ".join(filter(None, (own, steps))))


def recipe_of(run: Run, frame: str) -> str | None:
    """Return the recipe of an embedding, empty for the run's own; None for another embedding."""
    if frame.startswith(RECIPE):
        return frame.removeprefix(RECIPE).removeprefix(OF_ALL)
    if not frame.startswith(REFINED):
        return "" if frame == "final" else None
    spec = find_analysis(run, frame).spec()
    return str(spec.recipe) if spec.frames == ("final",) else None

