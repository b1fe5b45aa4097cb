"""Lesson: ε merges and shatters clusters."""

import numpy as np
import pandas as pd
import streamlit as st
from PIL import Image

from pages.parts.base.selection import selection
from pages.parts.components.gallery import gallery, tile_of
from pages.parts.components.map_content import Color, Layout
from pages.parts.components.scatter import scatter
from pages.parts.kit.field_slider import field_slider
from pages.parts.kit.lesson import Question, ask_prediction, multiples, points_picture, show_takeaway
from pages.parts.kit.tables import table_behind
from udml_core.arrays import Array
from udml_core.data.dataset import Dataset
from udml_core.declaration import describe_field
from udml_core.exploration.clusters import Summary, summary
from udml_core.exploration.lessons import Ascent, digits_ascent, smallest_ascent
from udml_core.methods.rpml import RPML

EPSILON = describe_field(RPML, "epsilon")
LOW = 0.45
SMALL_STEPS = (0.2, 0.4, 0.85)
STEPS = (0.3, 0.5, 0.65, 0.75, 0.9)
SHOWN_MODES = 12


@st.cache_resource(show_spinner=False)
def smallest() -> Ascent:
    """Load the smallest case."""
    return smallest_ascent()


@st.cache_resource(show_spinner="Building the neighbor graph of the digits …")
def digits() -> tuple[Dataset, Ascent]:
    """Load the handwritten digits and their graph."""
    return digits_ascent()


def words_of(numbers: Summary) -> str:
    """Describe clusters in one line."""
    purity = "" if numbers.purity is None else f", purity {100 * numbers.purity:.1f} %"
    return (f"{numbers.count:,} clusters, the largest with {numbers.sizes.max():,} images; {numbers.singletons:,} "
            f"singletons{purity}")


@st.cache_data(show_spinner=False)
def clusters_at(name: str, epsilons: tuple[float, ...]) -> tuple[list[Array], list[Summary]]:
    """Return the clusters of a case at several values of ε.

    Returns:
        Pictures as arrays, and the numbers that describe the clusters.
    """
    small = name == "smallest"
    ascent, labels = (smallest(), None) if small else (digits()[1], digits()[0].labels)
    clusterings = [ascent.graph.clusters(epsilon) for epsilon in epsilons]
    pictures = [np.asarray(points_picture(ascent.positions, clusters.labels, dot=4.0 if small else 2.0,
                                          parents=clusters.parents if small else None)) for clusters in clusterings]
    return pictures, [summary(clusters, labels) for clusters in clusterings]


def show_steps(name: str, epsilons: tuple[float, ...], note: str = "") -> list[Summary]:
    """Show small multiples over ε, with a note in a further column, and return their numbers."""
    pictures, numbers = clusters_at(name, epsilons)
    words = [words_of(step) for step in numbers]
    multiples([Image.fromarray(picture) for picture in pictures],
              [f"**ε = {epsilon:g}**  \n{text}" for epsilon, text in zip(epsilons, words, strict=True)],
              [f"At ε {epsilon:g}: {text}." for epsilon, text in zip(epsilons, words, strict=True)], note)
    return numbers


@st.fragment
def explore_digits() -> None:
    """Show the question, then the slider and the clusters at its value."""
    dataset, ascent = digits()
    at_default, at_low = (summary(ascent.graph.clusters(epsilon), dataset.labels)
                          for epsilon in (EPSILON.default, LOW))
    unlocked = ask_prediction(Question(
        f"At ε = {EPSILON.default:g} the {len(dataset):,} digits form {at_default.count} clusters. What happens at "
        f"ε = {LOW:g}?",
        ("Fewer, larger clusters", "More, smaller clusters", "The same clusters"), "Fewer, larger clusters",
        f"At ε = {LOW:g} there are {at_low.count} clusters, the largest with {at_low.sizes.max()} images: a lower "
        "threshold admits more edges, so more paths end at the same mode."), "epsilon")
    if not unlocked:
        st.caption("The slider appears after you answer or skip the question.")
        return
    epsilon = field_slider(EPSILON, "lesson-epsilon", note="minimum relevancy of an edge", play=True)
    clusters = ascent.graph.clusters(epsilon)
    numbers = summary(clusters, dataset.labels)
    st.markdown(f"**ε = {epsilon:g}:** {words_of(numbers)}")
    is_singleton = numbers.sizes[clusters.labels] == 1
    names = tuple(f"cluster {number}" for number in range(numbers.count))
    color = Color("cluster", np.where(is_singleton, -1, clusters.labels), names, none="singleton")
    ascending = np.flatnonzero(clusters.parents != np.arange(len(dataset)))
    segments = np.stack([ascending, clusters.parents[ascending]], axis=1)
    layout = Layout(np.arange(len(dataset)), ascent.positions, "lesson")
    scatter(dataset, layout, color, selection(dataset), f"Map of the digits at ε {epsilon:g}: {words_of(numbers)}",
            "lesson-map", segments=segments, height=480)
    largest = np.argsort(-numbers.sizes, kind="stable")[:SHOWN_MODES]
    st.markdown("Modes of the largest clusters, with the number of images in each")
    gallery(dataset, [tile_of(dataset, clusters.modes[cluster], badge=f"{numbers.sizes[cluster]} images")
                      for cluster in largest], "Modes of the largest clusters", "lesson-modes", 72)


st.title("ε merges and shatters", help=(
    "Authority ascent does not need the number of clusters. Each image moves along an edge of the neighbor graph to an "
    "image with **higher authority**, if the edge is **relevant enough: ψ > ε**. A path ends at a mode, an image "
    "without such an edge. Images with the same mode share a pseudo-label, and RPML draws its triplets from the "
    "pseudo-labels."))
st.caption("ε is the least relevancy of an edge; images that ascend to the same mode share a pseudo-label.")
st.markdown("**1 · Smallest case: 45 points, two groups close together and one apart**")
show_steps("smallest", SMALL_STEPS,
           "Lines are ascent steps; gray points are singletons. **Notice:** on the left, two close groups ascend to "
           "one mode; in the middle, each group has its own mode; on the right, they fall apart.")
st.markdown("**2 · Your turn: move ε on the handwritten digits, ten classes that the method never sees**")
explore_digits()
st.caption("**Do:** drag slowly from 0.4 to 0.8. **Notice:** first the sparse regions between digits break off, then "
           "each digit splits by handwriting. Areas, gaps and axes of the map carry no units.")
st.markdown("**3 · The whole range of ε**")
rows = show_steps("digits", STEPS)
st.caption("**Notice:** purity rises with ε while more and more images become singletons. High purity alone is not a "
           "success: on the right it comes from singletons, which give no positive pairs.",
           help="Fixed: 20 neighbors, γ = 100, raw pixels of unit length; the map is a t-SNE and does not change.")
table_behind("These clusters as a table", pd.DataFrame([
    {"ε": epsilon, "clusters": numbers.count, "largest": int(numbers.sizes.max()), "singletons": numbers.singletons,
     "coverage %": round(100 * numbers.coverage, 1), "purity %": round(100 * (numbers.purity or 0), 1)}
    for epsilon, numbers in zip(STEPS, rows, strict=True)]))
st.markdown("**4 · When it goes wrong**")
st.markdown("If ε is too low, an **8** and a **1** share a pseudo-label, and training pulls them together. If ε is too "
            "high, nearly every image is a singleton, and there are no positive pairs. Training rejects both extremes "
            "with a message.")
st.page_link("pages/clusters.py", label="Explore the clusters of your own images", icon=":material/workspaces:")
show_takeaway("ε is the minimum relevancy of an edge. A lower ε merges clusters and a higher ε splits them; judge "
              "coverage and purity together.")
