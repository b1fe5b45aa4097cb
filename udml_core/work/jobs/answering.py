"""The search that a user chose for some images: what race and judgments say of it, and how it stands in a race.

Every page says the same of it: the choice stands first, then the user's own judgments, then the judges of a race.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal

from udml_core.data.dataset import Dataset
from udml_core.exploration.race import Outcome, Race
from udml_core.exploration.race_advice import equals_of
from udml_core.exploration.race_certainty import close_words
from udml_core.exploration.race_conclusion import Conclusion, Judgments, Stance
from udml_core.exploration.race_figures import HEADINGS, OTHER, balance_words, said_word, shares
from udml_core.exploration.race_measured import Measured, Serves, Verdict
from udml_core.runs.recipe_choice import plainly
from udml_core.work.jobs.concluding import JUDGED, stored_judgments

SAYS: Mapping[Stance, tuple[Verdict, str]] = {
    "better": ("better", "prefer* it"), "level": ("cannot tell", "cannot tell which is better"),
    "worse": ("worse", "prefer* the plain search")}
"""The verdict of judgments that decide, and what they say where judges say something else; `*` is the verb's ending."""
Relation = Literal["same", "equal", "other", "unjudged"]
"""How a chosen search stands in a race: it is what the race concludes, does about as well, does not, or took no part.
"""


def evidence_words(race: Race, outcome: Outcome, root: Path, dataset: Dataset | None = None) -> str:
    """Return what judges and judgments say of a search against the plain search, a sentence for each measure.

    Args:
        race: The race.
        outcome: A judged candidate.
        root: The folder of runs.
        dataset: The images; without them, they are loaded.
    """
    said = []
    for measured, serves, judgments in _measures(race, outcome, root, dataset):
        close = close_words(race, outcome) if serves == race.serves else ""
        clause = _clause(measured, judgments)
        said.append(f"{HEADINGS[serves]}: {_verdict(measured, close)}{clause and f'; {clause}'}.")
    return " ".join(said)


def judged_words(race: Race, outcome: Outcome, root: Path, dataset: Dataset | None = None) -> str:
    """Return what judgments alone say of a search against the plain search, in sentences; empty without any."""
    return " ".join(f"{HEADINGS[serves]}: {clause}." for measured, serves, judgments in _measures(
        race, outcome, root, dataset) if (clause := _clause(measured, judgments)))


def _measures(race: Race, outcome: Outcome, root: Path, dataset: Dataset | None
              ) -> Iterator[tuple[Measured, Serves, Judgments]]:
    """Yield what judges measured of a search, the served measure first, with the judgments of the same."""
    for serves in (race.serves, OTHER[race.serves]):
        if outcome.against_start is not None:
            yield outcome.against_start.served(serves), serves, stored_judgments(
                race, outcome, JUDGED[serves], root, dataset)


def _verdict(measured: Measured, close: str) -> str:
    """Return a verdict with its count, such as "better (by looks, 76 of 100 searches better, 23 worse)".

    Args:
        measured: What the judges measured.
        close: What follows a gain that is a close call; empty if it is none.
    """
    counted = shares(measured)
    if measured.said == "better" and close:
        return f"slightly better{close}" + ("" if counted is None else f" ({_counted(*counted)})")
    said = said_word(measured)
    return said if counted is None else f"{said} ({_counted(*counted)}{balance_words(measured)})"


def _counted(better: int, _same: int, worse: int) -> str:
    return f"by looks, {better} of 100 searches better, {worse} worse"


def _clause(measured: Measured, judgments: Judgments) -> str:
    """Return what judgments say beside a verdict, such as "your 13 judgments agree"; empty without any."""
    words, ending = judgments.words, judgments.verb_ending
    if judgments.stance == "none":
        return ""
    if judgments.stance == "open":
        return f"{words} {'does' if ending else 'do'} not decide yet"
    verdict, says = SAYS[judgments.stance]
    return f"{words} agree{ending}" if verdict == measured.said else f"{words} {says.replace('*', ending)}"


def aim_of(race: Race, outcome: Outcome) -> Serves:
    """Return by which measure a search is compared with others: the one in which alone it gains, else the race's."""
    of = outcome.against_start
    if of is None or (of.first.said == "better") == (of.groups.said == "better"):
        return race.serves
    return "first" if of.first.said == "better" else "groups"


def relation_to(of: Conclusion, race: Race, run: str, recipe: str | None) -> tuple[Relation, Outcome | None]:
    """Return how a chosen search stands in a race, and the candidate that it is; None if it took no part.

    Args:
        of: What race and judgments conclude.
        race: The race.
        run: Id of the run of the chosen search.
        recipe: The recipe of the chosen search; empty for the run's own embedding, None for another embedding.
    """
    own = next((outcome for outcome in (*race.judged, *of.race.judged) if recipe is not None and outcome.run == run
                and plainly(outcome.setup.recipe) == plainly(recipe)), None)
    if own is None:
        return "unjudged", None
    if of.use is None:
        return "other", own
    level = {other.setup for other in (*equals_of(of.race), of.race.largest) if other is not None}
    return "same" if own.setup == of.use.setup else "equal" if own.setup in level else "other", own
