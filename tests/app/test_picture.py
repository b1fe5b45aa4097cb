"""Single images travel inside the page."""

from __future__ import annotations

import base64
import io

import numpy as np
import pytest
from PIL import Image

from pages.parts.kit.pictures import MOST, inline


def opened(address: str) -> Image.Image:
    kind, content = address.split(",", 1)
    assert kind == "data:image/jpeg;base64"
    return Image.open(io.BytesIO(base64.b64decode(content)))


@pytest.mark.parametrize("mode", ["L", "RGB", "RGBA"])
def test_an_address_holds_the_image_and_leaves_it_as_it_was(mode: str) -> None:
    image = Image.new("RGB", (1200, 900), (200, 30, 30)).convert(mode)
    held = opened(inline(image))
    assert held.size == (MOST, MOST * 900 // 1200)
    np.testing.assert_allclose(np.asarray(held)[0, 0], image.convert("RGB").getpixel((0, 0)), atol=3)
    assert (image.size, image.mode) == ((1200, 900), mode)


def test_a_small_image_keeps_its_pixels() -> None:
    pixels = np.kron(np.arange(8, dtype=np.uint8).reshape(2, 4) * 30, np.ones((8, 8), dtype=np.uint8))
    held = np.asarray(opened(inline(Image.fromarray(pixels))).convert("L")).astype(int)
    assert np.abs(held - pixels).max() <= 4
