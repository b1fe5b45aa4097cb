"""What judges without labels say of a run's own embedding: one verdict for every page and command.

A race decides before the run's second opinion. Both call a difference only if it is certain among a family of
comparisons, so that no page contradicts the advice of a race by a difference that is likely to be chance.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

from udml_core.base.errors import UserError
from udml_core.base.memory import Memory
from udml_core.data.dataset import Dataset
from udml_core.exploration.race import Outcome, Race
from udml_core.exploration.race_figures import MEASURES, OTHER, SAID, recipe_words, said_words, setup_words
from udml_core.exploration.race_measured import Serves, Verdict
from udml_core.exploration.search_names import named_search
from udml_core.methods import find_method
from udml_core.numerics.refinement import Recipe
from udml_core.runs import Run, find_run, list_runs
from udml_core.runs.analyses import analysis_at, find_analysis
from udml_core.runs.analyses.kinds.opinion import Opinions, Verdicts
from udml_core.runs.opinions import NO_GAIN, adds_nothing, agreement_words, kept_words, newest_opinion, opinion_lines
from udml_core.runs.run_comparison import settings_of
from udml_core.runs.search import FINAL, FROZEN
from udml_core.runs.search_opinion import run_against_run
from udml_core.runs.selection import preferred_epoch
from udml_core.runs.used import chosen_at, used_search
from udml_core.work.jobs.advising import is_trial, refinement_of
from udml_core.work.jobs.answering import aim_of
from udml_core.work.jobs.concluding import advised_beside, suggested_by_race, ticket_of
from udml_core.work.jobs.follow_ups import steps_in_use
from udml_core.work.jobs.raced import judged_in_race, race_words_of, races_of

ADVISED, IN_USE = "the best search", "your search"
"""How the search is called that a race advises, and the search that the user chose."""
BEST = {"better": "Better than {}; confirm it by judgments", "worse": "Keep {}",
        "cannot tell": "Keep {}, unless your eyes see more"}
"""What follows from the verdict on a run against another search, in what the newest race serves."""
OPEN = "Your eyes decide between this training and {}"
"""What follows where judges see no clear difference at all."""
ALONE = "the training alone is not better than the plain search"
"""Why a gain of a training with further steps does not count."""
_MEMORY = Memory(8)
"""What judges say of runs against advised searches."""


@dataclass(frozen=True)
class Said:
    """What judges say of a run's embedding in comparison with the frozen features.

    Attributes:
        verdicts: The verdicts.
        is_raced: Whether a race gave them; else the run's second opinion.
        unraced: Sentences on the races that did not judge this embedding; empty without such a race.
        epochs: That judges chose the epoch by the same images; empty if they did not.
    """

    verdicts: Verdicts
    is_raced: bool
    unraced: str = ""
    epochs: str = ""

    @property
    def note(self) -> str:
        """What follows the verdicts."""
        return " ".join(filter(None, (self.unraced, self.epochs)))


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
    return Said(opinions.verdicts("final"), is_raced=False, unraced=unraced_words(run), epochs=epochs_words(run))


def said_lines(run: Run) -> list[str]:
    """State in text what judges say of a run's own embedding, for the command line and the model card.

    Returns:
        The verdicts, then each judge's figures if the run has a second opinion; none if nothing judged it.
    """
    said = said_of_run(run, newest_opinion(run))
    with suppress(UserError):  # the images, the advised search or a judge's features are gone
        if said is not None and not said.is_raced and (best := best_words(run, run.dataset())):
            said = replace(said, unraced=f"{best}.")
    lines = opinion_lines(run, "" if said is None else said.note)
    if said is not None and said.is_raced:
        agreed = agreement_words(said.verdicts, run.evaluation())
        lines = [" ".join(filter(None, (race_words_of(run, ""), agreed))), *lines[1:]]
    return lines + list(filter(None, [kept_words(run)])) if lines else lines


@dataclass(frozen=True)
class Rival:
    """The search that a training must beat.

    Attributes:
        run: Its run.
        frame: Its embedding: `final`, or the id of a refinement of all images.
        words: The search in words, within a sentence.
        serves: What the newest race of the images serves.
        name: How the search is called.
    """

    run: Run
    frame: str
    words: str
    serves: Serves
    name: str


@dataclass(frozen=True)
class Stand:
    """How a run stands beside the search in use, else beside the advised search.

    Attributes:
        rival: The search.
        head: What to do, or that the search begins with the run: a clause that begins a sentence.
        why: What judges say, or what the search adds to the run, about "this training".
        is_begun: Whether the search begins with this very training, so that nothing speaks against the search.
        prefers_run: Whether judges prefer the run.
        is_open: Whether judges see no clear difference in anything, so that only eyes can decide.
        own: The judged embedding of the run: `final`, or the id of its refinement by the steps of the search in use.
        said: The verdicts on the run in comparison with the search, in words; empty where the search begins with it.
    """

    rival: Rival
    head: str
    why: str
    is_begun: bool = False
    prefers_run: bool = False
    is_open: bool = False
    own: str = FINAL
    said: str = ""

    @property
    def words(self) -> str:
        """What to do, and why: a clause that begins a sentence."""
        return f"{self.head}: {self.why}"


def rival_of(run: Run, dataset: Dataset) -> Rival | None:
    """Return the search that the user chose for a run's images, else the search that a race advises.

    Args:
        run: The run.
        dataset: Its images.

    Returns:
        None without such a search, if it is the run's own, or if it is advised, but not all images are prepared for it.
    """
    rival = _search_of(run, dataset)
    return None if rival is None or rival.run.id == run.id else rival


def _search_of(run: Run, dataset: Dataset) -> Rival | None:
    """Return the search of `rival_of`, even if it is of the run itself."""
    same = [other for other in list_runs(run.root) if other.spec().fingerprint == dataset.fingerprint]
    if (used := used_search(same)) is not None:
        return Rival(*used, search_words(*used), _aim_of(*used), IN_USE)
    if (found := advised_beside(run, dataset)) is None:
        own = suggested_by_race(dataset, run.root)
        if own is None or own.conclusion.use is None or own.conclusion.use.run != run.id:
            return None
        found = own.conclusion.race, own.conclusion.use
    return _advised_rival(run, *found)


def _advised_rival(run: Run, race: Race, best: Outcome) -> Rival | None:
    """Return the search that a race of a run's images advises; None if not all images are prepared for it."""
    rival = find_run(best.run, run.root)
    refined = analysis_at(rival, refinement_of(best)) if best.setup.recipe else None
    if refined is not None and not refined.is_done():
        return None
    frame = FINAL if refined is None else refined.id
    return Rival(rival, frame, setup_words(race, best.setup), race.serves, ADVISED)


def _aim_of(run: Run, frame: str) -> Serves:
    """Return by which measure a search that the user chose is compared: what it gains, else what its race serves."""
    judged = judged_in_race(run, _recipe_of(run, frame))
    if judged is None:
        return next((race.serves for race in races_of(run)), "first")
    return aim_of(*judged)


def _begins(run: Run, search: Rival) -> bool:
    """Return whether a search takes a run, or one with the same settings, as its training, and adds further steps."""
    is_trained = search.frame != FINAL and run.spec().method != FROZEN
    return is_trained and (search.run.id == run.id or settings_of(search.run) == settings_of(run))


def search_words(run: Run, frame: str) -> str:
    """Return a search in words, within a sentence: its method, if one was trained, then the steps of a refinement."""
    method = run.spec().method
    steps = _steps_of(run, frame)
    title = "" if method == FROZEN else find_method(method).card.title
    return ", then ".join(filter(None, (title, steps))) or "the plain search"


def _recipe_of(run: Run, frame: str) -> str:
    """Return the recipe of a search; empty for the run's own embedding."""
    return "" if frame == FINAL else str(find_analysis(run, frame).spec().recipe)


def _steps_of(run: Run, frame: str) -> str:
    """Return the steps of a search in words; empty for the run's own embedding."""
    return recipe_words(Recipe.parse(_recipe_of(run, frame)))


def rival_verdicts(run: Run, rival: Rival, dataset: Dataset, own: str = FINAL) -> Verdicts | None:
    """Return what judges say of a run in comparison with another search; None if none can compare the two.

    Args:
        run: The run.
        rival: The search.
        dataset: The images of both.
        own: The judged embedding of the run.

    Raises:
        UserError: A stored embedding is damaged, or was removed.
    """
    key = (run.id, run.stored_status().ticket, own, ticket_of(run, own), rival.run.id, rival.frame,
           ticket_of(rival.run, rival.frame))
    opinions = _MEMORY.get(key, partial(run_against_run, run, rival.run, dataset, rival.frame, own))
    return None if opinions is None else opinions.verdicts("final")


def stand_of(run: Run, dataset: Dataset) -> Stand | None:
    """Return how a run stands beside the search in use, else beside the advised search; judges compare both.

    Args:
        run: The run.
        dataset: Its images.

    Returns:
        None without another search that was used, or if no judge can compare them.

    Raises:
        UserError: A stored embedding is damaged, or was removed.
    """
    search = _search_of(run, dataset)
    if search is not None and _begins(run, search):
        return Stand(search, f"Part of {search.name}", f"{search.name} begins with this training and adds "
                                                       f"{_steps_of(search.run, search.frame)}", is_begun=True)
    if search is None or search.run.id == run.id:
        return None
    own = _with_steps(run, search)
    verdicts = rival_verdicts(run, search, dataset, own)
    if verdicts is None:
        return None
    sees, verdicts = verdicts, verdicts if own == FINAL else _held_by_training(verdicts, run)
    is_open = sees == verdicts and set(verdicts) == {"cannot tell"} and not adds_nothing(run)
    says = OPEN.format(search.name) if is_open else beside_best(search.serves, verdicts, search.name)
    served, other = _served_first(search.serves, verdicts)
    with_what = "alone" if own == FINAL else "with the same steps"
    doubt = "" if sees == verdicts else f". What else they see as better does not count, as {ALONE}"
    said = _said_once(verdicts)
    return Stand(search, says, f"compared with {search.name} ({search.words}), judges see {said} in this training "
                               f"{with_what}{doubt}", is_open=is_open, own=own, said=said,
                 prefers_run="better" in (served, other) and served != "worse")


def against_advised(run: Run, frame: str, dataset: Dataset) -> str:
    """Return what judges say of a search that a user chose against the search that a race advises, in sentences.

    Args:
        run: The run of the search.
        frame: Its embedding.
        dataset: The images.

    Returns:
        Empty without another search that is advised, or if no judge can compare the two.
    """
    found = advised_beside(run, dataset)
    rival = None if found is None else _advised_rival(run, *found)
    verdicts = None if rival is None else rival_verdicts(run, rival, dataset, frame)
    if rival is None or verdicts is None:
        return ""
    idle = f"{NO_GAIN} " if adds_nothing(run) else ""
    return f"{idle}Compared with {ADVISED} ({rival.words}), judges see {_said_once(verdicts)}."


def newer_training(runs: Sequence[Run]) -> Run | None:
    """Return the newest training that ended after the user chose a search; None without one, or without a choice.

    Args:
        runs: The runs of the same images, the newest first.
    """
    used = used_search(runs)
    if used is None:
        return None
    since = chosen_at(used[0])
    return next((run for run in runs if run.spec().method != FROZEN and not is_trial(run) and run.id != used[0].id
                 and run.stored_status().state == "done" and (run.stored_status().finished or 0.0) > since), None)


def _held_by_training(verdicts: Verdicts, run: Run) -> Verdicts:
    """Return the verdicts on a training with further steps; a gain counts only if the training alone has it, too."""
    said = said_of_run(run, newest_opinion(run))
    if said is None:
        return verdicts
    return Verdicts(*("cannot tell" if verdict == "better" != alone else verdict
                      for verdict, alone in zip(verdicts, said.verdicts, strict=True)))


def _said_once(verdicts: Verdicts) -> str:
    """Return two verdicts in words, once if they are equal."""
    if verdicts.first != verdicts.groups:
        return said_words(*verdicts)
    said = SAID[verdicts.first]
    return f"{said}{' in' * (verdicts.first == 'cannot tell')} {MEASURES['first']} and {MEASURES['groups']}"


def _with_steps(run: Run, search: Rival) -> str:
    """Return the embedding of a run that is compared with a search: refined by its steps if that is computed."""
    steps = steps_in_use(run) if search.name == IN_USE else None
    refined = None if steps is None else analysis_at(run, steps)
    return FINAL if refined is None or not refined.is_done() else refined.id


def best_words(run: Run, dataset: Dataset) -> str:
    """Return in a clause whether to keep the search in use, else the advised search, or to use a run; see `stand_of`.

    Returns:
        A clause that begins a sentence; empty where nothing is known.
    """
    stand = stand_of(run, dataset)
    return "" if stand is None else stand.words


def beside_best(serves: Serves, verdicts: Verdicts, name: str = ADVISED) -> str:
    """Return what follows from the verdicts on a run against another search.

    Args:
        serves: What the newest race serves.
        verdicts: The verdicts.
        name: How the other search is called.
    """
    served, other = _served_first(serves, verdicts)
    if (served, other) == ("cannot tell", "better"):
        return f"As good as {name} for {MEASURES[serves]}, and better for {MEASURES[OTHER[serves]]}"
    return BEST[served].format(name)


def _served_first(serves: Serves, verdicts: Verdicts) -> tuple[Verdict, Verdict]:
    """Return the verdict on what a race serves, then the other one."""
    return (verdicts.first, verdicts.groups) if serves == "first" else (verdicts.groups, verdicts.first)


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
        return "The race judged the same step as a refinement of the features, so what Best search says stays."
    refined = judged_in_race(lacking)
    which = "this training" if len(runs) == 1 else f"the training with {find_method(method).card.title}"
    only = "" if refined is None else f" alone, only as part of {named_search(refined[0], refined[1].setup)}"
    return f"No race judged {which}{only}, so what Best search says stays."
