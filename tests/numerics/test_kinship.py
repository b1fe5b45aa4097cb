"""Kin: copies of an encoder's features are recognized, other encoders are not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from udml_core.data.judging import kin_reasons, unknown_judges, without_kin
from udml_core.numerics.kinship import LEAST, is_same, kin_words, kinship, linear_cka
from udml_core.numerics.refinement import Refiner


def features(seed: int = 0, count: int = 400) -> np.ndarray:
    """Return features (n, 64) of 20 classes, whose directions differ in variance as an encoder's do."""
    draw = np.random.default_rng(seed)
    classes = np.random.default_rng(9).normal(size=(20, 12))[np.arange(count) % 20]
    rows = classes @ np.random.default_rng(seed + 50).normal(size=(12, 64)) + 4 * draw.normal(size=(count, 64))
    return rows * np.linspace(1.5, 0.5, 64)


def test_cka_is_the_normalized_inner_product_of_the_centered_similarities() -> None:
    draw = np.random.default_rng(0)
    first, second = draw.normal(size=(3000, 4)), draw.normal(size=(3000, 3))
    second[:, 0] += 2 * first[:, 0]
    centered = [of - of.mean(axis=0) for of in (first, second)]
    grams = [of @ of.T for of in centered]
    biased = (grams[0] * grams[1]).sum() / np.sqrt((grams[0] ** 2).sum() * (grams[1] ** 2).sum())
    assert linear_cka(first, second) == pytest.approx(biased, abs=0.005)
    assert linear_cka(first, 3 * first + 5) == pytest.approx(1)


def test_cka_of_independent_features_is_near_zero_even_of_few_images_in_many_dimensions() -> None:
    draw = np.random.default_rng(0)
    values = [linear_cka(draw.normal(size=(50, 200)), draw.normal(size=(50, 200))) for _ in range(20)]
    assert abs(np.mean(values)) < 0.02
    assert linear_cka(np.ones((50, 3)), draw.normal(size=(50, 3))) == 0


def test_rotations_scales_heads_and_whitening_of_an_encoder_are_kin() -> None:
    rows, draw = features(), np.random.default_rng(1)
    rotation = np.linalg.qr(draw.normal(size=(64, 64)))[0]
    copies = [rows, 3 * rows @ rotation, rows + 0.2 * draw.normal(size=rows.shape),
              np.hstack([rows, rows[:, :8]]), Refiner("whiten:covariance=images").fit(rows).transform(rows)]
    assert [kinship(rows, copy).is_kin for copy in copies] == [True] * len(copies)
    reason = kin_words("other.parquet", copies[2], [rows], is_unknown=True)
    assert reason.startswith("The judge other.parquet sees these images almost as the judged features do")
    assert kin_words("other.parquet", copies[2], [rows]) == "", "an encoder that is known by its name"
    assert "has the features that it would judge" in kin_words("squeezenet", copies[1], [features(1), rows])


def test_other_encoders_of_the_same_classes_are_no_kin() -> None:
    rows, other = features(0), features(1)
    assert not kinship(rows, other).is_kin
    assert kin_words("other.parquet", other, [rows], is_unknown=True) == ""


def test_encoders_that_see_the_same_clusters_are_no_kin() -> None:
    draw, clusters = np.random.default_rng(2), np.repeat(10 * np.eye(4), 100, axis=0)
    tight = [np.hstack([clusters, draw.normal(size=(400, 8))]) for _ in range(2)]
    assert kinship(*tight).similarity > 0.9, "both see four clusters"
    assert not kinship(*tight).is_kin


def test_duplicates_of_a_part_of_the_images_make_no_kin() -> None:
    rows, other = features(0), features(1)
    for of in (rows, other):
        of[:200] = np.repeat(of[:20], 10, axis=0)
    assert kinship(rows, other).shared > 0.4, "both see the duplicates"
    assert not kinship(rows, other).is_kin


def test_of_few_images_nothing_is_refused() -> None:
    rows = features(count=LEAST - 1)
    assert not kinship(rows, rows).is_kin
    assert is_same(rows, 2 * rows)
    assert not is_same(rows[:1], rows[:1]), "a single image has no cosine to another"


def test_a_judge_took_part_by_its_name_by_its_features_or_by_what_it_sees() -> None:
    """Names of the library are trusted beside each other; beside another name, or of a table, the features tell."""
    rows, other = features(), features(1)
    almost = rows + 0.2 * np.random.default_rng(1).normal(size=rows.shape)
    judges = {"efficientnet-lite0": almost, "squeezenet": other}
    assert kin_reasons(judges, "squeezenet", [rows]) == {"squeezenet": "SqueezeNet 1.1 took part in it."}
    assert list(kin_reasons(judges, "timm:other", [rows])) == ["efficientnet-lite0"]
    assert list(kin_reasons(judges, "pixels", [rows, 3 * other])) == ["squeezenet"]
    assert list(without_kin({**judges, "pixels": features(2)}, "timm:other", [rows])) == ["squeezenet", "pixels"]
    del judges["squeezenet"]
    assert without_kin({**judges, "pixels": features(2)}, "timm:other", [rows]) == {}, "only pixels are left"


def test_known_encoders_of_different_names_are_trusted(tmp_path: Path) -> None:
    table = str(tmp_path / "vectors.npy")
    judges = ("squeezenet", "pixels", "timm:resnet50.a1_in1k", table)
    assert unknown_judges(judges, "efficientnet-lite0") == ("timm:resnet50.a1_in1k", table)
    assert unknown_judges(judges, "table") == judges
