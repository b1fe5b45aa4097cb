"""Audit a data set: equal and nearly equal images, outliers, small classes, and images in both halves.

Near-duplicates are nominated by the difference hash of the images and by the cosine similarity of their features, and
confirmed by aligning the two images; see `duplicates`. The hash alone confuses drawings and small gray images, in which
few pixels differ, and misses crops; features alone confuse images of the same object.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from udml_core.base.arrays import Array, Booleans, Floats, Integers
from udml_core.base.declaration import Options, Shown
from udml_core.base.errors import UserError
from udml_core.data.dataset import Dataset, Report, skipped_words
from udml_core.data.given.duplicate_decisions import Decisions
from udml_core.data.image_facts import ImageFacts, facts_of, stored_facts
from udml_core.data.image_hashes import MOST_PAIRS, close_pairs, first_equal, hashes_of, stored_hashes
from udml_core.data.splits import SPLITS, Split, SplitName, make_split, words_of_halves
from udml_core.exploration.browsing import near_duplicates, neighbor_similarities
from udml_core.exploration.duplicates import (
    Groups,
    at_border,
    best_first,
    candidate_pairs,
    check_pairs,
    groups_of,
    propose_agreement,
)
from udml_core.exploration.quality import CHECKS, poor_images
from udml_core.numerics.neighbors import nearest
from udml_core.numerics.refinement.linear import unit_rows

Compare = Literal["aligned", "both", "either", "hash", "features"]
LARGEST_DISTANCE = 12
"""Largest Hamming distance that is stored; of 12,720 pairs of different photographs of birds none is below 14."""
NEIGHBORS = 10
"""Nearest images by features that an image is compared with."""
BLOCK = 4096
"""Pairs whose cosine similarity is computed at once."""
UNDECIDED = Decisions()
NO_PAIRS: Integers = np.zeros((0, 2), np.int64)
NO_VALUES: Floats = np.zeros(0, np.float32)


class AuditSettings(Options):
    """What counts as a near-duplicate, an outlier and a small class.

    The defaults are measured on 160 photographs of birds with the default backbone. Scaled by half, brightened by 30 %
    or saved as JPEG of quality 30, all differ from the original in at most 6 bits, and at least 95 % have a cosine of
    0.90 or more. No two different photographs are within 13 bits or above a cosine of 0.84. The hashes of small gray
    images say less: of 700 images of clothes, 1,543 pairs are within 6 bits, and 57 of them above 0.85.
    """

    message_prefix: ClassVar[str | None] = ""

    compare: Annotated[Compare, Shown(label="Near-duplicates by")] = "aligned"
    """Whether aligning two similar images decides (aligned), the hash and the features must both find a near-duplicate
    (both), one of them is enough (either), or one alone decides (hash, features). Without features the hash decides."""

    least_agreement: Annotated[float | None, Field(ge=0, le=1), Shown(
        label="Least agreement", step=0.01, placeholder="from the data")] = None
    """Least correlation of the detail of two aligned images that are near-duplicates; by default the middle of the gap
    between copies and different photographs."""

    hash_distance: Annotated[int, Field(ge=0, le=LARGEST_DISTANCE), Shown(label="Most differing bits")] = 6
    """Largest number of differing bits, of 64, between the hashes of near-duplicates."""

    least_cosine: Annotated[float, Field(ge=0, le=1), Shown(label="Least cosine similarity", step=0.01)] = 0.85
    """Least cosine similarity of the features of near-duplicates."""

    fence: Annotated[float, Field(ge=0, le=20), Shown(label="Outliers must stand out by", high=6, step=0.1)] = 1.5
    """How far an image must differ from the images most like it, beyond what is common, to count as an outlier: 0 marks
    the quarter of the images that differ most, higher values mark fewer, and 1.5 is usual."""

    least_images: Annotated[int, Field(ge=0, le=1000), Shown(label="Images in a class, at least", high=50)] = 5
    """Classes with fewer images are small."""


@dataclass(frozen=True, eq=False)
class Audit:
    """What the comparison of all images with each other found.

    Attributes:
        content: Index (n,) int64 of the first image with equal content.
        pairs: Pairs i < j (p, 2) int64 of images with close hashes and different content, closest first.
        distances: Hamming distances (p,) of their hashes, at most `LARGEST_DISTANCE`.
        cosines: Cosine similarities (p,) float32 of their features; NaN without features.
        neighbors: Indices (n, k) of each image's nearest images by features; k = 0 without features.
        similarities: Their cosine similarities (n, k) float32.
        checked: Pairs i < j (c, 2) int64 that were aligned.
        agreements: Agreement (c,) float32 of each when aligned, −1 … 1; see `alignment.agreements`.
    """

    content: Integers
    pairs: Integers
    distances: Integers
    cosines: Floats
    neighbors: Integers
    similarities: Floats
    checked: Integers = field(default_factory=lambda: NO_PAIRS)
    agreements: Floats = field(default_factory=lambda: NO_VALUES)

    @property
    def has_features(self) -> bool:
        """Whether the images were compared by features."""
        return self.neighbors.shape[1] > 0

    @property
    def is_complete(self) -> bool:
        """Whether all pairs with close hashes are stored, not only the closest."""
        return len(self.pairs) < MOST_PAIRS

    def least_agreement(self, settings: AuditSettings) -> float:
        """Return the least agreement of near-duplicates: the chosen one, or the one that the data propose."""
        if settings.least_agreement is not None:
            return settings.least_agreement
        return propose_agreement(self.agreements)

    def near_pairs(self, kept: Booleans, settings: AuditSettings, decisions: Decisions = UNDECIDED) -> Integers:
        """Return the near-duplicates i < j (p, 2) of different content, each content by its first image.

        Args:
            kept: Mask (n,) of the images to compare.
            settings: What counts as a near-duplicate.
            decisions: What the user decided, which counts more than the settings.
        """
        pairs = np.concatenate([self._similar_pairs(settings), decisions.same])
        return self._among(pairs[~self.are_among(pairs, decisions.different)], kept)

    def agreement_of(self, pairs: Integers) -> Floats:
        """Return the agreement (p,) of pairs (p, 2) that were checked."""
        keys, wanted = (rows @ [len(self.content), 1] for rows in (self.checked, pairs))
        order = np.argsort(keys)
        return self.agreements[order[np.searchsorted(keys, wanted, sorter=order)]]

    def are_among(self, pairs: Integers, others: Integers) -> Booleans:
        """Return which pairs (p, 2) are among others (q, 2), where images of equal content are one image."""
        keys, other_keys = (np.sort(self.content[rows], axis=1) @ [len(self.content), 1] for rows in (pairs, others))
        return np.isin(keys, other_keys)

    def _similar_pairs(self, settings: AuditSettings) -> Integers:
        """Return the pairs (p, 2) that the settings find."""
        if settings.compare == "aligned" and len(self.checked):
            return self.checked[self.agreements >= self.least_agreement(settings)]
        is_close = self.distances <= settings.hash_distance
        by_hash = self.pairs[is_close]
        if not self.has_features or settings.compare == "hash":
            return by_hash
        if settings.compare in ("both", "aligned"):  # an audit of an earlier version has aligned no pairs
            return self.pairs[is_close & (self.cosines >= settings.least_cosine)]
        by_features = near_duplicates(self.neighbors, self.similarities, settings.least_cosine)[0]
        return by_features if settings.compare == "features" else np.concatenate([by_hash, by_features])

    def _among(self, pairs: Integers, kept: Booleans) -> Integers:
        """Return the pairs among the images of a mask, with the first image of the mask for each content."""
        first = np.full(len(self.content), -1)
        images = np.flatnonzero(kept)[::-1]
        first[self.content[images]] = images  # the first image is written last
        ends = np.sort(first[self.content[pairs]], axis=1)
        return np.unique(ends[(ends[:, 0] >= 0) & (ends[:, 0] != ends[:, 1])], axis=0)

    def exact_groups(self, kept: Booleans) -> Groups:
        """Return the groups of images with equal content among the images of a mask (n,)."""
        return groups_of(self.equal_pairs(kept), len(self.content))

    def duplicate_groups(self, kept: Booleans, settings: AuditSettings, decisions: Decisions = UNDECIDED) -> Groups:
        """Return the groups that equal contents and near-duplicates connect; see `near_pairs`."""
        pairs = [self.equal_pairs(kept), self.near_pairs(kept, settings, decisions)]
        return groups_of(np.concatenate(pairs), len(self.content))

    def equal_pairs(self, kept: Booleans) -> Integers:
        """Return pairs (p, 2) that connect the images of equal content, each with the first of them."""
        images = np.flatnonzero(kept)
        _, first, inverse = np.unique(self.content[images], return_index=True, return_inverse=True)
        ends = np.stack([images[first[inverse]], images], axis=1)
        return ends[ends[:, 0] != ends[:, 1]]

    def outlier_scores(self) -> Floats:
        """Return each image's mean distance (n,) to its nearest images, between unit features."""
        return np.sqrt(np.maximum(0.0, 2.0 - 2.0 * self.similarities.astype(np.float64))).mean(axis=1)


@dataclass(frozen=True, eq=False)
class Findings:
    """What an audit found among the images that are not excluded.

    Attributes:
        exact: Groups of images with equal content.
        near: Groups that near-duplicates of different content connect.
        duplicates: Groups that both connect. In these three the copy to keep comes first in each group.
        border: Undecided pairs (b, 2) that are nearly or hardly near-duplicates, the closest to the border first.
        outliers: Outliers, the farthest first; none without features.
        small_classes: Small classes, the smallest first, with their numbers of images.
        leaks: For each split that the data set allows, the groups of duplicates with images in both halves.
    """

    exact: Groups
    near: Groups
    duplicates: Groups
    border: Integers
    outliers: Integers
    small_classes: dict[int, int]
    leaks: dict[SplitName, Groups]


def find_problems(audit: Audit, dataset: Dataset, excluded: Integers, settings: AuditSettings,
                  facts: ImageFacts | None = None, decisions: Decisions = UNDECIDED) -> Findings:
    """Return what an audit found among the images that are not excluded.

    Args:
        audit: The comparison of all images.
        dataset: The data set.
        excluded: Indices of the excluded images.
        settings: What counts as a near-duplicate, an outlier and a small class.
        facts: Facts about the images, which choose the copy to keep; None for the first copy.
        decisions: What the user decided about duplicates.
    """
    kept = np.ones(len(dataset), bool)
    kept[excluded] = False
    pairs = audit.near_pairs(kept, settings, decisions)
    groups = groups_of(np.concatenate([audit.equal_pairs(kept), pairs]), len(dataset))
    exact, near, duplicates = (best_first(found, facts, decisions.preferred) for found in (
        audit.exact_groups(kept), groups_of(pairs, len(dataset)), groups))
    return Findings(
        exact, near, duplicates, border_pairs(audit, kept, settings, decisions),
        outliers(audit.outlier_scores(), kept, settings.fence) if audit.has_features else np.zeros(0, np.int64),
        small_classes(dataset, kept, settings.least_images),
        {split.name: leaking(groups, split) for split in divided_splits(dataset)})


def border_pairs(audit: Audit, kept: Booleans, settings: AuditSettings, decisions: Decisions) -> Integers:
    """Return the pairs (b, 2) at the border of near-duplicates that the user has not decided, the closest first."""
    if settings.compare != "aligned" or not len(audit.checked):
        return NO_PAIRS
    least = audit.least_agreement(settings)
    pairs = audit.checked[at_border(audit.checked, audit.agreements, least, kept)]
    return pairs[~audit.are_among(pairs, decisions.decided)]


def divided_splits(dataset: Dataset) -> list[Split]:
    """Return the splits of a data set whose halves differ; none without classes, which no half evaluates."""
    if dataset.labels is None and dataset.official_test is None:
        return []
    splits = []
    for name in SPLITS:
        with suppress(UserError):  # the data set has too few classes for it
            splits.append(make_split(dataset, name))
    return [split for split in splits if split.name != "all"]


def report_of(audit: Audit, dataset: Dataset, excluded: Integers, settings: AuditSettings,
              facts: ImageFacts | None = None, decisions: Decisions = UNDECIDED) -> dict[str, Any]:
    """Return the findings with image names, as the command line writes them; see `find_problems`."""
    findings = find_problems(audit, dataset, excluded, settings, facts, decisions)
    scores = audit.outlier_scores() if audit.has_features else np.zeros(0)
    kept = ~np.isin(np.arange(len(dataset)), excluded)

    def names(groups: Groups) -> list[list[str]]:
        return [[dataset.names[index] for index in group] for group in groups]

    return {
        "dataset": dataset.name, "fingerprint": dataset.fingerprint, "images": len(dataset),
        "classes": len(dataset.class_names), "columns": list(dataset.columns),
        "skipped": skipped_words(len(dataset), dataset.skipped), "halves": words_of_halves(dataset), "class_columns": {
            name: {"values": count, "dataset": dataset.with_classes_from(name)}
            for name, count in dataset.class_columns.items()},
        "excluded": [dataset.names[index] for index in excluded], "settings": settings.model_dump(),
        "features": audit.has_features, "complete": audit.is_complete,
        "broken_files": [asdict(skipped) for skipped in dataset.skipped],
        "exact_duplicates": names(findings.exact), "near_duplicates": names(findings.near),
        "least_agreement": audit.least_agreement(settings) if len(audit.checked) else None,
        "border": names(tuple(findings.border)),
        "quality": {} if facts is None else {check: names((poor_images(facts, kept, check),))[0] for check in CHECKS},
        "outliers": [{"image": dataset.names[index], "distance": float(scores[index])} for index in findings.outliers],
        "small_classes": {dataset.class_names[label]: size for label, size in findings.small_classes.items()},
        "leakage": {name: names(groups) for name, groups in findings.leaks.items()}}


def audit_of(dataset: Dataset, features: Array | None, report: Report = lambda _share, _step: None) -> Audit:
    """Compare all images of a data set with each other.

    The rows of a table of embeddings have no hashes; rows with equal vectors have equal content.

    Args:
        dataset: The data set.
        features: Frozen features (n, d); None if there are none.
        report: Receives the finished share and the step.

    Raises:
        UserError: An image can no longer be read.
    """
    if dataset.vectors is not None:
        rows = np.ascontiguousarray(dataset.vectors)
        return compare_images(None, first_equal(rows.view(f"V{rows.strides[0]}").ravel()), features, report)
    hashes = hashes_of(dataset, report)
    audit = compare_images(hashes.perceptual, hashes.content, features, report)
    if features is None:
        return audit
    candidates = candidate_pairs(audit.pairs, audit.cosines, audit.neighbors, audit.similarities)
    pairs = np.sort(audit.content[candidates], axis=1)
    pairs = np.unique(pairs[pairs[:, 0] != pairs[:, 1]], axis=0)
    return replace(audit, checked=pairs, agreements=check_pairs(dataset, pairs, report))


def first_audit(dataset: Dataset) -> Audit | None:
    """Return the comparison of images by their files alone, once hashes and facts are stored; None before."""
    hashes = stored_hashes(dataset)
    if hashes is None or stored_facts(dataset) is None:
        return None
    return compare_images(hashes.perceptual, hashes.content, None)


def prepare_audit(dataset: Dataset, report: Report = lambda _share, _step: None) -> None:
    """Store what an audit finds without features, which a page shows while the features are computed.

    Raises:
        UserError: An image can no longer be read.
    """
    if dataset.vectors is None:
        facts_of(dataset, report)
        hashes_of(dataset, report)


def compare_images(perceptual: Array | None, content: Integers, features: Array | None,
                   report: Report = lambda _share, _step: None) -> Audit:
    """Compare all images with each other.

    Args:
        perceptual: Difference hashes (n,) uint64; None if there are no images.
        content: Index (n,) of the first image with equal content.
        features: Features (n, d); None if there are none.
        report: Receives the finished share and the step.
    """
    pairs: Integers = np.zeros((0, 2), np.int64)
    distances: Integers = np.zeros(0, np.uint8)
    if perceptual is not None:
        first = np.flatnonzero(content == np.arange(len(content)))  # an image for each content
        rows, distances = close_pairs(perceptual[first], LARGEST_DISTANCE,
                                      report=lambda share: report(share, "comparing hashes"))
        pairs = first[rows]
    if features is None:
        none = np.zeros((len(content), 0))
        cosines = np.full(len(pairs), np.nan, np.float32)
        return Audit(content, pairs, distances, cosines, none.astype(np.int32), none.astype(np.float32))
    report(0.0, "comparing features")
    unit = unit_rows(features)
    neighbors = nearest(unit, min(NEIGHBORS, len(unit) - 1))[1].astype(np.int32)
    return Audit(content, pairs, distances, _cosines(unit, pairs), neighbors, neighbor_similarities(unit, neighbors))


def _cosines(unit: Array, pairs: Integers) -> Floats:
    """Return the inner product (p,) of each pair of unit rows (n, d)."""
    values = np.empty(len(pairs), np.float32)
    for start in range(0, len(pairs), BLOCK):
        left, right = pairs[start : start + BLOCK].T
        values[start : start + BLOCK] = np.einsum("nd,nd->n", unit[left], unit[right])
    return values.clip(-1.0, 1.0)


def leaking(groups: Groups, split: Split) -> Groups:
    """Return the groups with images in both halves, without the images that belong to none.

    The images held out for validation belong to the training half.
    """
    if split.name == "all" or not groups:
        return ()
    halves = [np.concatenate([split.train, split.validation]), split.test]
    count = 1 + max(int(images.max(initial=0)) for images in (*groups, *halves))
    trained, tested = (np.zeros(count, bool) for _ in halves)
    trained[halves[0]] = tested[halves[1]] = True
    return tuple(group[trained[group] | tested[group]] for group in groups
                 if trained[group].any() and tested[group].any())


def in_half(images: Integers, half: Integers) -> Integers:
    """Return the images (m,) of a half."""
    return images[np.isin(images, half)]


def outlier_limit(scores: Floats, kept: Booleans, fence: float) -> float:
    """Return the score above which an image is an outlier; see `outliers`."""
    low, high = np.percentile(scores[kept], [25, 75])
    return float(high + fence * (high - low))


def outliers(scores: Floats, kept: Booleans, fence: float) -> Integers:
    """Return the images beyond a fence above the third quartile (Tukey's rule), the largest score first.

    Args:
        scores: Score (n,) of each image.
        kept: Mask (n,) of the images that the quartiles are computed from.
        fence: Distance of the fence from the third quartile in interquartile ranges.
    """
    if not kept.any():
        return np.zeros(0, np.int64)
    beyond = np.flatnonzero(kept & (scores > outlier_limit(scores, kept, fence)))
    return beyond[np.argsort(-scores[beyond], kind="stable")]


def small_classes(dataset: Dataset, kept: Booleans, least: int) -> dict[int, int]:
    """Return the classes with fewer images than a number, the smallest first, with their sizes.

    Args:
        dataset: The data set; an image with several classes counts for each.
        kept: Mask (n,) of the images that count.
        least: Number of images from which a class is not small.
    """
    if dataset.evaluation_classes is not None:
        sizes = dataset.evaluation_classes[kept].sum(axis=0)
    elif dataset.labels is not None:
        sizes = np.bincount(dataset.labels[kept], minlength=len(dataset.class_names))
    else:
        return {}
    small = np.flatnonzero(sizes < least)
    return {int(label): int(sizes[label]) for label in small[np.argsort(sizes[small], kind="stable")]}


def images_of(dataset: Dataset, classes: Iterable[int]) -> Integers:
    """Return the ascending indices (m,) of the images of some classes."""
    chosen = list(classes)
    if dataset.evaluation_classes is not None:
        return np.flatnonzero(dataset.evaluation_classes[:, chosen].any(axis=1))
    return np.flatnonzero(np.isin(np.asarray(dataset.labels), chosen))
