"""Pairs of images that a person gave, or a file names: the same, or different.

A line of the journal of given pairs is an answer about two images, by name, or `undo`, which takes back the last answer
that still stands.
"""

from __future__ import annotations

import csv
import io
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from udml_core.arrays import Array
from udml_core.data.dataset import Dataset
from udml_core.data.given.log import append_to_log, read_log
from udml_core.errors import UserError

MOST_PAIRS = 500_000
"""Drawn from labels, as many as NML's paper samples."""
KIND = "pairs"
GONE = -1
"""The position of an image that the data set does not have now."""
COLUMNS = ("first", "second", "same")
UNREADABLE = "It must be a CSV file in UTF-8."
WORDS = {"1": True, "true": True, "same": True, "0": False, "false": False, "different": False}


def pair_keys(pairs: Array) -> Array:
    """A number (p,) int64 for each pair (p, 2) of positions below 2³¹, the same either way round."""
    ordered = np.sort(pairs, axis=1)
    return ordered[:, 0] << 31 | ordered[:, 1]


@dataclass(frozen=True, eq=False)
class PairSet:
    """pairs (p, 2) int64: two images each, by position. same (p,) bool: whether they are to be the same."""

    pairs: Array
    same: Array

    def __len__(self) -> int:
        return len(self.same)

    def within(self, images: Array) -> PairSet:
        """Those of which both images are among some (m,), ascending; as positions among these."""
        kept = np.isin(self.pairs, images).all(axis=1)
        return PairSet(np.searchsorted(images, self.pairs[kept]), self.same[kept])

    def without(self, known: PairSet) -> PairSet:
        """Those that are not known, either way round, or known as the other kind."""
        mine, theirs = (2 * pair_keys(one.pairs) + one.same for one in (self, known))
        kept = ~np.isin(mine, theirs)
        return PairSet(self.pairs[kept], self.same[kept])

    def check(self) -> None:
        """Raises:
        UserError: not both kinds are there, so that all distances could go to 0 or grow without end."""
        same = int(self.same.sum())
        if not 0 < same < len(self):
            raise UserError(f"Learning from pairs needs pairs of both kinds among the images that train, got {same} "
                            f"that are the same and {len(self) - same} that are different. Give some of the other.")


@dataclass(frozen=True)
class PairLog:
    """What a person said about pairs of a data set's images."""

    dataset: Dataset

    def give(self, first: int, second: int, same: bool) -> None:
        """Keep an answer. A pair that is given again is what it was given as last.

        Raises:
            UserError: there are no two such images, or the cache cannot be written.
        """
        count = len(self.dataset)
        if first == second or not (0 <= first < count and 0 <= second < count):
            raise UserError(f"A pair is two different images, numbered 0 to {count - 1}; got {first} and {second}.")
        names = self.dataset.names
        append_to_log(self.dataset, KIND, {"first": names[first], "second": names[second], "same": same,
                                               "time": time.time()})

    def undo(self) -> tuple[int, int, bool] | None:
        """Take back the last answer that still stands, and tell it; None where none is left, or its images are gone."""
        standing = self._standing()
        if not standing:
            return None
        append_to_log(self.dataset, KIND, {"undo": True, "time": time.time()})
        return standing[-1] if GONE not in standing[-1] else None

    def read(self) -> PairSet:
        """The answers that stand, each pair once, in the order of their first answer."""
        latest = {(min(first, second), max(first, second)): same for first, second, same in self._standing()
                  if GONE not in (first, second)}
        return _pair_set([(*pair, same) for pair, same in latest.items()])

    def _standing(self) -> list[tuple[int, int, bool]]:
        found: list[tuple[int, int, bool]] = []
        place = {name: index for index, name in enumerate(self.dataset.names)}
        for row in read_log(self.dataset, KIND):
            if row.get("undo") is True:
                del found[-1:]
                continue
            first, second, same = (row.get(name) for name in COLUMNS)
            if type(first) is str and type(second) is str and type(same) is bool:
                found.append((place.get(first, GONE), place.get(second, GONE), same))
        return found


def read_pairs(path: Path, dataset: Dataset) -> PairSet:
    """Pairs from a CSV file with the columns first, second and same.

    Images go by their number or their name; `same` is same, true or 1, or different, false or 0.

    Raises:
        UserError: the file cannot be read, or a line of it names no pair of this data set's images.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UserError(f"The pairs in {path} could not be read: {error}. {UNREADABLE}") from error
    return parse_pairs(content, str(path), dataset)


def parse_pairs(content: bytes, name: str, dataset: Dataset) -> PairSet:
    """The same from the file's content; `name` is what messages call it."""
    try:
        reader = csv.DictReader(io.StringIO(content.decode("utf-8-sig"), newline=""), skipinitialspace=True)
        rows = [(reader.line_num, row) for row in reader]
    except (UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"The pairs in {name} could not be read: {error}. {UNREADABLE}") from error
    columns = reader.fieldnames or []
    if not rows or not set(COLUMNS) <= set(columns):
        raise UserError(f"{name} must have the columns first, second and same in its first line, parted by commas, and "
                        f"at least one pair below; got the columns {', '.join(columns)[:100] or 'none'} and "
                        f"{len(rows)} lines below.")
    places = {image: index for index, image in enumerate(dataset.names)}
    found = []
    for line, row in rows:
        images = [_position(row[column], places) for column in COLUMNS[:2]]
        same = WORDS.get((row["same"] or "").strip().lower())
        if None in images or images[0] == images[1] or same is None:
            raise UserError(f"{name}, line {line}: needs two different images of {dataset.title}, by name or by number "
                            f"from 0 to {len(dataset) - 1}, and 'same' or 'different'; got "
                            f"{', '.join(repr(row[column]) for column in COLUMNS)}.")
        found.append((images[0], images[1], same))
    return _pair_set(found)


def pairs_file(found: PairSet, dataset: Dataset) -> bytes:
    """Pairs as the CSV file that `read_pairs` reads, images by name."""
    table = io.StringIO()
    writer = csv.writer(table)
    writer.writerow(COLUMNS)
    for (first, second), same in zip(found.pairs.tolist(), found.same.tolist(), strict=True):
        writer.writerow([dataset.names[first], dataset.names[second], "same" if same else "different"])
    return table.getvalue().encode()


def _position(text: str | None, places: dict[str, int]) -> int | None:
    """The image of a name, else of a number."""
    text = (text or "").strip()
    if text in places:
        return places[text]
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 and int(text) < len(places) else None


def _pair_set(found: list[Any]) -> PairSet:
    pairs = np.array([one[:2] for one in found], dtype=np.int64).reshape(-1, 2)
    return PairSet(pairs, np.array([one[2] for one in found], dtype=bool))
