"""Elements of a lesson: a question, small multiples, and a takeaway."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import streamlit as st
from PIL import Image, ImageDraw

from pages.parts.base.address import write_address
from pages.parts.kit.pictures import inline
from udml_core.arrays import Array

PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8856a7", "#8a8a00")
SINGLETON = "#8b9098"
SCALE = 3
"""Factor by which points are drawn larger before the picture is reduced, for smooth edges."""
MARGIN = 8
ANSWER, SKIPPED = "answer", "skipped"


@dataclass(frozen=True)
class Question:
    """A question whose answer the reader predicts.

    Attributes:
        text: The question.
        choices: The possible answers.
        right: The right answer.
        because: The explanation of the right answer.
    """

    text: str
    choices: tuple[str, ...]
    right: str
    because: str


def ask_prediction(question: Question, key: str) -> bool:
    """Ask the reader for a prediction; the address holds the answer.

    Args:
        question: The question.
        key: Prefix of the widgets' keys.

    Returns:
        Whether the question was answered or skipped.
    """
    stored = st.query_params.get(ANSWER, "")
    with st.container(border=True):
        st.markdown(f"**Predict first:** {question.text}")
        index = int(stored) if stored.isdecimal() and int(stored) < len(question.choices) else None
        answer = st.radio("Your prediction", question.choices, index=index, key=f"{key}-answer", horizontal=True,
                          label_visibility="collapsed")
        if answer is None:
            skipped = st.checkbox("Skip the question", stored == SKIPPED, key=f"{key}-skip")
            write_address(ANSWER, SKIPPED if skipped else "")
            return skipped
        write_address(ANSWER, str(question.choices.index(answer)))
        if answer == question.right:
            st.success(f"Correct. {question.because}", icon=":material/check:")
        else:
            st.info(f"Not in this case. {question.because}", icon=":material/lightbulb:")
        return True


def show_takeaway(text: str) -> None:
    """Show the one sentence to remember from a lesson."""
    st.success(f"**Takeaway:** {text}", icon=":material/bookmark:")


def points_picture(positions: Array, codes: Array, side: int = 260, dot: float = 2.0,
                   parents: Array | None = None) -> Image.Image:
    """Draw points colored by cluster, singletons in gray.

    Args:
        positions: Coordinates, (n, 2).
        codes: The cluster of each point, (n,).
        side: Half the width and height in pixels.
        dot: Radius of a point.
        parents: The next point on each ascent path, (n,), joined by a line.
    """
    low, high = positions.min(axis=0), positions.max(axis=0)
    unit = (positions - low) / np.maximum(high - low, 1e-9)
    room = side - 2 * MARGIN
    centers = SCALE * (MARGIN + unit * [1, -1] * room + [0, room])
    image = Image.new("RGBA", (SCALE * side, SCALE * side), (0, 0, 0, 0))
    pen = ImageDraw.Draw(image)
    sizes = np.bincount(codes)
    if parents is not None:
        for child, parent in enumerate(parents):
            pen.line([tuple(centers[child]), tuple(centers[parent])], fill=SINGLETON, width=SCALE)
    for (x, y), code in zip(centers, codes, strict=True):
        color = PALETTE[code % len(PALETTE)] if sizes[code] > 1 else SINGLETON
        pen.ellipse([x - SCALE * dot, y - SCALE * dot, x + SCALE * dot, y + SCALE * dot], fill=color)
    return image.resize((2 * side, 2 * side), Image.Resampling.LANCZOS)


def multiples(images: Sequence[Image.Image], captions: Sequence[str], alts: Sequence[str], note: str = "") -> None:
    """Show small multiples: pictures side by side with captions.

    Args:
        images: The pictures.
        captions: Markdown below each picture.
        alts: What each picture shows, for screen readers.
        note: Text in a further column, which keeps a few pictures small.
    """
    columns = st.columns(len(images) + bool(note))
    if note:
        columns.pop().caption(note)
    for column, image, caption, alt in zip(columns, images, captions, alts, strict=True):
        with column:
            st.image(inline(image), width="stretch", alt=alt)
            st.markdown(caption)
