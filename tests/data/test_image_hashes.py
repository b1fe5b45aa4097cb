"""Difference hashes against hashes computed by hand, pairs against a comparison of all, and equal contents."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_sample_image

from udml_core.base.arrays import Array
from udml_core.base.paths import dataset_cache
from udml_core.data import catalog, image_hashes
from udml_core.data.image_hashes import close_pairs, difference_hash, first_equal, hashes_of, reduced_gray


def hash_of(image: Image.Image) -> int:
    return int(difference_hash(reduced_gray(image)[None])[0])


def bits(first: int, second: int) -> int:
    return (first ^ second).bit_count()


def image_of(rows: list[list[int]]) -> Image.Image:
    """Return an image of 9×8 gray values, which is not reduced further."""
    return Image.fromarray(np.array(rows, np.uint8)).convert("RGB")


def test_the_hash_of_an_image_of_nine_by_eight_pixels_is_what_a_hand_computes() -> None:
    rows = [[0, 1, 0, 1, 0, 1, 0, 1, 0],  # rises at every second step: 1010 1010
            [9, 8, 7, 6, 5, 4, 3, 2, 1],  # falls: 0000 0000
            [1, 2, 3, 4, 5, 6, 7, 8, 9],  # rises: 1111 1111
            [5, 5, 5, 5, 5, 5, 5, 5, 5],  # equal: 0000 0000
            [0, 255, 255, 255, 255, 255, 255, 255, 255],  # 1000 0000
            [0, 0, 0, 0, 0, 0, 0, 0, 7],  # 0000 0001
            [3, 4, 4, 5, 2, 2, 2, 9, 1],  # 1010 0010
            [7, 6, 6, 6, 9, 9, 9, 9, 9]]  # 0001 0000
    assert hash_of(image_of(rows)) == 0xAA00FF00_8001A210


def test_gray_values_are_means_of_equal_parts_of_the_image() -> None:
    small = np.random.default_rng(0).integers(0, 255, (8, 9), dtype=np.uint8)
    large = Image.fromarray(np.kron(small, np.ones((20, 30), np.uint8))).convert("RGB")
    assert large.size == (270, 160)
    np.testing.assert_array_equal(reduced_gray(large), small)


def photograph(name: str) -> Image.Image:
    return Image.fromarray(load_sample_image(name))


def as_jpeg(image: Image.Image, quality: int) -> Image.Image:
    file = io.BytesIO()
    image.save(file, "JPEG", quality=quality)
    return Image.open(file).convert("RGB")


@pytest.mark.parametrize("name", ["china.jpg", "flower.jpg"])
def test_a_photograph_keeps_its_hash_when_scaled_compressed_or_brightened_but_not_when_turned(name: str) -> None:
    image = photograph(name)
    own = hash_of(image)
    for scale in (0.5, 0.3, 1.7):
        assert bits(own, hash_of(image.resize((round(640 * scale), round(427 * scale))))) <= 2
    assert bits(own, hash_of(as_jpeg(image, 30))) <= 2
    assert bits(own, hash_of(image.point(lambda value: 0.7 * value))) <= 2
    for turn in (Image.Transpose.ROTATE_90, Image.Transpose.ROTATE_180, Image.Transpose.FLIP_LEFT_RIGHT):
        assert bits(own, hash_of(image.transpose(turn))) > 12
    other = photograph("flower.jpg" if name == "china.jpg" else "china.jpg")
    assert bits(own, hash_of(other)) > 12


def all_pairs(hashes: Array, largest: int) -> dict[tuple[int, int], int]:
    values = [int(value) for value in hashes]
    return {(first, second): distance for second in range(len(values)) for first in range(second)
            if (distance := bits(values[first], values[second])) <= largest}


def few_bits(count: int) -> Array:
    """Return hashes with many close pairs."""
    random = np.random.default_rng(1)
    return (random.integers(0, 2**63, count, dtype=np.uint64) & random.integers(0, 2**63, count, dtype=np.uint64)
            & np.uint64(0xFF00_0F0F_0000_00F1))


@pytest.mark.parametrize("compared", [2**21, 150])
@pytest.mark.parametrize("largest", [0, 3, 64])
def test_close_pairs_are_those_of_a_comparison_of_all(largest: int, compared: int,
                                                      monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image_hashes, "COMPARED", compared)  # blocks of all hashes, or of two
    hashes = few_bits(70)
    hashes[11] = hashes[5]
    shares: list[float] = []
    pairs, distances = close_pairs(hashes, largest, report=shares.append)
    expected = all_pairs(hashes, largest)
    assert len(expected) > 0
    assert dict(zip(map(tuple, pairs.tolist()), distances.tolist(), strict=True)) == expected
    assert distances.tolist() == sorted(distances.tolist())
    assert shares[-1] == 1.0


def test_the_closest_pairs_are_kept_where_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image_hashes, "COMPARED", 150)
    hashes = few_bits(70)
    expected = sorted((distance, *pair) for pair, distance in all_pairs(hashes, 64).items())[:40]
    pairs, distances = close_pairs(hashes, 64, most=40)
    assert len(pairs) == 40
    assert distances.tolist() == [row[0] for row in expected]
    assert len({tuple(pair) for pair in pairs.tolist()}) == 40


@pytest.mark.parametrize("count", [0, 1])
def test_too_few_images_have_no_pairs(count: int) -> None:
    pairs, distances = close_pairs(np.zeros(count, np.uint64), 64)
    assert pairs.shape == (0, 2)
    assert distances.shape == (0,)


def test_the_first_of_equal_keys_is_named() -> None:
    assert first_equal(np.array([b"b", b"a", b"b", b"c", b"a"])).tolist() == [0, 1, 0, 3, 1]


def test_equal_pixels_are_equal_content_in_any_file_and_another_size_is_not(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "photos"
    folder.mkdir()
    image = photograph("flower.jpg").resize((96, 64))
    image.save(folder / "0.png")
    image.save(folder / "1.bmp")
    image.resize((64, 96)).save(folder / "2.png")
    Image.new("RGB", (96, 64)).save(folder / "3.png")
    Image.new("RGB", (64, 96)).save(folder / "4.png")  # as many equal bytes as 3.png
    changed = image.copy()
    changed.putpixel((5, 5), (0, 0, 0))
    changed.save(folder / "5.png")
    dataset = catalog.load(str(folder))
    hashes = hashes_of(dataset)
    assert hashes.content.tolist() == [0, 0, 2, 3, 4, 5]
    assert hashes.perceptual[0] == hashes.perceptual[1] == hash_of(image)

    path = dataset_cache(dataset.fingerprint) / image_hashes.FILE
    stamp = path.stat().st_mtime_ns
    np.testing.assert_array_equal(hashes_of(dataset).perceptual, hashes.perceptual)
    assert path.stat().st_mtime_ns == stamp  # read, not computed again
    path.write_bytes(b"PK\x03\x04 cut")
    np.testing.assert_array_equal(hashes_of(dataset).content, hashes.content)
