"""Training data of a method: copies of the training half, with declared labels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from udml_core.base.arrays import Array
from udml_core.data import catalog
from udml_core.data.splits import make_split
from udml_core.data.training_data import TrainingData, UndeclaredLabelsError, training_data

Mapped = tuple[Array, Array, Array, Array]


@pytest.fixture
def mapped(tmp_path: Path) -> Mapped:
    """The digits as memory-mapped features and images, labels, and a training half."""
    dataset = catalog.load("digits")
    images = np.stack([np.asarray(dataset.images[index])[None, :, :, 0] for index in range(len(dataset))])
    np.save(tmp_path / "pixels.npy", images)
    np.save(tmp_path / "features.npy", images.reshape(len(images), -1).astype(np.float32))
    features, pixels = (np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in ("features", "pixels"))
    assert dataset.labels is not None
    return features, pixels, dataset.labels, make_split(dataset, "zero-shot").train


@pytest.mark.parametrize("supervision", ["none", "few", "pairs"])
def test_only_methods_that_declare_labels_receive_labels(supervision: Any, mapped: Mapped) -> None:
    features, pixels, labels, train = mapped
    data = training_data(features, labels, train, supervision, pixels)
    assert data.given_labels is None
    with pytest.raises(UndeclaredLabelsError, match="declare 'few' or 'all'"):
        data.labels  # noqa: B018
    whole = training_data(features, labels, train, "all", pixels)
    assert whole.labels.dtype == torch.int64
    assert whole.labels.tolist() == labels[train].tolist()
    with pytest.raises(UndeclaredLabelsError):
        training_data(features, None, train, "all").labels  # noqa: B018


def test_changes_by_a_method_do_not_reach_the_cache_or_the_data_set(mapped: Mapped) -> None:
    features, pixels, labels, train = mapped
    before = features.copy(), pixels.copy(), labels.copy()
    writable = np.array(features), np.array(labels)
    for rows, all_labels in ((features, labels), writable):
        data = training_data(rows, all_labels, train, "all", pixels)
        np.testing.assert_array_equal(data.features.numpy(), before[0][train])
        images = data.images(torch.arange(5))
        for tensor in (data.features, data.labels, images):
            tensor.fill_(7)
    for array, expected in ((features, before[0]), (pixels, before[1]), (labels, before[2]),
                            (writable[0], before[0]), (writable[1], before[2])):
        np.testing.assert_array_equal(array, expected)


def test_images_are_selected_by_index_in_the_training_half(mapped: Mapped) -> None:
    features, pixels, labels, train = mapped
    data = training_data(features, labels, train, "none", pixels)
    assert len(data) == len(train)
    order = torch.tensor([3, 0, len(train) - 1, 3])
    np.testing.assert_array_equal(data.images(order).numpy(), pixels[train[order.numpy()]])
    for outside in (len(train), -len(train) - 1):
        with pytest.raises(IndexError):
            data.images(torch.tensor([outside]))
    with pytest.raises(AttributeError, match="does not declare trains_encoder"):
        TrainingData(data.features).images(order)


def test_views_are_selected_by_index_and_only_methods_that_need_views_receive_them(mapped: Mapped) -> None:
    features, _, _, train = mapped
    views = np.stack([features[train], features[train] + 1], axis=1)
    data = training_data(features, None, train, "none", views=views)
    order = torch.tensor([2, 0, 2])
    selected = data.view_features(order)
    np.testing.assert_array_equal(selected.numpy(), views[order.numpy()])
    selected.fill_(7)
    assert not (views == 7).all()
    with pytest.raises(AttributeError, match="does not declare views_needed"):
        TrainingData(data.features).view_features(order)


def test_only_methods_that_declare_few_labels_receive_the_few_labels(mapped: Mapped) -> None:
    features, _, labels, train = mapped
    few = np.where(np.arange(len(labels)) % 9 == 0, labels, -1)
    assert training_data(features, labels, train, "few", few=few).labels.tolist() == few[train].tolist()
    assert training_data(features, labels, train, "all", few=few).labels.tolist() == labels[train].tolist()
    for supervision in ("none", "pairs"):
        assert training_data(features, labels, train, supervision, few=few).given_labels is None  # type: ignore[arg-type]


def test_activations_are_selected_by_index_and_begin_with_the_whole_image(mapped: Mapped) -> None:
    features, _, _, train = mapped
    activations = np.stack([features[train], features[train] + 1], axis=1)[:, :, :, None, None].astype(np.float16)
    data = training_data(features, None, train, "none", activations=activations)
    order = torch.tensor([2, 0, 2])
    np.testing.assert_array_equal(data.view_activations(order).numpy(), activations[order.numpy()])
    np.testing.assert_array_equal(data.whole_activations(order).numpy(), activations[order.numpy(), 0])
    with pytest.raises(AttributeError, match="does not declare activations_needed"):
        TrainingData(data.features).view_activations(order)


def test_views_are_cropped_from_the_sources_or_from_the_images_themselves(mapped: Mapped) -> None:
    features, pixels, _, train = mapped
    sources = np.repeat(np.repeat(pixels, 2, axis=2), 2, axis=3)
    order = torch.tensor([3, 0, len(train) - 1])
    data = training_data(features, None, train, "none", pixels, sources=sources)
    np.testing.assert_array_equal(data.crop_sources(order).numpy(), sources[train[order.numpy()]])
    np.testing.assert_array_equal(data.images(order).numpy(), pixels[train[order.numpy()]])
    without = training_data(features, None, train, "none", pixels)
    np.testing.assert_array_equal(without.crop_sources(order).numpy(), pixels[train[order.numpy()]])
