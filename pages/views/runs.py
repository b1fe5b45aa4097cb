"""Runs: the queue, the leaderboard, and the curves and record of the chosen run."""

from collections.abc import Sequence

import streamlit as st

from pages.parts.curves.precision import precision_of
from pages.parts.curves.run_curves import show_curves
from pages.parts.curves.similarities import explore_similarities
from pages.parts.runs.details import show_actions, show_header, show_record
from pages.parts.runs.leaderboard import choose_dataset, choose_runs, choose_tags
from pages.parts.runs.queue import follow_queue, live_states, show_waiting_analyses
from pages.parts.runs.trash import show_trash, show_undo
from pages.parts.shell.user_errors import show_user_errors
from pages.parts.shell.views import view_link
from udml_core.runs import (
    Run,
    are_examples_shown,
    example_runs,
    hide_examples,
    list_runs,
    runs_folder,
    show_examples,
)

MOST_COMPARED = 6
# The queue is read every two seconds; a long queue less often, because each reading looks at every run.
LEAST_SECONDS, RUNS_A_SECOND = 2.0, 100


@st.fragment(run_every="2s")
def show_live_curves(runs: Sequence[Run]) -> None:
    """Show the curves of runs of which one is in progress."""
    show_curves(runs, "runs")


def show_chosen(chosen: Sequence[Run], tags: list[str]) -> None:
    """Show the chosen run, or the curves of several and the way to the page Compare."""
    if len(chosen) == 1:
        show_header(chosen[0])
        show_actions(chosen[0], tags)
    elif len(chosen) <= MOST_COMPARED:
        view_link("compare", label=f"Compare these {len(chosen)} runs", icon=":material/compare:",
                     query_params={"runs": ".".join(run.id for run in chosen)},
                     help="Measures with spread, the same query in all, maps side by side, and settings that differ.")
    else:
        st.caption(f"The page Compare shows up to {MOST_COMPARED} runs; {len(chosen)} are chosen.")
    compared = chosen[:MOST_COMPARED]
    if live_states(compared):
        show_live_curves(compared)
    else:
        show_curves(compared, "runs")
    for run in compared:
        if len(chosen) > 1:
            show_header(run)
        show_record(run)
    explore_similarities(compared[:2])
    precision_of(chosen)


def toggle_examples() -> None:
    """Show the button that hides the examples, or lists them again."""
    if not example_runs():
        return
    shown = are_examples_shown(runs_folder())
    if st.button("Hide examples" if shown else "Show examples", key="runs-examples", type="tertiary",
                 help="Examples are finished runs that come with the app. You can train them again, but not "
                      "change them."):
        with show_user_errors():
            (hide_examples if shown else show_examples)(runs_folder())
            st.rerun()


def show_runs(runs: list[Run]) -> None:
    """Show the queue, the leaderboard, the chosen runs and the trash."""
    if live_now := live_states(runs):
        st.fragment(follow_queue, run_every=max(LEAST_SECONDS, len(live_now) / RUNS_A_SECOND))(live_now)
    show_waiting_analyses()
    with st.container(horizontal=True, vertical_alignment="center"):
        listed = choose_tags(choose_dataset(runs))
        st.caption("Choose a run for its details, two to six to compare them.")
        toggle_examples()
    st.space("small")  # the table's tools appear above it
    chosen_runs = choose_runs(listed) if listed else []
    if chosen_runs:
        show_chosen(chosen_runs, sorted({tag for run in runs for tag in run.notes().tags}))
    show_trash()


def draw() -> None:
    """Draw the view."""
    all_runs = list_runs(runs_folder())
    show_undo()
    if not all_runs:
        st.info("No runs yet. Start a run on the page **Train**, or press the button on **Home**.",
                icon=":material/lightbulb:")
        view_link("train", label="Train", icon=":material/model_training:")
        toggle_examples()
        show_trash()
    else:
        with show_user_errors():
            show_runs(all_runs)
