"""The triplets that training used: as images, drawn to scale against α, and what became of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import get_args

import numpy as np
import pandas as pd
import streamlit as st

from pages.parts.base.address import choice_from_address, number_from_address, write_address
from pages.parts.base.analyses import rows_of
from pages.parts.base.cached import dataset_of, load_split
from pages.parts.base.epochs import has_record, load_record, pick_epoch
from pages.parts.base.run_picker import open_search, pick_run
from pages.parts.base.selection import selection
from pages.parts.base.user_errors import show_user_errors
from pages.parts.components.gallery import Mark, gallery, tile_of
from pages.parts.components.scatter import scatter
from pages.parts.components.slider import live_slider
from pages.parts.kit.downloads import Download, share, table_file
from pages.parts.kit.figures import histogram, table_behind
from pages.parts.map.shown_map import UNITS, colorings, covering_map, distortion
from pages.parts.triplets.triangle import draw_triangle
from udml_core.arrays import Array
from udml_core.data.dataset import Dataset
from udml_core.explanations import Triplets
from udml_core.exploration import triplets as views
from udml_core.runs import Run, find_run, list_runs, runs_folder

SHOWN = 150
ORDERS: tuple[views.Order, ...] = get_args(views.Order)
NAMES = ("anchor", "positive", "negative")


@dataclass(frozen=True)
class Seen:
    """The kept triplets of an epoch.

    images (3, t): data set positions of anchors, positives and negatives. truth: whether the positives and whether the
    negatives are true to the classes, (t,) bool each; None without classes.
    """

    run: Run
    dataset: Dataset
    record: Triplets

    @cached_property
    def shape(self) -> views.Shape:
        return views.shape_of(self.record)

    @cached_property
    def images(self) -> Array:
        train = load_split(self.run).train
        return np.stack([train[part] for part in (self.record.anchor, self.record.positive, self.record.negative)])

    @cached_property
    def truth(self) -> tuple[Array, Array] | None:
        labels = self.dataset.labels
        return None if labels is None else views.truth(self.record, labels[load_split(self.run).train])

    def mark(self, place: int) -> Mark:
        if self.truth is None:
            return ""
        return "hit" if all(part[place] for part in self.truth) else "miss"


@st.fragment
@show_user_errors()
def explore(run_id: str, epoch: int) -> None:
    """The slider, the list, and the chosen triplet."""
    run = find_run(run_id, runs_folder())
    record = load_record(run, epoch, Triplets)
    assert record is not None
    seen = Seen(run, dataset_of(run), record)
    usual = float(run.spec().build_method().model_dump().get("alpha", 45.0))
    alpha = live_slider("α, the upper bound of the angle at the negative", 1.0, 89.0,
                        number_from_address("alpha", usual, 1, 89), 1.0, "triplets-alpha", unit="°", play=True,
                        marks={usual: "this run"})
    write_address("alpha", f"{alpha:g}", f"{usual:g}")
    violating = seen.shape.angle > alpha
    numbers(seen, violating, alpha, epoch)
    edges, counts = views.spread(seen.shape)
    histogram(edges.tolist(), counts.tolist(), "Angles of the kept triplets, in degrees", "triplets-angles", alpha)
    table_behind("The angles as a table", pd.DataFrame({"From, °": edges[:-1], "To, °": edges[1:],
                                                        "Triplets": counts}))
    chosen = listed(seen, violating, alpha)
    if chosen is not None:
        place, ordered = chosen
        detail(seen, place, alpha)
        on_the_map(seen, ordered, place)
    share([Download("Triplets as a table", "triplets.csv", "text/csv", lambda: table_file(
        seen.dataset, seen.images[0], {"positive": seen.images[1], "negative": seen.images[2],
                                       "angle": seen.shape.angle, "weight": record.weight, "loss": record.loss}))],
          "triplets")


def numbers(seen: Seen, violating: Array, alpha: float, epoch: int) -> None:
    """How many violate, and how many are true to the classes."""
    words = f"**{violating.sum():,} of {len(violating):,} kept triplets violate α = {alpha:g}°** in epoch {epoch}."
    if seen.truth is not None:
        positive, negative = seen.truth
        true = positive & negative
        among = f" and {100 * true[violating].mean():.0f} % of those that violate" if violating.any() else ""
        words += (f" True to the classes: {100 * true.mean():.0f} % of all{among} "
                  f"({100 * positive.mean():.0f} % of the positives, {100 * negative.mean():.0f} % of the negatives).")
    st.markdown(words)


def listed(seen: Seen, violating: Array, alpha: float) -> tuple[int, Array] | None:
    """Anchors, each with its first triplet in the order wanted; the place of the triplet that is looked at, and all
    places in that order."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        by: views.Order = st.segmented_control("Largest first by", ORDERS, default=choice_from_address("by", ORDERS, "loss"),
                                               key="triplets-by", required=True) or "loss"
        only = st.toggle("Only those that violate α", st.query_params.get("only") == "1", key="triplets-only")
    write_address("by", by, "loss")
    write_address("only", "1" if only else "")
    ordered = views.order(seen.record, by)
    ordered = ordered[violating[ordered]] if only else ordered
    if not len(ordered):
        st.info(f"No kept triplet violates α = {alpha:g}°. Lower α, or show all.", icon=":material/lightbulb:")
        return None
    shown = views.first_of_each_anchor(seen.record, ordered)[:SHOWN]
    place = int(number_from_address("triplet", shown[0], 0, len(violating) - 1))
    badges = {"angle": lambda one: f"{seen.shape.angle[one]:.0f}°", "loss": lambda one: f"{seen.record.loss[one]:.2f}",
              "weight": lambda one: f"{seen.record.weight[one]:.2f}"}
    tiles = [tile_of(seen.dataset, seen.images[0, one], seen.mark(one), f"{rank}. {badges[by](one)}")
             for rank, one in enumerate(shown, 1)]
    st.caption(f"The first {len(shown)} anchors, each with its first triplet; click one to look at it. The badge is "
               f"the {by}" + ("." if seen.truth is None else "; ✓ the triplet is true to the classes, ✕ it is not."))
    picked = gallery(seen.dataset, tiles, "Anchors of the first triplets", "triplets-list", 60,
                     chosen=int(seen.images[0, place]), height=240)
    opened = shown[seen.images[0, shown] == picked]
    if len(opened):
        write_address("triplet", str(opened[0]))
        st.rerun(scope="fragment")
    others_of_anchor(seen, ordered, place)
    return place, ordered


def others_of_anchor(seen: Seen, ordered: Array, place: int) -> None:
    """The other triplets of the same anchor, where several are kept."""
    same = ordered[seen.record.anchor[ordered] == seen.record.anchor[place]].tolist()
    if place in same and len(same) > 1:
        st.session_state["triplets-same"] = place
        st.segmented_control("Triplets of this anchor", same, required=True, key="triplets-same",
                             format_func=lambda one: f"{same.index(one) + 1}. {seen.shape.angle[one]:.0f}°",
                             on_change=lambda: write_address("triplet", str(st.session_state["triplets-same"])))


def detail(seen: Seen, place: int, alpha: float) -> None:
    """One triplet: its images, its numbers, and its drawing before, during and after."""
    ids = seen.images[:, place].tolist()
    names = [seen.dataset.caption(index).split(" · ")[0] for index in ids]
    picked = gallery(seen.dataset, [tile_of(seen.dataset, index, badge=f"{word}: {name}")
                                    for index, word, name in zip(ids, NAMES, names, strict=True)],
                     "Anchor, positive and negative", "triplets-detail", 150)
    if picked is not None:
        open_search(seen.dataset, picked)
    st.caption("Click one of the three to search with it.")
    if seen.truth is not None:
        st.markdown(verdict(*(bool(part[place]) for part in seen.truth)))
    measures(seen, place, alpha)
    st.caption("m is the midpoint of anchor a and positive p, n the negative. Blue: the true triangle. Orange, dashed: "
               "the symmetrized one; the angle that counts is the arc between its median and its side. Green, dotted: "
               "where the negative would have to be for exactly α. Each drawing has its own scale.")
    moments = [("Before training", views.shape_in(seen.run.embeddings("initial"), *np.array(ids)[:, None]), 0),
               ("As the loss saw it", seen.shape, place),
               ("After training", views.shape_in(seen.run.embeddings("final"), *np.array(ids)[:, None]), 0)]
    for column, (title, shape, row) in zip(st.columns(3), moments, strict=True):
        with column:
            draw_triangle(views.corners(shape, row), alpha, float(shape.angle[row]), title,
                          f"triplet-{title.split()[0].lower()}")
    st.caption("Before and after: in the unit-length embedding that retrieval uses. As the loss saw it: in the "
               "method's own projection, in this epoch.")


def on_the_map(seen: Seen, ordered: Array, place: int) -> None:
    """The triplet's two edges among all images; an anchor that is picked there opens its first triplet."""
    shown = covering_map(seen.run, np.unique(seen.images))
    if shown is None:
        st.page_link("pages/map.py", label="Compute a map, and the triplet is drawn on it, too",
                     icon=":material/scatter_plot:", query_params={"run": seen.run.id})
        return
    st.markdown("**On the map after training**: the edges from the anchor to its positive and to its negative. Click "
                "another anchor to open its triplet.")
    rows = rows_of(shown.projection.indices, seen.images[:, place]).tolist()
    marks = [{"row": row, "word": name, "lines": [rows[0]] if number else []}
             for number, (row, name) in enumerate(zip(rows, NAMES, strict=True))]
    picked = scatter(seen.dataset, shown.layout, colorings(shown)["weight"](), selection(seen.dataset),
                     "Map with the chosen triplet's two edges", "triplets-map", marks=marks, height=440)
    distortion(shown)
    st.caption(UNITS)
    opened = ordered[seen.images[0, ordered] == picked]
    if len(opened):
        write_address("triplet", str(opened[0]))
        st.rerun(scope="fragment")
    if picked is not None:
        st.toast(f"No kept triplet has {seen.dataset.caption(picked)} as its anchor.")


def verdict(positive: bool, negative: bool) -> str:
    """Whether a triplet is true to the classes, in words."""
    if positive and negative:
        return "This triplet is **true** to the classes."
    faults = [text for text, right in (("its positive is of another class than the anchor", positive),
                                       ("its negative is of the anchor's class", negative)) if not right]
    return f"This triplet is **false**: {' and '.join(faults)}."


def measures(seen: Seen, place: int, alpha: float) -> None:
    """What the loss made of a triplet."""
    record = seen.record
    shown = [("d²(a, p)", record.near, "Squared distance of anchor and positive, as the loss saw it."),
             ("d²(n, m)", record.far, "Squared distance of the negative and the midpoint, as the loss saw it."),
             ("z at α", seen.shape.argument(alpha), "d²(a, p) − 4tan²α·d²(n, m) (eq. 8): violates where above 0."),
             ("Loss", record.loss, "softplus(w · softplus(z)) at the α of training (eq. 12)."),
             ("Weight w", record.weight, "How much the triplet counts (eq. 10 or 25).")]
    if np.isfinite(record.similar[place]):
        shown += [("w⁺", record.similar, "σ(aᵀRRᵀp): how alike anchor and positive seem (eq. 26)."),
                  ("w⁻", record.dissimilar, "1 − σ(mᵀRRᵀn): how unlike the negative seems (eq. 27). w is the mean of "
                                            "w⁺ and w⁻.")]
    with st.container(horizontal=True):
        for name, values, words in shown:
            st.metric(name, f"{values[place]:.3g}", help=words, width="content")


st.title("Triplets")
with show_user_errors():
    asked = st.query_params.get("run", "")
    if asked and not any(one.id == asked and one.stored_status().state == "done" and has_record(one, Triplets)
                         for one in list_runs(runs_folder())):
        st.info(f"The run {asked[:60]} has no triplets that can be shown.", icon=":material/link_off:")
    run = pick_run(fits=lambda one: has_record(one, Triplets),
                     missing="No finished run has triplets: RPML and sRPML make them.")
    if run is not None:
        epoch = pick_epoch(run, Triplets, "triplets-epoch", lambda: write_address("triplet", ""))
        explore(run.id, epoch)
