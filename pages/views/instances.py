"""Instances: an image's two views, and the softmax against other images."""

from __future__ import annotations

import numpy as np
import streamlit as st
from PIL import Image

from pages.parts.draw.pictures import picture
from pages.parts.draw.run_header import run_header
from pages.parts.instances.chosen import ChosenImage, as_compared, random_views
from pages.parts.instances.competition import compete, pick_competitors, show_competitors, softmax_sliders
from pages.parts.maps.uncertainty import noise
from pages.parts.shell.address import choose_segment, number_from_address, write_address
from pages.parts.shell.cached import dataset_of, load_retrieval, load_split
from pages.parts.shell.epochs import has_record
from pages.parts.shell.interesting import current_image
from pages.parts.shell.run_picker import pick_run
from pages.parts.shell.run_status import escaped
from pages.parts.shell.user_errors import fragment, show_user_errors
from pages.parts.shell.views import view_link
from udml_core.base.arrays import rows_of
from udml_core.data.splits import Split
from udml_core.exploration import instances as views
from udml_core.methods import Method
from udml_core.numerics.explanations import LatentLayer, Uncertainty
from udml_core.runs import Run
from udml_core.runs.search import FROZEN, TRAINED, Which

LARGEST_DRAW = 2**31
SIDE = 104  # pixels of a view
REPRESENTATIONS = {"latent": "Latent z, which the loss compares", "instance": "Embedding x"}


def show_image(current: ChosenImage) -> None:
    """Show the image's name and half, and what a click does."""
    half = "training half" if current.index in current.split.train else "test half"
    st.markdown(f"**{escaped(current.dataset.caption(current.index))}**, {half}.",
                help="Click any image of this page to make it the current image, or choose an image on the map.")


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


def show_links(current: ChosenImage) -> None:
    """Show a button for a random image, and a link to the map."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button("Show a random image", icon=":material/shuffle:", key="instance-another", on_click=pick_random_image,
                  args=(current.split,))
        view_link("explore", label="Map", icon=":material/scatter_plot:",
                     query_params={"run": current.run.id, "picked": str(current.index)})


def pick_random_image(split: Split) -> None:
    """Make a random image of the training half the current image."""
    write_address("picked", str(np.random.default_rng().choice(split.train)))


def show_uncertainty(current: ChosenImage) -> None:
    """Show σ of the image, if it is in the training half and the run learned σ."""
    row = int(rows_of(current.split.train, current.index))
    sigma = noise(current.run, current.run.kept_epoch()) if has_record(current.run, Uncertainty) else None
    if sigma is not None and row >= 0:
        own = sigma[row]
        st.markdown(f"**Uncertainty σ = {own:.4g}**, lower than that of {100 * (sigma > own).mean():.1f} % of the "
                    "training images.")
        view_link("explore", label="Show σ of all images on the map", icon=":material/scatter_plot:",
                     query_params={"run": current.run.id, "color": "uncertainty"})


def pick_representation(has_latent: bool) -> bool:
    """Choose the latent z or the embedding x; the address holds the choice."""
    if not has_latent:
        return False
    return choose_segment("Representation", "representation", REPRESENTATIONS, "latent",
                          key="instance-representation") == "latent"


@fragment
def explore(run: Run) -> None:
    """Show the current image, its views and the softmax against other images."""
    dataset, split = dataset_of(run), load_split(run)
    index = current_image(run, dataset)
    current = ChosenImage(run, dataset, split, index, int(number_from_address("draw", 0, 0, LARGEST_DRAW)))
    has_latent = has_record(run, LatentLayer)
    controls, right = st.columns([6, 1], vertical_alignment="bottom")
    with right.popover("More", icon=":material/tune:", width="stretch"):
        batch = pick_competitors(run)
        latent = pick_representation(has_latent)
    with controls:
        softmax = softmax_sliders(run)
    embeddings = random_views(run, index, current.draw)[1]
    cosines = {which: views.view_cosine(as_compared(run, embeddings[which], which, latent)) for which in TRAINED}
    left, right = st.columns([2, 3], gap="medium")
    with left:
        show_image(current)
        two_views(current, cosines, "the latent z" if latent else "the embedding x" if has_latent else "the embedding")
        show_links(current)
        show_uncertainty(current)
    with right:
        competitions = compete(current, cosines, latent, batch, softmax)
    show_competitors(current, competitions)


def draw() -> None:
    """Draw the view."""
    with show_user_errors():
        run = pick_run(fits=lambda run: run.spec().encoder.reads_images,
                       missing="This view compares random views of an image; no run on images has finished yet.")
        if run is not None:
            run_header(run, "before and after training")
            explore(run)
