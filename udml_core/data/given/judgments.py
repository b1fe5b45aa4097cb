"""Blind judgments: which of two images, or of two sets of images, fits a query better, as several people see it.

Each line of the log belongs to a comparison of two embeddings. It is a judge's answer about a query, {"comparison": …,
"judge": …, "query": …, "images": […, …], "better": …}, with images by name, a row as the list of its names, and `null`
where neither is better, with "equal": "both right", "both wrong" or "unsure"; or {"comparison": …, "judge": …, "undo":
query}, which reverts the judge's answer about the query. "meaning" are the words for the same that were in force,
because other words ask another question. A line {"keeps": words} lets all answers before it count under these words.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from udml_core.base.errors import UserError
from udml_core.data.dataset import Dataset
from udml_core.data.given.log import append_to_log, read_log

KIND = "judgments"
LONGEST_NAME = 60
"""Longest name of a judge, in letters."""
ME = "me"
"""The judge without a name."""
Equal = Literal["both right", "both wrong", "unsure"]
"""Why neither of two images is better."""
REASONS: Mapping[str, Equal] = {"both right": "both right", "both wrong": "both wrong", "unsure": "unsure"}
Shown = str | tuple[str, ...]
"""What a judge compares: an image, or a row of images, by name."""


@dataclass(frozen=True)
class Judgment:
    """A judge's answer about a query. Images are names, which stay when images are added to the data set.

    Attributes:
        judge: Name of the judge.
        query: The query.
        images: The two images, or rows of images, that the judge compared.
        better: The image or row that fits the query better; None if neither does.
        equal: Why neither does; empty if one does, or in answers of earlier versions.
        meaning: What counted as the same, in the user's words.
    """

    judge: str
    query: str
    images: tuple[Shown, Shown]
    better: Shown | None
    equal: Equal | Literal[""] = ""
    meaning: str = ""

    @classmethod
    def parse(cls, row: Mapping[str, Any]) -> Judgment | None:
        """Return the judgment in a line of a log or of a file; None if it is damaged."""
        judge, query, images = (row.get(name) for name in ("judge", "query", "images"))
        if not isinstance(judge, str) or not isinstance(query, str) or not isinstance(images, list):
            return None
        shown, better = [of for image in images if (of := _shown(image)) is not None], _shown(row.get("better"))
        is_equal = row.get("better", "") is None
        if len(images) == len(shown) == 2 and (is_equal or better in shown):
            said: Equal | Literal[""] = REASONS.get(str(row.get("equal")), "") if is_equal else ""
            return cls(judge, query, (shown[0], shown[1]), better, said, str(row.get("meaning", "")))
        return None

    def row(self) -> dict[str, Any]:
        """Return the judgment as `parse` reads it."""
        more = {name: value for name, value in (("equal", self.equal), ("meaning", self.meaning)) if value}
        return {"judge": self.judge, "query": self.query, "images": [_stored(image) for image in self.images],
                "better": _stored(self.better), **more}


def _stored(shown: Shown | None) -> str | list[str] | None:
    return list(shown) if isinstance(shown, tuple) else shown


def _shown(value: Any) -> Shown | None:
    """Return an image or a row of images as it is stored; None if it is neither."""
    if isinstance(value, list) and value and all(isinstance(name, str) for name in value):
        return tuple(value)
    return value if isinstance(value, str) else None


def judge_name(text: str) -> str:
    """Return the name of a judge without needless spaces; `ME` for an empty text.

    Raises:
        UserError: It is too long.
    """
    name = " ".join(text.split()) or ME
    if len(name) > LONGEST_NAME:
        raise UserError(f"The name of a judge has at most {LONGEST_NAME} letters, got {len(name)}. Shorten it.")
    return name


@dataclass(frozen=True)
class JudgmentLog:
    """The judgments of a comparison.

    Attributes:
        dataset: The data set of the images.
        comparison: Name of the comparison.
    """

    dataset: Dataset
    comparison: str

    def add(self, judgment: Judgment) -> None:
        """Store a judgment; a judge's last answer about a query counts.

        Raises:
            UserError: The log cannot be written.
        """
        append_to_log(self.dataset, KIND, {"comparison": self.comparison, **judgment.row(), "time": time.time()})

    def revert(self, judge: str, query: str, meaning: str = "") -> None:
        """Revert a judge's answer about a query.

        Args:
            judge: Name of the judge.
            query: The query.
            meaning: The words under which the answer counts.

        Raises:
            UserError: The log cannot be written.
        """
        append_to_log(self.dataset, KIND, {"comparison": self.comparison, "judge": judge, "undo": query,
                                           **({"meaning": meaning} if meaning else {}), "time": time.time()})

    def read(self) -> list[Judgment]:
        """Return the judgments that stand, in the order of the answers; damaged lines are skipped.

        A judge's answers about a query under other words stand beside each other, until they are kept together.
        """
        effective: dict[tuple[str, str, str], Judgment] = {}
        for row in read_log(self.dataset, KIND):
            if isinstance(words := row.get("keeps"), str):
                effective = {(of.judge, of.query, words): replace(of, meaning=words) for of in effective.values()}
            if row.get("comparison") != self.comparison:
                continue
            if (judgment := Judgment.parse(row)) is not None:
                key = judgment.judge, judgment.query, judgment.meaning
                effective.pop(key, None)  # a repeated answer is the newest
                effective[key] = judgment
            elif isinstance(row.get("undo"), str):
                effective.pop((str(row.get("judge")), row["undo"], str(row.get("meaning", ""))), None)
        return list(effective.values())


def judged_keys(dataset: Dataset) -> list[str]:
    """List the names of the comparisons of which a data set has judgments, the first judged first."""
    return list(dict.fromkeys(str(row["comparison"]) for row in read_log(dataset, KIND) if "comparison" in row))


def judgments_elsewhere(dataset: Dataset, meaning: str) -> dict[str, int]:
    """Count the judgments of all comparisons that do not count under words for the same, by their own words."""
    given = Counter(judgment.meaning for key in judged_keys(dataset) for judgment in JudgmentLog(dataset, key).read())
    return {words: count for words, count in given.items() if words != meaning}


def keep_judgments(dataset: Dataset, meaning: str) -> None:
    """Let all judgments so far, in all comparisons, count under words for the same.

    Raises:
        UserError: The log cannot be written.
    """
    append_to_log(dataset, KIND, {"keeps": meaning, "time": time.time()})
