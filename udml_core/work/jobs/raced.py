"""What the races for the best search say that started from a run's features, finished or not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import get_args

from udml_core.base.errors import UserError
from udml_core.exploration.race import FROZEN, Outcome, Race
from udml_core.exploration.race_elsewhere import Elsewhere, find_elsewhere
from udml_core.exploration.race_measured import Serves
from udml_core.exploration.race_words import brief_words, searched_words
from udml_core.runs import Run, find_run, frozen_runs
from udml_core.runs.aims import kept_aim
from udml_core.runs.analyses import Analysis, AnalysisSpec, list_analyses
from udml_core.runs.analyses.kinds.advice import Advice
from udml_core.runs.run_comparison import settings_of
from udml_core.runs.tasks import LIVE_STATES


def kind_of(spec: AnalysisSpec) -> Advice:
    kind = spec.build_kind()
    assert isinstance(kind, Advice), "only races are requested here"
    return kind


def race_of(analysis: Analysis) -> Race:
    """Return a race, finished or not, with the candidates that were judged so far."""
    if analysis.is_done():
        return analysis.result_of(Advice)
    run = analysis.run
    return kind_of(analysis.spec()).begin(run.spec().backbone, run.id).with_lines(analysis.parts())


def finished_race(analysis: Analysis) -> Race:
    """Return a race as it finished, also while it runs once more; without an end, the candidates judged so far."""
    earlier = analysis.earlier_result_of(Advice) if analysis.has_earlier() and not analysis.is_done() else None
    return race_of(analysis) if earlier is None else earlier


def elsewhere_of(analysis: Analysis, aim: Serves | None = None) -> tuple[Elsewhere, Analysis] | None:
    """Return what another finished race of the same features says of its best search, and that race.

    Args:
        analysis: A race; the other race counts if its best search is better in the aim.
        aim: What the user looks for; None for what the race served.
    """
    began, others = analysis.stored_status().ticket, races_beside(analysis)
    found = find_elsewhere(finished_race(analysis).serving(aim), (
        (race, other.stored_status().ticket > began) for race, other in others))
    return None if found is None else (found, next(other for race, other in others if race is found.race))


def races_beside(analysis: Analysis) -> list[tuple[Race, Analysis]]:
    """List the other finished races of the same features, the newest first."""
    others = list[tuple[Race, Analysis]]()
    for other in list_analyses(analysis.run, Advice):
        if other.id != analysis.id and (other.is_done() or other.has_earlier()):
            with suppress(UserError):  # its file is damaged
                others.append((finished_race(other), other))
    return others


Raced = tuple[Race, Elsewhere | None, Analysis]
"""A race, what another race says of its best search, and its analysis."""


def races_from(run: Run) -> list[Raced]:
    """List the newest finished race from a run's features for each measure that a race can serve, as Data shows it.

    Returns:
        Each race that judged a candidate, what another race says of its best search, and its analysis; the race for
        first results comes first.
    """
    newest: dict[Serves, Raced] = {}
    for analysis in list_analyses(run, Advice):
        with suppress(UserError):  # its file is damaged
            race = finished_race(analysis) if analysis.is_done() or analysis.has_earlier() else None
            if race is not None and race.is_judged and race.serves not in newest:
                other = elsewhere_of(analysis)
                newest[race.serves] = race, None if other is None else other[0], analysis
    return [newest[serves] for serves in get_args(Serves) if serves in newest]


def race_words_of(run: Run, recipe: str | None = None, is_brief: bool = False) -> str:
    """State what the newest race that judged a run's search said of it; empty if none did.

    Args:
        run: The run.
        recipe: The refinement of its embedding, empty for the embedding itself; None for the advice if it is
            of this run, else for the search with the largest gain.
        is_brief: Whether the verdicts alone are stated, in a line without figures.
    """
    judged = judged_in_race(run, recipe)
    return "" if judged is None else (brief_words if is_brief else searched_words)(*judged)


def judged_in_race(run: Run, recipe: str | None = None) -> tuple[Race, Outcome] | None:
    """Return the newest race that judged a run's search, and what it said; see `race_words_of`.

    A run with the same settings gives the same search: its race counts where none judged the run itself.
    """
    races = list(races_of(run))
    return _judged_as(races, run.id, recipe) or next(
        (found for other in _equal_runs(run, races) if (found := _judged_as(races, other, recipe))), None)


def _judged_as(races: Iterable[Race], run: str, recipe: str | None) -> tuple[Race, Outcome] | None:
    """Return the first race that judged a search of a run, and what it said."""
    for race in races:
        if recipe is None and race.best is not None and race.best.run == run:
            return race, race.best
        found = (outcome for outcome in race.judged
                 if outcome.run == run and recipe in (None, outcome.setup.recipe, str(outcome.setup.parsed)))
        if outcome := next(found, None):
            return race, outcome
    return None


def _equal_runs(run: Run, races: Iterable[Race]) -> Iterator[str]:
    """Yield the other trainings that races judged with the settings of a training."""
    method = run.spec().method
    if method == FROZEN:
        return
    for other in dict.fromkeys(of.run for race in races for of in race.judged if of.setup.method == method):
        with suppress(UserError):  # it was removed
            if other != run.id and settings_of(find_run(other, run.root)) == settings_of(run):
                yield other


def raced_together(run: Run, other: Run) -> Race | None:
    """Return the newest race that judged the embeddings of two runs, of which one may be its frozen features."""
    return next((race for race in races_of(run) if {run.id, other.id} <= {race.run, *race.trained}), None)


def group_size_of(run: Run) -> int:
    """Return a guess of how many images a kind has among a run's images, by the newest race; 0 without a race."""
    return next((race.near or race.group for race in races_of(run) if race.group), 0)


def races_of(run: Run) -> Iterator[Race]:
    """Yield the races of a run's images that can be read, the newest start first.

    What the user looks for decides: races that served it come first, and the others are read for it. Races that ended
    before they finished come last: what an older race said stays until a newer one is complete. A race that runs is
    left out, as its advice may change.
    """
    aim = kept_aim(run.root, run.spec().dataset)
    ended = [analysis for start in frozen_runs(run.root, run.spec().fingerprint)
             for analysis in list_analyses(start, Advice)]
    finished = [analysis for analysis in ended if analysis.is_done() or analysis.has_earlier()]
    stopped = [analysis for analysis in ended if analysis not in finished
               and analysis.status().state not in LIVE_STATES]
    for analysis in (*own_first(finished, aim), *own_first(stopped, aim)):
        with suppress(UserError):  # its file is damaged
            yield finished_race(analysis).serving(aim)


def own_first(races: Iterable[Analysis], aim: Serves | None) -> list[Analysis]:
    """List races that served an aim before the others, else in their order; None for no aim."""
    return sorted(races, key=lambda analysis: aim not in (None, kind_of(analysis.spec()).serves))
