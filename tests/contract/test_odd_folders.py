"""All methods on tiny and odd folders: planning says what is missing, or the run trains to its end."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from udml_core.base.declaration import describe
from udml_core.base.errors import UserError
from udml_core.data import catalog
from udml_core.data.features import features_path
from udml_core.data.given.pair_sets import PairSet
from udml_core.methods import METHODS, Method
from udml_core.runs import RunRequest, Spec, create_run
from udml_core.work import jobs
from udml_core.work.workers import train as worker

FOLDERS: dict[str, tuple[int, ...]] = {
    "two images": (2,), "three images": (3,), "one image a class": (1, 1, 1, 1), "two classes of two": (2, 2),
    "one class of two": (2, 1, 1, 1), "the same image": (4, 4),
    "different images": (1,) * 6}
"""Sizes of the classes; images in one class are similar."""
SMALLEST: dict[str, Any] = {
    "dimension": 1, "n_neighbors": 2, "epochs": 1, "iterations": 2, "steps": 2, "candidates": 2, "flat": 1, "group": 2,
    "proxies": 2, "whitening_neighbors": 1, "noise": 2, "clusters": 2, "levels": 1, "per_anchor": 1, "views": 2,
    "kept_views": 2}
"""Fields that fit as few images as possible."""


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The folders by name."""
    root, random = tmp_path_factory.mktemp("odd"), np.random.default_rng(0)
    for name, sizes in FOLDERS.items():
        for number, size in enumerate(sizes):
            pattern = random.integers(40, 200, (12, 12))
            for image in range(size):
                path = root / name / (f"class {number}" if len(sizes) > 1 else "") / f"{image}.png"
                path.parent.mkdir(parents=True, exist_ok=True)
                noise = random.integers(-9, 9, (12, 12))
                pixels = np.full((12, 12), 90) if name == "the same image" else pattern + noise
                Image.fromarray(pixels.astype(np.uint8)).save(path)
    return {name: str(root / name) for name in FOLDERS}


def smallest_fields(method: type[Method]) -> dict[str, Any]:
    """Return the fields of a method that fit as few images as possible."""
    fields = {field.name: field for field in describe(method) if field.name in SMALLEST}
    chosen = {name: field.kind(max(SMALLEST[name], field.low or 0)) for name, field in fields.items()}
    return chosen | ({"trains": "head"} if "trains" in method.model_fields else {})


def planned(folder: str, method: type[Method], **options: Any) -> Spec:
    """Plan a run with the smallest fields."""
    pairs = options.pop("pairs", None)
    request = {"dataset": folder, "method": method.card.name, "fields": smallest_fields(method), "backbone": "pixels"}
    return jobs.plan(RunRequest.make(request | options), catalog.load(folder), pairs)


@pytest.mark.parametrize("most", [2, pytest.param(len(FOLDERS), marks=pytest.mark.slow)])
@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.card.name)
def test_a_run_on_an_odd_folder_is_refused_before_it_starts_or_trains_to_its_end(
        method: type[Method], most: int, folders: dict[str, str], tmp_path: Path) -> None:
    """Train on at most some of the folders; each method begins with another one."""
    trained, refused_late = [], []
    names, first = list(folders), METHODS.index(method) % len(folders)
    for name in names[first:] + names[:first]:
        if len(trained) == most:
            break
        try:
            spec = planned(folders[name], method)
        except UserError:
            continue
        status = worker.work(create_run(spec, tmp_path), analyse=False)
        # Whether images are similar enough to be pseudo-labeled or mined is known with their features only.
        known_late = method.make({}).clusters_by_ascent and "the field 'epsilon'" in status.message
        refused_late += [name] if "Lower the field 'positives'" in status.message else []
        known_late |= name in refused_late
        assert status.state == "done" or known_late, f"{name}: {status.message}"
        trained += [name] if status.state == "done" else []
    assert trained or refused_late, "the fields must fit some folder"


@pytest.mark.parametrize(("method", "folder", "options", "message"), [
    ("rpml", "two images", {}, "RPML needs at least 3 training images, .*; got 2. Add images"),
    ("srpml", "one image a class", {}, "SRPML needs at least 3 training images, .*; got 2. Add images"),
    ("rpml", "the same image", {}, "all 8 images of the same image are the same. Add other images"),
    ("nml", "one image a class", {}, "two classes, one of them with two images; got 2 images in 2 classes. Add images"),
    ("kml", "two classes of two", {"split": "seen"}, "got 2 images in 2 classes"),
    ("lmnn", "one image a class", {"split": "all"}, "got 4 images in 4 classes"),
    ("ssdml", "one image a class", {"split": "all"}, "at least 2 labels; got 4 labels in 4 classes"),
    ("triplet", "two classes of two", {"labels_per_class": 1, "split": "all"}, "got 2 labels in 2 classes"),
])
def test_planning_says_what_is_missing(method: str, folder: str, options: dict[str, Any], message: str,
                                       folders: dict[str, str]) -> None:
    chosen = next(each for each in METHODS if each.card.name == method)
    with pytest.raises(UserError, match=message):
        planned(folders[folder], chosen, **options)


@pytest.mark.parametrize("method", ["rpml", "srpml"])
def test_planning_knows_from_stored_features_that_no_images_are_similar(
        method: str, folders: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))  # other tests store the features too
    chosen, folder = next(each for each in METHODS if each.card.name == method), folders["different images"]
    options = {"split": "all", "fields": smallest_fields(chosen) | {"epsilon": 0.99}}
    spec = planned(folder, chosen, **options)
    status = worker.work(create_run(spec, tmp_path), analyse=False)  # stores the features
    message = "left each of the 6 images alone at ε=0.99, so there are no positives. Lower the field 'epsilon'."
    assert (status.state, status.epoch) == ("failed", 0)
    assert status.message.endswith(message)
    with pytest.raises(UserError, match=re.escape(message)):
        planned(folder, chosen, **options)
    # Features that another version stored, or that are damaged, are left to the run.
    np.save(features_path(catalog.load(folder), spec.encoder), np.zeros((2, 3), np.float32))
    assert planned(folder, chosen, **options).fields == spec.fields


@pytest.mark.parametrize("same", [True, False])
def test_pairs_of_one_kind_are_refused_before_a_run_starts(same: bool, folders: dict[str, str]) -> None:
    pairs = PairSet(np.array([[0, 1], [1, 2]]), np.array([same, same]))
    for method in METHODS:
        if method.card.supervision == "pairs":
            with pytest.raises(UserError, match="pairs of both kinds among the training images, got"):
                planned(folders["three images"], method, pairs=pairs)
