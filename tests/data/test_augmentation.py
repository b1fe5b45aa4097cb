"""Random views: crops of the image itself, the same for a seed, flipped in half of the cases; and their features.

Colors change as Pillow and colorsys change them, which torchvision's transforms agree with.
"""

from __future__ import annotations

import colorsys
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image, ImageEnhance
from torch import Tensor

from udml_core.backbones import Encoder, choose_spec
from udml_core.data import catalog
from udml_core.data import features as features_module
from udml_core.data.augmentation import (
    ASPECT,
    COLORS,
    CROP_DRAWS,
    TRIES,
    Augmentation,
    Jitter,
    change_brightness,
    change_contrast,
    shift_hue,
    change_saturation,
)
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
    assert (width * height > 0.3 * 0.99).all()
    assert (width * height <= 1.01).all()
    assert (width / height).max() < ASPECT * 1.1
    assert (height / width).max() < ASPECT * 1.1
    assert views.min() >= 0
    assert views.max() <= 252
    centers = views[:, 0].mean((1, 2))
    assert centers.std() > 10


def crop_by_torchvision(area: list[float], aspect: list[float]) -> tuple[float, float]:
    """Width and height as its RandomResizedCrop tries them in turn on a square image, without rounding to pixels."""
    for share, ratio in zip(area, aspect, strict=True):
        width, height = math.sqrt(share * ratio), math.sqrt(share / ratio)
        if 0 < width <= 1 and 0 < height <= 1:
            return width, height
    return 1.0, 1.0


@pytest.mark.parametrize("smallest", [0.16, 0.2, 0.97, 1.0])
def test_a_crop_that_does_not_fit_is_drawn_again_and_the_tenth_time_it_is_the_whole(smallest: float) -> None:
    draws = COLORS.draw(5000, torch.Generator().manual_seed(0)).double()
    width, height = Augmentation(smallest=smallest).sides(draws)
    area = smallest + (1 - smallest) * draws[:, :TRIES]
    aspect = ASPECT ** (2 * draws[:, TRIES:2 * TRIES] - 1)
    expected = [crop_by_torchvision(*one) for one in zip(area.tolist(), aspect.tolist(), strict=True)]
    np.testing.assert_allclose(torch.stack([width, height], 1).numpy(), expected, rtol=1e-9)
    assert (width == 1).any() == (smallest > 0.9)


def test_crops_have_the_mean_area_of_those_that_fit() -> None:
    """.538 where what does not fit is drawn again, .593 where it is cut."""
    width, height = Augmentation(smallest=0.2).sides(COLORS.draw(200_000, torch.Generator().manual_seed(0)))
    assert float((width * height).mean()) == pytest.approx(0.538, abs=0.003)


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
    monkeypatch.setattr(features_module, "VERSION", 3)
    views_of(dataset, encoder, train, 3, Augmentation(smallest=0.7, flip=False), 5)
    assert len(list(tmp_path.rglob("*-views3-*.npy"))) == 3  # two seeds, and one as a later version draws


def photographs(count: int = 4, side: int = 24) -> Tensor:
    random = torch.Generator().manual_seed(3)
    smooth = torch.rand(count, 3, 4, 4, generator=random)
    return (255 * torch.nn.functional.interpolate(smooth, side, mode="bilinear")).round().clamp(0, 255)


def as_pillow(image: Tensor) -> Image.Image:
    return Image.fromarray(image.permute(1, 2, 0).to(torch.uint8).numpy())


@pytest.mark.parametrize(("change", "by_pillow"), [
    (change_brightness, ImageEnhance.Brightness), (change_contrast, ImageEnhance.Contrast), (change_saturation, ImageEnhance.Color)])
@pytest.mark.parametrize("factor", [0.0, 0.6, 1.0, 1.4])
def test_brightness_contrast_and_saturation_are_pillows(change: Any, by_pillow: Any, factor: float) -> None:
    images = photographs()
    ours = change(images, torch.full((len(images), 1, 1, 1), factor))
    for image, found in zip(images, ours, strict=True):
        expected = np.asarray(by_pillow(as_pillow(image)).enhance(factor), dtype=np.float32)
        assert np.abs(found.permute(1, 2, 0).numpy() - expected).max() <= 2  # Pillow rounds luminance and result


@pytest.mark.parametrize("shift", [-0.4, 0.0, 0.15, 0.5])
def test_the_hue_moves_as_colorsys_says_and_gray_has_none(shift: float) -> None:
    images = photographs(2, 8)
    images[0, :, 0, 0] = torch.tensor([70.0, 70.0, 70.0])
    images[0, :, 0, 1] = torch.tensor([255.0, 0.0, 0.0])
    ours = shift_hue(images, torch.full((2, 1, 1, 1), shift))
    for found, image in zip(ours.permute(0, 2, 3, 1).reshape(-1, 3), images.permute(0, 2, 3, 1).reshape(-1, 3),
                            strict=True):
        hue, saturation, value = colorsys.rgb_to_hsv(*(image / 255).tolist())
        expected = colorsys.hsv_to_rgb((hue + shift) % 1, saturation, value)
        np.testing.assert_allclose(found.numpy() / 255, expected, atol=1e-5)


def test_each_image_has_its_own_factor_and_a_fifth_lose_their_color() -> None:
    images = photographs(1).expand(600, -1, -1, -1)
    views = Augmentation(smallest=1.0, flip=False, gray=0.2)(images, torch.Generator().manual_seed(0))
    gray = (views == views[:, :1]).all((1, 2, 3))
    assert 0.15 < gray.float().mean() < 0.25
    bright = Augmentation(smallest=1.0, flip=False, jitter=Jitter(0.4, 0, 0, 0))
    levels = bright(torch.full((600, 3, 8, 8), 100.0), torch.Generator().manual_seed(0)).mean((1, 2, 3))
    assert levels.min() < 65
    assert levels.max() > 135
    assert levels.min() >= 60
    assert levels.max() <= 140


def test_the_papers_views_stay_within_the_range_also_of_gray_images_and_a_seed_repeats_them() -> None:
    for images in (photographs(50), photographs(50)[:, :1]):
        views = COLORS(images, torch.Generator().manual_seed(2))
        assert views.shape == images.shape
        assert views.min() >= 0
        assert views.max() <= 255
        assert torch.equal(views, COLORS(images, torch.Generator().manual_seed(2)))


def test_parts_of_a_batch_with_their_part_of_the_draws_give_the_whole_batchs_views() -> None:
    images = photographs(6)
    draws = COLORS.draw(6, torch.Generator().manual_seed(1))
    parts = [COLORS.apply(images[rows], draws[rows]) for rows in (slice(0, 2), slice(2, 6))]
    torch.testing.assert_close(torch.cat(parts), COLORS.apply(images, draws))


def test_without_colors_the_draws_are_those_of_crops_alone() -> None:
    random = torch.Generator().manual_seed(4)
    expected = torch.rand(7, CROP_DRAWS, generator=torch.Generator().manual_seed(4))
    assert torch.equal(Augmentation().draw(7, random), expected)
