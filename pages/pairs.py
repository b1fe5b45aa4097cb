"""Pairs of images, the same or different: those that training used, what was learnt of them, and giving some."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import streamlit as st

from pages.parts.base.address import choice_from_address, indices_from_address, join_indices, write_address
from pages.parts.base.cached import dataset_of, load_split
from pages.parts.base.epochs import has_record, load_record, pick_epoch
from pages.parts.base.run_picker import pick_run
from pages.parts.base.user_errors import show_user_errors
from pages.parts.components.gallery import pair_gallery
from pages.parts.kit.downloads import Download, share, table_file
from pages.parts.pairs.hinge import Hinge, default_hinge, hinge_sliders, spread_pictures
from pages.parts.pairs.labeling import ask_about, explore_giving
from pages.parts.pairs.prototypes import explore_prototypes
from pages.parts.pairs.two_images import two_images
from udml_core.arrays import Array
from udml_core.data.dataset import Dataset
from udml_core.explanations import Pairs, Prototypes
from udml_core.exploration import pairs as views
from udml_core.runs import Run, find_run, runs_folder

SHOWN = 60
LEARNT, ROWS, GIVE = "learnt", "prototypes", "give"
VIEWS = {LEARNT: "Pairs that trained", ROWS: "Prototypes", GIVE: "Give pairs"}
ORDERS = {"hardest": "Hardest", "contradictory": "Contradictory"}
KINDS = {"both": "Both", "same": "Same", "different": "Different"}


@dataclass(frozen=True)
class Seen:
    """The kept pairs of an epoch. pairs (p, 2): data set positions."""

    run: Run
    dataset: Dataset
    record: Pairs

    @cached_property
    def pairs(self) -> Array:
        return load_split(self.run).train[self.record.pairs]

    @cached_property
    def contradictory(self) -> Array:
        """Places of those that contradict the classes, or others of them."""
        places = views.contradicting(self.pairs, self.record.same)
        if self.dataset.labels is None:
            return places
        against = views.against_classes(self.pairs, self.record.same, self.dataset.labels)
        return np.union1d(places, np.flatnonzero(against))

    def word(self, place: int) -> str:
        return "the same" if self.record.same[place] else "different"


@st.fragment
@show_user_errors()
def explore(run_id: str, epoch: int) -> None:
    """The sliders, where the pairs lie, the list, and the pair that is looked at."""
    run = find_run(run_id, runs_folder())
    record = load_record(run, epoch, Pairs)
    assert record is not None
    seen = Seen(run, dataset_of(run), record)
    hinge = hinge_sliders(run, "pairs")
    lacking = hinge.arguments(record.after, record.same)
    numbers(seen, hinge, lacking, epoch)
    pictures = st.container()
    places = wanted(seen, lacking)
    place = views.place_of(seen.pairs, tuple(indices_from_address("pair", len(seen.dataset))))
    place = int(places[0]) if place is None and len(places) else place
    usual = default_hinge(run)
    with pictures:
        spread_pictures(record.before, record.after, record.same, hinge, 2 * (usual.bias + usual.margin),
                        None if place is None else (float(record.before[place]), float(record.after[place])))
    pairs_list(seen, places, place)
    if place is not None:
        detail(seen, place, hinge, float(lacking[place]))
    share([Download("Pairs as a table", "pairs.csv", "text/csv", lambda: table_file(
        seen.dataset, seen.pairs[:, 0], {"second": seen.pairs[:, 1], "same": record.same, "d2 before": record.before,
                                         "d2 after": record.after, "loss": lacking.clip(0)}))], "pairs")


def numbers(seen: Seen, hinge: Hinge, lacking: Array, epoch: int) -> None:
    """How many violate, before and after."""
    record, same = seen.record, seen.record.same
    before = hinge.arguments(record.before, same)
    st.markdown(f"**{(lacking > 0).sum():,} of {len(same):,} kept pairs violate {hinge.words}** after epoch {epoch}; "
                f"before training {(before > 0).sum():,} did.")
    with st.container(horizontal=True):
        for word, kind, edge in (("Same", same, "above b − m"), ("Different", ~same, "below b + m")):
            if kind.any():
                after, earlier = 100 * (lacking[kind] > 0).mean(), 100 * (before[kind] > 0).mean()
                st.metric(f"{word} that violate", f"{after:.1f} %", f"{after - earlier:+.1f} points since the start",
                          "inverse", help=f"Their d² lies {edge}.", width="content")
        earlier, after = float(before.clip(0).mean()), float(lacking.clip(0).mean())
        st.metric("Mean loss", f"{after:.3g}", f"{after - earlier:+.2g} since the start", "inverse", width="content",
                  help="max(0, m − y(b − d²)), y = 1 for the same and −1 for different.")


def wanted(seen: Seen, lacking: Array) -> Array:
    """Places of the pairs that are listed, the largest loss first."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        by = st.segmented_control("List", list(ORDERS), default=choice_from_address("by", ORDERS, "hardest"), required=True,
                                  key="pairs-by", format_func=ORDERS.__getitem__) or "hardest"
        kind = st.segmented_control("Kind", list(KINDS), default=choice_from_address("kind", KINDS, "both"), required=True,
                                    key="pairs-kind", format_func=KINDS.__getitem__) or "both"
    write_address("by", by, "hardest")
    write_address("kind", kind, "both")
    ordered = np.argsort(-lacking, kind="stable")
    if by == "contradictory":
        ordered = ordered[np.isin(ordered, seen.contradictory)]
    return ordered if kind == "both" else ordered[seen.record.same[ordered] == (kind == "same")]


def pairs_list(seen: Seen, places: Array, place: int | None) -> None:
    """The pairs as tiles; one that is picked is looked at."""
    if not len(places):
        of_kind = " of this kind" if st.query_params.get("kind") else ""
        st.info(f"There are none of these among the kept pairs: none{of_kind} contradicts the classes or other pairs."
                if st.query_params.get("by") else f"There are none{of_kind} among the kept pairs.",
                icon=":material/check:")
        return
    shown = places[:SHOWN]
    st.caption(f"The first {len(shown)} of {len(places):,}, the largest loss first; click one to look at it. = is "
               "given as the same, ≠ as different; the numbers are d² before and after training.")
    here = np.flatnonzero(shown == place)
    picked = pair_gallery(seen.dataset, seen.pairs[shown], seen.record.same[shown],
                              [f"{seen.record.before[one]:.3g} → {seen.record.after[one]:.3g}" for one in shown],
                              "Kept pairs", "pairs-list", 160, int(here[0]) if len(here) else None, 300)
    if picked is not None:
        write_address("pair", join_indices(seen.pairs[shown[picked]].tolist()))
        st.rerun(scope="fragment")


def detail(seen: Seen, place: int, hinge: Hinge, lacking: float) -> None:
    """One pair: both images large, its distances, and where to look further."""
    first, second = seen.pairs[place].tolist()
    st.subheader("The pair that is looked at")
    two_images(seen.dataset, (first, second), named=True)
    record = seen.record
    st.markdown(f"Given as **{seen.word(place)}**: d² went from **{record.before[place]:.3g}** to "
                f"**{record.after[place]:.3g}**. At {hinge.words} " +
                (f"it violates, and its loss is **{lacking:.3g}**." if lacking > 0 else
                 f"it keeps its margin, with {-lacking:.3g} to spare."))
    if place in seen.contradictory:
        st.warning("It contradicts the classes, or other pairs.", icon=":material/call_split:")
    with st.container(horizontal=True):
        st.page_link("pages/neighborhoods.py", label="Why these two are similar", icon=":material/hub:",
                     query_params={"run": seen.run.id, "picked": str(first), "second": str(second)})
        for word, index in (("first", first), ("second", second)):
            st.page_link("pages/retrieval.py", label=f"Search with the {word}", icon=":material/image_search:",
                         query_params={"run": seen.run.id, "add": str(index)})
        st.button("Answer it yourself", icon=":material/edit:", key="pairs-answer", on_click=answer_it,
                  args=(seen.dataset, (first, second)))


def answer_it(dataset: Dataset, pair: tuple[int, int]) -> None:
    """Ask about a pair in the view that gives pairs."""
    ask_about(dataset, pair)
    st.session_state["pairs-show"] = GIVE


def chosen_view(run: Run) -> str:
    """What of this run is shown; kept in the address."""
    usual = LEARNT if has_record(run, Pairs) else GIVE
    view = st.segmented_control("Show", list(VIEWS), default=choice_from_address("show", VIEWS, usual), required=True,
                                key="pairs-show", format_func=VIEWS.__getitem__, label_visibility="collapsed") or usual
    write_address("show", view, usual)
    return view


st.title("Pairs")
with show_user_errors():
    run = pick_run()
    if run is not None:
        view = chosen_view(run)
        if view == GIVE:
            explore_giving(run.id)
        elif not has_record(run, Pairs if view == LEARNT else Prototypes):
            st.info("This run learnt from no pairs: NML, ML and KML do. Choose another run, or train one; give pairs "
                    "of these images under 'Give pairs'." if view == LEARNT else
                    "This run has no prototypes: NML learns them. Choose another run, or train one.",
                    icon=":material/lightbulb:")
            st.page_link("pages/train.py", label="Train NML", icon=":material/model_training:",
                         query_params={"dataset": run.spec().dataset, "method": "nml"})
        elif view == ROWS:
            explore_prototypes(run.id)
        else:
            explore(run.id, pick_epoch(run, Pairs, "pairs-epoch"))
