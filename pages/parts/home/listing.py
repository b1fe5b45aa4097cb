"""Home's lists: the newest runs, and the examples with what each shows."""

from __future__ import annotations

import re

import streamlit as st

from udml_core.exploration.race_figures import said_words
from udml_core.numerics.measures import MAIN_MEASURES
from udml_core.runs import Run, list_runs, runs_folder
from udml_core.runs.examples import POINTS, point_of
from udml_core.runs.search import FROZEN
from udml_core.runs.tasks import LIVE_STATES

from ..draw.pictures import inline
from ..shell.race_verdict import run_verdicts
from ..shell.run_picker import title_in_use
from ..shell.run_status import ICONS, escaped, escaped_message, live_panel, run_title, state_line
from ..shell.views import view_link
from .doors import show_first_run
from .example_maps import maps_of

MOST_SHOWN = 5
ACROSS = 3
"""Examples beside each other."""
PLAIN = {measure.key: measure.plain for measure in MAIN_MEASURES}
MEASURES = "Measured on the test images. " + " ".join(f"{PLAIN[measure.key]} ({measure.name}): {measure.help}"
                                                      for measure in MAIN_MEASURES[::-1])
FIGURE = re.compile(r"\d+(?:\.\d+)?\s%")


@st.fragment(run_every="2s")
def show_live_runs() -> None:
    """Show the waiting and running runs; run the page again when one starts or ends."""
    live = [run for run in list_runs(runs_folder()) if run.status().state in LIVE_STATES]
    if len(live) != st.session_state.get("home-live", len(live)):
        st.session_state["home-live"] = len(live)
        st.rerun(scope="app")
    st.session_state["home-live"] = len(live)
    for run in live[:MOST_SHOWN]:
        live_panel(run, "home")


def show_newest_runs(runs: list[Run]) -> None:
    """Show the newest runs of the user, those in progress first, and the button that trains the default run.

    Args:
        runs: The user's runs, the newest first.
    """
    st.subheader("Newest runs", help=MEASURES)
    if any(run.status().state in LIVE_STATES for run in runs):
        show_live_runs()
    ended = [run for run in runs[:MOST_SHOWN * 4] if run.status().state not in LIVE_STATES]
    with st.container(gap="xsmall"):
        for run in ended[:MOST_SHOWN]:
            _show_ended_run(run)
    show_first_run()


def show_examples_with_points(examples: list[Run]) -> None:
    """Show each example with what it shows.

    Args:
        examples: The listed examples; without any nothing is drawn.
    """
    if not examples:
        return
    st.subheader("Examples", help="Each picture is a map of test images before (left) and after training (right): "
                                  "similar images are near each other, and a color is a class.")
    shown = sorted(examples, key=lambda run: [*POINTS].index(run.id))  # the most convincing first
    for first in range(0, len(shown), ACROSS):
        for place, run in zip(st.columns(ACROSS, gap="small"), shown[first:first + ACROSS], strict=False):
            with place:
                _card(run)


def _card(run: Run) -> None:
    """Show an example: its map before and after training, what it shows, and a link to it."""
    with st.container(border=True, height="stretch", gap="xsmall", key=f"home-card-{run.id}"):
        st.markdown(f"**{escaped(run_title(run))}**")
        both = maps_of(run)
        if both is not None:
            st.image(inline(both), width="stretch", alt=f"Maps before and after training, {run_title(run)}")
        st.markdown(FIGURE.sub(r"**\g<0>**", escaped(point_of(run))))
        with st.container(horizontal=True):
            view_link("retrieval", label="Search", icon=":material/image_search:", query_params={"run": run.id})
            view_link("explore", label="Explore", icon=":material/explore:", query_params={"run": run.id})


def _show_ended_run(run: Run) -> None:
    """Show a run's main measures, else what judges without labels say of it, or how it ended."""
    final = (run.evaluation() or {}).get("final", {})
    measures = "  ·  ".join(f"{PLAIN[measure.key]} {measure.text(final[measure.key])}"
                            for measure in MAIN_MEASURES[::-1] if final.get(measure.key) is not None)
    _row(run, measures or _judged_words(run) or escaped_message(state_line(run, run.status())[:300]))


def _judged_words(run: Run) -> str:
    """Return what judges without labels say of a finished run; empty if nothing judged it."""
    if run.spec().method == FROZEN:
        words = ("The search without training, with which others are compared." if title_in_use(run) == run_title(run)
                 else "Your search: the search without training, with further steps.")
        return words * (run.stored_status().state == "done")
    verdicts = run_verdicts(run)
    return "" if verdicts is None else (
        f"Judged without labels, compared with the plain search: {said_words(*verdicts)}.")


def _row(run: Run, words: str) -> None:
    """Show a run's title, a line about it with its figures in bold, and a link to it."""
    state = run.status().state
    _show_line(run.id, f"{ICONS[state]} **{escaped(title_in_use(run))}**", FIGURE.sub(r"**\g<0>**", words),
               "retrieval" if state == "done" else "runs", {"run": run.id})


def _show_line(key: str, title: str, words: str, page: str, parameters: dict[str, str]) -> None:
    """Show a title, words and a link in a line, in Markdown; app.css keeps the height."""
    label, icon = ("Search", ":material/image_search:") if page == "retrieval" else ("Details", ":material/monitoring:")
    with st.container(border=True, key=f"home-row-{key}"):
        first, text, link = st.columns([3, 7, 1.4], vertical_alignment="center")
        first.markdown(title)
        text.markdown(words)
        with link:
            view_link(page, label=label, icon=icon, query_params=parameters)
