"""What every method promises, on the digits."""

from __future__ import annotations

import gc
import json
import math
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from udml_core.backbones import Encoder, choose_spec
from udml_core.data import catalog
from udml_core.data.features import embed_pixels, features_of, pixels_of, views_of
from udml_core.data.given.pairs import PairSet
from udml_core.data.label_budget import drawn_labels
from udml_core.data.splits import make_split
from udml_core.data.training import TrainingData, UndeclaredLabelsError, training_data
from udml_core.declaration import Described, describe
from udml_core.errors import UserError
from udml_core.evaluation import map_at_r
from udml_core.methods import METHODS, Embedder, Epoch, Method, Setting, find_method
from udml_core.runs import Run
from udml_core.sampling import generator, label_pairs

SECONDS = 3.0
"""Of the processor, so that a busy machine is no fault."""
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
    "pca": {"dimension": 32},
}
END_TO_END: dict[str, dict[str, Any]] = {
    "srpml": {"dimension": 16, "epochs": 2, "batch": 240, "steps": 1, "learning_rate": 0.05},
    "plm": {"dimension": 16, "epochs": 2, "trains": "encoder", "proxies": 10, "learning_rate": 0.001},
    "ssdml": {"dimension": 16, "epochs": 3, "trains": "encoder", "partition": 200, "partition_epochs": 2, "steps": 1,
              "learning_rate": 0.01},
    "triplet": {"dimension": 16, "epochs": 2, "trains": "encoder", "learning_rate": 0.01, "per_anchor": 4},
    "pslr": {"dimension": 16, "epochs": 2, "trains": "encoder", "batch_norm": "batch", "learning_rate": 0.01},
    "isif": {"dimension": 16, "epochs": 2, "trains": "encoder", "parts": 3, "colors": True, "learning_rate": 0.01},
    "nce": {"dimension": 16, "epochs": 2, "trains": "encoder", "softmax": "full", "learning_rate": 0.01},
}
DEEP_BASELINE = {"epochs": 3, "trains": "encoder", "partition": 200, "partition_epochs": 2, "learning_rate": 0.01}
END_TO_END |= dict.fromkeys(("lrml", "apllr"), DEEP_BASELINE) | {"seraph": DEEP_BASELINE | {"steps": 5}}


def small(method: type[Method]) -> Method:
    return method.make(SMALL.get(method.card.name, {}))


@cache
def given(backbone: str = "pixels") -> tuple[Any, Any, Any, Encoder, Any]:
    """Data set, features, split, encoder and prepared images of the digits; classes 0–4 train, 5–9 test."""
    dataset = catalog.load("digits")
    encoder = Encoder(choose_spec(backbone, dataset.native_size, dataset.gray))
    return dataset, np.array(features_of(dataset, encoder)), make_split(dataset, "zero-shot"), encoder, np.array(
        pixels_of(dataset, encoder))


def data_for(method: Method, backbone: str = "pixels") -> TrainingData:
    dataset, features, split, encoder, pixels = given(backbone)
    wanted = pixels if method.trains_encoder and encoder.trainable else None
    views = None
    if method.views_needed:
        views = views_of(dataset, encoder, split.train, method.views_needed, method.augmentation, 0)
    few = drawn_labels(dataset, split.train, 6, 0)
    pairs = None
    if method.card.supervision == "pairs":
        drawn = label_pairs(torch.from_numpy(dataset.labels[split.train]), 2000, generator(0, 0))
        pairs = PairSet(*(one.numpy() for one in drawn))
    return training_data(features, dataset.labels, split.train, method.card.supervision, wanted, views, few, pairs)


def setting(seed: int = 0, backbone: str = "pixels") -> Setting:
    return Setting(seed, torch.device("cpu"), given(backbone)[3])


def embedded(embedder: Embedder, backbone: str = "pixels") -> np.ndarray[Any, Any]:
    _, features, split, _, pixels = given(backbone)
    if embedder.trained:
        return embed_pixels(embedder.eval(), pixels[split.test])
    return embedder.embed_features(features[split.test])


def assert_same(first: Epoch, second: Epoch) -> None:
    assert first.number == second.number
    assert first.losses == second.losses
    assert first.state.keys() == second.state.keys()
    assert all(torch.equal(first.state[name], second.state[name]) for name in first.state)


CASES = [(method, "pixels", SMALL.get(method.card.name, {})) for method in METHODS]
CASES += [(method, "cnn", END_TO_END[method.card.name]) for method in METHODS if method.card.name in END_TO_END]
case = pytest.mark.parametrize(("method", "backbone", "fields"), CASES,
                               ids=[f"{method.card.name}-{backbone}" for method, backbone, _ in CASES])


@case
def test_a_method_yields_numbered_epochs_in_time_and_is_bit_equal_for_a_seed_and_from_every_state(
        method: type[Method], backbone: str, fields: dict[str, Any], tmp_path: Path) -> None:
    built = method.make(fields)
    data = data_for(built, backbone)
    began = time.process_time()
    epochs = list(built.fit(data, setting(3, backbone)))
    lasted = time.process_time() - began
    assert [epoch.number for epoch in epochs] == list(range(1, built.epochs_planned + 1))
    assert lasted < SECONDS * (2 if backbone == "cnn" else 1)
    for epoch in epochs:
        assert all(isinstance(value, torch.Tensor) for value in epoch.state.values())
        assert int(epoch.state["epoch"]) == epoch.number
        assert all(math.isfinite(value) for value in epoch.losses.values())
        if epoch.embedder.head.normalized:
            np.testing.assert_allclose(np.linalg.norm(embedded(epoch.embedder, backbone), axis=1), 1, rtol=1e-5)
    for one, other in zip(epochs, built.fit(data, setting(3, backbone)), strict=True):
        assert_same(one, other)
    for stopped in epochs:
        run = Run(tmp_path)
        run.write_checkpoint(stopped.number, stopped.state, stopped.embedder)
        number, state, embedder_path = run.read_checkpoint() or pytest.fail("no checkpoint")
        assert number == stopped.number
        rest = list(built.fit(data, setting(3, backbone), state))
        assert len(rest) == len(epochs) - stopped.number
        for one, other in zip(rest, epochs[stopped.number:], strict=True):
            assert_same(one, other)
        np.testing.assert_array_equal(embedded(Embedder.load(embedder_path), backbone),
                                      embedded(stopped.embedder, backbone))


@pytest.mark.parametrize("method", [method for method in METHODS if method.card.name in ("rpml", "srpml", "nml")],
                         ids=lambda method: method.card.name)
def test_another_seed_is_another_run(method: type[Method]) -> None:
    built = small(method)
    first, second = (next(iter(built.fit(data_for(built), setting(seed)))) for seed in (0, 1))
    learnt = "rows" if built.card.supervision == "pairs" else "projection"
    assert not torch.equal(first.state[learnt], second.state[learnt])


@pytest.mark.parametrize("name", END_TO_END)
def test_end_to_end_the_encoder_learns_and_the_given_one_stays(name: str) -> None:
    method = find_method(name).make(END_TO_END[name])
    encoder = given("cnn")[3]
    before = {name: value.clone() for name, value in encoder.state_dict().items()}
    *_, last = method.fit(data_for(method, "cnn"), setting(0, "cnn"))
    assert last.embedder.trained
    assert all(torch.equal(value, before[name]) for name, value in encoder.state_dict().items())
    trained = last.embedder.encoder.state_dict()
    assert any(not torch.equal(trained[name], value) for name, value in before.items())
    with pytest.raises(ValueError, match="trained its encoder"):
        last.embedder.embed_features(np.zeros((2, 128), np.float32))


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.card.name)
def test_a_method_that_promises_to_gain_gains_over_its_own_start(method: type[Method]) -> None:
    if method.card.promise == "may fall":
        assert method.card.source
        return
    dataset, _, split, _, _ = given()
    built = small(method)
    data = data_for(built)
    *_, last = built.fit(data, setting())
    labels = dataset.labels[split.test]
    before, after = (map_at_r(embedded(one), labels)[0] for one in (built.initial(data, setting()), last.embedder))
    assert after > before, f"MAP@R {100 * before:.2f} to {100 * after:.2f}"


def bad_values(field: Described) -> Iterator[Any]:
    """Values that a field must refuse, made from its own description."""
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


@pytest.mark.parametrize(("method", "field"), [(method, field) for method in METHODS for field in describe(method)],
                         ids=lambda one: getattr(one, "name", str(one)))
def test_every_bad_value_is_refused_by_field_bound_and_value(method: type[Method], field: Described) -> None:
    for value in bad_values(field):
        with pytest.raises(UserError) as refused:
            method.make({field.name: value})
        message = str(refused.value)
        assert f"{method.__name__}.{field.name} must be {field.allowed}" in message
        assert message.endswith(f"got {value!r}.")
    assert field.text, "a field without a meaning"
    json.dumps(field.default)


def test_the_message_reads_as_the_design_says_and_an_unknown_field_names_the_known() -> None:
    rpml = METHODS[0]
    with pytest.raises(UserError, match=r"RPML\.alpha must be between 0 and 90 degrees .*got 120\."):
        rpml.make({"alpha": 120})
    with pytest.raises(UserError, match=r"RPML has no field 'alfa'; its fields are: alpha, epsilon"):
        rpml.make({"alfa": 1})


def reachable_arrays(root: object) -> Iterator[np.ndarray[Any, Any]]:
    """Every array and tensor that can be reached from an object without going through modules and classes."""
    seen: set[int] = set()
    todo = [root]
    while todo:
        one = todo.pop()
        if id(one) in seen or isinstance(one, type | type(gc)) or callable(one):
            continue
        seen.add(id(one))
        if isinstance(one, torch.Tensor):
            yield one.numpy()
        elif isinstance(one, np.ndarray):
            yield one
            todo.append(one.base)
        todo += gc.get_referents(one)


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.card.name)
def test_labels_that_were_not_declared_and_test_labels_cannot_be_reached(method: type[Method]) -> None:
    dataset, features, split, _, pixels = given("cnn")
    data = training_data(features, dataset.labels, split.train, method.card.supervision,
                         pixels if method.card.name in END_TO_END else None,
                         few=drawn_labels(dataset, split.train, 6, 0))
    if method.card.supervision == "none":
        with pytest.raises(UndeclaredLabelsError, match="declares supervision"):
            data.labels  # noqa: B018
    forbidden = [dataset.labels, dataset.labels[split.test]]
    forbidden += [] if method.card.supervision == "all" else [dataset.labels[split.train]]
    for array in reachable_arrays(data):
        assert not any(array.shape == labels.shape and np.array_equal(array, labels) for labels in forbidden)


def test_the_search_finds_labels_wherever_they_are_hidden() -> None:
    dataset, features, split, _, _ = given()
    labels = np.array(dataset.labels)
    view = labels.reshape(1, -1)[:, ::2]
    for hidden in ({"a": [(labels,)]}, torch.from_numpy(labels), view, [view]):
        data = training_data(features, None, split.train, "none", hidden)
        assert any(np.array_equal(array, labels) for array in reachable_arrays(data))


def test_a_method_that_declares_all_labels_gets_those_of_the_training_half_only() -> None:
    dataset, features, split, _, _ = given()
    data = training_data(features, dataset.labels, split.train, "all")
    assert set(data.labels.tolist()) == {0, 1, 2, 3, 4}
    assert not set(dataset.labels[split.test]) & set(data.labels.tolist())
    assert not any(array.shape == dataset.labels.shape for array in reachable_arrays(data) if array.ndim == 1)


def test_an_embedder_that_is_broken_or_none_is_refused_with_a_message(tmp_path: Path) -> None:
    path = tmp_path / "embedder.safetensors"
    Embedder(given()[3]).save(path)
    whole = path.read_bytes()
    for content in (b"", whole[: len(whole) // 2], b"\x80\x04cos\nsystem\n."):
        path.write_bytes(content)
        with pytest.raises(UserError, match="must be an embedder written by a run"):
            Embedder.load(path)
