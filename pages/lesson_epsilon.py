"""Lesson: lower ε merges, higher ε shatters."""

import numpy as np
import pandas as pd
import streamlit as st
from PIL import Image

from pages.parts.base.address import write_address
from pages.parts.base.selection import selection
from pages.parts.components.gallery import gallery, tile_of
from pages.parts.components.scatter import Color, Layout, scatter
from pages.parts.components.slider import live_slider
from pages.parts.kit.figures import table_behind
from pages.parts.kit.lesson import Question, multiples, points_picture, predicted, take_away
from udml_core.arrays import Array
from udml_core.data.dataset import Dataset
from udml_core.exploration.clusters import Summary, summary
from udml_core.exploration.lessons import Ascent, digits_ascent, smallest_ascent

USUAL, LOW = 0.65, 0.45
SMALL_STEPS = (0.2, 0.4, 0.85)
STEPS = (0.3, 0.5, 0.65, 0.75, 0.9)


@st.cache_resource(show_spinner=False)
def smallest() -> Ascent:
    return smallest_ascent()


@st.cache_resource(show_spinner="Building the neighbor graph of the digits …")
def digits() -> tuple[Dataset, Ascent]:
    return digits_ascent()


def in_words(found: Summary) -> str:
    """A clustering in one line."""
    purity = "" if found.purity is None else f", purity {100 * found.purity:.0f} %"
    return f"{found.count:,} clusters, the largest of {found.sizes.max():,}; {found.singletons:,} alone{purity}"


@st.cache_data(show_spinner=False)
def steps(name: str, epsilons: tuple[float, ...]) -> tuple[list[Array], list[Summary]]:
    """Pictures as arrays, and numbers, of a case at several ε."""
    ascent, labels = (smallest(), None) if name == "smallest" else (digits()[1], digits()[0].labels)
    small = name == "smallest"
    found = [ascent.graph.clusters(epsilon) for epsilon in epsilons]
    pictures = [np.asarray(points_picture(ascent.positions, one.labels, dot=4.0 if small else 2.0,
                                          parents=one.parents if small else None)) for one in found]
    return pictures, [summary(one, labels) for one in found]


def shown_at(name: str, epsilons: tuple[float, ...]) -> list[Summary]:
    """Small multiples over ε."""
    pictures, found = steps(name, epsilons)
    captions = [f"**ε = {epsilon:g}**  \n{in_words(one)}" for epsilon, one in zip(epsilons, found, strict=True)]
    alts = [f"At ε {epsilon:g}: {in_words(one)}." for epsilon, one in zip(epsilons, found, strict=True)]
    multiples([Image.fromarray(picture) for picture in pictures], captions, alts)
    return found


@st.fragment
def on_the_digits() -> None:
    """The prediction, the one control, what it does."""
    dataset, ascent = digits()
    at_usual, at_low = (summary(ascent.graph.clusters(epsilon), dataset.labels) for epsilon in (USUAL, LOW))
    unlocked = predicted(Question(
        f"at ε = {USUAL:g} the {len(dataset):,} digits form {at_usual.count} clusters. What does ε = {LOW:g} give?",
        ("Fewer, larger clusters", "More, smaller clusters", "The same clusters"), "Fewer, larger clusters",
        f"At ε = {LOW:g} there are {at_low.count}, the largest of {at_low.sizes.max()} images: a lower bar lets more "
        "edges be climbed, so more paths end at the same summit."), "epsilon")
    if not unlocked:
        st.caption("The slider appears when you have answered or skipped.")
        return
    text = st.query_params.get("epsilon", "")
    try:
        start = min(1.0, max(0.0, float(text)))
    except ValueError:
        start = USUAL
    epsilon = live_slider("ε, the least relevancy of an edge that may be climbed", 0.0, 1.0, start, 0.01,
                          "lesson-epsilon", play=True)
    write_address("epsilon", f"{epsilon:g}", f"{USUAL:g}")
    clusters = ascent.graph.clusters(epsilon)
    found = summary(clusters, dataset.labels)
    st.markdown(f"**ε = {epsilon:g}:** {in_words(found)}")
    alone = found.sizes[clusters.labels] == 1
    names = tuple(f"cluster {one}" for one in range(found.count))
    color = Color("cluster", np.where(alone, -1, clusters.labels), names, none="alone")
    climbing = np.flatnonzero(clusters.parents != np.arange(len(dataset)))
    segments = np.stack([climbing, clusters.parents[climbing]], axis=1)
    layout = Layout(np.arange(len(dataset)), ascent.positions, "lesson")
    scatter(dataset, layout, color, selection(dataset), f"Map of the digits at ε {epsilon:g}: {in_words(found)}",
            "lesson-map", segments=segments, height=480)
    largest = np.argsort(-found.sizes, kind="stable")[:12]
    st.markdown("The summits of the largest clusters, and how many climb to each")
    gallery(dataset, [tile_of(dataset, clusters.modes[one], badge=f"{found.sizes[one]} images") for one in largest],
            "The summits of the largest clusters", "lesson-modes", 72)


st.title("Lower ε merges, higher ε shatters")
st.markdown(
    "Authority ascent needs no number of clusters. Every image looks at its neighbors in a graph and climbs to one "
    "that is **more central than itself**, if the edge there is **relevant enough: ψ > ε**. Those that end at the "
    "same summit share a pseudo-label, and from pseudo-labels RPML draws its triplets. Everything hangs on ε.")
st.subheader("1 · Smallest case: 45 points, two groups close together, one apart")
shown_at("smallest", SMALL_STEPS)
st.caption("Figure 1. Lines are climbs, gray points are alone. **Notice:** on the left the two close groups climb to "
           "one summit although they are two; in the middle each has its own; on the right they are cut to pieces. "
           "Colours only tell neighbors apart.")
st.subheader("2 · The handwritten digits: ten true classes, which the method never sees")
rows = shown_at("digits", STEPS)
st.caption("Figure 2. Fixed: 20 neighbors, γ = 100, raw pixels of unit length; the map is t-SNE and does not change. "
           "**Notice:** purity rises with ε while ever more images are left alone. Purity by itself is no success: "
           "at the right end it is bought with clusters of one, from which no positive pair can be drawn.")
table_behind("Figure 2 as a table", pd.DataFrame([{"ε": epsilon, "clusters": one.count, "largest": int(one.sizes.max()),
                                      "alone": one.singletons, "coverage %": round(100 * one.coverage, 1),
                                      "purity %": round(100 * (one.purity or 0), 1)}
                                     for epsilon, one in zip(STEPS, rows, strict=True)]))
st.subheader("3 · Your turn: move ε")
on_the_digits()
st.caption("Figure 3. **Do:** drag slowly from 0.4 to 0.8. **Notice:** the first to break are the loose ends between "
           "digits, then the digits themselves, by handwriting. Areas, gaps and axes of the map carry no units.")
st.subheader("4 · When it goes wrong")
st.markdown("Too low: an **8** and a **1** share a pseudo-label, and training pulls them together. Too high: nearly "
            "every image is its own cluster, and there is nothing to pull. Training refuses both ends with a message. "
            "On photographs the good range lies elsewhere: look at your own on the page Clusters.")
st.page_link("pages/clusters.py", label="The same slider on your own images: Clusters", icon=":material/workspaces:")
take_away("ε is the bar that an edge must clear to be climbed. Lower it and clusters merge, raise it and they shatter; "
          "look at coverage and purity together.")
