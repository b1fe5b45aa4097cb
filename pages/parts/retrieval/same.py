"""Where "the same" ends: pairs to judge, the estimate, and the threshold that the results of a search show."""

from __future__ import annotations

import html
from contextlib import nullcontext

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from udml_core.base.arrays import Floats
from udml_core.base.errors import counted
from udml_core.data.dataset import Dataset
from udml_core.data.given.judged_pairs import (
    LEAST,
    MOST,
    judged_pairs,
    want_precision,
    wanted_precision,
)
from udml_core.data.given.pair_sets import PairLog, write_pairs
from udml_core.numerics.same_pairs import SAME, SKIPPED
from udml_core.runs.search import DISTANCE, Retrieval
from udml_core.runs.search.frame import COSINE
from udml_core.runs.search.same import (
    DRAWN,
    SamePairs,
    has_plan,
    open_same_pairs,
    similarity_at,
)

from ..data.copies import offer_excluding
from ..data.using import chosen_frame
from ..draw.downloads import Download, share
from ..draw.figures import COLORS, CURSOR, draw, shade_between, titled
from ..draw.palette import HIT, MISS
from ..draw.two_images import Answering, answer_buttons, two_images
from ..shell.address import choose_in_box
from ..shell.left_out import show_left_out
from ..shell.meaning import choose_words, words_for_same
from ..shell.run_status import UNSEEN, escaped
from ..shell.user_errors import show_user_errors
from .embeddings import embedding_in_view, own_titles

MESSAGE, PRECISION = "same-message", "same-precision"
"""Session keys of the message about the last action, and of the widget for the precision."""
BAND = "rgba(0,114,178,0.2)"
AXES = {DISTANCE: "distance", COSINE: "cosine similarity"}
"""The axis of what an embedding's results are compared by."""
GOOD_FOR = ("Your answers tell how similar two images must be to show the same thing. Search then marks where such "
            "results end, and duplicates and exports use the same limit. It holds for one search alone, so decide on "
            "the search first.")
BESIDE = ("**Beside Label, Pairs:** here a random sample of pairs measures a search; there the pairs that teach a "
          "method most are asked. Answers from here count there once you click **Use** on that page; answers of that "
          "page do not count here, because they are no random sample.")
"""How the questions of Label differ from these, and which answers count in both places."""
WORDS = {True: "the same", False: "different", None: "skipped"}


def show_same(retrieval: Retrieval) -> None:
    """Show what a threshold is good for, the pair to judge, and beside it what the judgments tell."""
    st.caption(GOOD_FOR, help=BESIDE)
    titles, place = own_titles(retrieval), st.container()
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        with st.container(width=300):
            choose_words(retrieval.dataset)
        with st.popover("Search and precision", icon=":material/tune:", key="same-choices"):
            chosen = chosen_frame(retrieval.run)  # a new choice of a search starts over, a new view does not
            name = choose_in_box("Search", "judged", titles, chosen or embedding_in_view(retrieval),
                                 key="-".join(filter(None, ("same-embedding", retrieval.run.id, chosen))),
                                 help="The limit holds for one search. A judged pair also counts for another whose "
                                      "own random order draws it.")
            target = _choose_precision(retrieval.dataset)
    with nullcontext() if has_plan(retrieval, name) else st.spinner("Finding the nearest images of every image …"):
        judged = open_same_pairs(retrieval, name, target)
    with place:
        if judged.not_asked:
            show_left_out(retrieval.dataset, judged.not_asked)
        else:
            offer_excluding(retrieval.dataset)
    left, right = st.columns([7, 5], gap="large")
    with left:
        st.caption(f"Your answers are for this search: **{escaped(titles[name])}**.")
        _show_question(judged)
    with right:
        _show_estimate(judged)
    pairs = judged_pairs(retrieval.dataset).read()
    share([Download("Judged pairs (CSV)", "judged-pairs.csv", "text/csv",
                    lambda: write_pairs(pairs, retrieval.dataset))] if len(pairs) else [], "same")


def _choose_precision(dataset: Dataset) -> float:
    """Choose the precision, which the log keeps: search, exports and the command line use it too."""
    key = f"{PRECISION}-{dataset.fingerprint[:8]}"
    # Set in every run: a closed menu creates the slider only when it opens, which would otherwise begin at its end.
    st.session_state[key] = st.session_state.get(key, round(100 * wanted_precision(dataset)))

    def keep() -> None:
        with show_user_errors():
            want_precision(dataset, st.session_state[key] / 100)

    return st.slider("Precision of the threshold", round(100 * LEAST), round(100 * MOST), key=key, format="%d %%",
                     on_change=keep, help="Share of the results above the threshold that show the same thing, 55 to "
                                          "99 %: a higher precision takes more judgments and misses more pairs.") / 100


def _show_question(judged: SamePairs) -> None:
    """Show the pair and the buttons, or that none is left; the last answer can always be undone."""
    dataset, pair = judged.dataset, judged.next()
    answering = None
    if pair is None:
        st.success("All drawn pairs are judged.", icon=":material/done_all:")
    else:
        meaning = words_for_same(dataset)
        same = f"the same: {escaped(meaning)}" if meaning else "the same thing"
        st.markdown(f"**Do these two images show {same}?** Press **S** for same, **D** for different, **K** to skip, "
                    "**U** to undo.")
        two_images(dataset, pair, with_names=False)
        answering = Answering(pair, lambda same: _answer(judged, pair, same),
                              lambda: _answer(judged, pair, None), "K")
    answer_buttons("same", answering, lambda: _undo(dataset), bool(judged.given))
    message = st.session_state.get(MESSAGE, "")
    st.caption(escaped(message) or "Answers are saved immediately; the names and the similarity of a pair are hidden.")
    st.html(f'<div role="status" aria-live="polite" style="{UNSEEN}">{html.escape(message)}</div>')


def _answer(judged: SamePairs, pair: tuple[int, int], same: bool | None) -> None:
    """Save an answer; a key that is pressed again before the next pair is shown does nothing."""
    log = judged_pairs(judged.dataset)
    if pair in log.answers():
        return
    with show_user_errors():
        log.add(*pair, same, judged.name)
        st.session_state[MESSAGE] = f"Saved: {WORDS[same]}."


def _undo(dataset: Dataset) -> None:
    """Revert the last answer; its pair is shown again."""
    with show_user_errors():
        removed = judged_pairs(dataset).undo()
        st.session_state[MESSAGE] = "There is nothing left to undo." if removed is None else (
            f"Undone: the last answer was {WORDS[removed[2]]}.")


def _show_estimate(judged: SamePairs) -> None:
    """Show what the judgments tell: a sentence, a chart, and what the pairs stand for."""
    if judged.threshold is not None:
        st.success(judged.sentence, icon=":material/straighten:")
    else:
        st.info(judged.sentence, icon=":material/hourglass_empty:")
    if judged.tells:
        _show_chart(judged)
    else:
        so_far = min(judged.counted, DRAWN)
        st.progress(so_far / DRAWN, f"A curve follows as soon as it says something, at {DRAWN} judged pairs or later.")
    skipped, copies = int((judged.answers == SKIPPED).sum()), int(judged.is_known.sum())
    others = sum(answer.same is not None for answer in judged.given.values()) - judged.judged
    notes = [f"{judged.population} You judge a random sample of these pairs, from very similar to hardly similar; the "
             "intervals hold with 95 % certainty whenever you stop."]
    notes += [f"{counted(skipped, 'pair')} skipped."] if skipped else []
    notes += [f"{counted(copies, 'pair')} of known copies {'counts' if copies == 1 else 'count'} as the same, so you "
              "are not asked."] if copies else []
    notes += [f"Judged for other searches, and not drawn here: {counted(others, 'pair')}."] if others > 0 else []
    labeled = sum(answer.same is not None and pair not in judged.given
                  for pair, answer in PairLog(judged.dataset).answers().items())
    notes += [f"Not counted here: {counted(labeled, 'pair')} from the page Label, where the model chooses pairs that "
              "it is unsure about; this estimate needs a random sample."] if labeled else []
    st.caption(" ".join(notes))


def _show_chart(judged: SamePairs) -> None:
    """Draw the share of "the same" above each similarity with its interval, the judged pairs, and the threshold."""
    plan, known, threshold = judged.plan, judged.estimate, judged.threshold

    def shown(distances: Floats) -> Floats:
        return distances if judged.measure == DISTANCE else similarity_at(distances)

    figure = go.Figure()
    share, low, high = 100 * known.precision
    edges = shown(known.edges)
    line = {"color": COLORS[0], "shape": "linear"}
    shade_between(figure, edges, low, high, BAND, "95 % interval")
    figure.add_scatter(x=edges, y=share, mode="lines", name="estimate", line=line)
    figure.add_hline(y=100 * judged.target, line=CURSOR | {"dash": "dot"})
    counted_pairs = (judged.answers > SKIPPED) & ~judged.is_known
    for name, same, color, symbol in (("judged the same", True, HIT, "circle"),
                                      ("judged different", False, MISS, "x")):
        chosen = counted_pairs & ((judged.answers == SAME) == same)
        figure.add_scatter(x=shown(plan.distances[chosen]), y=np.full(int(chosen.sum()), 100.0 * same), mode="markers",
                           name=name, marker={"color": color, "symbol": symbol, "size": 8, "opacity": 0.6})
    if threshold is not None:
        figure.add_vline(x=float(shown(np.array(threshold.distance))), line=CURSOR | {"dash": "dash"},
                         annotation_text="threshold", annotation_position="top left")
    there = "within" if judged.measure == DISTANCE else "above"
    titled(figure, f'Share of "the same" {there} each value', 300,
           legend={"orientation": "h", "y": -0.3})
    figure.update_xaxes(title=AXES.get(judged.measure, "score after refinement"))
    values = shown(plan.distances)  # of all drawn pairs, so that the axis stays as it is from the first curve on
    margin = 0.02 * float(np.ptp(values)) or 0.01
    figure.update_xaxes(range=[float(values.min()) - margin, float(values.max()) + margin])
    figure.update_yaxes(title="share, %", range=[-8, 124], tickvals=[0, 50, 100])  # room for the annotation
    curve = (f"from {share[0]:.0f} % ({low[0]:.0f} to {high[0]:.0f} %) of the nearest pairs to {share[-1]:.0f} % "
             f"({low[-1]:.0f} to {high[-1]:.0f} %) of all")
    draw(figure, "same-chance", f'Share of "the same" over {judged.measure}: {curve}. {judged.sentence}')
