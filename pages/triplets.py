"""The triplets that training used: as images, drawn to scale against α, and what became of them."""

from typing import get_args

import numpy as np
import streamlit as st

from pages.parts.choosing import chosen_run, in_address, into_address, number_in_address
from pages.parts.figures import histogram
from pages.parts.gallery import gallery, tile_of
from pages.parts.loading import opened_dataset, opened_split, told
from pages.parts.sharing import Download, share, table_file
from pages.parts.slider import live_slider
from pages.parts.triangle import draw_triangle
from udml_core.explanations import Triplets
from udml_core.runs import Run, find_run, runs_folder
from udml_core.views import triplets as views

SHOWN = 60
ORDERS: tuple[views.Order, ...] = get_args(views.Order)


def record_of(run: Run, epoch: int) -> Triplets | None:
    """The triplets that were kept of an epoch."""
    return next((one for one in run.explanations(epoch) if isinstance(one, Triplets)), None)


def has_triplets(run: Run) -> bool:
    return any(record_of(run, epoch) is not None for epoch in run.epoch_numbers()[:2])


@st.fragment
def explore(run_id: str, epoch: int) -> None:
    """The slider, the list, and the chosen triplet."""
    run = find_run(run_id, runs_folder())
    dataset, train = opened_dataset(run.spec().dataset), opened_split(run).train
    record = record_of(run, epoch)
    assert record is not None
    shape = views.shape_of(record)
    usual = float(run.spec().build_method().model_dump().get("alpha", 45.0))
    left, right = st.columns([3, 2], vertical_alignment="bottom")
    with left:
        alpha = live_slider("α, the upper bound of the angle at the negative", 1.0, 89.0,
                            number_in_address("alpha", usual, 1, 89), 1.0, "triplets-alpha", unit="°", play=True,
                            marks={usual: "this run"})
        into_address("alpha", f"{alpha:g}", f"{usual:g}")
    with right:
        by = st.segmented_control("Largest first by", ORDERS, default=in_address("by", list(ORDERS), "loss"),
                                  key="triplets-by") or "loss"
        into_address("by", by, "loss")
    violating = shape.angle > alpha
    words = f"**{violating.sum():,} of {len(violating):,} kept triplets violate α = {alpha:g}°** in epoch {epoch}."
    true = None if dataset.labels is None else views.truth(record, dataset.labels[train])
    if true is not None:
        words += (f" True to the classes: {100 * true.mean():.0f} % of all, "
                  f"{100 * true[violating].mean() if violating.any() else 0:.0f} % of those that violate.")
    st.markdown(words)
    histogram(shape.angle.tolist(), "Angles of the kept triplets, in degrees", "triplets-angles", alpha)
    places = views.order(record, by)
    only = st.toggle("Only those that violate α", st.query_params.get("only") == "1", key="triplets-only")
    into_address("only", "1" if only else "")
    places = places[violating[places]] if only else places
    if not len(places):
        st.info(f"No kept triplet violates α = {alpha:g}°. Lower α, or show all.", icon=":material/lightbulb:")
        return
    chosen = listed(run, record, shape, places, true)
    detail(run, record, shape, chosen, alpha, None if true is None else bool(true[chosen]))
    share([Download("Triplets as a table", "triplets.csv", "text/csv", lambda: table_file(
        dataset, train[record.anchor], {"positive": train[record.positive], "negative": train[record.negative],
                                        "angle": shape.angle, "weight": record.weight, "loss": record.loss}))],
          "triplets")


def listed(run: Run, record: Triplets, shape: views.Shape, places: np.ndarray, true: np.ndarray | None) -> int:
    """The first triplets by their anchors; the one that is chosen."""
    dataset, train = opened_dataset(run.spec().dataset), opened_split(run).train
    shown = places[:SHOWN]
    rank = int(number_in_address("triplet", 0, 0, len(shown) - 1))
    tiles = [tile_of(dataset, train[record.anchor[one]],
                     "" if true is None else "hit" if true[one] else "miss",
                     f"{place + 1}. {shape.angle[one]:.0f}°") for place, one in enumerate(shown)]
    st.caption(f"The first {len(shown)} by their anchors; click one to look at it. The badge is the angle"
               + ("." if true is None else "; ✓ the triplet is true to the classes, ✕ it is not."))
    picked = gallery(dataset, tiles, "Anchors of the first triplets", "triplets-list", 60, chosen=tiles[rank].id,
                     height=240)
    if picked is not None:
        into_address("triplet", str(next(place for place, tile in enumerate(tiles) if tile.id == picked)), "0")
        st.rerun(scope="fragment")
    return int(shown[rank])


def detail(run: Run, record: Triplets, shape: views.Shape, one: int, alpha: float, true: bool | None) -> None:
    """One triplet: its images, its numbers, and its drawing before, during and after."""
    dataset, train = opened_dataset(run.spec().dataset), opened_split(run).train
    ids = [int(train[part[one]]) for part in (record.anchor, record.positive, record.negative)]
    gallery(dataset, [tile_of(dataset, index, badge=f"{word}: {dataset.caption(index).split(' · ')[0]}")
                      for index, word in zip(ids, ("anchor", "positive", "negative"), strict=True)],
            "Anchor, positive and negative", "triplets-detail", 150)
    if true is not None:
        st.markdown("This triplet is **true** to the classes." if true else
                    "This triplet is **false**: its positive is of another class, or its negative of the same.")
    numbers = [("d²(a, p)", record.near[one]), ("d²(n, m)", record.far[one]), ("z at α", shape.argument(alpha)[one]),
               ("loss", record.loss[one]), ("weight", record.weight[one])]
    if np.isfinite(record.similar[one]):
        numbers += [("σ(a, p)", record.similar[one]), ("1 − σ(m, n)", record.dissimilar[one])]
    for column, (name, value) in zip(st.columns(len(numbers)), numbers, strict=True):
        column.metric(name, f"{value:.3g}")
    st.caption("m is the midpoint of anchor a and positive p. The weight is the mean of its two parts. Blue: the true "
               "triangle. Red, dashed: the symmetrized one, whose angle counts. Green, dotted: where the negative "
               "would have to be for exactly α. All to scale.")
    rows = tuple(np.array([index]) for index in ids)
    moments = [("Before training", views.shape_in(run.embeddings("initial"), *rows), 0),
               ("As the loss saw it", shape, one),
               ("After training", views.shape_in(run.embeddings("final"), *rows), 0)]
    for column, (title, seen, place) in zip(st.columns(3), moments, strict=True):
        with column:
            angle = float(seen.angle[place])
            draw_triangle(views.corners(seen, place), alpha, angle, title, f"triplet-{title.split()[0].lower()}")
    st.caption("Before and after: in the unit-length embedding that retrieval uses. As the loss saw it: in the "
               "method's own projection, in this epoch.")


st.title("Triplets")
with told():
    run = chosen_run(fits=has_triplets, missing="No finished run has triplets: RPML and sRPML make them.")
    if run is not None:
        epochs = [number for number in run.epoch_numbers() if record_of(run, number) is not None]
        wanted = int(number_in_address("epoch", epochs[-1]))
        epoch = st.selectbox("Epoch", epochs, epochs.index(wanted) if wanted in epochs else len(epochs) - 1,
                             key="triplets-epoch")
        into_address("epoch", str(epoch), str(epochs[-1]))
        explore(run.id, epoch)
