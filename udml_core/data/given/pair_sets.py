"""Pairs of images labeled as similar or dissimilar, by a user or in a file.

Each line of a log is an answer about two images by name, with `null` for a skipped pair, or `undo`, which reverts the
last answer that was not reverted yet.
"""

from __future__ import annotations

import csv
import io
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from udml_core.base.arrays import Array, Booleans, Integers, rows_of
from udml_core.base.errors import UserError, quoted
from udml_core.base.files import read_regular
from udml_core.base.spreadsheets import unguarded, write_rows
from udml_core.data.dataset import Dataset
from udml_core.data.given.log import append_to_log, read_log
from udml_core.data.sources.table_files import separator

MOST_PAIRS = 500_000
"""Largest number of pairs drawn from labels, as in NML's paper."""
KIND = "pairs"
MISSING = -1
"""Index of an image that the data set does not contain now."""
COLUMNS = ("first", "second", "same")
MOST_BYTES = 64_000_000
"""Largest file of pairs; a million pairs of long names fit."""
EXPECTED_FILE = "Expected a CSV file in UTF-8 with the columns first, second and same."
WORDS = {"1": True, "true": True, "same": True, "0": False, "false": False, "different": False}


def pair_keys(pairs: Integers) -> Array:
    """Return a number (p,) int64 for each pair (p, 2) of indices below 2³¹.

    The number does not depend on the order of the two images.
    """
    ordered = np.sort(pairs, axis=1)
    return ordered[:, 0] << 31 | ordered[:, 1]


@dataclass(frozen=True, eq=False)
class PairSet:
    """Pairs of images with their labels.

    Attributes:
        pairs: Indices of two images for each pair (p, 2) int64.
        same: Whether each pair is similar (p,) bool.
    """

    pairs: Integers
    same: Booleans

    def __len__(self) -> int:
        return len(self.same)

    def within(self, images: Integers) -> PairSet:
        """Return the pairs with both images among `images` (m,).

        `images` is ascending. The pairs are indices into it.
        """
        rows = rows_of(images, self.pairs)
        kept = (rows >= 0).all(axis=1)
        return PairSet(rows[kept], self.same[kept])

    def without(self, known: PairSet) -> PairSet:
        """Return the pairs that `known` does not contain with the same label.

        The images may be in either order.
        """
        keys, known_keys = (2 * pair_keys(pair_set.pairs) + pair_set.same for pair_set in (self, known))
        kept = ~np.isin(keys, known_keys)
        return PairSet(self.pairs[kept], self.same[kept])

    def check(self) -> None:
        """Check that there are similar and dissimilar pairs.

        Otherwise distances shrink to 0 or grow without bound.

        Raises:
            UserError: All pairs are similar, all are dissimilar, or there are none.
        """
        same = int(self.same.sum())
        if not 0 < same < len(self):
            raise UserError(f"Learning from pairs needs pairs of both kinds among the training images, got {same} "
                            f"similar and {len(self) - same} dissimilar pairs. Add pairs of the missing kind.")


class Answer(NamedTuple):
    """An answer about two images.

    Attributes:
        first: Index of an image; `MISSING` if the data set no longer contains it.
        second: Index of the other image.
        same: Whether they are similar; None for a skipped pair.
        time: Time of the answer in seconds since 1970; 0 if it is unknown.
        of: The embedding in which the pair was judged, RUN:FRAME; empty if it is unknown.
    """

    first: int
    second: int
    same: bool | None
    time: float
    of: str = ""

    @property
    def pair(self) -> tuple[int, int]:
        """The two images, the lower index first."""
        return min(self.first, self.second), max(self.first, self.second)


@dataclass(frozen=True)
class PairLog:
    """A user's answers about pairs of images.

    Attributes:
        dataset: The data set of the images.
        kind: Name of the log; logs of other kinds ask another question.
    """

    dataset: Dataset
    kind: str = KIND

    def add(self, first: int, second: int, same: bool | None, of: str = "") -> None:
        """Store whether two images are similar, or that they were skipped; the last answer about a pair counts.

        Args:
            first: Index of an image.
            second: Index of the other image.
            same: Whether they are similar; None to skip them.
            of: The embedding in which the pair is judged, RUN:FRAME; empty if that does not matter.

        Raises:
            UserError: The indices are equal or out of range, or the log cannot be written.
        """
        count = len(self.dataset)
        if first == second or not (0 <= first < count and 0 <= second < count):
            raise UserError(f"A pair needs two different images with indices from 0 to {count - 1}, got {first} and "
                            f"{second}. Choose two other images.")
        names = self.dataset.names
        append_to_log(self.dataset, self.kind, {"first": names[first], "second": names[second], "same": same,
                                                "time": time.time()} | ({"of": of} if of else {}))

    def undo(self) -> tuple[int, int, bool | None] | None:
        """Revert the last answer and return it.

        The result is None without an answer, or if its images no longer exist.
        """
        answers = self._effective_answers()
        if not answers:
            return None
        append_to_log(self.dataset, self.kind, {"undo": True, "time": time.time()})
        return answers[-1][:3] if MISSING not in answers[-1].pair else None

    def read(self) -> PairSet:
        """Return the pairs with their last answers, without skipped pairs, in the order of their first answers."""
        return _pair_set([(*pair, answer.same) for pair, answer in self.answers().items() if answer.same is not None])

    def answers(self) -> dict[tuple[int, int], Answer]:
        """Return the last answer about each pair, the lower index first, in the order of their first answers."""
        return {answer.pair: answer for answer in self._effective_answers() if MISSING not in answer.pair}

    def answers_by_words(self) -> dict[str, int]:
        """Count the answers by the words for "the same" under which they were given."""
        return dict(Counter(words for words, _ in self._replay()[1]))

    def _effective_answers(self) -> list[Answer]:
        """Return the answers under the current words that were not reverted, in order."""
        current, rows = self._replay()
        effective = [row for words, row in rows if words == current]
        index_of = self.dataset.indices_by_name({row[name] for row in effective for name in COLUMNS[:2]})
        return [Answer(index_of.get(row["first"], MISSING), index_of.get(row["second"], MISSING), row["same"],
                       _time_of(row), str(row.get("of", ""))) for row in effective]

    def _replay(self) -> tuple[str, list[tuple[str, dict[str, Any]]]]:
        """Return the current words for "the same", and the lines of the answers that were not reverted, with theirs.

        The first words describe the answers before them, too. A line that keeps the answers gives all of them its
        words.
        """
        current, rows = "", list[tuple[str, dict[str, Any]]]()
        for row in read_log(self.dataset, self.kind):
            if isinstance(meaning := row.get("meaning"), str):
                rows = [(meaning if row.get("keeps") is True or not words else words, answer) for words, answer in rows]
                current = meaning
            elif row.get("undo") is True:
                last = next((at for at in reversed(range(len(rows))) if rows[at][0] == current), None)
                rows = [of for at, of in enumerate(rows) if at != last]
            elif _is_answer(row):
                rows.append((current, row))
        return current, rows


def _is_answer(row: Mapping[str, Any]) -> bool:
    is_named = type(row.get("first")) is str and type(row.get("second")) is str
    return is_named and "same" in row and (row["same"] is None or type(row["same"]) is bool)


def _time_of(row: Mapping[str, Any]) -> float:
    when = row.get("time")
    return float(when) if isinstance(when, int | float) else 0.0


def read_pairs(path: Path, dataset: Dataset) -> PairSet:
    """Read pairs from a CSV file with the columns first, second and same.

    An image is given by its index or its name. A similar pair is marked by same, true or 1; a dissimilar pair by
    different, false or 0.

    Raises:
        UserError: The file cannot be read, or a line does not name a pair of images of the data set.
    """
    try:
        content = read_regular(path, MOST_BYTES)
    except OSError as error:
        raise UserError(f"The pairs in {path} could not be read: {error}. {EXPECTED_FILE}") from error
    return parse_pairs(content, str(path), dataset)


def parse_pairs(content: bytes, name: str, dataset: Dataset) -> PairSet:
    """Parse the content of a CSV file of pairs as `read_pairs` does.

    Error messages use `name` for the file.
    """
    try:
        text = content.decode("utf-8-sig")
        reader = csv.DictReader(io.StringIO(text, newline=""), skipinitialspace=True,
                                delimiter=separator(text))
        rows = [(reader.line_num, row) for row in reader]
    except (UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"The pairs in {name} could not be read: {error}. {EXPECTED_FILE}") from error
    columns = reader.fieldnames or []
    if not rows or not set(COLUMNS) <= set(columns):
        raise UserError(f"{name} must have the columns first, second and same in its first line, separated by commas, "
                        f"and at least one pair below; got the columns {', '.join(columns)[:100] or 'none'} with "
                        f"{len(rows)} below.")
    index_of = dataset.indices_by_name()
    answers = []
    for line, row in rows:
        first, second = (_image_index(row[column], index_of) for column in COLUMNS[:2])
        same = WORDS.get((row["same"] or "").strip().lower())
        if first is None or second is None or first == second or same is None:
            raise UserError(f"{name}, line {line}: expected two different images of {dataset.title}, by name or by "
                            f"index from 0 to {len(dataset) - 1}, and 'same' or 'different'; got "
                            f"{', '.join(quoted(row[column]) for column in COLUMNS)}.")
        answers.append((first, second, same))
    return _pair_set(answers)


def write_pairs(pair_set: PairSet, dataset: Dataset) -> bytes:
    """Write pairs as the CSV file that `read_pairs` reads, with images by name."""
    table = io.StringIO()
    write_rows(table, [COLUMNS, *(
        (dataset.names[first], dataset.names[second], "same" if same else "different")
        for (first, second), same in zip(pair_set.pairs.tolist(), pair_set.same.tolist(), strict=True))])
    return table.getvalue().encode()


def _image_index(text: str | None, index_of: dict[str, int]) -> int | None:
    """Return the index of an image from its name or index; None for other texts.

    The name is tried first.
    """
    text = (text or "").strip()
    name = unguarded(text, index_of)
    if name in index_of:
        return index_of[name]
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 and int(text) < len(index_of) else None


def _pair_set(answers: list[tuple[int, int, bool]]) -> PairSet:
    pairs = np.array([answer[:2] for answer in answers], dtype=np.int64).reshape(-1, 2)
    return PairSet(pairs, np.array([answer[2] for answer in answers], dtype=bool))
