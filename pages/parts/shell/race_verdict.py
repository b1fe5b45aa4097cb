"""What judges said of a run or a refinement without labels, on every page that shows it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import streamlit as st

from udml_core.base.errors import UserError
from udml_core.data.given.judgments import KIND as JUDGMENTS
from udml_core.data.given.log import log_version
from udml_core.exploration.race import FROZEN, Outcome, Race
from udml_core.exploration.race_conclusion import Conclusion
from udml_core.exploration.race_figures import SAID, recipe_words, said_word, said_words
from udml_core.exploration.race_measured import Measured, Serves
from udml_core.exploration.search_names import named_search
from udml_core.numerics.refinement import Recipe
from udml_core.results.embedding_words import words_of
from udml_core.runs import Run, find_run, runs_folder
from udml_core.runs.analyses.kinds.opinion import Verdicts
from udml_core.runs.opinions import OF_REFINEMENTS, judge_words, opinion_at
from udml_core.runs.recipe_choice import plainly
from udml_core.work.jobs.concluding import conclusion_on
from udml_core.work.jobs.raced import judged_in_race, race_words_of
from udml_core.work.jobs.verdicts import Said, said_of_run

from .cached import dataset_at_hand
from .opinions import stored_opinion
from .race_judgments import recipe_of, show_judgments_of
from .run_hash import RUN_HASH
from .run_status import escaped


def race_verdict(run: Run, recipe: str | None = None, is_brief: bool = False) -> str:
    """Return a race's sentence on a run's search in Markdown; empty if no race judged it.

    Args:
        run: The run.
        recipe: The refinement of its embedding, empty for the embedding itself; None for the best of its searches.
        is_brief: Whether the verdicts alone are stated, with the counts of images as figures.
    """
    return escaped(_race_words(run, recipe, is_brief))


def raced_with_steps(run: Run) -> tuple[Race, Outcome] | None:
    """Return the newest race that judged a trained run with further steps, and the search; None without one."""
    judged = None if run.spec().method == FROZEN else judged_in_race(run)
    return judged if judged is not None and judged[1].setup.recipe else None


@dataclass(frozen=True)
class AdvisedSearch:
    """A refinement of a run's embedding that a race advises.

    Attributes:
        words: Its steps in words.
        named: The search by its plain name with its recipe.
        outcome: The candidate.
        serves: What the race serves.
    """

    words: str
    named: str
    outcome: Outcome
    serves: Serves


@dataclass(frozen=True)
class RacedFigures:
    """The differences behind a race's verdicts on a run's embedding.

    Attributes:
        judges: The judges by name, with what each counts.
        measured: First result and whole group.
    """

    judges: str
    measured: tuple[Measured, Measured]


@st.cache_data(ttl="10s", max_entries=256, show_spinner=False, hash_funcs=RUN_HASH)
def raced_figures(run: Run) -> RacedFigures | None:
    """Return the differences behind a race's verdicts on a run's embedding; None without a race."""
    judged = judged_in_race(run, "")
    of = None if judged is None else judged[1].against_start
    if judged is None or of is None:
        return None
    race, total = judged[0], sum(judged[0].weights.get(judge, 0.0) for judge in of.judges)
    names = sorted(of.judges, key=lambda judge: -race.weights.get(judge, 0.0))
    said = [f"{judge_words(name)} ({100 * race.weights[name] / total:.0f} %)" if name in race.weights and total
            else judge_words(name) for name in names]
    return RacedFigures(" and ".join(said), (of.first, of.groups))


def run_verdicts(run: Run) -> Verdicts | None:
    """Return the verdicts without labels on a run's embedding; None if nothing judged it.

    Judgments that decide stand in place of their race's verdict; see `said_of`.
    """
    said = said_of(run)
    return None if said is None else _with_judgments(said.verdicts, run, "")


def refined_words(run: Run, recipe: str) -> tuple[str, str] | None:
    """Return the verdicts on first results and on groups of a refinement in words; None if no race judged it.

    Judgments that decide stand in place of their race's verdict.
    """
    judged = judged_in_race(run, recipe)
    if judged is None or judged[1].against_start is None:
        return None
    plain = judged[0].verdicts(judged[1])
    said = _with_judgments(Verdicts(*plain), run, recipe)
    measured = (judged[1].against_start.served("first"), judged[1].against_start.served("groups"))
    first, groups = (said_word(of) if verdict == before else SAID[verdict]
                     for of, verdict, before in zip(measured, said, plain, strict=True))
    return first, groups


def _with_judgments(verdicts: Verdicts, run: Run, recipe: str) -> Verdicts:
    """Return verdicts with that of judgments of a search, if they decide, in the place of its race's verdict."""
    of = judged_against(run, recipe)
    if of is None or of.verdict is None:
        return verdicts
    first, groups = verdicts
    return Verdicts(of.verdict, groups) if of.race.serves == "first" else Verdicts(first, of.verdict)


def joint_verdicts(runs: Sequence[Run]) -> Verdicts | None:
    """Return the verdicts on runs that differ only in the seed: one that not all share cannot be told.

    Returns:
        The verdicts; None if neither a race nor a second opinion judged a run.
    """
    known = [verdicts for run in runs if (verdicts := run_verdicts(run)) is not None]
    if not known:
        return None
    return Verdicts(*(said[0] if len(set(said)) == 1 else "cannot tell" for said in zip(*known, strict=True)))


def said_of(run: Run) -> Said | None:
    """Return what judges say of a run's own embedding, as every page shows it; None if nothing judged it."""
    analysis = opinion_at(run)
    return _said_of(run, analysis.stored_status().ticket if analysis.is_done() else 0.0)


@st.cache_data(ttl="10s", max_entries=256, show_spinner=False, hash_funcs=RUN_HASH)
def _said_of(run: Run, ticket: float) -> Said | None:  # noqa: ARG001 (the ticket changes with the second opinion)
    return said_of_run(run, stored_opinion(run))


def advised_search(run: Run) -> AdvisedSearch | None:
    """Return the refinement of a run's embedding to use after the newest race of it and judgments; None without one."""
    return _advised_search(run, judgments_version(run)) if _is_raced(run) else None  # else its images stay closed


@st.cache_data(ttl="10s", max_entries=256, show_spinner=False, hash_funcs=RUN_HASH)
def _is_raced(run: Run) -> bool:
    return judged_in_race(run) is not None


@st.cache_data(ttl="10s", max_entries=256, show_spinner=False, hash_funcs=RUN_HASH)
def _advised_search(run: Run, version: tuple[int, ...]) -> AdvisedSearch | None:  # noqa: ARG001 (of the judgments)
    judged = judged_in_race(run)
    best = None if judged is None else concluded(judged[0]).use
    if judged is None or best is None or best.run != run.id or not best.setup.recipe:
        return None
    words, named = recipe_words(best.setup.parsed, is_sentence=True), named_search(judged[0], best.setup)
    return AdvisedSearch(words, named, best, judged[0].serves)


def judgments_version(run: Run) -> tuple[int, ...]:
    """Return what changes with each blind judgment of a run's images, for the keys of caches."""
    try:
        return log_version(dataset_at_hand(run.spec().dataset), JUDGMENTS)
    except UserError:  # the images are missing, which other pages say
        return ()


def concluded(race: Race) -> Conclusion:
    """Return what to use after a race that ended, and after the judgments of its advice."""
    dataset = None
    with suppress(UserError):  # its run was removed, or the images are missing
        dataset = dataset_at_hand(find_run(race.run, runs_folder()).spec().dataset)
    return conclusion_on(race, runs_folder(), dataset)


def show_conclusion_of(run: Run, recipe: str, raced: str = "") -> bool:
    """Show the conclusion about a run's search if judgments decide it; return whether they do.

    Args:
        run: The run.
        recipe: The refinement of its embedding, empty for the embedding itself.
        raced: What the race alone says of it, in Markdown, which stands behind the "?".
    """
    of = judged_against(run, recipe)
    if of is None:
        return False
    headline, *beside = of.once(of.headline, of.beside)
    st.markdown(f"{conclusion_icon(of)} **{escaped(headline)}** {escaped(' '.join(beside))}", width="stretch",
                help=f"{escaped(of.sure)}\n\n{raced}".rstrip())
    return True


def conclusion_icon(of: Conclusion) -> str:
    """Return a trophy if there is a search to use, a scale if the race found none, and thumbs if judgments did not."""
    return ":material/trophy:" if of.use is not None else ":material/thumbs_up_down:" if of.is_judged else (
        ":material/balance:")


def judged_against(run: Run, recipe: str) -> Conclusion | None:
    """Return the conclusion that judgments decide about a run's search; None if its race's verdict stands alone.

    Args:
        run: The run.
        recipe: The refinement of its embedding, empty for the embedding itself.
    """
    judged = judged_in_race(run, recipe)
    of = None if judged is None else concluded(judged[0])
    return of if of is not None and judged is not None and of.is_judged and of.candidate == judged[1] else None


def show_frames_verdict(frames: Iterable[tuple[Run, str]]) -> bool:
    """Show in a line what judges said of one of several embeddings, the last that was judged.

    Args:
        frames: Runs and their embeddings by name.

    Returns:
        Whether one was judged.
    """
    for run, frame in reversed(list(frames)):
        line, more = frame_verdict(run, frame)
        if line:
            words, recipe = f"Over all images: {escaped(line)}", recipe_of(run, frame)
            if recipe is not None and show_conclusion_of(run, recipe, f"{words} {escaped(more)}".rstrip()):
                return True
            if recipe and "worse " in line:
                best = advised_search(run)
                better = f" The race advises {escaped(best.named)}." if best else ""
                st.markdown(f":orange[:material/warning:] {words}{better}", help=escaped(more) or None)
            else:
                st.caption(f":material/balance: {words}", help=escaped(more) or None)
            if recipe is not None:
                show_judgments_of(run, recipe)
            return True
    return False


def frame_verdict(run: Run, frame: str) -> tuple[str, str]:
    """Return what a race, or else a second opinion, said of an embedding: a line, and the same with its figures.

    Args:
        run: The run.
        frame: The embedding's name.

    Returns:
        Empty texts if it was not judged.
    """
    recipe = recipe_of(run, frame)
    if recipe is None:
        return "", ""
    if line := _race_words(run, recipe, is_brief=True):
        return line, _race_words(run, recipe)
    if recipe:
        judged = stored_opinion(run, OF_REFINEMENTS)
        name = next((name for name in judged.opinions if plainly(name) == plainly(recipe)), None) if judged else None
        verdicts = judged.verdicts(name) if judged and name else None
        words = recipe_words(Recipe.parse(recipe), is_sentence=True)
        plain = words_of("plain").sentence if run.spec().method == FROZEN else "the training alone"
        return (f"{words}, compared with {plain}, judged without labels: "
                f"{said_words(*verdicts)}." if verdicts else ""), ""
    said = said_of(run)
    return (f"This run against {words_of('plain').sentence}, judged without labels: {said_words(*said.verdicts)}. "
            f"{said.note}".rstrip() if said is not None else ""), ""


@st.cache_data(ttl="10s", max_entries=64, show_spinner=False, hash_funcs=RUN_HASH)
def _race_words(run: Run, recipe: str | None, is_brief: bool = False) -> str:
    return race_words_of(run, recipe, is_brief)
