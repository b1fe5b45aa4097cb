"""Instance discrimination: an image's other view against other images.

The softmax is shown before and after training.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from udml_core.base.declaration import describe_field
from udml_core.exploration import instances as views
from udml_core.methods.pslr import PSLR
from udml_core.runs import Run
from udml_core.runs.search import TRAINED, Which, frame_words

from ..draw.gallery import clicked_tile, gallery, mark_of, tile_of
from ..draw.palette import CLASSES, color_legend, percent
from ..draw.sections import Section, show_sections
from ..draw.slider import field_slider
from ..shell.address import choose_segment, write_address
from ..shell.run_status import hyperparameters
from .chosen import ChosenImage, other_images
from .competitors import (
    Competition,
    competition_summary,
    competition_table,
    rank_chart,
    share_chart,
)

MOST_TILES = 24
GROUPS = {"batch": "A random batch", "half": "All images of its half"}
SOFTMAX = (
    "The image itself is the query: D = exp(s/τ) + η Σ exp(s_k/τ), where s is the cosine of the two views and s_k the "
    "cosine of the image and another image, both without augmentation. A small τ puts nearly all weight on the few "
    "nearest images. Each other image counts η times, which lowers the share of the other view but changes neither the "
    "order of the images nor the number of competitors. An image's probability P is its share divided by η.")


def compete(current: ChosenImage, cosines: dict[Which, float], latent: bool, batch: int,
            softmax: tuple[float, float]) -> dict[Which, Competition]:
    """Show the softmax before and after training.

    Args:
        current: The current image.
        cosines: Cosine of its two views before and after training.
        latent: Whether to compare the latent z in place of the embedding x.
        batch: Size of the random batch of competitors; 0 for all images of the image's half.
        softmax: τ and η.

    Returns:
        The softmax of each embedding.
    """
    competitions = _competitions(current, cosines, latent, batch, softmax)
    before, after = competitions["initial"], competitions["final"]
    share_chart([before, after])
    st.markdown(competition_summary(before, after),
                help=f"{SOFTMAX} {training_objective(hyperparameters(current.run))}")
    return competitions


def show_competitors(current: ChosenImage, competitions: Mapping[Which, Competition]) -> None:
    """Show the strongest competitors, or the shares by rank; a click makes an image the current image."""
    parts = list(competitions.values())

    def competitors() -> int | None:
        clicks = []
        for column, (which, competition) in zip(st.columns(2), competitions.items(), strict=True):
            with column:
                clicks.append(strongest_competitors(current, competition, which))
        if current.dataset.labels is not None:
            color_legend(*CLASSES)
        return clicked_tile(clicks)

    def by_rank() -> None:
        rank_chart(parts)
        competition_table(current.dataset, parts)

    clicked = show_sections([Section("competitors", "Strongest competitors", competitors),
                             Section("ranks", "Shares by rank", by_rank)], "instances-section")
    if clicked is not None:
        write_address("picked", str(clicked))
        st.rerun()


def pick_competitors(run: Run) -> int:
    """Choose the competitors; the address holds the choice.

    Returns:
        The size of the random batch; 0 for all images of the image's half.
    """
    group = choose_segment("Competitors", "among", GROUPS, "batch", key="instance-among")
    return int(hyperparameters(run).get("batch", describe_field(PSLR, "batch").default)) if group == "batch" else 0


def _competitions(current: ChosenImage, cosines: dict[Which, float], latent: bool, batch: int,
                  softmax: tuple[float, float]) -> dict[Which, Competition]:
    """Return the softmax at τ and η before and after training."""
    labels = current.dataset.labels
    competitions: dict[Which, Competition] = {}
    for which in TRAINED:
        others = other_images(current.run, current.index, which, latent, batch, current.draw if batch else 0)
        same = None if labels is None else labels[others.indices] == labels[current.index]
        shares = views.softmax(others.cosines, cosines[which], *softmax)
        competitions[which] = Competition(frame_words(which), others, shares, same)
    return competitions


def softmax_sliders(run: Run) -> tuple[float, float]:
    """Show sliders for τ and η, whose values the address holds.

    The defaults are the run's values, or PSLR's if the run has none.
    """
    fields, values = hyperparameters(run), []
    for column, (name, note) in zip(st.columns(2), (("temperature", "divides the cosines"),
                                                    ("eta", "weight of each other image")), strict=True):
        field = describe_field(PSLR, name)
        default = float(fields.get(name, field.default))
        with column:
            values.append(field_slider(field, f"instance-{name}", default, note,
                                       marks={default: "this run" if name in fields else "default"}))
    return values[0], values[1]


def strongest_competitors(current: ChosenImage, competition: Competition, which: Which) -> int | None:
    """Show the other images with the largest shares.

    Returns:
        The index of the image that was just clicked, or None.
    """
    title = f"Strongest competitors {frame_words(which)}"
    st.markdown(f"**{title}**")
    images = competition.others.indices[:MOST_TILES].tolist()
    tiles = [tile_of(current.dataset, index, mark_of(current.dataset, index, current.index), percent(share))
             for index, share in zip(images, 100 * competition.softmax.shares, strict=False)]
    return gallery(current.dataset, tiles, title, f"instance-{which}", 84, height=300)


def training_objective(fields: Mapping[str, Any]) -> str:
    """Return how the softmax of a run's training differs from the softmax of the page.

    Args:
        fields: The run's hyper-parameters.
    """
    if "memory" in fields:
        return ("In training, this run compares one view of an image with a memory that holds every image; it has no "
                "second view and no η. The page shows the softmax of PSLR and ISIF instead.")
    match fields.get("form"):
        case "both":
            query = "each view of an image must find the image's other view"
            others, count = "both views of all other images in the batch", "2m − 2"
        case "printed":
            query = "the second view of an image must find the image's first view"
            others, count = "the first views of all other images in the batch", "m − 1"
        case _:
            return ("This run was trained with another objective. The page shows instance discrimination, the "
                    "objective of PSLR and ISIF, on its embedding.")
    if fields.get("graph") == "neighbors":
        return (f"In training, {query} among {others} except its mutual nearest neighbors, and batches consist of "
                "neighbors.")
    return f"In training, {query} among {others}: with m images in a batch, D sums over {count} other views."
