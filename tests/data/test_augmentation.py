"""Random views: crops, flips, color changes, random draws and cached features.

The color changes are compared with Pillow and colorsys, which agree with torchvision's transforms.
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

from udml_core.data import catalog
from udml_core.data import features as features_module
from udml_core.data.augmentation import (
    ASPECT,
    COLORS,
    CROP_DRAWS,
    CROPS,
    TRANSFORMATIONS,
    TRIES,
    Augmentation,
    Jitter,
    QuarterTurns,
    TiltedAugmentation,
    change_brightness,
    change_contrast,
    change_saturation,
    shift_hue,
)
from udml_core.data.encoders import Encoder, choose_spec
from udml_core.data.features import features_of, pixels_of, views_of
from udml_core.data.inference import embed_pixels
from udml_core.data.splits import make_split

SIDE = 64


def ramps(count: int) -> Tensor:
    """Return images with the column in channel 0 and the row in channel 1.

    Views of these images show their crop.
    """
    line = torch.linspace(0, 252, SIDE)
    image = torch.stack([line.expand(SIDE, SIDE), line[:, None].expand(SIDE, SIDE), torch.zeros(SIDE, SIDE)])
    return image.expand(count, -1, -1, -1).to(torch.uint8)


def test_views_are_crops_within_the_image_of_at_least_the_smallest_area() -> None:
    views = Augmentation(smallest=0.3, flip=False)(ramps(200), torch.Generator().manual_seed(0))
    assert views.shape == (200, 3, SIDE, SIDE)
    assert views.dtype == torch.float32
    step = 252 / (SIDE - 1)
    columns, rows = ((views[:, 0, :, -1] - views[:, 0, :, 0]).mean(1), (views[:, 1, -1] - views[:, 1, 0]).mean(1))
    assert (columns > 0).all()
    assert (rows > 0).all()
    width, height = ((span / step + 1) / SIDE for span in (columns, rows))
    assert (width * height > 0.3 * 0.99).all()
    assert (width * height <= 1.01).all()
    assert (width / height).max() < ASPECT * 1.1
    assert (height / width).max() < ASPECT * 1.1
    assert views.min() >= 0
    assert views.max() <= 252
    centers = views[:, 0].mean((1, 2))
    assert centers.std() > 10


def torchvision_crop(area: list[float], aspect: list[float]) -> tuple[float, float]:
    """Return width and height as RandomResizedCrop chooses them for a square image.

    They are not rounded to pixels.
    """
    for share, ratio in zip(area, aspect, strict=True):
        width, height = math.sqrt(share * ratio), math.sqrt(share / ratio)
        if 0 < width <= 1 and 0 < height <= 1:
            return width, height
    return 1.0, 1.0


@pytest.mark.parametrize("smallest", [0.16, 0.2, 0.97, 1.0])
def test_the_first_fitting_crop_of_ten_is_used_or_else_the_whole_image(smallest: float) -> None:
    draws = COLORS.draw(5000, torch.Generator().manual_seed(0)).double()
    width, height = Augmentation(smallest=smallest).sides(draws)
    area = smallest + (1 - smallest) * draws[:, :TRIES]
    aspect = ASPECT ** (2 * draws[:, TRIES:2 * TRIES] - 1)
    expected = [torchvision_crop(*tries) for tries in zip(area.tolist(), aspect.tolist(), strict=True)]
    np.testing.assert_allclose(torch.stack([width, height], 1).numpy(), expected, rtol=1e-9)
    assert (width == 1).any() == (smallest > 0.9)


def test_the_mean_crop_area_is_that_of_redrawn_crops() -> None:
    """The mean is 0.538 if crops that do not fit are redrawn.

    It would be 0.593 if they were cut off.
    """
    width, height = Augmentation(smallest=0.2).sides(COLORS.draw(50_000, torch.Generator().manual_seed(0)))
    assert float((width * height).mean()) == pytest.approx(0.538, abs=0.003)


def test_half_of_the_views_are_flipped_and_a_seed_reproduces_them() -> None:
    views = Augmentation()(ramps(400), torch.Generator().manual_seed(1))
    flipped = (views[:, 0, :, -1] < views[:, 0, :, 0]).all(1).float().mean()
    assert 0.42 < flipped < 0.58
    assert torch.equal(views, Augmentation()(ramps(400), torch.Generator().manual_seed(1)))
    assert not torch.equal(views, Augmentation()(ramps(400), torch.Generator().manual_seed(2)))


def test_features_of_views_are_cached_and_close_to_the_features_of_their_image(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UDML_CACHE", str(tmp_path))
    dataset = catalog.load("digits")
    encoder = Encoder(choose_spec("pixels", dataset.native_size, dataset.gray))
    train = make_split(dataset, "zero-shot").train
    augmentation = Augmentation(smallest=0.7, flip=False)
    views = views_of(dataset, encoder, train, 3, augmentation, 5)
    assert views.shape == (len(train), 3, encoder.dimension)
    features = features_of(dataset, encoder)[train]
    own = np.linalg.norm(views - features[:, None], axis=2).mean()
    other = np.linalg.norm(views - np.roll(features, 1, axis=0)[:, None], axis=2).mean()
    assert own < 0.8 * other
    assert not np.array_equal(views[:, 0], views[:, 1])
    assert np.array_equal(views, views_of(dataset, encoder, train, 3, augmentation, 5))
    assert not np.array_equal(views, views_of(dataset, encoder, train, 3, augmentation, 6))
    random = torch.Generator().manual_seed(5 * 1_000_003)
    block = torch.from_numpy(np.array(pixels_of(dataset, encoder)[train[:64]]))
    np.testing.assert_array_equal(views[:64, 0], embed_pixels(encoder, augmentation(block, random)))
    monkeypatch.setattr(features_module, "VERSION", 4)
    views_of(dataset, encoder, train, 3, augmentation, 5)
    assert len(list(tmp_path.rglob("*-views3-*.npy"))) == 3  # two seeds, and the first seed in another version


def photographs(count: int = 4, side: int = 24) -> Tensor:
    random = torch.Generator().manual_seed(3)
    smooth = torch.rand(count, 3, 4, 4, generator=random)
    return (255 * torch.nn.functional.interpolate(smooth, side, mode="bilinear")).round().clamp(0, 255)


def to_pillow(image: Tensor) -> Image.Image:
    return Image.fromarray(image.permute(1, 2, 0).to(torch.uint8).numpy())


@pytest.mark.parametrize(("change", "enhancer"), [
    (change_brightness, ImageEnhance.Brightness), (change_contrast, ImageEnhance.Contrast),
    (change_saturation, ImageEnhance.Color)])
@pytest.mark.parametrize("factor", [0.0, 0.6, 1.0, 1.4])
def test_brightness_contrast_and_saturation_match_pillow(change: Any, enhancer: Any, factor: float) -> None:
    images = photographs()
    changed_images = change(images, torch.full((len(images), 1, 1, 1), factor))
    for image, changed in zip(images, changed_images, strict=True):
        expected = np.asarray(enhancer(to_pillow(image)).enhance(factor), dtype=np.float32)
        assert np.abs(changed.permute(1, 2, 0).numpy() - expected).max() <= 2  # Pillow rounds luminance and result


@pytest.mark.parametrize("shift", [-0.4, 0.0, 0.15, 0.5])
def test_the_hue_shift_matches_colorsys_and_keeps_gray(shift: float) -> None:
    images = photographs(2, 8)
    images[0, :, 0, 0] = torch.tensor([70.0, 70.0, 70.0])
    images[0, :, 0, 1] = torch.tensor([255.0, 0.0, 0.0])
    shifted = shift_hue(images, torch.full((2, 1, 1, 1), shift))
    for pixel, original in zip(shifted.permute(0, 2, 3, 1).reshape(-1, 3), images.permute(0, 2, 3, 1).reshape(-1, 3),
                               strict=True):
        hue, saturation, value = colorsys.rgb_to_hsv(*(original / 255).tolist())
        expected = colorsys.hsv_to_rgb((hue + shift) % 1, saturation, value)
        np.testing.assert_allclose(pixel.numpy() / 255, expected, atol=1e-5)


def test_each_image_has_its_own_factor_and_a_fifth_of_the_views_are_gray() -> None:
    images = photographs(1).expand(600, -1, -1, -1)
    views = Augmentation(smallest=1.0, flip=False, gray=0.2)(images, torch.Generator().manual_seed(0))
    gray = (views == views[:, :1]).all((1, 2, 3))
    assert 0.15 < gray.float().mean() < 0.25
    brightness = Augmentation(smallest=1.0, flip=False, jitter=Jitter(0.4, 0, 0, 0))
    levels = brightness(torch.full((600, 3, 8, 8), 100.0), torch.Generator().manual_seed(0)).mean((1, 2, 3))
    assert levels.min() < 65
    assert levels.max() > 135
    assert levels.min() >= 60
    assert levels.max() <= 140


def test_views_of_color_and_gray_images_stay_within_0_to_255_and_a_seed_reproduces_them() -> None:
    for images in (photographs(50), photographs(50)[:, :1]):
        views = COLORS(images, torch.Generator().manual_seed(2))
        assert views.shape == images.shape
        assert views.min() >= 0
        assert views.max() <= 255
        assert torch.equal(views, COLORS(images, torch.Generator().manual_seed(2)))


def test_parts_of_a_batch_give_the_same_views_as_the_whole_batch() -> None:
    images = photographs(6)
    draws = COLORS.draw(6, torch.Generator().manual_seed(1))
    parts = [COLORS.apply(images[rows], draws[rows]) for rows in (slice(0, 2), slice(2, 6))]
    torch.testing.assert_close(torch.cat(parts), COLORS.apply(images, draws))


def test_an_augmentation_without_color_changes_draws_only_crop_numbers() -> None:
    random = torch.Generator().manual_seed(4)
    expected = torch.rand(7, CROP_DRAWS, generator=torch.Generator().manual_seed(4))
    assert torch.equal(Augmentation().draw(7, random), expected)


@pytest.mark.parametrize(("augmentation", "size", "available", "side"), [
    (CROPS, 64, 300, 128), (CROPS, 64, 100, 100), (CROPS, 64, 32, 64), (Augmentation(smallest=0.5), 227, 500, 262),
    (Augmentation(smallest=0.5), 227, 240, 240), (COLORS, 32, 32, 32)])
def test_crops_come_from_larger_images_where_the_files_have_the_pixels(
        augmentation: Augmentation, size: int, available: int, side: int) -> None:
    assert augmentation.source_side(size, available) == side


def test_a_view_of_a_larger_source_has_the_source_pixels_of_its_crop() -> None:
    """A quarter of the area of a source of twice the side needs no resizing."""
    source = torch.randint(256, (1, 3, 16, 16), generator=torch.Generator().manual_seed(0)).float()
    draws = torch.zeros(1, 23)
    draws[:, 10:20], draws[:, 20], draws[:, 21], draws[:, 22] = 0.5, 0.0, 1.0, 0.9  # square, left, bottom, not flipped
    view = Augmentation(smallest=0.25).apply(source, draws, 8)
    torch.testing.assert_close(view, source[:, :, 8:, :8], rtol=0, atol=1e-3)
    draws[:, :10] = 1.0  # the whole area: the mean of 2×2 pixels
    view = Augmentation(smallest=0.25).apply(source, draws, 8)
    torch.testing.assert_close(view, torch.nn.functional.avg_pool2d(source, 2), rtol=0, atol=1e-3)


def test_a_tilted_view_is_rotated_about_the_center_of_its_crop_by_up_to_the_largest_angle() -> None:
    """A view of a ramp along the columns shows the angle as the direction in which the ramp rises."""
    tilted = TiltedAugmentation(smallest=0.5, flip=False, degrees=30.0)
    draws = tilted.draw(100, torch.Generator().manual_seed(0))
    views, level = (augmentation.apply(ramps(100), draws)
                    for augmentation in (tilted, TiltedAugmentation(smallest=0.5, flip=False, degrees=0.0)))
    middle = slice(SIDE // 2 - 3, SIDE // 2 + 3)
    width, height = tilted.sides(draws)
    across = (views[:, 0, middle, SIDE // 2 + 2] - views[:, 0, middle, SIDE // 2 - 3]).mean(1) / width
    down = (views[:, 0, SIDE // 2 + 2, middle] - views[:, 0, SIDE // 2 - 3, middle]).mean(1) / height
    angles = torch.rad2deg(torch.atan2(-down, across))
    torch.testing.assert_close(angles, (2 * draws[:, -1] - 1) * 30, rtol=0, atol=0.1)
    centers = (slice(None), slice(None), middle, middle)
    torch.testing.assert_close(views[centers].mean((2, 3)), level[centers].mean((2, 3)), rtol=0, atol=0.1)


def test_an_angle_of_0_changes_neither_crops_nor_colors() -> None:
    options: dict[str, Any] = {"smallest": 0.5, "flip": False, "jitter": TRANSFORMATIONS.jitter}
    draws = TRANSFORMATIONS.draw(20, torch.Generator().manual_seed(1))
    plain = Augmentation(**options)
    assert torch.equal(TiltedAugmentation(**options, degrees=0.0).apply(ramps(20), draws),
                       plain.apply(ramps(20), draws[:, :-1]))
    assert not torch.equal(TRANSFORMATIONS.apply(ramps(20), draws), plain.apply(ramps(20), draws[:, :-1]))
    assert (TRANSFORMATIONS.degrees, TRANSFORMATIONS.smallest, TRANSFORMATIONS.flip) == (20.0, 0.5, False)


def test_quarter_turns_follow_each_random_view_and_match_pillow() -> None:
    views = QuarterTurns()(ramps(3), torch.Generator().manual_seed(2))
    first, second, third, fourth, fifth, sixth = QuarterTurns().views(ramps(3), torch.Generator().manual_seed(2), SIDE,
                                                                      6)
    assert torch.equal(first, views)
    for turned, turns in ((second, Image.Transpose.ROTATE_90), (third, Image.Transpose.ROTATE_180),
                          (fourth, Image.Transpose.ROTATE_270)):
        for image, upright in zip(turned[:, 0], first[:, 0], strict=True):
            np.testing.assert_array_equal(image.numpy(), np.array(Image.fromarray(upright.numpy()).transpose(turns)))
    assert not torch.equal(fifth, first)
    assert torch.equal(sixth, torch.rot90(fifth, 1, (2, 3)))


def test_cached_features_of_quarter_turns_are_those_of_rotated_views(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UDML_CACHE", str(tmp_path))
    digits = catalog.load("digits")
    encoder = Encoder(choose_spec("pixels", digits.native_size, digits.gray))
    features = torch.from_numpy(np.array(views_of(digits, encoder, np.arange(5), 8, QuarterTurns(), 0)))
    crops = features.view(5, 2, 4, 8, 8)
    for turns in range(4):
        torch.testing.assert_close(crops[:, :, turns], torch.rot90(crops[:, :, 0], turns, (2, 3)), rtol=0, atol=1e-5)
    assert not torch.equal(crops[:, 0], crops[:, 1])
