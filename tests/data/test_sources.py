"""The data sets known by name, and their splits."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.running import write_digits
from udml_core.base.errors import UserError
from udml_core.base.paths import ASSETS
from udml_core.data import catalog
from udml_core.data.sources.digits import read_digits
from udml_core.data.sources.idx import FashionMNIST
from udml_core.data.splits import Split, caution_of, default_split, fixed_sample, holdout, make_split


def test_the_digits_match_scikit_learn() -> None:
    from sklearn.datasets import load_digits

    dataset = catalog.load("digits")
    np.testing.assert_array_equal(dataset.labels, load_digits().target)
    assert np.asarray(dataset.images[0]).shape == (8, 8, 3)
    assert np.asarray(dataset.images[5]).max() == 255
    images, labels = read_digits()
    np.testing.assert_array_equal(images, load_digits().images)
    np.testing.assert_array_equal(labels, load_digits().target)
    code = "import sys; from udml_core.data import catalog; catalog.load('digits'); sys.exit('sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0, "a training would wait for it"


def test_the_embedded_images_are_the_first_images_of_each_class_in_the_official_files() -> None:
    if FashionMNIST().missing():
        pytest.skip("Fashion-MNIST is not installed: `apt install dataset-fashion-mnist`")
    whole, mini = catalog.load("fashion-mnist"), catalog.load("fashion-mini")
    assert (len(whole), len(mini)) == (70_000, 6_000)
    assert whole.labels is not None
    assert mini.labels is not None
    for is_test, count in ((False, 500), (True, 100)):
        for label in range(10):
            official = np.flatnonzero((whole.labels == label) & (whole.official_test == is_test))[:count]
            ours = np.flatnonzero((mini.labels == label) & (mini.official_test == is_test))
            np.testing.assert_array_equal(mini.images.pixels[ours], whole.images.pixels[official])  # type: ignore[attr-defined]


def test_the_emoji_are_the_drawings_of_the_sheet_in_the_order_of_their_list() -> None:
    dataset, source = catalog.load("emoji"), catalog.find("emoji")
    assert (len(dataset), len(dataset.class_names)) == (source.images, source.classes) == (1214, 41)
    with Image.open(ASSETS / "emoji.webp") as file:
        sheet = file.convert("RGB")
    for index in (0, 39, 40, 1213):
        row, column = divmod(index, 40)
        tile = sheet.crop((64 * column, 64 * row, 64 * column + 64, 64 * row + 64))
        assert np.array_equal(np.asarray(dataset.images[index]), np.asarray(tile))
    apple, wrench = (dataset.names.index(name) for name in ("apple", "wrench"))
    assert dataset.labels is not None
    assert [dataset.class_names[dataset.labels[index]] for index in (apple, wrench)] == ["food-fruit", "tool"]
    red, green, blue = np.asarray(dataset.images[apple], dtype=float)[24:48, 16:48].reshape(-1, 3).mean(axis=0)
    assert red > max(green, blue) + 40, "an apple is red"
    assert np.bincount(dataset.labels).min() >= 16
    assert np.bincount(dataset.labels).max() <= 60


@pytest.mark.slow
@pytest.mark.data
def test_the_birds_have_a_hundred_species() -> None:
    source = catalog.find("birds100")
    if source.missing():
        pytest.skip(str(source.missing()))
    dataset = catalog.load("birds100")
    assert (len(dataset), len(dataset.class_names), dataset.native_size) == (5902, 100, 227)
    split = make_split(dataset, "zero-shot")
    assert (len(split.train), len(split.test)) == (2969, 2933)


def test_folders_below_udml_data_are_listed_as_data_sets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_digits(tmp_path / "mine", 20)
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("UDML_DATA", str(tmp_path))
    names = [source.name for source in catalog.sources()]
    assert names[0] == "fashion-mini"
    assert "mine" in names
    assert "empty" not in names
    assert len(catalog.load("mine")) == 20
    assert "does not exist" in str(catalog.find("birds100").missing())


def test_the_zero_shot_training_half_is_the_first_half_of_the_classes_by_name(tmp_path: Path) -> None:
    write_digits(tmp_path, 60)
    os.rename(tmp_path / "class 0", tmp_path / "z")
    dataset = catalog.load(str(tmp_path))
    split = make_split(dataset, default_split(dataset))
    assert split.name == "zero-shot"
    assert dataset.labels is not None
    train_classes = {dataset.class_names[label] for label in dataset.labels[split.train]}
    assert train_classes == {f"class {digit}" for digit in range(1, 6)}
    assert not train_classes & {dataset.class_names[label] for label in dataset.labels[split.test]}
    assert len(split.train) + len(split.test) == len(dataset)


def test_the_seen_test_half_is_the_official_half_or_a_fifth_of_each_class() -> None:
    mini = make_split(catalog.load("fashion-mini"), "seen")
    assert (len(mini.train), len(mini.test)) == (5000, 1000)
    digits = catalog.load("digits")
    split = make_split(digits, "seen")
    assert digits.labels is not None
    shares = np.bincount(digits.labels[split.test]) / np.bincount(digits.labels)
    assert np.all(np.abs(shares - 0.2) < 0.01)
    np.testing.assert_array_equal(split.test, make_split(digits, "seen").test)


def test_both_halves_of_unlabeled_images_are_the_whole_data_set(tmp_path: Path) -> None:
    dataset = catalog.load(str(write_digits(tmp_path, 20, by_class=False)))
    split = make_split(dataset, default_split(dataset))
    assert split.name == "all"
    np.testing.assert_array_equal(split.train, np.arange(20))
    np.testing.assert_array_equal(split.test, np.arange(20))
    seen = make_split(dataset, "seen")
    assert (len(seen.train), len(seen.test)) == (16, 4)
    with pytest.raises(UserError, match="needs at least 2 classes"):
        make_split(dataset, "zero-shot")


def test_a_holdout_draws_from_every_class_but_never_a_whole_class() -> None:
    labels = np.repeat([0, 1, 2, 3], [100, 10, 2, 1])
    drawn = holdout(labels, 0.15, seed=1)
    assert np.bincount(labels[drawn], minlength=4).tolist() == [15, 2, 1, 0]
    assert not np.array_equal(drawn, holdout(labels, 0.15, seed=2))


def test_validation_images_are_held_out_of_the_training_half_only() -> None:
    digits = catalog.load("digits")
    whole, split = make_split(digits, "seen"), make_split(digits, "seen", "validation", seed=3)
    assert len(whole.validation) == 0
    np.testing.assert_array_equal(split.test, whole.test)
    np.testing.assert_array_equal(np.sort(np.concatenate([split.train, split.validation])), whole.train)
    assert 0.14 < len(split.validation) / len(whole.train) < 0.16
    assert not np.array_equal(split.validation, make_split(digits, "seen", "validation", seed=4).validation)


def test_a_larger_sample_contains_every_smaller_one() -> None:
    test = np.arange(5, 400, 3)
    small, large = fixed_sample(test, 20), fixed_sample(test, 60)
    assert len(small) == 20
    assert set(small) < set(large) < set(test)
    np.testing.assert_array_equal(large, np.sort(large))
    np.testing.assert_array_equal(fixed_sample(test, 1000), test)


def test_cifar10_has_the_official_division_and_the_classes_of_its_subfolders(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("UDML_DATA", raising=False)
    assert "UDML_DATA, which is not set" in str(catalog.find("cifar10").missing())
    monkeypatch.setenv("UDML_DATA", str(tmp_path))
    for number, (half, name) in enumerate([("train", "dog"), ("train", "cat"), ("train", "dog"), ("test", "cat")]):
        folder = tmp_path / "cifar10" / half / name
        folder.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (32, 32), (number, 0, 0)).save(folder / f"{number}.png")
    source = catalog.find("cifar10")
    assert (source.images, source.classes) == (4, 2)
    dataset = catalog.load("cifar10")
    assert dataset.class_names == ("cat", "dog")
    assert dataset.labels is not None
    assert dataset.labels.tolist() == [0, 0, 1, 1]
    assert make_split(dataset, "seen").train.tolist() == [1, 2, 3]
    Image.new("RGB", (32, 32)).save(tmp_path / "cifar10" / "train" / "loose.png")
    with pytest.raises(UserError, match=r"must have its images in train/CLASS/\* .* got train/loose.png"):
        catalog.load("cifar10")


def test_test_images_that_are_alone_in_their_class_are_counted() -> None:
    dataset = catalog.load("digits")
    labels = np.asarray(dataset.labels).copy()
    assert caution_of(dataset, make_split(dataset, "seen")) == ""
    split = Split("seen", np.arange(100), np.array([200, 300, 400, 500]))
    labels[split.test] = [3, 5, 5, 7]
    some = caution_of(replace(dataset, labels=labels), split)
    assert some.startswith("2 of 4 test images are alone in their class in the test half of the split 'seen'")
    labels[split.test] = [3, 5, 6, 7]
    assert caution_of(replace(dataset, labels=labels), split).startswith("Every test image is alone in its class")
    assert caution_of(replace(dataset, labels=None), split) == ""
    with_gallery = replace(dataset, labels=labels, queries=np.ones(1797, bool))
    assert caution_of(with_gallery, split) == "", "queries search among the other test images"
