"""What every lesson has: a prediction before the control, pictures that read without touching, a line to take away."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import streamlit as st
from PIL import Image, ImageDraw

from pages.parts.base.address import write_address
from pages.parts.kit.pictures import picture
from udml_core.arrays import Array

PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8856a7", "#8a8a00")
ALONE = "#8b9098"
SCALE = 3
ANSWER, SKIPPED = "answer", "skipped"


@dataclass(frozen=True)
class Question:
    """A prediction: one of `choices` is `right`; `because` explains it."""

    text: str
    choices: tuple[str, ...]
    right: str
    because: str


def predicted(question: Question, key: str) -> bool:
    """Ask for a prediction; whether the control below is unlocked. It can always be skipped.

    The answer is in the address, so that a link shows the same.
    """
    given = st.query_params.get(ANSWER, "")
    with st.container(border=True):
        st.markdown(f"**Before you move anything:** {question.text}")
        kept = int(given) if given.isdecimal() and int(given) < len(question.choices) else None
        answer = st.radio("Your prediction", question.choices, index=kept, key=f"{key}-answer", horizontal=True,
                          label_visibility="collapsed")
        if answer is None:
            skipped = st.checkbox("Skip the question", given == SKIPPED, key=f"{key}-skip")
            write_address(ANSWER, SKIPPED if skipped else "")
            return skipped
        write_address(ANSWER, str(question.choices.index(answer)))
        if answer == question.right:
            st.success(f"Yes. {question.because}", icon=":material/check:")
        else:
            st.info(f"Not here. {question.because}", icon=":material/lightbulb:")
        return True


def take_away(text: str) -> None:
    """The one line that a lesson leaves."""
    st.success(f"**To take away:** {text}", icon=":material/bookmark:")


def points_picture(positions: Array, codes: Array, side: int = 260, dot: float = 2.0,
                   parents: Array | None = None) -> Image.Image:
    """Points (n, 2) as a picture, coloured by cluster, those alone in theirs gray; with `parents`, the paths that they
    climb."""
    low, high = positions.min(axis=0), positions.max(axis=0)
    unit = (positions - low) / np.maximum(high - low, 1e-9)
    place = SCALE * (8 + unit * [1, -1] * (side - 16) + [0, side - 16])
    image = Image.new("RGBA", (SCALE * side, SCALE * side), (0, 0, 0, 0))
    pen = ImageDraw.Draw(image)
    sizes = np.bincount(codes)
    if parents is not None:
        for child, parent in enumerate(parents):
            pen.line([tuple(place[child]), tuple(place[parent])], fill=ALONE, width=SCALE)
    for (x, y), code in zip(place, codes, strict=True):
        color = PALETTE[code % len(PALETTE)] if sizes[code] > 1 else ALONE
        pen.ellipse([x - SCALE * dot, y - SCALE * dot, x + SCALE * dot, y + SCALE * dot], fill=color)
    return image.resize((2 * side, 2 * side), Image.Resampling.LANCZOS)


def multiples(images: Sequence[Image.Image], captions: Sequence[str], alts: Sequence[str]) -> None:
    """Small multiples: pictures side by side, each with what to read off it."""
    for column, image, caption, alt in zip(st.columns(len(images)), images, captions, alts, strict=True):
        with column:
            picture(image, "stretch", alt)
            st.markdown(caption)
