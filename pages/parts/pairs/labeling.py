"""Labeling the most informative pairs of a run.

Two keys answer, and every answer is saved immediately.
"""

from __future__ import annotations

import html
from contextlib import nullcontext

import numpy as np
import streamlit as st

from udml_core.base.declaration import describe_field
from udml_core.base.errors import counted
from udml_core.data.dataset import Dataset
from udml_core.data.given.judged_pairs import chosen_meaning, judged_pairs
from udml_core.data.given.pair_sets import PairLog, PairSet, pair_keys, write_pairs
from udml_core.exploration import pairs as views
from udml_core.methods import find_method
from udml_core.methods.nml import NML
from udml_core.runs import Run
from udml_core.runs.search.copies import copy_pairs, known_copies
from udml_core.work import jobs

from ..draw.downloads import Download, share
from ..draw.sections import slot
from ..draw.two_images import Answering, answer_buttons, two_images
from ..shell.address import join_indices, write_address
from ..shell.cached import dataset_of, load_split
from ..shell.meaning import choose_words, words_for_same
from ..shell.run_hash import RUN_HASH
from ..shell.run_status import UNSEEN, escaped
from ..shell.user_errors import fragment, show_user_errors
from ..shell.views import open_view, view_link
from .hinge import Hinge, hinge_sliders, labeling_hinge
from .labeled import show_labeled_pairs
from .session import Pair, answer, answer_word, labeling_session, skip, undo

QUEUE_LENGTH = 200
"""Number of informative pairs that are computed at a time."""
ENOUGH = 1_000
"""Number of pairs from which training is offered without a caution.

NML with its default fields on half of Digits, three seeds, half of the pairs the same: MAP@R of the other half is 41.8
from 10 pairs, 46.3 from 100, 52.7 from 300, 63.4 from 1,000 and 71.3 from 10,000; that of the raw pixels is 55.0.
"""
TRIED = ("Measured on digits with NML, a method that learns from such pairs: with 10 to 300 pairs, whole groups are "
         "found worse than without training; with 1,000 pairs or more, better.")
"""What was measured of training on few pairs, for readers."""
PURPOSE = ("**What this is for:** a method can learn from your answers which images belong together, and then find "
           f"them first. That takes about {ENOUGH:,} pairs.")
MEANT = ("Before the first pair, say below what counts as the same, such as one species; judge all pairs by it, not by "
         "background or pose.")
BY_CLASS = "Two images are the same if they have the same class, whatever their background or pose."
"""What a reader must know before the first pair, with and without classes."""
BESIDE = ("**Beside Search, “the same”:** there a random sample of pairs finds where the same ends in a search; here "
          "the pairs that teach most are asked. Answers of Search count here once you click **Use** below; answers "
          "from here do not count there.")
"""How the questions of Search differ from these, and which answers count in both places."""
WHICH = {
    True: "Pairs that this run can hardly decide: in turn a pair that it takes for similar, and a pair that it takes "
          "for dissimilar, both near its border b. Their squared distances are nearest to b − m and to b + m.",
    False: "Pairs that could be either: in turn a pair about as similar as an image and its nearest image, and a pair "
           "that is a little less similar. Move b to get more similar pairs (left) or less similar pairs (right); m "
           "says how far both lie from b."}
"""Which pairs are asked first, by whether the run learned from pairs."""
MOST_IMAGES = 5_000
"""Maximum number of training images whose pairs are candidates."""


@fragment
def explore_labeling(run: Run) -> None:
    """Show the pair to label, the progress and the labeled pairs."""
    dataset = dataset_of(run)
    pairs = PairLog(dataset).read()
    st.caption(f"{PURPOSE} {MEANT if dataset.labels is None else BY_CLASS}", width="stretch")
    st.caption(BESIDE, width="stretch")
    if dataset.labels is None:
        with st.container(width=300):
            choose_words(dataset, "The same words stand on Search, where whole groups are judged by them. Labels of "
                                  "pairs stay when the words change.")
    question_container = slot("pairs-question")
    progress(run, pairs)
    with st.expander("Which pairs are labeled first?", icon=":material/tune:"):
        st.caption(WHICH[find_method(run.spec().method).card.supervision == "pairs"])
        hinge = hinge_sliders(run, "giving", labeling_hinge(run))
    pair = next_pair(run, dataset, pairs, hinge)
    with question_container:
        question(dataset, pairs, pair)
        offer_judged_pairs(dataset, pairs)
    link_to_training(run, pairs)
    if find_method(run.spec().method).card.supervision == "pairs":
        link_to_continuing(run, dataset, pairs)
    if len(pairs):
        show_labeled_pairs(dataset, pairs)
    share([Download("Labeled pairs (CSV)", "given-pairs.csv", "text/csv", lambda: write_pairs(pairs, dataset))]
          if len(pairs) else [], "giving")


def next_pair(run: Run, dataset: Dataset, labeled: PairSet, hinge: Hinge) -> Pair | None:
    """Return the pair to label now.

    Returns:
        A requested pair, else the first pair in the queue that is not labeled or skipped; None if no pair is left.
    """
    session = labeling_session(dataset)
    skipped = np.array([pair for pair in session.history if pair], dtype=np.int64).reshape(-1, 2)
    # Copies of one photograph teach a method nothing about what belongs together.
    known = np.concatenate([labeled.pairs, skipped, copy_pairs(known_copies(dataset, run.root))])
    key = (run.id, hinge)
    if session.queue_key not in (None, key):
        session.current = None
    position = views.first_new_pair(session.queue, known) if session.queue_key == key else None
    if session.current is None and position is None:
        session.queue = views.informative_pairs(_candidates(run), hinge.bias, hinge.margin, QUEUE_LENGTH, known)[0]
        session.queue_key = key
        position = views.first_new_pair(session.queue, known)
    if session.current is None and position is not None:
        first, second = session.queue[position].tolist()
        session.current = (first, second)
    write_address("asked", join_indices(session.current or ()))
    return session.current


@st.cache_resource(max_entries=8, show_spinner="Finding informative pairs …", hash_funcs=RUN_HASH)
def _candidates(run: Run) -> views.Candidates:
    """Return the candidate pairs of a run's training images.

    The sliders change only the order of the candidates.
    """
    train = load_split(run).train
    return views.candidates(run.embeddings("final"), train[:: -(-len(train) // MOST_IMAGES)])


def question(dataset: Dataset, labeled: PairSet, pair: Pair | None) -> None:
    """Show the pair and the buttons, or that all pairs are labeled.

    The last answer can always be undone.
    """
    known = ""
    if pair is None:
        st.success("All candidate pairs are labeled or skipped. Move b or m below to get other pairs.",
                   icon=":material/done_all:")
    else:
        st.markdown(f"**{_asked(dataset)}** Press **S** for same, **D** for different, **K** to skip, **U** to undo.")
        two_images(dataset, pair, with_names=False)
        position = views.position_of_pair(labeled.pairs, pair)
        if position is not None:
            known = f" This pair is currently labeled {answer_word(bool(labeled.same[position]))}."
    answer_buttons("give", None if pair is None else Answering(
        pair, lambda same: answer(dataset, pair, same), lambda: skip(dataset, pair), "K"), lambda: undo(dataset),
        bool(len(labeled) or labeling_session(dataset).history))
    message = labeling_session(dataset).message + known
    hidden = " Classes are hidden so that they do not influence you." if dataset.labels is not None else ""
    st.caption(escaped(message) or f"Answers are saved immediately.{hidden}")
    st.html(f'<div role="status" aria-live="polite" style="{UNSEEN}">{html.escape(message)}</div>')


def _asked(dataset: Dataset) -> str:
    """Return the question of a pair; without classes it has the user's words for the same."""
    if dataset.labels is not None:
        return "Are these two images of the same class?"
    meaning = words_for_same(dataset)
    return f"Do these two show the same: {escaped(meaning)}?" if meaning else "Do these two show the same thing?"


def offer_judged_pairs(dataset: Dataset, labeled: PairSet) -> None:
    """Offer the pairs that were judged on Search as labels; only the user knows if "the same" meant the class."""
    known = set(pair_keys(labeled.pairs).tolist())
    judged = judged_pairs(dataset).read()
    new = [row for row, key in enumerate(pair_keys(judged.pairs).tolist()) if key not in known]
    if not new:
        return
    meaning = chosen_meaning(dataset)
    asked = f'show the same: {escaped(meaning)}' if meaning else "show the same thing"
    same = "that means the same class" if dataset.labels is not None else "you ask the same here"
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.caption(f"You judged {counted(len(new), 'further pair')} on the page Search, by whether both images "
                   f"{asked}. Use these answers if {same}.", width="stretch")
        st.button(f"Use {counted(len(new), 'judged pair')}", icon=":material/playlist_add:", key="give-judged",
                  type="tertiary", on_click=_use_judged, args=(dataset, PairSet(judged.pairs[new], judged.same[new])))


def _use_judged(dataset: Dataset, judged: PairSet) -> None:
    """Store judged pairs as labeled pairs."""
    with show_user_errors():
        for (first, second), same in zip(judged.pairs.tolist(), judged.same.tolist(), strict=True):
            PairLog(dataset).add(first, second, same)


def progress(run: Run, labeled: PairSet) -> None:
    """Show the number of labeled pairs of each kind, and how many a training can use if it cannot use all."""
    inside = labeled.within(load_split(run).train)
    counts = {"Same": int(labeled.same.sum()), "Different": int((~labeled.same).sum())}
    if len(inside) < len(labeled):
        counts["Both in the training half"] = len(inside)
    with st.container(horizontal=True):
        for name, count in counts.items():
            st.metric(name, f"{count:,}", width="content")


def link_to_training(run: Run, labeled: PairSet) -> None:
    """Show a link that trains on the labeled pairs with the run's backbone and split."""
    spec, inside = run.spec(), labeled.within(load_split(run).train)
    if not 0 < inside.same.sum() < len(inside):
        half = "" if len(inside) == len(labeled) else ", with both images in the training half"
        st.caption(f"Training needs pairs of both kinds{half}.")
        return
    method = find_method(spec.method) if find_method(spec.method).card.supervision == "pairs" else NML
    is_enough = len(inside) >= ENOUGH
    if not is_enough:
        st.caption(f"Training helps from about {ENOUGH:,} pairs; {len(inside):,} can be used so far.")
    with nullcontext() if is_enough else st.expander("Train with fewer pairs", icon=":material/warning:"):
        if not is_enough:
            st.caption(f"{TRIED} Compare the run with the plain search before you search with it.")
        view_link("train", label=f"Train {method.card.title} with these pairs", icon=":material/model_training:",
                  query_params={"dataset": spec.dataset, "method": method.card.name, "pairs": "given",
                                "backbone": spec.encoder.backbone, "split": spec.split})


def link_to_continuing(run: Run, dataset: Dataset, labeled: PairSet) -> None:
    """Show a button that continues this run on new pairs.

    The continuation is a new run, which learns from the pairs that this run has not seen.
    """
    unused = run.unused_pairs(labeled)
    inside = unused.within(load_split(run).train)
    same = int(inside.same.sum())
    if not 0 < same < len(inside):
        st.caption("To continue this run, label at least one similar and one dissimilar pair of its training half "
                   f"that it has not learned from. New pairs: {same} similar, {len(inside) - same} dissimilar.")
        return
    with st.container(horizontal=True, vertical_alignment="bottom"):
        field = describe_field(find_method(run.spec().method), "epochs")
        epochs = st.number_input("Epochs", int(field.slider[0]), int(field.slider[1]), 1, width=130,
                                 key="giving-epochs",
                                 help=f"{field.text} Here the pairs are the new ones; many epochs on few pairs "
                                      "make the model forget what it learned before.")
        pressed = st.button(f"Continue this run with {len(inside):,} new pairs", icon=":material/resume:",
                            key="giving-continue",
                            help="Starts a new run from the final state of this run, which stays unchanged.")
    if pressed:
        spec = jobs.plan_continuation(run, dataset, unused, {"epochs": epochs})
        continuation = jobs.submit(spec, run.root, unused)
        open_view("runs", query_params={"run": continuation.id})
