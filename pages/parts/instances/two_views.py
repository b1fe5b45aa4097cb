"""An image as the network reads it, beside two random views."""

from __future__ import annotations

import numpy as np
import streamlit as st
from PIL import Image

from udml_core.methods import Method
from udml_core.runs.search import FROZEN, Which

from ..draw.pictures import picture
from ..shell.address import write_address
from ..shell.cached import load_retrieval
from .chosen import ChosenImage, random_views

SIDE = 104


def two_views(current: ChosenImage, cosines: dict[Which, float], compared: str) -> None:
    """Show an image without augmentation and two random views.

    Args:
        current: The current image.
        cosines: Cosine of the two views before and after training.
        compared: Name of the representation that the cosines compare.
    """
    plain = load_retrieval(current.run).prepared(current.dataset.images[current.index])
    pixels, _ = random_views(current.run, current.index, current.draw)
    with st.container(horizontal=True, gap="small"):
        for word, view in (("without augmentation", plain), ("first view", pixels[0]), ("second view", pixels[1])):
            image = Image.fromarray(view[0] if len(view) == 1 else np.ascontiguousarray(view.transpose(1, 2, 0)))
            picture(image, SIDE, f"{current.dataset.caption(current.index)}, {word}", word.capitalize())
    side = plain.shape[1]
    values = (f"**{cosines['final']:.3f}** after training, **{cosines['initial']:.3f}** before"
              if current.run.spec().method != FROZEN else f"**{cosines['final']:.3f}**")
    st.markdown(f"The cosine of the two views in {compared} is {values}.",
                help=f"The encoder reads {side} × {side} pixels. A view is a random crop, flipped half of the time, "
                     "with the method's other augmentations. "
                     f"{_views_in_training(current.run.spec().build_method())}")
    st.button("Draw again", icon=":material/casino:", key="instance-draw", on_click=write_address,
              args=("draw", str(current.draw + 1)), help="Draw two other views, and another batch for the softmax.")


def _views_in_training(method: Method) -> str:
    if method.views_needed:
        return f"This run trained a head on {method.views_needed} views of each training image, drawn once like these."
    if method.trains_encoder:
        return "This run trained on new views in every epoch."
    return "This run's method trains on images without augmentation; other methods would train on views like these."
