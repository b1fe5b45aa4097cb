"""An image among all others: its two views as the network sees them, and the softmax that tells it from the rest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import streamlit as st
from PIL import Image

from pages.parts.base.address import choice_from_address, number_from_address, write_address
from pages.parts.base.cached import dataset_of, load_retrieval, load_split
from pages.parts.base.epochs import has_record, load_record
from pages.parts.base.run_picker import pick_run
from pages.parts.base.run_status import hyperparameters
from pages.parts.base.user_errors import show_user_errors
from pages.parts.components.gallery import clicked_tile, gallery, mark_of, tile_of
from pages.parts.components.slider import live_slider
from pages.parts.instances.competitors import Standing, rank_picture, share_picture, standing_table, standing_words
from pages.parts.kit.pictures import picture
from pages.parts.map.uncertainty import noise
from udml_core.arrays import Array
from udml_core.data.dataset import Dataset
from udml_core.data.splits import Split
from udml_core.explanations import LatentLayer, Uncertainty
from udml_core.exploration import instances as views
from udml_core.retrieval import Which
from udml_core.runs import Run, find_run, runs_folder

SHOWN, SIDE = 24, 168
USUAL_BATCH = 128
MOST_DRAWS = 2**31
EMBEDDINGS: dict[Which, str] = {"initial": "before training", "final": "after training"}
COMPETITORS = {"batch": "a batch drawn from its half", "half": "all of its half"}
REPRESENTATIONS = {"latent": "z, which its softmax compares", "instance": "x, the embedding"}
SLIDERS = {"temperature": ("τ, what cosines are divided by", 0.02, 1.0, 0.01, 0.1),
           "eta": ("η, how many times the others count", 1.0, 100.0, 1.0, 1.0)}
# words, ends, step, and where they stand for a run that has none


@dataclass(frozen=True)
class Asked:
    """The image that is looked at, by position, and which draw of its views."""

    run: Run
    dataset: Dataset
    split: Split
    index: int
    draw: int

    @property
    def half(self) -> Array:
        """The images of its half: of the training half where it trained."""
        return self.split.train if self.index in self.split.train else self.split.test


@st.cache_resource(max_entries=64, show_spinner="Drawing two views …")
def _drawn(folder: str, index: int, draw: int) -> tuple[Array, dict[Which, Array]]:
    """Two views of an image as the network reads them, (2, c, s, s), and what each embedder makes of them, (2, l)."""
    opened = load_retrieval(folder)
    augmentation = opened.spec.build_method().augmentation
    pixels = views.two_views(opened.prepared(opened.dataset.images[index]), augmentation, draw)
    return pixels, {which: opened.embed_prepared(pixels, which) for which in EMBEDDINGS}


@st.cache_resource(max_entries=64, show_spinner="Comparing with the others …")
def _others(folder: str, index: int, which: Which, latent: bool, batch: int, draw: int) -> views.Others:
    """The others of an image's half by cosine, or of a drawn batch; batch 0: all."""
    run = find_run(folder, runs_folder())
    split = load_split(run)
    half = Asked(run, dataset_of(run), split, index, draw).half
    among = views.a_batch(half, index, batch, draw) if batch else half
    return views.others(_seen_as(run, run.embeddings(which), which, latent), index, among)


def _seen_as(run: Run, rows: Array, which: Which, latent: bool) -> Array:
    """Embeddings (n, l), or what the latent layer makes of them."""
    layer = load_record(run, _epoch(run, which), LatentLayer) if latent else None
    return rows if layer is None else views.latent_rows(rows, layer.weight)


def _epoch(run: Run, which: Which) -> int:
    return run.kept_epoch() if which == "final" else run.epoch_numbers()[0]


def two_views(asked: Asked, own: dict[Which, float], compared: str) -> None:
    """The image as the network reads it, and two draws of its augmentation; compared: the name of what is compared."""
    st.header("Two views, as the network sees them")
    opened = load_retrieval(asked.run.id)
    plain = opened.prepared(asked.dataset.images[asked.index])
    pixels, _ = _drawn(str(asked.run.folder), asked.index, asked.draw)
    with st.container(horizontal=True, gap="small"):
        for word, one in (("without augmentation", plain), ("first view", pixels[0]), ("second view", pixels[1])):
            seen = Image.fromarray(one[0] if len(one) == 1 else np.ascontiguousarray(one.transpose(1, 2, 0)))
            picture(seen, SIDE, f"{asked.dataset.caption(asked.index)}, {word}", word.capitalize())
    side, method = plain.shape[1], asked.run.spec().build_method()
    kept = (f"With the head alone it saw {method.views_needed} views of each training image, drawn once like these."
            if method.views_needed else "It saw new ones in every epoch." if method.trains_encoder else
            "This run's method trains on images as they are; these are the views that others would see.")
    st.markdown(f"Of {compared}, the two views' cosine is **{own['final']:.3f}** after training, "
                f"**{own['initial']:.3f}** before.")
    st.caption(f"Drawn at {side} × {side} pixels, a random crop, a flip in half of the cases, and what else the "
               f"method changes. {kept}")
    st.button("Draw again", icon=":material/casino:", key="instance-draw", on_click=write_address,
              args=("draw", str(asked.draw + 1)), help="Two other views, and another batch below.")


def sliders(run: Run) -> tuple[float, float]:
    """τ and η, as the run has them, else as usual; kept in the address."""
    given, values = hyperparameters(run), []
    for column, (name, (words, low, high, step, fallback)) in zip(st.columns(2), SLIDERS.items(), strict=True):
        usual = float(given.get(name, fallback))
        low, high = min(low, usual), max(high, usual)
        with column:
            value = live_slider(words, low, high, number_from_address(name, usual, low, high), step, f"instance-{name}",
                                marks={usual: "this run" if name in given else "usual"})
        write_address(name, f"{value:g}", f"{usual:g}")
        values.append(value)
    return values[0], values[1]


def nearest(asked: Asked, standing: Standing, which: Which) -> int | None:
    """The others that weigh most, with their shares; the one that was just picked."""
    st.markdown(f"**Who weighs most, {EMBEDDINGS[which]}**")
    positions, shares = standing.others.positions[:SHOWN].tolist(), 100 * standing.softmax.shares
    tiles = [tile_of(asked.dataset, index, mark_of(asked.dataset, index, asked.index), f"{share:.2g} %")
             for index, share in zip(positions, shares, strict=False)]
    return gallery(asked.dataset, tiles, f"The others that weigh most, {EMBEDDINGS[which]}", f"instance-{which}", 84,
                   height=300)


def another(split: Split) -> None:
    """Look at any image of the training half."""
    write_address("picked", str(np.random.default_rng().choice(split.train)))


def certainty(asked: Asked) -> None:
    """σ of the image among those that trained."""
    rows = np.flatnonzero(asked.split.train == asked.index)
    sigma = noise(asked.run, asked.run.kept_epoch()) if has_record(asked.run, Uncertainty) else None
    if sigma is not None and len(rows):
        own = sigma[rows[0]]
        st.markdown(f"**Uncertainty σ = {own:.4g}**, lower than that of {100 * (sigma > own).mean():.0f} % of the "
                    "images that trained.")
        st.page_link("pages/map.py", label="σ of all on the map", icon=":material/scatter_plot:",
                     query_params={"run": asked.run.id, "color": "uncertainty"})


@st.fragment
@show_user_errors()
def explore(run_id: str) -> None:
    """The image, its views, and the softmax over the others."""
    run = find_run(run_id, runs_folder())
    dataset, split = dataset_of(run), load_split(run)
    index = int(number_from_address("picked", int(split.train[0]), 0, len(dataset) - 1))
    asked = Asked(run, dataset, split, index, int(number_from_address("draw", 0, 0, MOST_DRAWS)))
    half = "trained" if index in split.train else "did not train"
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"**{dataset.caption(index)}**, which {half}. Click any image below to look at it, or pick one "
                    "on the map.")
        st.page_link("pages/map.py", label="Map", icon=":material/scatter_plot:",
                     query_params={"run": run.id, "picked": str(index)})
        st.button("Another one", icon=":material/shuffle:", key="instance-another", on_click=another, args=(split,))
    certainty(asked)
    latent = has_record(run, LatentLayer)
    if latent:
        kind = st.segmented_control("Compare", list(REPRESENTATIONS), required=True, key="instance-representation",
                                    default=choice_from_address("representation", list(REPRESENTATIONS), "latent"),
                                    format_func=REPRESENTATIONS.__getitem__) or "latent"
        write_address("representation", kind, "latent")
        latent = kind == "latent"
    rows = _drawn(str(run.folder), index, asked.draw)[1]
    own = {which: views.agreement(_seen_as(run, rows[which], which, latent)) for which in EMBEDDINGS}
    two_views(asked, own, "z" if latent else "x" if has_record(run, LatentLayer) else "the embedding")
    compete(asked, own, latent)


def asked_in_training(fields: Mapping[str, Any]) -> str:
    """What a run's training asks where its page asks which of many is the image's other view."""
    if "memory" in fields:
        return ("This run's training asks with one view of an image which entry of a memory is that image's, against "
                "others there; it has no second view and no η. What is shown is PSLR's and ISIF's question instead.")
    match fields.get("form"):
        case "both":
            asks, count = ("one view of an image which of many is its other view, against both views of every other "
                           "image in the batch"), "2m − 2"
        case "printed":
            asks, count = ("the second view of an image which of many is its first, against the first view of every "
                           "other image in the batch"), "m − 1"
        case _:
            return "This run's training asks something else; what is shown is PSLR's and ISIF's question."
    if fields.get("graph") == "neighbors":
        return (f"Training asks with {asks} but its mutual nearest neighbors, which are no negatives; and batches are "
                "made of neighbors.")
    return f"Training asks with {asks}: of m images its D sums over {count} such views."


@st.fragment
def compete(asked: Asked, own: dict[Which, float], latent: bool) -> None:
    """The softmax before and after training; all that moves with τ and η."""
    st.header("Told from all others")
    st.caption(f"{asked_in_training(hyperparameters(asked.run))} Here the image itself asks: "
               "D = exp(s/τ) + η Σ exp(s_k/τ) sums over the other view, at the cosine s of the two views above, and "
               "the others, at cosines s_k, each once and as it is, without augmentation.")
    temperature, eta = sliders(asked.run)
    among = st.segmented_control("Against", list(COMPETITORS), required=True, key="instance-among",
                                 default=choice_from_address("among", list(COMPETITORS), "batch"),
                                 format_func=COMPETITORS.__getitem__) or "batch"
    write_address("among", among, "batch")
    batch = int(hyperparameters(asked.run).get("batch", USUAL_BATCH)) if among == "batch" else 0
    labels, found = asked.dataset.labels, {}
    for which, words in EMBEDDINGS.items():
        others = _others(str(asked.run.folder), asked.index, which, latent, batch, asked.draw if batch else 0)
        same = None if labels is None else labels[others.positions] == labels[asked.index]
        found[which] = Standing(words, others, views.softmax(others.cosines, own[which], temperature, eta), same)
    before, after = found["initial"], found["final"]
    left, right = st.columns(2)
    with left:
        share_picture([before, after])
    with right:
        rank_picture([before, after])
    st.markdown(standing_words(before, after))
    st.caption("τ decides who competes: the smaller, the fewer of the nearest hold all the weight. η decides how hard: "
               "each other image counts η times, which takes from the other view and leaves the others' order and the "
               "number of competitors as they are. An image's P is its share divided by η.")
    clicks = []
    for column, (which, standing) in zip(st.columns(2), found.items(), strict=True):
        with column:
            clicks.append(nearest(asked, standing, which))
    standing_table(asked.dataset, [before, after])
    clicked = clicked_tile(clicks)
    if clicked is not None:
        write_address("picked", str(clicked))
        st.rerun()


st.title("Instances")
with show_user_errors():
    run = pick_run()
    if run is not None:
        explore(run.id)
