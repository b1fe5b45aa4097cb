"""Random views: crops of the image itself, the same for a seed, flipped in half of the cases; and their features."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from udml_core.backbones import Encoder, choose_spec
from udml_core.data import catalog
from udml_core.data.augmentation import ASPECT, Augmentation
from udml_core.data.features import embed_pixels, features_of, pixels_of, views_of
from udml_core.data.splits import make_split

SIDE = 64


def ramps(count: int) -> Tensor:
    """Images whose first channel is the column and whose second is the row, so that a view tells where it was cut."""
    line = torch.linspace(0, 252, SIDE)
    image = torch.stack([line.expand(SIDE, SIDE), line[:, None].expand(SIDE, SIDE), torch.zeros(SIDE, SIDE)])
    return image.expand(count, -1, -1, -1).to(torch.uint8)


def test_a_view_is_a_crop_within_the_image_of_the_share_asked_for() -> None:
    views = Augmentation(smallest=0.3, flip=False)(ramps(400), torch.Generator().manual_seed(0))
    assert views.shape == (400, 3, SIDE, SIDE)
    assert views.dtype == torch.float32
    step = 252 / (SIDE - 1)
    wide, high = ((views[:, 0, :, -1] - views[:, 0, :, 0]).mean(1), (views[:, 1, -1] - views[:, 1, 0]).mean(1))
    assert (wide > 0).all()
    assert (high > 0).all()
    width, height = ((one / step + 1) / SIDE for one in (wide, high))
    assert (width * height > 0.3 * 0.7).all()  # a crop that is cut at the image's side is smaller than it was drawn
    assert (width * height <= 1.01).all()
    assert (width / height).max() < ASPECT * 1.1
    assert (height / width).max() < ASPECT * 1.1
    assert views.min() >= 0
    assert views.max() <= 252
    centers = views[:, 0].mean((1, 2))
    assert centers.std() > 10


def test_half_of_the_views_are_flipped_and_a_seed_repeats_them() -> None:
    views = Augmentation()(ramps(600), torch.Generator().manual_seed(1))
    flipped = (views[:, 0, :, -1] < views[:, 0, :, 0]).all(1).float().mean()
    assert 0.42 < flipped < 0.58
    assert torch.equal(views, Augmentation()(ramps(600), torch.Generator().manual_seed(1)))
    assert not torch.equal(views, Augmentation()(ramps(600), torch.Generator().manual_seed(2)))


def test_features_of_views_are_kept_and_lie_near_those_of_their_image(tmp_path: Path,
                                                                     monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UDML_CACHE", str(tmp_path))
    dataset = catalog.load("digits")
    encoder = Encoder(choose_spec("pixels", dataset.native_size, dataset.gray))
    train = make_split(dataset, "zero-shot").train
    views = views_of(dataset, encoder, train, 3, Augmentation(smallest=0.7, flip=False), 5)
    assert views.shape == (len(train), 3, encoder.dimension)
    features = features_of(dataset, encoder)[train]
    own = np.linalg.norm(views - features[:, None], axis=2).mean()
    other = np.linalg.norm(views - np.roll(features, 1, axis=0)[:, None], axis=2).mean()
    assert own < 0.8 * other
    assert not np.array_equal(views[:, 0], views[:, 1])
    whole = views_of(dataset, encoder, train, 3, Augmentation(smallest=0.7, flip=False), 5)
    assert np.array_equal(views, whole)
    assert not np.array_equal(views, views_of(dataset, encoder, train, 3, Augmentation(smallest=0.7, flip=False), 6))
    random = torch.Generator().manual_seed(5 * 1_000_003)
    block = torch.from_numpy(np.array(pixels_of(dataset, encoder)[train[:64]]))
    by_hand = embed_pixels(encoder, Augmentation(smallest=0.7, flip=False)(block, random))
    np.testing.assert_array_equal(views[:64, 0], by_hand)
