"""Images embedded in a page as data addresses."""

from __future__ import annotations

import base64
import io

import numpy as np
import pytest
from PIL import Image, ImageColor

from pages.parts.draw.palette import CLASS_COLORS
from pages.parts.draw.pictures import MOST, inline, points_picture


def decoded(address: str) -> Image.Image:
    """Decode the image in a data address."""
    kind, content = address.split(",", 1)
    assert kind in ("data:image/jpeg;base64", "data:image/png;base64")
    image = Image.open(io.BytesIO(base64.b64decode(content)))
    assert kind == f"data:image/{(image.format or '').lower()};base64"
    return image


def on_page(embedded: Image.Image, background: str) -> Image.Image:
    """Draw an image on a page's background, as a browser does."""
    page = Image.new("RGBA", embedded.size, background)
    page.alpha_composite(embedded.convert("RGBA"))
    return page.convert("RGB")


@pytest.mark.parametrize("mode", ["L", "RGB", "RGBA"])
def test_a_data_address_contains_the_image_and_leaves_the_original_unchanged(mode: str) -> None:
    image = Image.new("RGB", (1200, 900), (200, 30, 30)).convert(mode)
    embedded = decoded(inline(image))
    assert embedded.size == (MOST, MOST * 900 // 1200)
    np.testing.assert_allclose(np.asarray(embedded.convert("RGB"))[0, 0], image.convert("RGB").getpixel((0, 0)), atol=3)
    assert (image.size, image.mode) == ((1200, 900), mode)


def test_a_small_image_keeps_its_pixels() -> None:
    pixels = np.kron(np.arange(8, dtype=np.uint8).reshape(2, 4) * 30, np.ones((8, 8), dtype=np.uint8))
    embedded = np.asarray(decoded(inline(Image.fromarray(pixels))).convert("L")).astype(int)
    assert np.abs(embedded - pixels).max() <= 4


@pytest.mark.parametrize("background", ["#ffffff", "#0e1117"])
def test_transparent_parts_show_the_page_and_never_black(background: str) -> None:
    positions = np.array([[0.0, 0.0], [0.1, 0.0], [1.0, 1.0], [0.9, 1.0]])
    for image in (points_picture(positions, np.array([0, 0, 1, 1]), side=100, dot=8.0),
                  Image.new("LA", (60, 60), (0, 0)), Image.new("RGBA", (900, 60), (0, 0, 0, 0))):
        shown = np.asarray(on_page(decoded(inline(image)), background)).astype(int)
        paper = np.asarray(Image.new("RGB", (1, 1), background))[0, 0].astype(int)
        assert (np.abs(shown - paper).max(axis=2) <= 3).mean() > 0.8
    dots = np.asarray(on_page(decoded(inline(points_picture(positions, np.array([0, 0, 1, 1]), dot=8.0))), background))
    first_cluster = np.array(ImageColor.getrgb(CLASS_COLORS["light"][0]))
    assert (np.abs(dots.astype(int) - first_cluster).max(axis=2) < 12).sum() > 100


def test_a_palette_image_with_a_transparent_color_keeps_it() -> None:
    image = Image.new("P", (20, 20), 0)
    image.putpalette([0, 0, 0, 200, 30, 30])
    image.paste(1, (5, 5, 15, 15))
    image.info["transparency"] = 0
    shown = on_page(decoded(inline(image)), "#ffffff")
    assert shown.getpixel((1, 1)) == (255, 255, 255)
    assert shown.getpixel((10, 10)) == (200, 30, 30)
