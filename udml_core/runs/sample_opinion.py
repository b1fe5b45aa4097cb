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
from udml_core.data.judging import without_kin
from udml_core.numerics.neighbors import nearest
from udml_core.runs.analyses.kinds.opinion import JUDGES
from udml_core.runs.opinions import stored_features, stored_parts
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
        from udml_core.numerics.second_opinion import LEAST, Judge

        features = judge_features(dataset, backbone, images, frozen) if len(images) >= LEAST else None
        if features is None:
            return None
        judge, rows = Judge.of(features), unit_rows(np.asarray(frozen))
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


def judge_features(dataset: Dataset, backbone: str, images: Integers | None = None, frozen: Array | None = None
                   ) -> Array | None:
    """Return the stored features of the first encoder that may judge a backbone alone; None without any.

    Args:
        dataset: The data set.
        backbone: The backbone of the judged run.
        images: Indices (s,) of a sample; all images by default.
        frozen: The backbone's features (s, d) of the sample; the stored features by default.

    Returns:
        Features (s, e) of the sample.
    """
    if dataset.vectors is not None:
        return None
    rows = slice(None) if images is None else images
    own = stored_features(dataset, backbone) if frozen is None else None
    judged = [of for of in (frozen, None if own is None else own[rows]) if of is not None]
    judged += [of[rows] for of in stored_parts(dataset, backbone)]
    stored = (without_kin({judge: features[rows]}, backbone, judged) for judge in JUDGES
              if judge not in (*encoders_in(backbone), *WEAK)
              and (features := stored_features(dataset, judge)) is not None)
    return next((features for left in stored for features in left.values()), None)
