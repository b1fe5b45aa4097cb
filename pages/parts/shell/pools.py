"""Among which images hits are counted, in the same words on every page."""

from __future__ import annotations

from typing import Literal

from udml_core.data.splits import Split
from udml_core.runs import Run


def among(count: int, split: Split, total: int) -> str:
    """Say among how many images neighbors are searched, such as "among 359 test images".

    Args:
        count: The number of searched images.
        split: Training and test half.
        total: The number of images of the data set.
    """
    if count == total - len(split.excluded):
        return f"among all {count:,} images"
    if count == len(split.test):
        return f"among {count:,} test images"
    return f"among {count:,} of {total:,} images"


def among_sample(count: int, split: Split, total: int) -> str:
    """Say the same of a sample of the test half: only a part of a large test half is kept for every epoch."""
    words = among(count, split, total)
    return words if " of " not in words or split.name == "all" else f"among {count:,} sampled test images"


def images_of(run: Run, half: Literal["test", "training"]) -> str:
    """Return what the images of a half are called: "images" where the run has no halves.

    Args:
        run: The run.
        half: The half.
    """
    return "images" if run.spec().split == "all" else f"{half} images"
