"""What words say about images in the features of CLIP or SigLIP: names for groups, and attribute axes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from udml_core.base.arrays import Array, Floats, Integers
from udml_core.base.errors import UserError

ERRORS = 2.0
"""Standard errors by which the nearest word must lead the second; a smaller lead may be luck of the group's images."""


@dataclass(frozen=True)
class WordName:
    """The word whose text is nearest to the mean feature of a group.

    Attributes:
        word: Position of the word.
        second: Position of the second nearest word.
        margin: By how much the mean cosine with the word exceeds that with the second.
        error: Standard error of the margin, from the spread of the images' margins within all groups.
    """

    word: int
    second: int
    margin: float
    error: float

    @property
    def is_decided(self) -> bool:
        """Whether the margin is larger than luck of the group's images explains."""
        return self.margin > ERRORS * self.error


def name_groups(rows: Floats, groups: Integers, words: Floats, rejected: Integers) -> dict[int, WordName]:
    """Return for each group the word nearest to its mean feature; none for a group with fewer than two words left.

    Args:
        rows: Features (n, l) of unit length.
        groups: Group (n,) of each image; −1 for none.
        words: Vectors (w, l) of the words, of unit length.
        rejected: Rows and words (r, 2) that a user rejected; a word that most of a group rejects is not proposed.

    Raises:
        UserError: There are fewer than two words, so that none has a second to be compared with.
    """
    if len(words) < 2:
        raise UserError(f"Groups are named by the nearest of at least 2 words, got {len(words)}. Type one word a line.")
    cosines, is_rejected = rows @ words.T, np.zeros((len(rows), len(words)), bool)
    is_rejected[rejected[:, 0], rejected[:, 1]] = True
    orders, margins = {}, {}
    for group in np.unique(groups[groups >= 0]).tolist():
        images = np.flatnonzero(groups == group)
        nearest = np.argsort(-cosines[images].mean(axis=0), kind="stable")
        left = nearest[is_rejected[images].mean(axis=0)[nearest] <= 1 / 2][:2]
        if len(left) == 2:
            orders[group], margins[group] = left, cosines[images, left[0]] - cosines[images, left[1]]
    freedom = sum(len(values) - 1 for values in margins.values())
    squares = sum(float(((values - values.mean()) ** 2).sum()) for values in margins.values())
    spread = np.sqrt(squares / freedom) if freedom else np.inf  # groups of one image say nothing about luck
    return {group: WordName(int(orders[group][0]), int(orders[group][1]), float(values.mean()),
                            float(spread / np.sqrt(len(values)))) for group, values in margins.items()}


def attribute_values(rows: Floats, low: Array, high: Array) -> Floats:
    """Return by how much the cosine of each image (n,) with one text exceeds that with another.

    Args:
        rows: Features (n, l) of unit length.
        low: Vector (l,) of the text at the low end.
        high: Vector (l,) of the text at the high end.
    """
    values: Floats = rows @ (high - low)
    return values
