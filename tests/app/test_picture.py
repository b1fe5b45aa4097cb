"""Images embedded in a page as data addresses."""

from __future__ import annotations

import base64
import io

import numpy as np
import pytest
from PIL import Image

from pages.parts.kit.pictures import MOST, inline


def decoded(address: str) -> Image.Image:
    """Decode the image in a data address."""
    kind, content = address.split(",", 1)
    assert kind == "data:image/jpeg;base64"
    return Image.open(io.BytesIO(base64.b64decode(content)))


@pytest.mark.parametrize("mode", ["L", "RGB", "RGBA"])
def test_a_data_address_contains_the_image_and_leaves_the_original_unchanged(mode: str) -> None:
    image = Image.new("RGB", (1200, 900), (200, 30, 30)).convert(mode)
    embedded = decoded(inline(image))
    assert embedded.size == (MOST, MOST * 900 // 1200)
    np.testing.assert_allclose(np.asarray(embedded)[0, 0], image.convert("RGB").getpixel((0, 0)), atol=3)
    assert (image.size, image.mode) == ((1200, 900), mode)


def test_a_small_image_keeps_its_pixels() -> None:
    pixels = np.kron(np.arange(8, dtype=np.uint8).reshape(2, 4) * 30, np.ones((8, 8), dtype=np.uint8))
    embedded = np.asarray(decoded(inline(Image.fromarray(pixels))).convert("L")).astype(int)
    assert np.abs(embedded - pixels).max() <= 4
