"""Prototypes: largest responses, pictures, and responses to a single feature."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from udml_core.data import catalog
from udml_core.data.encoders import Encoder, choose_spec
from udml_core.data.inference import embed_pixels
from udml_core.exploration import prototypes
from udml_core.numerics.losses.kernels import KernelName, kernel_of


def test_the_strongest_responses_come_first_from_the_allowed_rows_only() -> None:
    values = np.array([5.0, 1.0, 9.0, 9.0, 2.0])
    assert prototypes.strongest_rows(values, np.array([0, 1, 3, 4]), 3).tolist() == [3, 0, 4]
    assert prototypes.strongest_rows(values, np.array([1]), 3).tolist() == [1]


@pytest.mark.parametrize(("name", "gray"), [("digits", True), ("fashion-mini", True)])
def test_the_picture_of_an_images_features_is_the_image(name: str, gray: bool) -> None:
    dataset = catalog.load(name)
    spec = choose_spec("pixels", dataset.native_size, dataset.gray)
    assert spec.gray is gray
    (features,) = embed_pixels(Encoder(spec), Encoder(spec).prepare(dataset.images[3])[None])
    picture = prototypes.picture(features / features.sum(), spec.size, spec.gray).astype(float)
    image = np.asarray(dataset.images[3].convert("L").resize((spec.size, spec.size)), dtype=float)
    np.testing.assert_allclose(picture, 255 * image / image.max(), atol=1.5)


def test_a_color_picture_ignores_negative_parts() -> None:
    image = np.random.default_rng(0).integers(0, 255, size=(4, 4, 3))
    image[0, 0, 0] = 255
    row = image.transpose(2, 0, 1).ravel() / 255
    np.testing.assert_array_equal(prototypes.picture(row, 4, False), image)
    np.testing.assert_array_equal(prototypes.picture(np.concatenate([row, 9 * row]), 4, False), image)
    assert not prototypes.picture(np.zeros(16), 4, True).any()


@pytest.mark.parametrize("name", ["chi2", "intersection", "hellinger", "linear"])
def test_the_responses_of_all_features_sum_to_the_kernel(name: KernelName) -> None:
    random = np.random.default_rng(2)
    x, level = random.dirichlet(np.ones(20)), random.dirichlet(np.ones(20))
    parts = sum(prototypes.response(name, 1.0, 20, 20 * level[c], 20 * x[c : c + 1])[0][0] for c in range(20)) / 20
    expected = kernel_of(name, 1.0, 20).values(torch.from_numpy(x)[None], torch.from_numpy(level)[None])
    assert parts == pytest.approx(float(expected), rel=1e-6)


def test_the_gaussian_responses_multiply_to_the_kernel() -> None:
    random = np.random.default_rng(2)
    x, level = random.dirichlet(np.ones(20)), random.dirichlet(np.ones(20))
    parts = np.prod([prototypes.response("rbf", 0.3, 20, 20 * level[c], 20 * x[c : c + 1])[0][0] for c in range(20)])
    expected = kernel_of("rbf", 0.3, 20).values(torch.from_numpy(x)[None], torch.from_numpy(level)[None])
    assert parts == pytest.approx(float(expected), rel=1e-6)


def test_the_chi_squared_response_saturates_unlike_the_product() -> None:
    responses, line = prototypes.response("chi2", 1.0, 10, 0.5, np.array([0.0, 0.5, 1e6]))
    np.testing.assert_allclose(responses, [0, 0.5, 1.0], atol=1e-5)
    np.testing.assert_allclose(line, [0, 0.5, 1e6])
    assert not prototypes.response("chi2", 1.0, 10, 0.0, np.array([0.0, 1.0]))[1].any(), "a prototype's value may be 0"
