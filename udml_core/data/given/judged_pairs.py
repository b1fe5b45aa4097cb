"""Pairs judged as the same or different, from which the end of "the same" is estimated, and the precision to reach.

The log has the lines of `pair_sets`. Its question is another than that of labeled pairs, which name classes, so that
neither log serves the other. A line {"precision": …} is the precision that the user chose last, and {"meaning": …} what
the user calls the same; undo leaves both. Answers count under the words they were given, because "one family" asks
another question than "one species".
"""

from __future__ import annotations

import time

from udml_core.base.errors import UserError
from udml_core.data.dataset import Dataset
from udml_core.data.given import log
from udml_core.data.given.judgments import judgments_elsewhere, keep_judgments
from udml_core.data.given.log import append_to_log, read_log
from udml_core.data.given.pair_sets import PairLog

KIND = "judged-pairs"
PRECISION = 0.95
"""Precision of a threshold unless the user chooses another."""
LONGEST_MEANING = 80
"""Longest description of what counts as the same, in letters."""
LEAST, MOST = 0.55, 0.99
"""Lowest and highest precision of a threshold: chance is a half, and certainty needs every pair."""


def judged_pairs(dataset: Dataset) -> PairLog:
    """Return the log of judged pairs of a data set."""
    return PairLog(dataset, KIND)


def log_version(dataset: Dataset) -> tuple[int, ...]:
    """Return numbers that change with every judgment; none before the first."""
    return log.log_version(dataset, KIND)


def wanted_precision(dataset: Dataset) -> float:
    """Return the precision that the user chose last, or the default."""
    rows = (row.get("precision") for row in read_log(dataset, KIND))
    valid = [float(value) for value in rows if isinstance(value, int | float) and LEAST <= value <= MOST]
    return valid[-1] if valid else PRECISION


def want_precision(dataset: Dataset, precision: float) -> None:
    """Store the precision that a threshold should have.

    Raises:
        UserError: It is out of range, or the log cannot be written.
    """
    if not LEAST <= precision <= MOST:
        raise UserError(f"The precision of a threshold must be between {LEAST:g} and {MOST:g}; got {precision:g}. "
                        "Choose a share such as 0.95.")
    if precision != wanted_precision(dataset):
        append_to_log(dataset, KIND, {"precision": precision, "time": time.time()})


def chosen_meaning(dataset: Dataset) -> str:
    """Return what counts as the same, as the user described it last; empty before."""
    return (_meanings(dataset) or [""])[-1]


def choose_meaning(dataset: Dataset, text: str) -> None:
    """Store what counts as the same, such as "one species"; an empty text removes it.

    The first words describe all answers before them, of pairs and of blind judgments.

    Raises:
        UserError: The text is too long, or the log cannot be written.
    """
    meaning = " ".join(text.split())
    if len(meaning) > LONGEST_MEANING:
        raise UserError(f"The meaning of \"the same\" has at most {LONGEST_MEANING} letters; got {len(meaning)}. "
                        "Shorten it.")
    if meaning != chosen_meaning(dataset):
        if not any(_meanings(dataset)):
            keep_judgments(dataset, meaning)
        append_to_log(dataset, KIND, {"meaning": meaning, "time": time.time()})


def keep_answers(dataset: Dataset) -> None:
    """Let all answers, of pairs and of blind judgments, count under the current words, as after a mended spelling.

    Raises:
        UserError: The log cannot be written.
    """
    meaning = chosen_meaning(dataset)
    keep_judgments(dataset, meaning)
    append_to_log(dataset, KIND, {"meaning": meaning, "keeps": True, "time": time.time()})


def answers_elsewhere(dataset: Dataset) -> dict[str, dict[str, int]]:
    """Count the answers that do not count under the current words.

    Returns:
        The number of answers by the words they were given, under "pair" and "blind judgment".
    """
    current = chosen_meaning(dataset)
    pairs = judged_pairs(dataset).answers_by_words()
    return {"pair": {words: count for words, count in pairs.items() if words != current},
            "blind judgment": judgments_elsewhere(dataset, current)}


def _meanings(dataset: Dataset) -> list[str]:
    """List all words for the same that were ever chosen, the first ones first."""
    rows = (row.get("meaning") for row in read_log(dataset, KIND))
    return [text[:LONGEST_MEANING] for text in rows if isinstance(text, str)]
