"""The audit: groups of duplicates, leakage, outliers and small classes, on data whose answers are known."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_sample_image

from udml_core.data import catalog
from udml_core.data.dataset import ArrayImages, Dataset
from udml_core.data.splits import Split, make_split
from udml_core.exploration.audit import (
    Audit,
    AuditSettings,
    Compare,
    audit_of,
    compare_images,
    find_problems,
    images_of,
    leaking,
    outliers,
    report_of,
    small_classes,
)
from udml_core.exploration.duplicates import all_but_first, groups_of

ALL = np.ones(8, bool)
UNIT = {angle: [np.cos(np.radians(angle)), np.sin(np.radians(angle))] for angle in range(0, 360, 5)}


@pytest.fixture
def audit() -> Audit:
    """Compare eight images: 0 and 3 are equal; hashes 0–1, 1–2 and 5–6 are close; 6 and 7 have close features."""
    content = np.array([0, 1, 2, 0, 4, 5, 6, 7])
    perceptual = np.array([0b0, 0b111, 0b11111111, 0b0, 0xFFFF << 40, 0xFFFF << 20, (0xFFFF << 20) | 1, 2**63 - 1],
                          dtype=np.uint64)
    features = np.array([UNIT[angle] for angle in (0, 5, 10, 0, 90, 180, 260, 265)])
    return compare_images(perceptual, content, features)


def settings(compare: Compare, distance: int, cosine: float) -> AuditSettings:
    return AuditSettings(compare=compare, hash_distance=distance, least_cosine=cosine)


def pairs_of(audit: Audit, compare: Compare, distance: int, cosine: float) -> list[list[int]]:
    return sorted(audit.near_pairs(ALL, settings(compare, distance, cosine)).tolist())


def test_hash_and_features_find_the_pairs_that_each_should(audit: Audit) -> None:
    assert pairs_of(audit, "hash", 2, 0.9) == [[5, 6]]
    assert pairs_of(audit, "hash", 5, 0.9) == [[0, 1], [1, 2], [5, 6]]
    assert pairs_of(audit, "both", 5, 0.99) == [[0, 1], [1, 2]]  # 5 and 6 point in different directions
    assert pairs_of(audit, "features", 5, 0.99) == [[0, 1], [1, 2], [6, 7]]
    assert pairs_of(audit, "either", 5, 0.99) == [[0, 1], [1, 2], [5, 6], [6, 7]]
    assert pairs_of(audit, "both", 2, 0.9) == []
    assert [0, 3] not in pairs_of(audit, "either", 12, 0.0)  # equal content is no near-duplicate


def test_the_stored_values_are_the_distances_and_cosines_of_the_pairs(audit: Audit) -> None:
    stored = {tuple(pair): values for pair, *values in zip(audit.pairs.tolist(), audit.distances, audit.cosines,
                                                          strict=True)}
    assert stored[0, 1] == [3, pytest.approx(np.cos(np.radians(5)), abs=1e-6)]
    assert stored[5, 6] == [1, pytest.approx(np.cos(np.radians(80)), abs=1e-6)]
    assert audit.is_complete


def test_groups_connect_equal_and_nearly_equal_images_without_excluded_ones(audit: Audit) -> None:
    assert [group.tolist() for group in audit.exact_groups(ALL)] == [[0, 3]]
    groups = audit.duplicate_groups(ALL, settings("both", 5, 0.99))
    assert [group.tolist() for group in groups] == [[0, 1, 2, 3]]
    assert all_but_first(groups).tolist() == [1, 2, 3]
    kept = ALL.copy()
    kept[0] = False
    assert audit.exact_groups(kept) == ()
    assert [group.tolist() for group in audit.duplicate_groups(kept, settings("both", 5, 0.99))] == [[1, 2, 3]]
    kept[3] = False
    assert [group.tolist() for group in audit.duplicate_groups(kept, settings("both", 5, 0.99))] == [[1, 2]]
    assert all_but_first(()).tolist() == []


def test_equal_images_stay_connected_when_the_first_of_them_is_excluded() -> None:
    audit = compare_images(None, np.array([0, 0, 0, 3]), None)
    kept = np.array([False, True, True, True])
    assert [group.tolist() for group in audit.exact_groups(kept)] == [[1, 2]]


def test_without_features_the_hash_decides() -> None:
    audit = compare_images(np.array([0, 1, 2**40 - 1], np.uint64), np.arange(3), None)
    assert not audit.has_features
    assert audit.near_pairs(np.ones(3, bool), settings("both", 1, 0.9)).tolist() == [[0, 1]]
    assert np.isnan(audit.cosines).all()


def test_groups_are_ordered_by_their_first_image() -> None:
    pairs = np.array([[5, 6], [1, 9], [6, 8], [0, 3]])
    assert [group.tolist() for group in groups_of(pairs, 10)] == [[0, 3], [1, 9], [5, 6, 8]]


def test_leaking_groups_have_images_in_both_halves() -> None:
    split = Split("seen", np.array([0, 1, 2]), np.array([5, 6, 7]), np.array([3]))
    groups = tuple(np.array(group) for group in ([0, 1], [2, 5, 6], [3, 7], [6, 7], [1, 4], [4, 5, 0]))
    assert [group.tolist() for group in leaking(groups, split)] == [[2, 5, 6], [3, 7], [5, 0]]
    assert leaking(groups, replace(split, name="all")) == ()


def test_the_mean_distance_to_the_neighbors_is_the_score(audit: Audit) -> None:
    chords = [2 * np.sin(np.radians(abs(angle - 90)) / 2) for angle in (0, 5, 10, 0, 180, 260, 265)]
    assert audit.outlier_scores()[4] == pytest.approx(np.mean(chords), abs=1e-5)


def test_outliers_lie_beyond_the_fence_and_the_farthest_comes_first() -> None:
    scores = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 9.0, 12.0, 100.0])
    kept = np.array([True] * 7 + [False])
    # quartiles of the seven: 2.5 and 7, so the fence at 1 interquartile range is 11.5
    assert outliers(scores, kept, 1.0).tolist() == [6]
    assert outliers(scores, kept, 0.4).tolist() == [6, 5]
    assert outliers(scores, ~kept, 0.4).tolist() == []
    assert outliers(scores, np.zeros(8, bool), 0.4).tolist() == []


def test_classes_below_a_size_are_listed_the_smallest_first_without_excluded_images() -> None:
    labels = np.array([0, 0, 0, 1, 2, 2, 0])
    dataset = Dataset("few", "Few", ArrayImages(np.zeros((7, 8, 8), np.uint8)), labels, ("a", "b", "c", "empty"),
                      "0" * 8, 8, True, tuple("abcdefg"))
    assert small_classes(dataset, np.ones(7, bool), 3) == {3: 0, 1: 1, 2: 2}
    kept = np.array([True, False, False, True, True, True, True])
    assert list(small_classes(dataset, kept, 3).items()) == [(3, 0), (1, 1), (0, 2), (2, 2)]
    assert images_of(dataset, [1, 2]).tolist() == [3, 4, 5]
    is_sixth = (np.arange(7) == 5)[:, None]  # which has every class
    several = replace(dataset, labels=None, evaluation_classes=np.eye(4, dtype=bool)[labels] | is_sixth)
    assert small_classes(several, np.ones(7, bool), 3) == {3: 1, 1: 2, 2: 2}
    assert images_of(several, [1, 3]).tolist() == [3, 5]
    assert small_classes(replace(dataset, labels=None), kept, 3) == {}


def test_a_folder_with_a_scaled_and_a_mirrored_copy_is_audited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "photos"
    folder.mkdir()
    images = [Image.fromarray(load_sample_image(name)).resize((320, 214)) for name in ("china.jpg", "flower.jpg")]
    for name, image in {"0": images[0], "1": images[1], "2": images[0].resize((160, 107)),
                        "3": images[0].transpose(Image.Transpose.FLIP_LEFT_RIGHT), "4": images[1]}.items():
        image.save(folder / f"{name}.png")
    features = np.array([UNIT[angle] for angle in (0, 90, 5, 5, 90)])
    steps: list[str] = []
    audit = audit_of(catalog.load(str(folder)), features, lambda _share, step: steps.append(step))
    kept = np.ones(5, bool)
    assert [group.tolist() for group in audit.exact_groups(kept)] == [[1, 4]]
    assert audit.near_pairs(kept, AuditSettings()).tolist() == [[0, 2]]
    assert [group.tolist() for group in audit.duplicate_groups(kept, settings("either", 6, 0.9))] == [[0, 2, 3], [1, 4]]
    assert list(dict.fromkeys(steps)) == ["hashes of the images", "comparing hashes", "comparing features",
                                          "aligning pairs · reading the images", "aligning pairs"]


def test_findings_leave_out_excluded_images_and_name_each_split_with_two_halves() -> None:
    digits = catalog.load("digits")
    train, test = make_split(digits, "seen").train, make_split(digits, "seen").test
    content = np.arange(len(digits))
    content[test[0]] = content[train[1]] = train[0]  # two equal images to train on, one to test
    audit = compare_images(None, content, None)
    found = find_problems(audit, digits, np.zeros(0, np.int64), AuditSettings())
    group = sorted([int(train[0]), int(train[1]), int(test[0])])
    assert [images.tolist() for images in found.exact] == [group]
    assert {name: [images.tolist() for images in groups] for name, groups in found.leaks.items()} == {
        "zero-shot": [] if len(set(digits.labels[group] < 5)) == 1 else [group], "seen": [group]}
    assert found.near == ()
    assert len(found.outliers) == 0
    assert find_problems(audit, digits, test[:1], AuditSettings()).leaks["seen"] == ()
    assert len(find_problems(audit, digits, test[:1], AuditSettings()).exact) == 1
    unlabeled = replace(digits, labels=None, class_names=())
    assert find_problems(audit, unlabeled, test[:1], AuditSettings()).leaks == {}, "without classes nothing is held out"
    report = report_of(audit, digits, test[1:3], AuditSettings(least_images=10))
    assert report["exact_duplicates"] == report["leakage"]["seen"] == [[digits.names[index] for index in group]]
    assert report["excluded"] == [digits.names[index] for index in test[1:3]]


def test_the_rows_of_a_table_are_equal_where_their_vectors_are() -> None:
    vectors = np.array([[1, 0], [0, 1], [1, 0]], np.float32)
    dataset = replace(catalog.load("digits"), vectors=vectors)
    audit = audit_of(dataset, vectors)
    assert audit.content.tolist() == [0, 1, 0]
    assert len(audit.pairs) == 0
