"""Finding an image by number, file name or class."""

from __future__ import annotations

import numpy as np
import pytest

from udml_core.data.dataset import ArrayImages, Dataset
from udml_core.exploration.browsing import find_image

NAMES = ("wren/12.png", "wren/cat.png", "tabby cat/a.png", "Wren/Old.png")


def dataset(labels: np.ndarray | None) -> Dataset:
    pixels = ArrayImages(np.zeros((4, 8, 8), dtype=np.uint8))
    classes = () if labels is None else ("wren", "tabby cat")
    return Dataset("found", "Found", pixels, labels, classes, "0", 8, True, NAMES)


@pytest.mark.parametrize(("text", "index"), [
    ("2", 2), (" 3 ", 3), ("12", 0), ("cat.png", 1), ("wren/OLD.png", 3), ("wren", 0), ("Tabby Cat", 2), ("tabb", 2),
    ("old", 3), ("nothing", None), ("", None), ("  ", None), ("4", None), ("²", None), ("9" * 400, None)])
def test_a_number_comes_before_a_name_and_a_whole_name_before_a_part(text: str, index: int | None) -> None:
    assert find_image(dataset(np.array([0, 0, 1, 0])), text) == index


def test_images_without_classes_are_found_by_name() -> None:
    assert find_image(dataset(None), "tabby") == 2
    assert find_image(dataset(None), "dog") is None
