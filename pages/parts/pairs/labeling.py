"""Giving pairs: a stream of those that a run doubts, answered by two keys, kept at once."""

from __future__ import annotations

import html
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import streamlit as st

from pages.parts.base.address import choice_from_address, indices_from_address, join_indices, write_address
from pages.parts.base.cached import dataset_of, load_split
from pages.parts.base.run_status import UNSEEN
from pages.parts.base.user_errors import show_user_errors
from pages.parts.components.gallery import pair_gallery
from pages.parts.kit.downloads import Download, share
from pages.parts.pairs.hinge import Hinge, hinge_sliders
from pages.parts.pairs.two_images import two_images
from udml_core import jobs
from udml_core.arrays import Array
from udml_core.data.dataset import Dataset
from udml_core.data.given.pairs import PairLog, PairSet, pairs_file
from udml_core.exploration import pairs as views
from udml_core.methods import NML, find_method
from udml_core.runs import Run, find_run, runs_folder

Pair = tuple[int, int]
AHEAD = 200
"""Pairs that are looked for at a time."""
MOST_LOOKED = 5_000
"""Images among which they are looked for."""
SHOWN, CHAINS = 60, 6
LISTS = {"all": "All", "classes": "Against the classes", "others": "Against each other"}


@dataclass
class Sitting:
    """One person's way through the pairs of a data set.

    asked: what is being asked. trail: what was done, a pair that was skipped or None for an answer. said: about the
    last of it. stream (s, 2): what is asked next, in this order, and `of`: which run, b and m that is of.
    """

    fingerprint: str
    asked: Pair | None = None
    trail: list[Pair | None] = field(default_factory=list)
    said: str = ""
    of: tuple[str, Hinge] | None = None
    stream: Array = field(default_factory=lambda: np.zeros((0, 2), dtype=np.int64))


def sitting(dataset: Dataset) -> Sitting:
    """This session's; a new one begins with the pair in the address."""
    held = st.session_state.get("pairs-sitting")
    if isinstance(held, Sitting) and held.fingerprint == dataset.fingerprint:
        return held
    named = indices_from_address("asked", len(dataset))
    begun = Sitting(dataset.fingerprint, (named[0], named[1]) if len(named) == 2 else None)
    st.session_state["pairs-sitting"] = begun
    return begun


def ask_about(dataset: Dataset, pair: Pair) -> None:
    """Make a pair the one that is asked, whatever run, b and m are chosen then."""
    now = sitting(dataset)
    now.asked, now.said, now.of = pair, "", None


def answer(dataset: Dataset, pair: Pair, same: bool) -> None:
    """Keep an answer. A key that was pressed again before the next pair was shown says nothing about either."""
    now = sitting(dataset)
    with show_user_errors():
        if now.asked == pair:
            PairLog(dataset).give(*pair, same)
            now.asked, now.said = None, f"Kept: images {pair[0]} and {pair[1]} are {word(same)}."
            now.trail.append(None)


def skip(dataset: Dataset, pair: Pair) -> None:
    """Ask another one; this one comes again in another session."""
    now = sitting(dataset)
    if now.asked == pair:
        now.asked, now.said = None, f"Skipped: images {pair[0]} and {pair[1]}."
        now.trail.append(pair)


def undo(dataset: Dataset) -> None:
    """Bring back the last pair that was skipped or answered, without its answer."""
    now = sitting(dataset)
    skipped = now.trail.pop() if now.trail else None
    with show_user_errors():
        if skipped is not None:
            now.asked, now.said = skipped, "The pair that was skipped is back."
            return
        taken = PairLog(dataset).undo()
        now.said = "Nothing is left to take back."
        if taken is not None:
            now.asked, now.said = taken[:2], f"Taken back: images {taken[0]} and {taken[1]} were {word(taken[2])}."


def word(same: bool) -> str:
    return "the same" if same else "different"


@st.fragment
@show_user_errors()
def explore_giving(run_id: str) -> None:
    """The question, the progress, and what was given so far."""
    run = find_run(run_id, runs_folder())
    dataset = dataset_of(run)
    given = PairLog(dataset).read()
    question_place = st.container()
    progress(run, given)
    with st.expander("Which pairs are asked", icon=":material/tune:"):
        st.caption("Those whose squared distance after training is nearest to b − m, of pairs taken for the same, and "
                   "to b + m, of pairs taken for different, in turn: there an answer teaches most.")
        hinge = hinge_sliders(run, "giving")
    pair = next_pair(run, dataset, given, hinge)
    with question_place:
        question(dataset, given, pair)
    link_to_training(run, given)
    if find_method(run.spec().method).card.supervision == "pairs":
        link_to_continuing(run, dataset, given)
    if len(given):
        list_of_given(dataset, given)
    share([Download("Given pairs (CSV)", "given-pairs.csv", "text/csv", lambda: pairs_file(given, dataset))]
          if len(given) else [], "giving")


def next_pair(run: Run, dataset: Dataset, given: PairSet, hinge: Hinge) -> Pair | None:
    """What is asked now: what was asked for, else the first of the stream that is neither answered nor skipped."""
    now = sitting(dataset)
    known = np.concatenate([given.pairs, np.array([one for one in now.trail if one], dtype=np.int64).reshape(-1, 2)])
    of = (run.id, hinge)
    if now.of not in (None, of):
        now.asked = None
    place = views.first_unasked(now.stream, known) if now.of == of else None
    if now.asked is None and place is None:
        found = candidates(str(run.folder))
        now.stream, now.of = views.informative_pairs(found, hinge.bias, hinge.margin, AHEAD, known)[0], of
        place = views.first_unasked(now.stream, known)
    if now.asked is None and place is not None:
        first, second = now.stream[place].tolist()
        now.asked = (first, second)
    write_address("asked", join_indices(now.asked or ()))
    return now.asked


@st.cache_resource(max_entries=8, show_spinner="Looking for pairs worth asking …")
def candidates(folder: str) -> views.Candidates:
    """Pairs of a run's training images that may be asked about; the sliders only put them in another order."""
    run = find_run(folder, runs_folder())
    train = load_split(run).train
    return views.candidates(run.embeddings("final"), train[:: -(-len(train) // MOST_LOOKED)])


def question(dataset: Dataset, given: PairSet, pair: Pair | None) -> None:
    """Both images, and the answers; or that there is nothing left to ask, which can be taken back too."""
    known = ""
    if pair is None:
        st.success("Every pair that can be told from the embedding was asked. Move b or m below for others.",
                   icon=":material/done_all:")
    else:
        st.markdown("**Are these two the same?** Press **S** for the same, **D** for different, **N** for another "
                    "pair, **U** to undo.")
        two_images(dataset, pair, named=False)
        before = views.place_of(given.pairs, pair)
        if before is not None:
            known = f" So far this pair is given as {word(bool(given.same[before]))}."
    with st.container(horizontal=True):
        if pair is not None:
            for label, icon, key, same in (("Same", "check", "S", True), ("Different", "close", "D", False)):
                st.button(label, icon=f":material/{icon}:", key=f"give-{key}", shortcut=key, type="primary",
                          on_click=answer, args=(dataset, pair, same))
            st.button("Skip", icon=":material/skip_next:", key="give-N", shortcut="N", on_click=skip,
                      args=(dataset, pair))
        st.button("Undo", icon=":material/undo:", key="give-U", shortcut="U", on_click=undo, args=(dataset,))
    said = sitting(dataset).said + known
    st.caption(said or "Answers are kept at once. Classes are not shown, so that they do not sway you.")
    st.html(f'<div role="status" aria-live="polite" style="{UNSEEN}">{html.escape(said)}</div>')


def progress(run: Run, given: PairSet) -> None:
    """How many were given of each kind, and how many can train here."""
    inside = given.within(load_split(run).train)
    with st.container(horizontal=True):
        for name, count in (("Given as the same", int(given.same.sum())), ("As different", int((~given.same).sum())),
                            ("In this run's training half", len(inside))):
            st.metric(name, f"{count:,}", width="content")


def link_to_training(run: Run, given: PairSet) -> None:
    """The way to train with what was given, on the same half by the same features."""
    spec, inside = run.spec(), given.within(load_split(run).train)
    if not 0 < inside.same.sum() < len(inside):
        st.caption("Training with them needs at least one pair of each kind.")
        return
    method = find_method(spec.method) if find_method(spec.method).card.supervision == "pairs" else NML
    st.page_link("pages/train.py", label=f"Train {method.card.title} with these pairs", icon=":material/model_training:",
                 query_params={"dataset": spec.dataset, "method": method.card.name, "pairs": "given",
                               "backbone": spec.encoder.backbone, "split": spec.split})


def link_to_continuing(run: Run, dataset: Dataset, given: PairSet) -> None:
    """The button that trains this run on with what it has not learnt from yet, as a new run."""
    further = run.unused_pairs(given)
    inside = further.within(load_split(run).train)
    same = int(inside.same.sum())
    if not 0 < same < len(inside):
        st.caption("Continuing this run needs further pairs of each kind, of images of its training half, that it has "
                   f"not learnt from yet; so far {same} the same and {len(inside) - same} different.")
        return
    with st.container(horizontal=True, vertical_alignment="bottom"):
        epochs = st.number_input("Epochs", 1, 100, 1, width=130, key="giving-epochs",
                                 help="Each draws 10,000 of the further pairs, half of either kind. Many of them on "
                                      "few pairs forget what was learnt before.")
        pressed = st.button(f"Continue this run with the {len(inside):,} further pairs", icon=":material/resume:",
                            key="giving-continue", help="A new run starts where this one ended; this one stays.")
    if pressed:
        begun = jobs.submit(jobs.plan_continuation(run, dataset, further, {"epochs": epochs}), run.folder.parent,
                            further)
        st.switch_page("pages/runs.py", query_params={"run": begun.id})


def list_of_given(dataset: Dataset, given: PairSet) -> None:
    """What was given, the newest first, and what of it contradicts; one that is picked is asked again."""
    st.subheader(f"{len(given):,} given pairs")
    crossed = views.contradicting(given.pairs, given.same)
    against = np.zeros(0, dtype=np.int64)
    if dataset.labels is not None:
        against = np.flatnonzero(views.against_classes(given.pairs, given.same, dataset.labels))
    counts = {"all": len(given), "classes": len(against), "others": len(crossed)}
    choices = [name for name in LISTS if name != "classes" or dataset.labels is not None]
    shown = st.segmented_control("Show", choices, default=choice_from_address("given", choices, "all"), required=True,
                                 key="giving-list", format_func=lambda one: f"{LISTS[one]}: {counts[one]:,}") or "all"
    write_address("given", shown, "all")
    if shown == "others":
        for place in crossed[:CHAINS].tolist():
            chain_of(dataset, given, place)
    else:
        places = (np.arange(len(given)) if shown == "all" else against)[::-1][:SHOWN]
        st.caption(f"The newest {len(places)}; click one to answer it again.")
        again(dataset, given, places, "giving-given")
    if not counts[shown]:
        st.info("None of these.", icon=":material/check:")


def chain_of(dataset: Dataset, given: PairSet, place: int) -> None:
    """A pair that is different and the chain by which it is the same: one of these answers must be wrong."""
    chain = views.chain(given.pairs, given.same, place)
    links = [views.place_of(given.pairs, link) for link in pairwise(chain)]
    st.markdown(f"**One of these {len(links) + 1} answers is wrong**: image {' = '.join(map(str, chain))}, yet "
                f"{chain[0]} ≠ {chain[-1]}. Click one to answer it again.")
    again(dataset, given, np.array([*links, place]), f"giving-chain-{place}")


def again(dataset: Dataset, given: PairSet, places: Array, key: str) -> None:
    """Given pairs as tiles; one that is picked is asked again."""
    if not len(places):
        return
    pairs = given.pairs[places]
    picked = pair_gallery(dataset, pairs, given.same[places],
                              [f"{first} and {second}" for first, second in pairs.tolist()], "Given pairs", key, 130,
                              height=260 if len(places) > 12 else None)
    if picked is not None:
        first, second = pairs[picked].tolist()
        ask_about(dataset, (first, second))
        st.rerun(scope="fragment")
