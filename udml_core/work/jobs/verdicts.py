"""What judges without labels say of a run's own embedding: one verdict for every page and command.

A race decides before the run's second opinion. Both call a difference only if it is certain among a family of
comparisons, so that no page contradicts the advice of a race by a difference that is likely to be chance.
"""

from __future__ import annotations

from dataclasses import dataclass

from udml_core.exploration.race_figures import setup_words
from udml_core.runs import Run
from udml_core.runs.analyses.kinds.opinion import Opinions, Verdicts
from udml_core.runs.opinions import kept_words, opinion_lines, opinion_of
from udml_core.runs.search import FROZEN
from udml_core.runs.selection import preferred_epoch
from udml_core.work.jobs.advising import is_trial, judged_in_race, race_words_of, races_of


@dataclass(frozen=True)
class Said:
    """What judges say of a run's embedding in comparison with the frozen features.

    Attributes:
        verdicts: The verdicts.
        is_raced: Whether a race gave them; else the run's second opinion.
        note: Sentences on the races that did not judge this embedding; empty without such a race.
    """

    verdicts: Verdicts
    is_raced: bool
    note: str = ""


def said_of_run(run: Run, opinions: Opinions | None) -> Said | None:
    """Return what judges say of a run's own embedding; None if nothing judged it.

    Args:
        run: The run.
        opinions: Its finished second opinion against the frozen features; None without one.
    """
    judged = judged_in_race(run, "")
    if judged is not None:
        return Said(Verdicts(*judged[0].verdicts(judged[1])), is_raced=True)
    if opinions is None:
        return None
    return Said(opinions.verdicts("final"), is_raced=False,
                note=" ".join(filter(None, (unraced_words(run), epochs_words(run)))))


def said_lines(run: Run) -> list[str]:
    """State in text what judges say of a run's own embedding, for the command line and the model card.

    Returns:
        The verdicts, then each judge's figures if the run has a second opinion; none if nothing judged it.
    """
    said = said_of_run(run, opinion_of(run))
    lines = opinion_lines(run, "" if said is None else said.note)
    lines = [race_words_of(run, ""), *lines[1:]] if said is not None and said.is_raced else lines
    return lines + list(filter(None, [kept_words(run)])) if lines else lines


def _chosen_from(run: Run) -> int:
    """Return among how many epochs judges chose by the images on which they give their verdict; 0 if they did not."""
    spec = run.spec()
    if spec.select != "judges" or spec.split != "all":
        return 0
    rows = {row["epoch"]: row for row in run.metrics()[0]}
    return 0 if preferred_epoch(rows) is None else len(rows) - 1


def epochs_words(run: Run) -> str:
    """Return that judges chose the epoch by the same images, which favors it; empty if they did not."""
    epochs = _chosen_from(run)
    return f"A judge also chose the epoch, one of {epochs}, by the same images, which favors it." if epochs else ""


def unraced_words(*runs: Run) -> str:
    """Return that no race judged the embedding of some of several runs, so that the races' advice stays.

    Returns:
        Sentences; empty if races judged all of them, or if there is no race.
    """
    lacking = next((run for run in runs if run.spec().method != FROZEN and judged_in_race(run, "") is None
                    and (is_trial(run) or any(race.is_judged for race in races_of(run)))), None)
    if lacking is None:
        return ""
    method = lacking.spec().method
    if any(outcome.setup.recipe == method for race in races_of(lacking) for outcome in race.judged):
        return "The race judged the same step as a refinement of the features, so the advice of Best search stays."
    refined = judged_in_race(lacking)
    only = "" if refined is None else f" alone, only as part of a search: {setup_words(refined[0], refined[1].setup)}"
    return f"No race judged this training{only}, so the advice of Best search stays."
