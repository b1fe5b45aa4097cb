"""The contract of every method, on the digits."""

from __future__ import annotations

import gc
import json
import math
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from udml_core.base.declaration import Described, Shown, describe, describe_field
from udml_core.base.errors import UserError
from udml_core.data import catalog
from udml_core.data.encoders import Encoder, choose_spec
from udml_core.data.features import features_of, pixels_of, views_of
from udml_core.data.given.pair_sets import PairSet
from udml_core.data.inference import embed_pixels
from udml_core.data.label_budget import drawn_labels
from udml_core.data.splits import make_split
from udml_core.data.training_data import TrainingData, UndeclaredLabelsError, training_data
from udml_core.methods import METHODS, Embedder, Epoch, Method, Setting, find_method
from udml_core.numerics.evaluation import map_at_r
from udml_core.numerics.measures import CURVES
from udml_core.numerics.sampling import generator, label_pairs
from udml_core.runs import Run

SECONDS = 3.0
"""Limit of the processor time of a fit; processor time does not depend on the load of the machine."""
SMALL: dict[str, dict[str, Any]] = {
    "rpml": {"dimension": 32, "epochs": 3},
    "srpml": {"dimension": 32, "epochs": 3, "steps": 3},
    "plm": {"dimension": 32, "epochs": 3, "proxies": 20, "learning_rate": 0.001},
    "ssdml": {"dimension": 32, "epochs": 3, "partition": 300, "partition_epochs": 2, "batch": 200, "steps": 2},
    "lrml": {}, "isdml": {}, "apllr": {}, "apit": {}, "seraph": {"steps": 10},
    "triplet": {"dimension": 32, "epochs": 3, "learning_rate": 0.1},
    "angular": {"dimension": 32, "epochs": 3, "learning_rate": 0.1},
    "nml": {"dimension": 16, "epochs": 3},
    "ml": {"dimension": 16, "epochs": 3},
    "kml": {"dimension": 16, "epochs": 3, "beginning": "random"},
    "nca": {"dimension": 16, "iterations": 5},
    "lmnn": {"dimension": 16, "iterations": 5},
    "pslr": {"dimension": 32, "epochs": 3, "learning_rate": 0.01},
    "isif": {"dimension": 32, "epochs": 3, "learning_rate": 0.01},
    "nce": {"dimension": 32, "epochs": 3, "learning_rate": 0.01, "noise": 200},
    "exemplar": {"dimension": 32, "epochs": 3, "classes": 300, "learning_rate": 0.01},
    "deepcluster": {"dimension": 32, "epochs": 3, "clusters": 30, "round_epochs": 2, "learning_rate": 0.01},
    "rotnet": {"dimension": 32, "epochs": 3, "learning_rate": 0.01},
    "simclr": {"dimension": 32, "epochs": 3, "hidden": 64, "learning_rate": 0.01},
    "supcon": {"dimension": 32, "epochs": 3, "hidden": 64, "learning_rate": 0.01},
    "barlow": {"dimension": 32, "epochs": 3, "hidden": 64, "projected": 64, "learning_rate": 0.01},
    "and": {"dimension": 32, "epochs": 3, "learning_rate": 0.01, "rounds": 2},
    "mom": {"dimension": 32, "epochs": 3, "learning_rate": 0.01, "shortlist": 100},
    "stml": {"dimension": 32, "epochs": 3, "learning_rate": 0.001},
    "uhml": {"dimension": 32, "epochs": 3, "learning_rate": 0.01, "clusters": 20},
    "distill": {"dimension": 32, "epochs": 3, "trains": "head"},
    "pca": {"dimension": 32},
}
USUAL: dict[str, Any] = {"dimension": 32, "epochs": 3, "hidden": 64, "projected": 64}
"""Fields of a method that `SMALL` does not name."""
END_TO_END: dict[str, dict[str, Any]] = {
    "srpml": {"dimension": 16, "epochs": 2, "batch": 240, "steps": 1, "learning_rate": 0.05},
    "plm": {"dimension": 16, "epochs": 2, "trains": "all", "proxies": 10, "learning_rate": 0.001},
    "ssdml": {"dimension": 16, "epochs": 3, "trains": "all", "partition": 200, "partition_epochs": 2, "steps": 1,
              "learning_rate": 0.01},
    "triplet": {"dimension": 16, "epochs": 2, "trains": "all", "learning_rate": 0.01, "per_anchor": 4},
    "pslr": {"dimension": 16, "epochs": 2, "trains": "all", "batch_norm": "batch", "learning_rate": 0.01},
    "isif": {"dimension": 16, "epochs": 2, "trains": "all", "parts": 3, "colors": True, "learning_rate": 0.01},
    "nce": {"dimension": 16, "epochs": 2, "trains": "all", "softmax": "full", "learning_rate": 0.01},
    "deepcluster": {"dimension": 16, "epochs": 2, "trains": "all", "clusters": 20, "learning_rate": 0.01},
    "and": {"dimension": 16, "epochs": 2, "trains": "all", "rounds": 2, "learning_rate": 0.01},
    "mom": {"dimension": 16, "epochs": 2, "trains": "all", "anchors": "modes", "learning_rate": 0.01},
    "stml": {"dimension": 16, "epochs": 2, "trains": "all", "batch_norm": "batch", "learning_rate": 0.001},
    "uhml": {"dimension": 16, "epochs": 2, "trains": "all", "levels": 3, "learning_rate": 0.01},
    "distill": {"dimension": 16, "epochs": 2, "trains": "all", "kept_views": 2},
}
DEEP_BASELINE = {"epochs": 3, "trains": "all", "partition": 200, "partition_epochs": 2, "learning_rate": 0.01}
END_TO_END |= dict.fromkeys(("lrml", "apllr"), DEEP_BASELINE) | {"seraph": DEEP_BASELINE | {"steps": 5}}


USUALLY_TRAINED = ("srpml", "plm", "ssdml", "pslr")
"""Methods of each way to train an encoder; the encoders of the others are slow tests."""


def small_fields(method: type[Method]) -> dict[str, Any]:
    """Return fields that train in seconds, where a method has them."""
    usual = {name: value for name, value in USUAL.items() if name in method.model_fields}
    return SMALL.get(method.card.name, usual)


def build_small(method: type[Method]) -> Method:
    return method.make(small_fields(method))


@cache
def digits(backbone: str = "pixels") -> tuple[Any, Any, Any, Encoder, Any]:
    """Return the digits, split by class, with features, encoder and images.

    Returns data set, features, split, encoder and prepared images; classes 5–9 are the test half.
    """
    dataset = catalog.load("digits")
    encoder = Encoder(choose_spec(backbone, dataset.native_size, dataset.gray))
    return dataset, np.array(features_of(dataset, encoder)), make_split(dataset, "zero-shot"), encoder, np.array(
        pixels_of(dataset, encoder))


def data_for(method: Method, backbone: str = "pixels") -> TrainingData:
    dataset, features, split, encoder, pixels = digits(backbone)
    images = pixels if method.trains_encoder and encoder.trainable else None
    views = None
    if method.views_needed:
        views = views_of(dataset, encoder, split.train, method.views_needed, method.augmentation, 0)
    few = drawn_labels(dataset, split.train, 6, 0)
    pairs = None
    if method.card.supervision == "pairs":
        drawn = label_pairs(torch.from_numpy(dataset.labels[split.train]), 2000, generator(0, 0))
        pairs = PairSet(*(part.numpy() for part in drawn))
    return training_data(features, dataset.labels, split.train, method.card.supervision, images, views, few, pairs)


def setting(seed: int = 0, backbone: str = "pixels") -> Setting:
    return Setting(seed, torch.device("cpu"), digits(backbone)[3])


def embed_test_half(embedder: Embedder, backbone: str = "pixels") -> np.ndarray[Any, Any]:
    _, features, split, _, pixels = digits(backbone)
    if embedder.trained:
        return embed_pixels(embedder.eval(), pixels[split.test])
    return embedder.embed_features(features[split.test])


def assert_same(first: Epoch, second: Epoch) -> None:
    assert first.number == second.number
    assert first.losses == second.losses
    assert first.state.keys() == second.state.keys()
    assert all(torch.equal(first.state[name], second.state[name]) for name in first.state)


@cache
def fit_case(method: Method, backbone: str) -> tuple[list[Epoch], float]:
    """Return the epochs of a fit with seed 3 and its processor time in seconds."""
    data = data_for(method, backbone)
    start = time.process_time()
    epochs = list(method.fit(data, setting(3, backbone)))
    return epochs, time.process_time() - start


def marks_of(name: str) -> tuple[pytest.MarkDecorator, ...]:
    """Return the marks of a test that trains the encoder by a method."""
    return () if name in USUALLY_TRAINED else (pytest.mark.slow,)


CASES = [pytest.param(method, "pixels", small_fields(method), id=f"{method.card.name}-pixels") for method in METHODS]
CASES += [pytest.param(method, "cnn", END_TO_END[method.card.name], id=f"{method.card.name}-cnn",
                       marks=marks_of(method.card.name)) for method in METHODS if method.card.name in END_TO_END]
case = pytest.mark.parametrize(("method", "backbone", "fields"), CASES)


@case
def test_epochs_are_numbered_fast_and_bit_equal_for_the_same_seed_and_after_a_resume(
        method: type[Method], backbone: str, fields: dict[str, Any], tmp_path: Path) -> None:
    built = method.make(fields)
    data = data_for(built, backbone)
    epochs, seconds = fit_case(built, backbone)
    assert [epoch.number for epoch in epochs] == list(range(1, built.epochs_planned + 1))
    assert seconds < SECONDS * (2 if backbone == "cnn" else 1)
    for epoch in epochs:
        assert all(isinstance(value, torch.Tensor) for value in epoch.state.values())
        assert int(epoch.state["epoch"]) == epoch.number
        assert all(math.isfinite(value) for value in epoch.losses.values())
        assert epoch.losses.keys() <= CURVES.keys(), "a new curve needs an entry in udml_core/numerics/measures.py"
        if epoch.embedder.head.normalized:
            np.testing.assert_allclose(np.linalg.norm(embed_test_half(epoch.embedder, backbone), axis=1), 1, rtol=1e-5)
    # A repeated fit and the resumed fits below train each epoch again, so one epoch of the repeated fit is enough.
    # Its steps are observed, which changes nothing.
    observed = replace(setting(3, backbone), observe=lambda _share, embedder: embedder().eval())
    assert_same(epochs[0], next(iter(built.fit(data, observed))))
    for interrupted in epochs:
        run = Run(tmp_path)
        run.write_checkpoint(interrupted.number, interrupted.state, interrupted.embedder)
        number, state, embedder_path = run.read_checkpoint() or pytest.fail("no checkpoint")
        assert number == interrupted.number
        rest = list(built.fit(data, setting(3, backbone), state))
        assert len(rest) == len(epochs) - interrupted.number
        for resumed, epoch in zip(rest, epochs[interrupted.number:], strict=True):
            assert_same(resumed, epoch)
        np.testing.assert_array_equal(embed_test_half(Embedder.load(embedder_path), backbone),
                                      embed_test_half(interrupted.embedder, backbone))


@pytest.mark.parametrize("method", [method for method in METHODS if method.card.name in ("rpml", "srpml", "nml")],
                         ids=lambda method: method.card.name)
def test_another_seed_gives_another_result(method: type[Method]) -> None:
    built = build_small(method)
    first, second = (next(iter(built.fit(data_for(built), setting(seed)))) for seed in (0, 1))
    learned = "rows" if built.card.supervision == "pairs" else "projection"
    assert not torch.equal(first.state[learned], second.state[learned])


@pytest.mark.parametrize("name", [pytest.param(name, marks=marks_of(name)) for name in END_TO_END])
def test_end_to_end_training_changes_a_copy_of_the_encoder_only(name: str) -> None:
    encoder = digits("cnn")[3]
    before = Encoder(encoder.spec).state_dict()
    *_, last = fit_case(find_method(name).make(END_TO_END[name]), "cnn")[0]
    assert last.embedder.trained
    assert all(torch.equal(value, before[name]) for name, value in encoder.state_dict().items())
    trained = last.embedder.encoder.state_dict()
    assert any(not torch.equal(trained[name], value) for name, value in before.items())
    with pytest.raises(ValueError, match="trained its encoder"):
        last.embedder.embed_features(np.zeros((2, 128), np.float32))


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.card.name)
def test_a_method_that_promises_a_gain_exceeds_its_own_start(method: type[Method]) -> None:
    if method.card.promise == "may fall":
        assert method.card.source
        return
    dataset, _, split, _, _ = digits()
    built = build_small(method)
    *_, last = fit_case(built, "pixels")[0]
    labels = dataset.labels[split.test]
    before, after = (map_at_r(embed_test_half(embedder), labels)[0]
                     for embedder in (built.initial(data_for(built), setting(3)), last.embedder))
    assert after > before, f"MAP@R {100 * before:.2f} to {100 * after:.2f}"


def bad_values(field: Described) -> Iterator[Any]:
    """Yield values that a field must reject, made from its own description."""
    yield from (None, [1], {"a": 1})
    if field.choices:
        yield from ("nonsense", 3)
        return
    if field.kind is bool:
        yield from ("yes", 2)
        return
    yield from ("5", True, float("nan"))
    step = 1 if field.kind is int else 1e-6
    if field.low is not None:
        yield field.kind(field.low) if field.low_open else field.kind(field.low - step)
    if field.high is not None:
        yield field.kind(field.high) if field.high_open else field.kind(field.high + step)
    yield from (1.5, float("inf")) if field.kind is int else (float("inf"), float("-inf"))


def distinct_fields() -> dict[str, tuple[type[Method], Described]]:
    """Return each distinct field, a name with its type and range, and its method."""
    declarations: dict[str, tuple[type[Method], Described]] = {}
    for method in METHODS:
        for name, info in method.model_fields.items():
            key = f"{name}: {info.annotation} {[part for part in info.metadata if not isinstance(part, Shown)]}"
            declarations.setdefault(key, (method, describe_field(method, name)))
    return declarations


@pytest.mark.parametrize(("method", "field"), distinct_fields().values(),
                         ids=[f"{method.card.name}-{field.name}" for method, field in distinct_fields().values()])
def test_a_bad_value_is_rejected_with_field_range_and_value(method: type[Method], field: Described) -> None:
    for value in bad_values(field):
        with pytest.raises(UserError) as rejected:
            method.make({field.name: value})
        message = str(rejected.value)
        assert f"{method.__name__}.{field.name} must be {field.allowed}" in message
        assert message.endswith(f"got {value!r}.")


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.card.name)
def test_every_field_has_a_help_text_and_a_valid_default_that_json_can_store(method: type[Method]) -> None:
    for field in describe(method):
        assert field.text.endswith("."), f"{field.name} has no help text"
        assert not field.required
        json.dumps(field.default)
        with pytest.raises(UserError, match=rf"{method.__name__}\.{field.name} must be .* got \[1\]\."):
            method.make({field.name: [1]})
    defaults = {field.name: field.default for field in describe(method)}
    assert method.make(defaults) == method.make({})


def test_a_message_names_the_range_and_an_unknown_field_the_known_fields() -> None:
    rpml = METHODS[0]
    with pytest.raises(UserError, match=r"RPML\.alpha must be between 0 and 90 degrees .*got 120\."):
        rpml.make({"alpha": 120})
    with pytest.raises(UserError, match=r"RPML has no field 'alfa'; its fields are: alpha, epsilon"):
        rpml.make({"alfa": 1})


def reachable_arrays(root: object) -> Iterator[np.ndarray[Any, Any]]:
    """Yield every array and tensor that an object refers to.

    References through modules and classes are not followed.
    """
    seen: set[int] = set()
    todo = [root]
    while todo:
        item = todo.pop()
        if id(item) in seen or isinstance(item, type | type(gc)) or callable(item):
            continue
        seen.add(id(item))
        if isinstance(item, torch.Tensor):
            yield item.numpy()
        elif isinstance(item, np.ndarray):
            yield item
            todo.append(item.base)
        todo += gc.get_referents(item)


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.card.name)
def test_training_data_holds_neither_undeclared_labels_nor_test_labels(method: type[Method]) -> None:
    dataset, features, split, _, pixels = digits("cnn")
    data = training_data(features, dataset.labels, split.train, method.card.supervision,
                         pixels if method.card.name in END_TO_END else None,
                         few=drawn_labels(dataset, split.train, 6, 0))
    if method.card.supervision == "none":
        with pytest.raises(UndeclaredLabelsError, match="does not declare labels"):
            data.labels  # noqa: B018
    forbidden = [dataset.labels, dataset.labels[split.test]]
    forbidden += [] if method.card.supervision == "all" else [dataset.labels[split.train]]
    for array in reachable_arrays(data):
        assert not any(array.shape == labels.shape and np.array_equal(array, labels) for labels in forbidden)


def test_the_search_for_labels_finds_them_in_any_container() -> None:
    dataset, features, split, _, _ = digits()
    labels = np.array(dataset.labels)
    view = labels.reshape(1, -1)[:, ::2]
    for hidden in ({"a": [(labels,)]}, torch.from_numpy(labels), view, [view]):
        data = training_data(features, None, split.train, "none", hidden)
        assert any(np.array_equal(array, labels) for array in reachable_arrays(data))


def test_a_method_that_declares_all_labels_receives_the_labels_of_the_training_half_only() -> None:
    dataset, features, split, _, _ = digits()
    data = training_data(features, dataset.labels, split.train, "all")
    assert set(data.labels.tolist()) == {0, 1, 2, 3, 4}
    assert not set(dataset.labels[split.test]) & set(data.labels.tolist())
    assert not any(array.shape == dataset.labels.shape for array in reachable_arrays(data) if array.ndim == 1)


def test_a_file_that_is_not_a_whole_embedder_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "embedder.safetensors"
    Embedder(digits()[3]).save(path)
    whole = path.read_bytes()
    for content in (b"", whole[: len(whole) // 2], b"\x80\x04cos\nsystem\n."):
        path.write_bytes(content)
        with pytest.raises(UserError, match="must be an embedder written by a run"):
            Embedder.load(path)
