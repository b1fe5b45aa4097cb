"""The conclusion of a race with the blind judgments that are stored, for every page and command."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from udml_core.base.errors import UserError, counted, listed
from udml_core.base.memory import Memory
from udml_core.data.dataset import Dataset
from udml_core.data.given import duplicate_decisions, exclusions, judged_pairs, judgments
from udml_core.data.given.log import log_version
from udml_core.exploration.race import FROZEN, Outcome, Race
from udml_core.exploration.race_conclusion import UNJUDGED, Conclusion, Judgments, conclude, subject_of
from udml_core.exploration.race_elsewhere import Elsewhere
from udml_core.exploration.race_figures import MEASURES, said_words
from udml_core.exploration.race_measured import Serves
from udml_core.exploration.search_names import named_search
from udml_core.runs import Run, find_run, frozen_runs
from udml_core.runs.aims import kept_aim
from udml_core.runs.analyses import REFINED, Analysis, analysis_at, find_analysis, list_analyses
from udml_core.runs.analyses.kinds.advice import Advice
from udml_core.runs.search import Retrieval
from udml_core.runs.search.copies import known_copies
from udml_core.runs.search.differing import Comparison, Results, Side, compare, side_name
from udml_core.runs.search.judged_runs import judged_starts, stance_of
from udml_core.runs.search.judging import ENOUGH, Judging
from udml_core.runs.search.judging_words import (
    EVEN,
    RULED_OUT,
    could_decide_words,
    finding_words,
    level_words,
    score_words,
)
from udml_core.runs.search.query import Gallery
from udml_core.runs.search.stored_comparison import stored_comparison
from udml_core.work.jobs.advising import refinement_of
from udml_core.work.jobs.raced import (
    elsewhere_of,
    finished_race,
    group_size_of,
    own_first,
    races_beside,
    races_of,
)

SEARCHED = (exclusions.KIND, duplicate_decisions.KIND)
"""The logs on which it depends which queries differ."""
START = "the plain search"
JUDGED: Mapping[Serves, Results] = {"first": "first", "groups": "group"}
"""What people look at to judge each measure."""
ANSWERED_BY: Mapping[Results, Sequence[Results]] = {"first": ("first",), "ten": ("ten",), "group": ("group", "ten")}
"""Which judgments answer what is asked, the first that exist: of whole groups, earlier versions asked the first ten."""
_MEMORY = Memory(16)
"""Comparisons and what their judgments say, by what they depend on."""


def conclusion_of(analysis: Analysis, dataset: Dataset | None = None, for_other_aim: Race | None = None,
                  aim: Serves | None = None) -> Conclusion:
    """Return what to use after a race that ended, and after the judgments of its advice.

    Args:
        analysis: The race.
        dataset: Its images; without them, they are loaded.
        for_other_aim: A finished race that serves what this race does not serve.
        aim: What the user looks for; None for what the race served.
    """
    race, is_done = finished_race(analysis).serving(aim), analysis.is_done() or analysis.has_earlier()
    other = elsewhere_of(analysis, aim) if is_done else None
    beside = [of for of, _ in races_beside(analysis)] if is_done else []
    return conclusion_on(race, analysis.run.root, dataset, is_done, None if other is None else other[0], for_other_aim,
                         beside)


def conclusion_on(race: Race, root: Path, dataset: Dataset | None = None, is_done: bool = True,
                  elsewhere: Elsewhere | None = None, for_other_aim: Race | None = None,
                  others: list[Race] | None = None) -> Conclusion:
    """Return the conclusion of a race whose analysis is not at hand; see `conclude`.

    Args:
        race: The race.
        root: The folder of runs.
        dataset: Its images; without them, they are loaded.
        is_done: Whether it is finished.
        elsewhere: What another race says of its best search.
        for_other_aim: A finished race that serves what this race does not serve.
        others: All other finished races of the same images, the newest first.
    """
    own, candidate = subject_of(race, elsewhere)
    said = UNJUDGED if candidate is None else stored_judgments(own, candidate, results_of(race), root, dataset)
    is_ready = candidate is not None and is_prepared(candidate, root)
    return conclude(race, said, is_done, elsewhere, for_other_aim, others or (), is_ready)


def results_of(race: Race) -> Results:
    """Return what blind judgments of a race look at: first results, or whole groups."""
    return JUDGED[race.serves]


def is_prepared(outcome: Outcome, root: Path) -> bool:
    """Return whether all images are prepared for a search, because someone used it."""
    if not outcome.setup.recipe:
        return False
    with suppress(UserError):  # its run was removed
        return analysis_at(find_run(outcome.run, root), refinement_of(outcome)).is_done()
    return False


def stored_judgments(race: Race, outcome: Outcome, results: Results, root: Path,
                     dataset: Dataset | None = None) -> Judgments:
    """Return what stored judgments say of a candidate against the frozen features, read once for each version.

    Args:
        race: The race.
        outcome: A judged candidate.
        results: What was judged.
        root: The folder of runs.
        dataset: The images; without them, they are loaded.
    """
    try:
        start, run = find_run(race.run, root), find_run(outcome.run, root)
        images = start.dataset() if dataset is None or dataset.fingerprint != start.spec().fingerprint else dataset
        refinement = analysis_at(run, refinement_of(outcome)) if outcome.setup.recipe else None
        if refinement is not None and not refinement.is_done():
            return UNJUDGED
        frame, names = "final" if refinement is None else refinement.id, (START, named_search(race, outcome.setup))
        ticket = ticket_of(run, frame)
        versions = tuple(log_version(images, kind) for kind in (*SEARCHED, judgments.KIND, judged_pairs.KIND))
        key = start.root, start.id, run.id, frame, ticket, results, names, images.fingerprint, versions
        return _MEMORY.get(key, lambda: _judgments(start, run, frame, ticket, images, results, names))
    except UserError:  # a run, the images or an embedding are missing, which pages say
        return UNJUDGED


def ticket_of(run: Run, frame: str) -> float:
    """Return what changes when an embedding of a run is computed again; 0 for an embedding of its training."""
    return find_analysis(run, frame).stored_status().ticket if frame.startswith(REFINED) else 0.0


def _judgments(start: Run, run: Run, frame: str, ticket: float, dataset: Dataset, results: Results,
               names: tuple[str, str]) -> Judgments:
    """Return what the judgments of one pair of embeddings say; of several names of the pair, the most judged counts."""
    for of_results in ANSWERED_BY[results]:
        found = [said for of, own, gallery in judged_starts(start, run, frame, of_results, dataset) if (
            said := _said(compared(of, run, own, frame, gallery, of_results, dataset, ticket), names)).count]
        if found:
            return max(found, key=lambda of: (of.stance in ("better", "level", "worse"), of.count))
    return UNJUDGED


def compared(start: Run, run: Run, own: str, frame: str, gallery: Gallery, results: Results, dataset: Dataset,
             ticket: float = 0.0) -> Comparison:
    """Return the queries for which two embeddings differ, searched once while images and embeddings stay.

    Args:
        start: The run of the first embedding.
        run: The run of the second embedding.
        own: The name of the first embedding within its run.
        frame: The name of the second embedding within its run.
        gallery: The images that are searched.
        results: What is judged.
        dataset: The images.
        ticket: What changes when the second embedding is computed again.
    """
    copies = known_copies(dataset, start.root)
    group = group_size_of(start) if results == "group" else 0
    key = (start.root, start.id, own, run.id, frame, ticket, gallery, results, dataset.fingerprint,
           hash(copies.tobytes()), log_version(dataset, exclusions.KIND), group)
    names = side_name(start.id, own), side_name(run.id, frame)
    return _MEMORY.get(key, lambda: stored_comparison(
        dataset, names, gallery, results, copies, (ticket_of(start, own), ticket, group), lambda: compare(
            Side(Retrieval(start, dataset), own), Side(Retrieval(run, dataset), frame), gallery, results, group)))


def _said(comparison: Comparison, names: tuple[str, str]) -> Judgments:
    """Return what everyone's judgments of a comparison say."""
    judging = Judging(comparison)
    people, share = judging.people(), judging.shared_share()
    if not share.count:
        return UNJUDGED
    stance, is_own = stance_of(judging), people == [judging.judge]
    score = score_words(judging, people[0], names) if len(people) == 1 else ""
    finding = RULED_OUT if share.is_decided and score else "" if score else finding_words(share, comparison, names)
    count = judging.decided(people[0]) if len(people) == 1 else share.count
    return Judgments(stance, count, "" if is_own else listed(people), score, finding,
                     could_decide_words(judging) if stance == "open" else "",
                     stance == "open" and count >= ENOUGH and share.mean < EVEN,
                     _level_words(judging) if stance == "level" else "")


def _level_words(judging: Judging) -> str:
    """Return what judgments that are level say, as a predicate."""
    (judge, *_) = judging.people()
    return level_words(Judging(judging.comparison, judge)) or "found both equally good"


@dataclass(frozen=True)
class Suggestion:
    """What the newest finished race of a data set suggests.

    Attributes:
        analysis: The race.
        race: The same as its outcomes.
        conclusion: What to use after the race and the judgments of its advice.
    """

    analysis: Analysis
    race: Race
    conclusion: Conclusion

    @property
    def method(self) -> str:
        """The method of the search to use; `frozen` if that needs no training; empty to keep the plain search."""
        return "" if self.conclusion.use is None else self.conclusion.use.setup.method

    @property
    def is_trained(self) -> bool:
        """Whether the search to use needs a training."""
        return self.method not in ("", FROZEN)

    @property
    def needless(self) -> str:
        """That no training is needed, in sentences; empty if one is advised, or if the plain search stays."""
        if self.conclusion.use is None or self.is_trained:
            return ""
        tried = len({of.run for of in self.race.judged if of.setup.method != FROZEN})
        also = f": the race tried {counted(tried, 'training')} and advises none" if tried else ""
        return f"It needs no training{also}."

    @property
    def training(self) -> Outcome | None:
        """The search with the training to begin with: that to use, else the largest sure gain; None without one."""
        if self.is_trained:
            return self.conclusion.use
        better = [of for of in self.race.judged if of.setup.method != FROZEN and self.race.is_certain(of)]
        return max(better, key=lambda of: self.race.gain(of).difference, default=None)

    @property
    def run(self) -> Run | None:
        """The training to begin with; None without one, or if it was removed."""
        with suppress(UserError):
            if self.training is not None:
                return find_run(self.training.run, self.analysis.run.root)
        return None

    @property
    def words(self) -> str:
        """What the race served, and what to use."""
        return f"{MEASURES[self.race.serves].capitalize()}: {self.conclusion.headline}"

    def judged_of(self, method: str) -> Outcome | None:
        """Return the candidate with a method that the race judged, alone or else with further steps; None without one.

        Args:
            method: The method, or a step of a refinement of the same name.
        """
        if self.training is not None and self.training.setup.method == method:
            return self.training  # the one that the headline names, if it names one
        alone = ((method, ""), (FROZEN, method))
        judged = [of for of in self.race.judged if of.setup.backbone == self.race.start.backbone
                  and (of.setup.method == method != FROZEN or (of.setup.method, of.setup.recipe) in alone)]
        return min(judged, key=lambda of: (of.setup.method, of.setup.recipe) not in alone, default=None)

    def words_for(self, outcome: Outcome) -> str:
        """Return what the race said of a candidate, in a sentence."""
        return (f"In the race on these images, {named_search(self.race, outcome.setup)}: "
                f"{said_words(*self.race.verdicts(outcome))}.")


def suggested_by_race(dataset: Dataset, root: Path) -> Suggestion | None:
    """Return what the newest finished race of a data set suggests for what the user looks for.

    A race that served it comes before one that only measured it.

    Returns:
        None without a race that judged a candidate.
    """
    aim = kept_aim(root, dataset.name)
    for run in frozen_runs(root, dataset.fingerprint):
        for analysis in own_first(list_analyses(run, Advice), aim):
            race = finished_race(analysis).serving(aim)
            if race.is_judged and (analysis.is_done() or analysis.has_earlier()):
                return Suggestion(analysis, race, conclusion_of(analysis, dataset, aim=aim))
    return None


def advised_beside(run: Run, dataset: Dataset | None = None) -> tuple[Race, Outcome] | None:
    """Return the search to use after the newest race of a run's images that says one, if it is of another run.

    Args:
        run: The run.
        dataset: Its images; without them, they are loaded.
    """
    for race in races_of(run):
        of = conclusion_on(race, run.root, dataset)
        if race.best is not None or of.use is not None:
            return None if of.use is None or of.use.run == run.id else (of.race, of.use)
    return None
