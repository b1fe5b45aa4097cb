"""A second opinion of a small sample: quick enough for every epoch, because its judge is prepared once.

It only reads features that are stored already, so that no training waits for another encoder.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from udml_core.base.arrays import Array, Integers
from udml_core.data.dataset import Dataset
from udml_core.data.encoder_names import encoders_in
from udml_core.data.judge_names import WEAK
from udml_core.numerics.neighbors import nearest
from udml_core.runs.analyses.kinds.opinion import JUDGES
from udml_core.runs.opinions import stored_features
from udml_core.runs.selection import ERROR, FIRST_OPINION, OPINION

if TYPE_CHECKING:
    from udml_core.numerics.second_opinion import Judge

CURVES = {OPINION: "groups", FIRST_OPINION: "first_results"}
"""The attribute of an opinion by the name of its curve."""


@dataclass(frozen=True)
class SampleJudge:
    """An encoder that judges embeddings of a sample against its frozen features.

    Attributes:
        judge: The judge of the s images.
        reference: Rows (s, k) of the nearest images in the frozen features.
    """

    judge: Judge
    reference: Integers

    @classmethod
    def of(cls, dataset: Dataset, backbone: str, images: Integers, frozen: Array) -> SampleJudge | None:
        """Prepare the judge of a sample.

        Args:
            dataset: The data set.
            backbone: The backbone of the judged run, which may not judge.
            images: Indices (s,) of the sample.
            frozen: The backbone's features (s, d) of the sample.

        Returns:
            The judge; None if the sample is too small, or no encoder that can judge has stored its features.
        """
        from udml_core.numerics.refinement.linear import unit_rows  # slow imports, which no start of a run may wait for
        from udml_core.numerics.second_opinion import LEAST, Judge, is_same

        features = judge_features(dataset, backbone) if len(images) >= LEAST else None
        if features is None:
            return None
        judge, rows = Judge.of(np.asarray(features[images])), unit_rows(np.asarray(frozen))
        if is_same(judge.features, rows):
            return None
        return cls(judge, nearest(rows, judge.group, own=np.arange(len(rows)))[1])

    def differences(self, embedding: Array) -> dict[str, float]:
        """Return by curve how much more similar the images found are than those found by the frozen features.

        Beside each difference stands its standard error.

        Args:
            embedding: Embedding (s, l) of the sample.
        """
        from udml_core.numerics.second_opinion import judge_rankings

        queries = np.arange(len(embedding))
        opinion = judge_rankings(self.judge, queries, self.reference,
                                          nearest(embedding, self.judge.group, own=queries)[1])
        intervals = {curve: getattr(opinion, question) for curve, question in CURVES.items()}
        return {curve: interval.difference for curve, interval in intervals.items()} | {
            f"{curve}{ERROR}": interval.error for curve, interval in intervals.items()}


def judge_features(dataset: Dataset, backbone: str) -> Array | None:
    """Return the stored features (n, d) of the first encoder that may judge a backbone alone; None without any."""
    if dataset.vectors is not None:
        return None
    stored = (stored_features(dataset, judge) for judge in JUDGES if judge not in (*encoders_in(backbone), *WEAK))
    return next((features for features in stored if features is not None), None)
