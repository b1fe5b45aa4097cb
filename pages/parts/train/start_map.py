"""The images on Lab's map, their first positions and their colors: the same before, at and after a start."""

from __future__ import annotations

from concurrent.futures import Future, wait
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from threading import Thread
from typing import Any

import numpy as np
import streamlit as st

from udml_core.base.arrays import Array, Integers
from udml_core.base.errors import UserError
from udml_core.base.files import read_array
from udml_core.data.dataset import Dataset
from udml_core.data.encoders import Encoder
from udml_core.data.features import features_of, features_of_some, features_path
from udml_core.data.side_by_side import frozen_encoder
from udml_core.data.splits import fixed_sample
from udml_core.exploration.identity import Numbered, number_clusters, track_clusters
from udml_core.exploration.live import live_frame, view_of
from udml_core.exploration.map_content import Color, Followed, Layout
from udml_core.exploration.preview import Preview, Sample, assignment_at, draw_sample, preview, unit_features
from udml_core.results.embedding_words import words_of
from udml_core.runs import Spec
from udml_core.runs.baselines import JUDGED
from udml_core.runs.search import features_words

from ..maps.coloring import similar_color
from ..maps.numbering import numbered_color
from ..shell.cached import dataset_at_hand
from ..shell.warming import SCRIPT_THREAD

FIELDS = ("alpha", "epsilon", "gamma", "n_neighbors")
CLUSTERS, CLASSES = "Clusters", "Classes"
COLORS = "lab-colors"
"""Key of the choice between clusters and classes, which a start keeps."""
BEGUN = "lab-first-map"
"""Session key of the map that the form showed last, which the run that it starts keeps."""
EPSILONS = tuple(round(step / 100, 2) for step in range(101))
FIRST_EPSILON = 0.65
"""The values of ε that the map follows, and the one at which clusters are numbered by size, the methods' default."""
AT_EPSILON, ALONE = "Cluster at ε = ", "single image"
NEIGHBORS = (2, 3, 5, 8, 12, 16, 20, 25, 30, 40, 50, 60, 75, 90, 100, 120, 140, 160, 180, 200)
"""The values of k that the map follows; between two of them it shows the nearer."""
EPSILON_SLIDER, NEIGHBORS_SLIDER = (
    f'.st-key-lab [class*="st-key-effect-"]:is([class*="-{name} "], [class$="-{name}"]) '
    '[data-testid="stSliderThumbValue"]' for name in ("epsilon", "n_neighbors"))
"""Selectors of the values that the sliders of ε and k show while they move."""
BY_CLASS, FORMED = "lab-by-class", "lab-formed"
"""Session keys: whether a start asks for classes as colors, and what the clusters on the map were formed by last."""
SETTLED = 8.0
"""Seconds that a run waits for the clusters of the form, whose colors it keeps."""


@dataclass(frozen=True)
class Drawn:
    """The images of the map, laid out by their frozen features.

    Attributes:
        images: Data set indices (s,), ascending; the images whose embedding a run stores after every epoch.
        positions: t-SNE layout of their frozen features, (s, 2), at unit mean square radius.
        rows: Their frozen features at unit length, (s, d).
        sample: A sample of the training half that contains the images; None for methods without clusters.
        dataset: The data set.
    """

    images: Integers
    positions: Array
    rows: Array
    sample: Sample | None
    dataset: Dataset

    @cached_property
    def groups(self) -> Color:
        """Groups of similar images by their frozen features, the colors of images without classes."""
        return similar_color(self.rows, self.images, self.dataset)

    def of_images(self, values: Array) -> Array:
        """Return the values (s, …) of the map's images among values (m, …) of the sample."""
        assert self.sample is not None
        return values[np.isin(self.sample.indices, self.images)]


def has_clusters(spec: Spec) -> bool:
    """Return whether the method forms clusters at ε and corrects angles beyond α; its map shows training images."""
    return all(name in spec.fields for name in FIELDS)


def half_words(spec: Spec) -> str:
    """Return which half of the split the map shows, after the number of images; nothing where all images train."""
    return "" if spec.split == "all" else f" of the {'training' if has_clusters(spec) else 'test'} half"


def drawn_words(spec: Spec, dataset: Dataset, count: int) -> str:
    """Return how many images the map before training shows, of which half, and that they are a sample if they are.

    Args:
        spec: The planned run.
        dataset: Its data set.
        count: The number of images.
    """
    halves = spec.halves(dataset)
    total = len(halves.train if has_clusters(spec) else halves.test)
    few = f"{count:,} images" if count >= total else f"a sample of {count:,} of the {total:,} images"
    return f"{few}{half_words(spec)}"


def raw_words(spec: Spec) -> str:
    """Return the name of what the images are compared by without training; the plain search where none has a class."""
    with suppress(UserError):  # the images are missing, which the page says
        if dataset_at_hand(spec.dataset).labels is None:
            return words_of("plain").sentence
    return features_words(spec)


def first_map(spec: Spec, dataset: Dataset) -> Future[Drawn]:
    """Return the map before training, which is computed in the background once."""
    st.session_state[BEGUN] = _key(spec)
    return _first_map(*_key(spec), spec, dataset)


def forget_map(spec: Spec, dataset: Dataset) -> None:
    """Forget a map that could not be computed, so that the next run of the page tries again."""
    _first_map.clear(*_key(spec), spec, dataset)


def clusters_before(drawn: Drawn, spec: Spec) -> Preview | None:
    """Return the clusters and triplets at the planned ε; None for methods without them."""
    if drawn.sample is None:
        return None
    return _preview(*_key(spec), *_graph_fields(spec), float(spec.fields["epsilon"]), drawn.sample)


def settled_map(spec: Spec, dataset: Dataset) -> Drawn | None:
    """Return the map before the training of a run; None if this session has none and it would take long."""
    if not is_begun(spec) and not features_path(dataset, spec.encoder).exists():
        return None
    drawn = first_map(spec, dataset)
    return drawn.result() if wait([drawn], SETTLED).done and not drawn.exception() else None


def is_begun(spec: Spec) -> bool:
    """Return whether the form has shown the map of these images, so that it is at hand."""
    return bool(st.session_state.get(BEGUN) == _key(spec))


def _key(spec: Spec) -> tuple[str, str, str, int, bool, str, str]:
    """Return what the images and the layout of a map depend on: not the method's fields, so that it stays."""
    return (spec.fingerprint, spec.encoder.key, spec.split, spec.seed, has_clusters(spec), spec.holds_out,
            spec.excluded.digest)


def _graph_fields(spec: Spec) -> tuple[int, float]:
    """Return k and γ of the graph that clusters are formed from."""
    return int(spec.fields["n_neighbors"]), float(spec.fields["gamma"])


@st.cache_resource(max_entries=16, show_spinner=False)
def _preview(fingerprint: str, encoder_key: str, split: str, seed: int, trains: bool,  # noqa: ARG001 (the key)
             holds_out: str, excluded: str, k: int, gamma: float, epsilon: float,  # noqa: ARG001
             _sample: Sample) -> Preview:
    return preview(_sample, k, epsilon, gamma, seed)


@st.cache_resource(max_entries=8, show_spinner=False)
def _first_map(fingerprint: str, encoder_key: str, split: str, seed: int, trains: bool,  # noqa: ARG001 (the key)
               holds_out: str, excluded: str, _spec: Spec, _dataset: Dataset) -> Future[Drawn]:  # noqa: ARG001
    """Lay out images in the background, with the stored features or with features that are computed for them alone."""
    drawn: Future[Drawn] = Future()

    def features(indices: Integers) -> Array:
        path = features_path(_dataset, _spec.encoder)
        if path.exists():
            return read_array(path, mapped=True)[indices]
        if _spec.encoder.parts:  # whose statistics need the features of all training images
            return features_of(_dataset, frozen_encoder(_dataset, _spec.encoder, _spec.halves(_dataset).train))[indices]
        return features_of_some(_dataset, Encoder(_spec.encoder), indices)

    def draw() -> None:
        try:
            halves = _spec.halves(_dataset)
            images = fixed_sample(halves.train if trains else halves.test, JUDGED)
            if not trains:
                rows = unit_features(features, images)
                drawn.set_result(Drawn(images, live_frame(rows, None), rows, None, _dataset))
                return
            sample = draw_sample(features, halves.train)
            shown = sample.rows[np.isin(sample.indices, images)]
            drawn.set_result(Drawn(images, live_frame(shown, None), shown, sample, _dataset))
        except Exception as error:  # the page shows it
            drawn.set_exception(error)

    # Imports in the background wait for threads of this name, as they do for a running page. Not a daemon: a process
    # that ends while one of them computes with PyTorch is aborted.
    Thread(target=draw, name=f"{SCRIPT_THREAD}: preview").start()
    return drawn


def framed(name: str, images: Integers, positions: Array) -> Layout:
    """Return the layout of images in a view that rests from epoch to epoch; few points lie at its edge, not beyond.

    Args:
        name: The name of the map.
        images: Data set indices (s,).
        positions: Coordinates (s, 2) around 0.
    """
    x, y = view_of(positions)
    return Layout(images, np.clip(positions, (-x, -y), (x, y)), f"{name} {x:g} {y:g}", (-x, -y, x, y))


def map_name(spec: Spec) -> str:
    """Return the name of the map of a run before and during its training, whose images stay the same."""
    return " ".join(("lab", spec.fingerprint[:8], *map(str, _key(spec)[1:])))


def choose_colors(spec: Spec, dataset: Dataset) -> None:
    """Choose clusters or classes as colors of the map; nothing without clusters or without classes."""
    if not (has_clusters(spec) and dataset.labels is not None):
        return
    st.session_state.setdefault(COLORS, CLASSES)
    st.segmented_control("Colors", [CLUSTERS, CLASSES], key=COLORS, required=True, label_visibility="collapsed")


def color_by_class() -> None:
    """Color the map by class from the next run of the page on: classes alone show what a training gains."""
    st.session_state[BY_CLASS] = True


def choose_moved_colors(spec: Spec) -> None:
    """Choose clusters as colors once a slider has changed them, and classes once a run has begun."""
    formed = (spec.fingerprint, spec.method, float(spec.fields["epsilon"]), *_graph_fields(spec))
    before = st.session_state.get(FORMED, formed)
    st.session_state[FORMED] = formed
    if formed[:2] == before[:2] and formed != before:
        st.session_state[COLORS] = CLUSTERS


def settle_colors() -> None:
    """Color by class if a start asked for it, before the choice is drawn."""
    if st.session_state.pop(BY_CLASS, False):
        st.session_state[COLORS] = CLASSES


def shows_clusters(spec: Spec, dataset: Dataset) -> bool:
    """Return whether the map's colors are clusters rather than classes."""
    return has_clusters(spec) and (dataset.labels is None or st.session_state.get(COLORS) == CLUSTERS)


def cluster_color(drawn: Drawn, spec: Spec, assignment: Integers) -> Color:
    """Return the clusters (s,) of the map's images at ε as colors, −1 for an image alone.

    A cluster keeps its number and color at every ε; at the first ε, cluster 1 is the largest.
    """
    epsilon, table = float(spec.fields["epsilon"]), tracked(drawn, spec)
    nearest = min(range(len(EPSILONS)), key=lambda position: abs(EPSILONS[position] - epsilon))
    numbered = number_clusters(assignment, Numbered(table[nearest].astype(np.int64))).numbers
    return numbered_color(f"{AT_EPSILON}{epsilon:g}", numbered, ALONE, int(table.max(initial=-1)))


def followed_clusters(drawn: Drawn, spec: Spec, color: Color) -> list[Followed]:
    """Return the clusters of the map's images over the ranges of ε and k, which the map shows while a slider moves.

    Args:
        drawn: The images.
        spec: The planned run.
        color: The clusters at its ε and k; see `cluster_color`.
    """
    found = [Followed(EPSILON_SLIDER, f"{AT_EPSILON}{{}}", EPSILONS, tracked(drawn, spec), color)]
    graphs = _graphs(*_key(spec), drawn)
    if graphs.done() and not graphs.exception():
        epsilon, (k, gamma) = float(spec.fields["epsilon"]), _graph_fields(spec)
        known = graphs.result()
        steps = tuple(known)
        nearest = min(range(len(steps)), key=lambda position: abs(steps[position] - k))
        table = track_clusters(lambda at: drawn.of_images(assignment_at(known[at], epsilon, gamma)), steps, nearest,
                               Numbered(np.asarray(color.values, dtype=np.int64)))
        names = numbered_color(f"{AT_EPSILON}{epsilon:g}", np.asarray(color.values), ALONE, int(table.max(initial=-1)))
        found.append(Followed(NEIGHBORS_SLIDER, f"Cluster at k = {{}}, ε = {epsilon:g}", steps, table, names))
    return found


@st.cache_resource(max_entries=4, show_spinner=False)
def _graphs(fingerprint: str, encoder_key: str, split: str, seed: int, trains: bool,  # noqa: ARG001 (the key)
            holds_out: str, excluded: str, _drawn: Drawn) -> Future[dict[float, Any]]:  # noqa: ARG001
    """Form the graphs of `NEIGHBORS` in the background; they do not depend on ε."""
    graphs: Future[dict[float, Any]] = Future()

    def form() -> None:
        assert _drawn.sample is not None
        try:
            graphs.set_result({k: _drawn.sample.graph(k) for k in NEIGHBORS if k < len(_drawn.sample.indices)})
        except Exception as error:  # the map then follows ε alone
            graphs.set_exception(error)

    Thread(target=form, name="udml-graphs", daemon=True).start()
    return graphs


def tracked(drawn: Drawn, spec: Spec) -> Array:
    """Return the clusters (t, s) of the map's images at each of `EPSILONS`."""
    return _tracked(*_key(spec), *_graph_fields(spec), drawn)


@st.cache_resource(max_entries=8, show_spinner=False)
def _tracked(fingerprint: str, encoder_key: str, split: str, seed: int, trains: bool,  # noqa: ARG001 (the key)
             holds_out: str, excluded: str, k: int, gamma: float, _drawn: Drawn) -> Array:  # noqa: ARG001
    assert _drawn.sample is not None
    graph = _drawn.sample.graph(k)
    return track_clusters(lambda epsilon: _drawn.of_images(assignment_at(graph, epsilon, gamma)), EPSILONS,
                          EPSILONS.index(FIRST_EPSILON))


def class_color(dataset: Dataset, images: Integers, drawn: Drawn | None) -> Color:
    """Return the classes of images (s,) as colors.

    Args:
        dataset: The data set.
        images: Data set indices (s,).
        drawn: The map before training, whose groups are the colors without classes; None for one color.
    """
    if dataset.labels is not None:
        return Color("class", dataset.labels[images], dataset.class_names)
    return Color("image", np.zeros(len(images), dtype=np.int64), ("image",)) if drawn is None else drawn.groups
