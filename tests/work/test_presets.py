"""Presets: every printed value is allowed, explicit values win, and departures and comparability are stated."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.running import spec as plan_digits
from udml_core.base.errors import UserError
from udml_core.data import catalog
from udml_core.data.dataset import ArrayImages, Dataset
from udml_core.data.given.pair_sets import PairSet
from udml_core.methods import METHODS, find_method
from udml_core.numerics.evaluation import evaluate
from udml_core.runs import ExclusionList, RunRequest, Spec
from udml_core.work import jobs
from udml_core.work.jobs import presets
from udml_core.work.jobs.presets import KINDS, Preset, read_preset

ALL = [preset for method in METHODS for kind in KINDS if (preset := read_preset(method.card.name, kind))]
NAMES = [f"{preset.method}-{preset.images}" for preset in ALL]
PRINTED = 28
"""Number of methods with a paper that prints their fields for a data set of the presets; a later method may have none.
"""


def small_dataset(name: str = "digits", color: bool = False, side: int = 28, count: int = 200) -> Dataset:
    """Return random images of ten classes."""
    random = np.random.default_rng(0)
    pixels = random.integers(0, 255, (count, side, side, 3) if color else (count, side, side), dtype=np.uint8)
    return replace(catalog.load("digits"), name=name, images=ArrayImages(pixels), labels=np.arange(count) % 10,
                   names=tuple(f"{index:05}.png" for index in range(count)), native_size=side, gray=not color)


def planned(method: str, dataset: Dataset, **rest: Any) -> Spec:
    return jobs.plan(RunRequest.make({"dataset": dataset.name, "method": method, "preset": "paper"} | rest), dataset)


def test_methods_of_papers_have_a_preset_and_every_preset_has_a_method() -> None:
    assert len({preset.method for preset in ALL}) >= PRINTED
    assert {name for block in presets._read()["preset"] for name in block["methods"]} == {
        preset.method for preset in ALL}


@pytest.mark.parametrize("preset", ALL, ids=NAMES)
def test_a_preset_decides_every_field_of_its_method(preset: Preset) -> None:
    method = find_method(preset.method)
    assert set(preset.fields) | set(preset.silent) == set(method.model_fields)
    assert not set(preset.fields) & set(preset.silent)
    assert len(set(preset.silent)) == len(preset.silent)
    built = method.make(preset.field_values())
    assert {name: getattr(built, name) for name in preset.fields} == preset.field_values()


@pytest.mark.parametrize("preset", ALL, ids=NAMES)
def test_a_preset_decides_backbone_size_split_and_selection(preset: Preset) -> None:
    request = RunRequest.make({"dataset": "digits", "method": preset.method} | preset.option_values())
    few = {"labels", "labels_per_class"} if find_method(preset.method).card.supervision == "few" else set()
    assert {"backbone", "pooling", "size", "split", "select"} | few <= request.model_fields_set
    assert not {"dataset", "device", "seed", "preset"} & set(preset.options)
    assert preset.paper in ("RPML", "PLM", "SSDML", "NML", "PSLR", "RotNet", "SimCLR", "SupCon",
                            "AND", "MOM", "STML", "UHML")
    assert preset.data
    sources = [entry.source for entry in (*preset.fields.values(), *preset.options.values())]
    assert all(sources)
    assert max(map(len, sources)) <= 80


@pytest.mark.parametrize("preset", ALL, ids=NAMES)
def test_the_measures_of_a_preset_are_measured(preset: Preset) -> None:
    embeddings = np.eye(4, dtype=np.float32)[[0, 0, 1, 1, 2, 2, 3, 3]]
    measured = {*evaluate(embeddings, np.arange(8) // 2, embeddings, lambda _share: None), "knn@200"}
    assert preset.measures
    assert set(preset.measures) <= measured


@pytest.mark.parametrize(("method", "kind", "expected"), [
    ("rpml", "photographs", {"alpha": 45.0, "epsilon": 0.65, "n_neighbors": 50, "weight": "concatenated"}),
    ("srpml", "photographs", {"batch": 120, "gamma": 100.0}),
    ("plm", "photographs", {"learning_rate": 5e-4, "proxy_rate": 100.0, "epochs": 200, "n_alpha": 4.0, "n_beta": 0.5,
                            "flat": 3, "threshold": 0.9, "through": "origin"}),
    ("pslr", "color", {"eta": 100.0, "learning_rate": 0.03, "batch": 128, "weight": 0.1, "form": "printed"}),
    ("pslr", "stl10", {"eta": 100.0, "learning_rate": 0.03, "batch": 128, "weight": 0.1, "beginning": "random"}),
    ("pslr", "photographs", {"eta": 1.0, "learning_rate": 0.001, "batch": 64, "schedule": "constant"}),
    ("ssdml", "gray", {"alpha": 40.0, "n_neighbors": 10, "dimension": 64, "partition": 9000, "pretraining": 0}),
    ("ssdml", "color", {"alpha": 40.0, "dimension": 32, "pretraining": 30, "epochs": 50}),
    ("ssdml", "photographs", {"alpha": 45.0, "n_neighbors": 50, "dimension": 128, "partition": 0, "epochs": 200}),
    ("deepcluster", "color", {"clusters": 1000, "first_classifier": "random", "learning_rate": 0.03, "batch": 128}),
    ("deepcluster", "stl10", {"clusters": 100, "first_classifier": "random", "learning_rate": 0.03, "batch": 128}),
    ("exemplar", "color", {"first_classifier": "random", "colors": True, "epochs": 200}),
    ("rotnet", "color", {"learning_rate": 0.1, "epochs": 100, "batch": 128, "weight_decay": 5e-4}),
    ("simclr", "color", {"temperature": 0.5, "batch": 1024, "projected": 128, "schedule": "cosine"}),
    ("supcon", "color", {"temperature": 0.1, "form": "out", "hidden": 2048}),
    ("nml", "photographs", {"bias": 0.1, "margin": 0.02, "batch": 1, "epochs": 100}),
])
def test_presets_have_the_printed_values(method: str, kind: Any, expected: dict[str, Any]) -> None:
    preset = read_preset(method, kind)
    assert preset is not None
    assert preset.field_values() | expected == preset.field_values()


def test_label_budgets_follow_the_images() -> None:
    budgets = {preset.images: preset.option_values()["labels_per_class"] for preset in ALL if preset.method == "ssdml"}
    assert budgets == {"gray": 10, "color": 100, "photographs": 5}


def test_the_kind_follows_size_and_color() -> None:
    kinds = [presets.image_kind(small_dataset(color=color, side=side))
             for color, side in ((False, 28), (True, 32), (True, 33), (False, 33))]
    assert kinds == ["gray", "color", "photographs", "photographs"]


def stl10(unlabeled: int = 0, side: int = 96) -> Dataset:
    """Return black images as the files of STL-10 give them: training, test and unlabeled images."""
    labeled = 13_000
    labels = np.arange(labeled) % 10
    classes = np.concatenate([np.eye(10, dtype=bool)[labels], np.zeros((unlabeled, 10), dtype=bool)])
    count = len(classes)
    return replace(small_dataset("stl10"), images=ArrayImages(np.broadcast_to(np.uint8(0), (count, side, side, 3))),
                   labels=None if unlabeled else labels, evaluation_classes=classes if unlabeled else None,
                   names=tuple(f"image {index}" for index in range(count)), native_size=side, gray=False,
                   official_test=(np.arange(count) >= 5_000) & (np.arange(count) < labeled))


@pytest.mark.parametrize(("method", "unlabeled"), [("pslr", 100_000), ("isif", 0), ("isif", 100_000), ("nce", 0)])
def test_stl10_is_recognized_and_trains_a_small_network_without_weights(method: str, unlabeled: int) -> None:
    dataset = stl10(unlabeled)
    assert presets.image_kind(dataset) == "stl10"
    spec = planned(method, dataset)
    assert (spec.backbone, spec.size, spec.split) == ("resnet18-small", 96, "seen")
    assert (spec.fields["trains"], spec.fields["beginning"], spec.fields["batch_norm"]) == ("all", "random", "batch")
    assert not [text for text in jobs.why_not_comparable(spec, dataset) if text.startswith(("Data", "Images"))]


def test_images_like_those_of_stl10_in_another_number_or_size_are_photographs() -> None:
    assert presets.image_kind(stl10(side=224)) == "photographs"
    assert presets.image_kind(stl10(unlabeled=99_999)) == "photographs"


def test_a_paper_without_settings_for_stl10_lends_those_for_photographs() -> None:
    preset = presets.find_preset("rpml", "stl10")
    assert preset is not None
    assert (preset.option_values()["size"], preset.data) == (512, ())
    assert preset.own_departures()[-1].endswith("its settings for photographs are used")


def test_a_request_takes_the_papers_values_and_keeps_its_own() -> None:
    dataset = small_dataset()
    spec = planned("ssdml", dataset, fields={"partition": 50}, select="last", seed=3)
    assert (spec.backbone, spec.size, spec.split, spec.labels_per_class) == ("lenet", 28, "seen", 10)
    assert (spec.fields["scale"], spec.fields["epochs"], spec.fields["partition"]) == ("sum", 50, 50)
    assert (spec.select, spec.seed) == ("last", 3)
    assert jobs.departures(spec, dataset) == [
        "partition: 50 in place of 9000 (implementation details)",
        "select: last in place of recall (implementation details: the best model is chosen; tables: recall)"]


def test_a_request_without_the_preset_keeps_the_defaults() -> None:
    dataset = small_dataset()
    spec = planned("ssdml", dataset, preset="default", size=32)
    assert (spec.backbone, spec.fields["scale"], spec.preset) == ("efficientnet-lite0", "mean", "default")


def test_a_changed_field_on_which_the_paper_is_silent_is_a_departure() -> None:
    dataset = small_dataset()
    spec = planned("ssdml", dataset, fields={"momentum": 0.5})
    assert jobs.departures(spec, dataset) == [
        "momentum: 0.5 in place of 0.9 (the paper is silent; this is the default)"]


def test_assigned_labels_replace_the_papers_budget_and_selection() -> None:
    request = RunRequest.make({"dataset": "digits", "method": "ssdml", "preset": "paper", "labels": "given"})
    applied = presets.apply_preset(request, small_dataset())
    assert (applied.labels_per_class, applied.select, applied.backbone) == (None, None, "lenet")


def test_what_a_machine_cannot_have_is_a_departure() -> None:
    dataset = small_dataset(color=True, side=230, count=60)
    assert jobs.departures(planned("plm", dataset, fields={"batch": 20}), dataset) == [
        "backbone: efficientnet-lite0 in place of GoogLeNet with ImageNet weights (section 4.1)",
        "Images: random resized crops in place of 227-pixel crops of images resized to 256 pixels",
        "batch: 20 in place of 100 (section 4.1)"]


def test_a_users_backbone_replaces_the_nearest() -> None:
    dataset = small_dataset(color=True, side=230, count=60)
    texts = jobs.departures(planned("plm", dataset, fields={"batch": 20}, backbone="squeezenet"), dataset)
    assert [text for text in texts if text.startswith("backbone")] == [
        "backbone: squeezenet in place of efficientnet-lite0 (section 4.1)"]


def test_images_without_settings_take_those_of_another_kind() -> None:
    preset = presets.find_preset("rpml", "gray")
    assert preset is not None
    assert preset.option_values()["size"] == 512
    assert preset.own_departures()[-1] == ("Images: the paper has no settings for such images; its settings "
                                           "for photographs are used")
    assert preset.data == ()


def test_a_method_without_a_preset_is_refused() -> None:
    with pytest.raises(UserError, match=r"No paper prints settings for pca\. Remove the preset, or choose one of rpml"):
        planned("pca", small_dataset())


def test_results_are_comparable_only_with_the_papers_settings_and_data(monkeypatch: pytest.MonkeyPatch) -> None:
    known = presets.OriginalData("Tiny", 200, 10, 160, 40, lossless=True)
    preset = read_preset("ssdml", "gray")
    assert preset is not None
    monkeypatch.setattr(presets, "find_preset", lambda _method, _kind: replace(preset, data=(known,)))
    dataset = small_dataset()
    spec = planned("ssdml", dataset)
    assert jobs.why_not_comparable(spec, dataset) == []
    changed = planned("ssdml", dataset, fields={"steps": 5})
    assert jobs.why_not_comparable(changed, dataset) == ["steps: 5 in place of 10 (algorithm 1)"]
    lossy = replace(dataset, names=("00000.JPG", *dataset.names[1:]))
    assert jobs.why_not_comparable(spec, lossy) == ["Data: a lossy copy of Tiny"]
    halves = replace(dataset, official_test=np.arange(200) < 50)
    assert jobs.why_not_comparable(spec, halves) == ["Data: 150 training images in place of 160",
                                                     "Data: 50 test images in place of 40"]
    excluded = ExclusionList.of([dataset.names[spec.halves(dataset).test[0]]])
    fewer = spec.model_copy(update={"excluded": excluded})
    assert jobs.why_not_comparable(fewer, dataset) == ["Data: 39 test images in place of 40"]
    smaller = small_dataset(count=150)
    assert jobs.why_not_comparable(spec, smaller) == ["Data: Digits with 150 images of 10 classes is not Tiny"]


def test_photographs_are_never_comparable_without_the_papers_network() -> None:
    preset = read_preset("plm", "photographs")
    assert preset is not None
    assert any("GoogLeNet" in text for text in preset.own_departures())


def test_methods_without_a_paper_are_not_comparable() -> None:
    assert jobs.why_not_comparable(plan_digits("frozen"), catalog.load("digits")) == [
        "No paper prints settings for frozen."]


def test_the_original_data_sets_have_the_sizes_of_the_papers() -> None:
    read = {(data.title, data.images, data.classes, data.train, data.test) for preset in ALL for data in preset.data}
    assert read == {
        ("MNIST", 70_000, 10, 60_000, 10_000),
        ("Fashion-MNIST", 70_000, 10, 60_000, 10_000),
        ("CIFAR-10", 60_000, 10, 50_000, 10_000),
        ("STL-10", 13_000, 10, 5_000, 8_000),
        ("STL-10 with its unlabeled images", 113_000, 10, 105_000, 8_000),
        ("CUB-200-2011", 11_788, 200, 5_864, 5_924),
        ("Cars-196", 16_185, 196, 8_054, 8_131),
        ("Stanford Online Products", 120_053, 22_634, 59_551, 60_502),
        ("Scene-15", 4_485, 15, 1_500, 2_985),
        ("Flickr Material", 1_000, 10, 500, 500),
        ("Leeds Butterflies", 832, 10, 632, 200),
        ("PASCAL VOC 2007", 9_963, 20, 5_011, 4_952),
        ("Oxford Flowers-102", 8_189, 102, 2_020, 6_149),
        ("CUB-200-2011", 11_788, 200, 5_994, 5_794)}


def photographs(count: int, classes: int, tests: int | None = None) -> Dataset:
    """Return black photographs; the last ones are the authors' test images, if a number of these is given."""
    names = tuple(f"class {number:03}" for number in range(classes))
    return replace(small_dataset(), images=ArrayImages(np.broadcast_to(np.uint8(0), (count, 224, 224, 3))),
                   labels=np.arange(count) % classes, class_names=names,
                   names=tuple(f"{index:05}.jpg" for index in range(count)), native_size=224, gray=False,
                   official_test=None if tests is None else np.arange(count) >= count - tests)


@pytest.mark.parametrize(("count", "classes", "tests", "reasons"), [
    (11_788, 200, 5_794, []),
    (8_189, 102, 6_149, ["2,040 training images in place of 2,020"]),
    (1_000, 10, None, ["800 training images in place of 500", "200 test images in place of 500"]),
    (1_000, 10, 500, []),
    (4_485, 15, None, ["3,585 training images in place of 1,500", "900 test images in place of 2,985",
                       "the division of the split 'seen' in place of the paper's: 100 random images of each class "
                       "train, the others test"]),
    (832, 10, None, ["662 training images in place of 632", "170 test images in place of 200",
                     "the division of the split 'seen' in place of the paper's: the first 20 images of each class "
                     "test, the others train"]),
])
def test_the_halves_of_nmls_data_sets_are_the_papers_or_a_departure(count: int, classes: int, tests: int | None,
                                                                     reasons: list[str]) -> None:
    dataset = photographs(count, classes, tests)
    spec = planned("nml", dataset)
    stated = [text for text in jobs.why_not_comparable(spec, dataset) if text.startswith("Data")]
    assert stated == [f"Data: {reason}" for reason in reasons]


def test_voc_is_a_data_set_of_nml_and_given_pairs_are_a_departure() -> None:
    classes = np.eye(20, dtype=bool)[np.arange(9_963) % 20]
    classes[:100, 14] = True
    dataset = replace(photographs(9_963, 20, 4_952), labels=None, evaluation_classes=classes)
    pairs = PairSet(np.array([[0, 20], [0, 21]]), np.array([True, False]))
    spec = jobs.plan(RunRequest.make({"dataset": "digits", "method": "nml", "preset": "paper"}), dataset, pairs)
    reasons = jobs.why_not_comparable(spec, dataset)
    assert not [text for text in reasons if text.startswith("Data")]
    assert "pairs: given pairs in place of pairs drawn from the classes" in reasons
