"""Duplicates: alignment on real photographs, the proposed threshold, the best copy, and decisions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_sample_image

from udml_core.data import catalog
from udml_core.data.dataset import Dataset
from udml_core.data.given.duplicate_decisions import Decisions, decide, decisions_of, prefer, undo_decision
from udml_core.data.image_facts import ImageFacts, facts_of, stored_facts
from udml_core.exploration.audit import AuditSettings, border_pairs, compare_images
from udml_core.exploration.duplicates import (
    at_border,
    best_first,
    candidate_pairs,
    check_pairs,
    make_square,
    propose_agreement,
)
from udml_core.numerics.alignment import Thumbnails, agreements

CHINA = Image.fromarray(load_sample_image("china.jpg"))
FLOWER = Image.fromarray(load_sample_image("flower.jpg"))


def thumbnails(*images: Image.Image) -> Thumbnails:
    squares = [make_square(image) for image in images]
    return Thumbnails(np.stack([gray for gray, _ in squares]), np.stack([chroma for _, chroma in squares]))


def agreement(left: Image.Image, right: Image.Image) -> float:
    return float(agreements(thumbnails(left), thumbnails(right))[0])


@pytest.mark.parametrize("image", [CHINA, FLOWER], ids=["china", "flower"])
@pytest.mark.parametrize("box", [(0, 0, 589, 393), (51, 34, 640, 427), (20, 0, 609, 393), (51, 0, 640, 427)])
def test_a_crop_of_8_percent_agrees_in_both_directions(image: Image.Image, box: tuple[int, int, int, int]) -> None:
    crop = image.crop(box).resize((300, 200))
    assert agreement(image, crop) > 0.9
    assert agreement(crop, image) > 0.9


def test_other_parts_other_photographs_and_flat_images_do_not_agree() -> None:
    assert agreement(CHINA, FLOWER) < 0.4
    assert agreement(CHINA.crop((0, 0, 300, 200)), CHINA.crop((320, 200, 620, 400))) < 0.4
    assert agreement(CHINA, CHINA.transpose(Image.Transpose.FLIP_LEFT_RIGHT)) < 0.4
    flat = Image.new("RGB", (64, 64), (90, 120, 30))
    assert agreement(flat, flat) == 0.0


def test_other_colors_lower_the_agreement_and_other_brightness_does_not() -> None:
    red, green, blue = FLOWER.split()
    assert agreement(FLOWER, Image.merge("RGB", (blue, green, red))) < 0.5
    assert agreement(FLOWER, FLOWER.point([min(255, 20 + round(0.8 * value)) for value in range(256)] * 3)) > 0.9


def test_the_threshold_is_the_valley_between_two_modes_else_the_widest_gap() -> None:
    random = np.random.default_rng(0)
    apart = np.concatenate([random.uniform(-0.2, 0.52, 5000), random.uniform(0.95, 1.0, 40)])
    assert 0.7 < propose_agreement(apart) < 0.8
    modes = np.concatenate([random.uniform(-0.2, 0.6, 5000), random.uniform(0.5, 0.7, 20), random.uniform(0.7, 1, 200)])
    assert 0.55 < propose_agreement(modes) < 0.75
    drawings = np.append(random.uniform(0, 0.94, 5000), [0.998])
    assert 0.94 < propose_agreement(drawings) < 0.998
    assert 0.6 <= propose_agreement(np.zeros(0)) <= 0.99


def test_candidates_are_nearest_by_features_and_close_by_hash() -> None:
    neighbors = np.array([[1, 2, 3, 4], [0, 2, 3, 4], [3, 0, 1, 4], [2, 0, 1, 4], [0, 1, 2, 3]])
    similarities = np.array([[0.9, 0.5, 0.1, 0], [0.9, 0.5, 0.1, 0], [0.7, 0.5, 0.1, 0], [0.7, 0.2, 0.1, 0.1],
                             [0.5, 0.4, 0.3, 0.95]])
    pairs = candidate_pairs(np.array([[0, 4], [1, 4]]), np.array([0.8, 0.3]), neighbors, similarities)
    assert pairs.tolist() == [[0, 1], [0, 4], [2, 3]], "the fourth neighbor and unlike images are not aligned"


def facts(**columns: list[float]) -> ImageFacts:
    zero = np.zeros(3)
    return ImageFacts(**{name: np.array(columns.get(name, zero)) for name in ImageFacts.__annotations__})


@pytest.mark.parametrize(("columns", "order"), [
    ({"width": [10, 30, 20], "height": [10, 10, 10], "bytes": [9, 1, 1]}, [1, 2, 0]),
    ({"bytes": [5, 7, 9], "edges": [9, 1, 1]}, [2, 1, 0]), ({"edges": [5.0, 9.0, 7.0], "time": [1, 9, 9]}, [1, 2, 0]),
    ({"time": [30, 20, 10]}, [2, 1, 0])], ids=["pixels", "bytes", "sharpness", "age"])
def test_the_best_copy_has_most_pixels_then_bytes_then_detail_and_is_oldest(columns: dict[str, list[float]],
                                                                            order: list[int]) -> None:
    groups = (np.array([0, 1, 2]),)
    assert best_first(groups, facts(**columns))[0].tolist() == order
    assert best_first(groups, facts(**columns), [order[-1]])[0].tolist() == [order[-1], *order[:-1]]
    assert best_first(groups, None, [2])[0].tolist() == [2, 0, 1]
    assert best_first(groups, None, [2, 1])[0].tolist() == [2, 1, 0], "the last choice, not the first of two in order"


def test_the_border_leaves_out_excluded_images_and_the_closest_come_first() -> None:
    pairs, values = np.array([[0, 1], [1, 2], [2, 3], [0, 3]]), np.array([0.5, 0.75, 0.69, 0.71])
    assert at_border(pairs, values, 0.7, np.ones(4, bool)).tolist() == [2, 3, 1]
    assert at_border(pairs, values, 0.7, np.array([True, True, True, False])).tolist() == [1]


@pytest.fixture
def photos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Dataset:
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "photos"
    folder.mkdir()
    images = [CHINA, CHINA.crop((0, 0, 589, 393)), FLOWER, FLOWER.resize((320, 214))]
    for name, image in enumerate(images):
        image.save(folder / f"{name}.jpg", quality=70)
    return catalog.load(str(folder))


def test_pairs_of_a_folder_are_aligned_and_facts_are_stored(photos: Dataset) -> None:
    values = check_pairs(photos, np.array([[0, 1], [2, 3], [0, 2]]))
    assert values[:2].min() > 0.9 > 0.5 > values[2]
    assert stored_facts(photos) is None
    found = facts_of(photos)
    assert found.width.tolist() == [640, 589, 640, 320]
    assert found.bytes.tolist() == [(Path(photos.images.root) / name).stat().st_size for name in photos.names]  # type: ignore[attr-defined]
    again = stored_facts(photos)
    assert again is not None
    assert again.edges.tolist() == found.edges.tolist()


def test_decisions_count_more_than_the_settings_and_are_undone(photos: Dataset) -> None:
    decide(photos, np.array([[1, 0], [2, 3]]), same=True)
    decide(photos, np.array([[2, 3]]), same=False)
    prefer(photos, [3])
    prefer(photos, [1])
    found = decisions_of(photos)
    assert (found.same.tolist(), found.different.tolist(), found.preferred) == ([[0, 1]], [[2, 3]], (1, 3))
    assert [undo_decision(photos), undo_decision(photos), undo_decision(photos)] == [True] * 3
    assert decisions_of(photos).same.tolist() == [[0, 1], [2, 3]]
    assert undo_decision(photos)
    assert not undo_decision(photos)


def test_decided_pairs_leave_the_border_and_join_or_leave_the_duplicates() -> None:
    audit = compare_images(None, np.array([0, 1, 2, 3, 1]), np.eye(5))
    checked = np.array([[0, 1], [2, 3]])
    audit = replace(audit, checked=checked, agreements=np.array([0.73, 0.68], np.float32))
    kept, settings = np.ones(5, bool), AuditSettings(least_agreement=0.7)
    assert border_pairs(audit, kept, settings, Decisions()).tolist() == [[2, 3], [0, 1]]
    assert audit.near_pairs(kept, settings).tolist() == [[0, 1]]
    decided = Decisions(same=np.array([[2, 3]]), different=np.array([[0, 4]]))  # 4 has the content of 1
    assert audit.near_pairs(kept, settings, decided).tolist() == [[2, 3]]
    assert border_pairs(audit, kept, settings, decided).tolist() == []
    assert audit.agreement_of(checked[::-1]).tolist() == pytest.approx([0.68, 0.73])
