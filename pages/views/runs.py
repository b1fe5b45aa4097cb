"""Runs: the queue, the leaderboard, the chosen run in tabs, and several runs compared in place."""

from collections.abc import Sequence

import streamlit as st

from pages.parts.compare.seed_means import show_measures
from pages.parts.compare.settings import show_settings as differing_settings
from pages.parts.curves.precision import precision_of
from pages.parts.curves.run_curves import show_curves
from pages.parts.curves.similarities import explore_similarities
from pages.parts.draw.sections import Section, show_sections
from pages.parts.runs.advised import show_advised
from pages.parts.runs.details import show_actions, show_files, show_header, show_overview, show_settings
from pages.parts.runs.leaderboard import choose_dataset, choose_runs, choose_tags
from pages.parts.runs.queue import follow_queue, live_states, show_waiting_analyses
from pages.parts.runs.trash import show_trash, show_undo
from pages.parts.shell.empty_state import offer_lab, show_empty
from pages.parts.shell.run_status import run_titles
from pages.parts.shell.user_errors import show_user_errors
from pages.parts.shell.views import open_view
from udml_core.runs import (
    Run,
    are_examples_shown,
    example_runs,
    hide_examples,
    list_runs,
    runs_folder,
    show_examples,
)
from udml_core.runs.tasks import LIVE_STATES

MOST_COMPARED = 6
# The queue is read every two seconds; a long queue less often, because each reading looks at every run.
LEAST_SECONDS, RUNS_A_SECOND = 2.0, 100


@st.fragment(run_every="2s")
def show_live_curves(runs: Sequence[Run]) -> None:
    """Show the curves of runs of which one is in progress."""
    show_curves(runs, "runs")


def show_curves_of(runs: Sequence[Run]) -> None:
    """Show the curves of runs, live while one is in progress."""
    if live_states(runs):
        show_live_curves(runs)
    else:
        show_curves(runs, "runs")


def show_neighbors(runs: Sequence[Run]) -> None:
    """Show how pure the nearest neighbors are, and whether positives are nearer than negatives."""
    precision_of(runs)
    explore_similarities(runs[:2])


def show_run(run: Run, tags: list[str]) -> None:
    """Show one run: its verdict and actions, and its details in tabs."""
    show_header(run)
    show_actions(run)
    is_live = run.status().state in LIVE_STATES
    show_sections([Section("overview", "Overview", lambda: show_overview(run)),
                   Section("curves", "Curves", lambda: show_curves_of([run])),
                   Section("neighbors", "Neighbors", lambda: show_neighbors([run])),
                   Section("settings", "Settings", lambda: show_settings(run)),
                   Section("files", "Notes & files", lambda: show_files(run, tags))],
                  "run-section", "curves" if is_live else "")


def compare_runs(chosen: Sequence[Run], tags: list[str]) -> None:
    """Compare several runs in place: the verdict and the measures, and details in tabs."""
    compared = chosen[:MOST_COMPARED]
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(f"#### {len(chosen)} runs compared", width="content")
        if len(chosen) > MOST_COMPARED:
            st.caption(f"Up to {MOST_COMPARED} runs are compared; {len(chosen)} are chosen.")
        elif st.button("Compare image by image", icon=":material/compare:", type="primary", key="runs-compare",
                       help="The view Compare: the same query in all, the queries on which they differ, classes, maps "
                            "side by side, and blind judgments."):
            open_view("compare", {"runs": ".".join(run.id for run in compared)})
    finished = [run for run in compared if run.status().state == "done"]
    if len(finished) > 1:
        show_measures(finished, is_quick=True)
    names = list(run_titles(compared).values())
    show_sections([Section("curves", "Curves", lambda: show_curves_of(compared)),
                   Section("neighbors", "Neighbors", lambda: show_neighbors(chosen)),
                   Section("settings", "Settings that differ", lambda: differing_settings(compared, names)),
                   Section("each", "Each run", lambda: show_each(compared, tags))], "runs-section")


def show_each(runs: Sequence[Run], tags: list[str]) -> None:
    """Show the verdict, measures, settings and notes of each of several runs."""
    for run in runs:
        show_header(run)
        show_overview(run)
        with st.expander("Settings, notes and files", icon=":material/terminal:"):
            show_settings(run)
            show_files(run, tags)


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
    with st.container(horizontal=True, vertical_alignment="center", key="runs-filters"):
        listed = choose_tags(choose_dataset(runs))
        toggle_examples()
    st.space("small")  # the table's tools appear above it
    chosen_runs = choose_runs(listed) if listed else []
    with show_user_errors():
        show_advised(listed, chosen_runs)
    tags = sorted({tag for run in runs for tag in run.notes().tags})
    if len(chosen_runs) == 1:
        show_run(chosen_runs[0], tags)
    elif chosen_runs:
        compare_runs(chosen_runs, tags)
    show_trash()


def draw() -> None:
    """Draw the view."""
    all_runs = list_runs(runs_folder())
    show_undo()
    if not all_runs:
        show_empty("No runs yet. Start a run on the page **Lab**: each becomes a bar beside what needs no training.")
        offer_lab()
        toggle_examples()
        show_trash()
    else:
        with show_user_errors():
            show_runs(all_runs)
