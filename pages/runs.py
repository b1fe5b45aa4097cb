"""Runs: queue, live curves, stop and resume, comparison, and why a run failed."""

import pandas as pd
import streamlit as st

from pages.parts.base.address import write_address
from pages.parts.base.run_status import ICONS, hyperparameters, live_panel, row_of, since, state_line, title_of
from pages.parts.base.user_errors import show_user_errors
from pages.parts.curves.precision import precision_of
from pages.parts.curves.similarities import explore_similarities
from pages.parts.kit.figures import curve, curve_names
from pages.parts.kit.tables import evaluation_table, table_behind
from udml_core import jobs
from udml_core.runs import Run, list_runs, runs_folder
from udml_core.tasks import LIVE_STATES

MOST_LISTED = 200
MOST_COMPARED = 2
SHORT_TABLE = 8  # A longer table has a scroll bar.
NOT_COMPARED = ("created", "fingerprint", "versions")


def choose_runs(runs: list[Run]) -> list[Run]:
    """Choose runs in the table.

    Returns:
        The chosen runs; without a choice the runs in the address, else the newest run.
    """
    frame = pd.DataFrame([row_of(run) for run in runs[:MOST_LISTED]])
    event = st.dataframe(
        frame, hide_index=True, width="stretch", height="content" if len(frame) <= SHORT_TABLE else 320,
        on_select="rerun", selection_mode="multi-row", key="runs-table",
        column_config={"R@1": st.column_config.NumberColumn(format="%.1f"),
                       "MAP@R": st.column_config.NumberColumn(format="%.1f")})
    rows = event.selection.rows
    if rows:
        chosen = [runs[row] for row in rows]
        if len(rows) > MOST_COMPARED:
            st.caption("Only the first two of these runs are compared. The chart of mprec@K below shows all of them.")
        st.query_params["run"] = chosen[0].id
        write_address("with", ".".join(run.id for run in chosen[1:]))
        return chosen
    st.caption("Choose one run for its details, two to compare them, more to see mprec@K of all in one chart.")
    by_id = {run.id: run for run in runs}
    wanted = [st.query_params.get("run", ""), *st.query_params.get("with", "").split(".")]
    return [by_id[run_id] for run_id in dict.fromkeys(wanted) if run_id in by_id] or runs[:1]


def live_runs(runs: list[Run]) -> list[Run]:
    """Return the waiting and running runs."""
    return [run for run in runs if run.status().state in LIVE_STATES]


@st.fragment(run_every="2s")
def show_live_runs(compared: list[Run], live_before: list[Run]) -> None:
    """Show the waiting and running runs and the curves of the compared runs.

    The page runs again when a run starts or ends.
    """
    live = live_runs(list_runs(runs_folder()))
    for run in live:
        live_panel(run, "runs")
    show_curves(compared)
    if live != live_before:
        st.rerun(scope="app")


def show_curves(compared: list[Run]) -> None:
    """Show a small chart for each curve, with a line for each run."""
    metrics = {short_name(run): run.metrics()[0] for run in compared}
    names = curve_names([row for rows in metrics.values() for row in rows])
    if not names:
        st.info("The first epoch has not ended yet. The curves appear here when it ends.", icon=":material/schedule:")
        return
    for start in range(0, len(names), 3):
        for column, name in zip(st.columns(3), names[start : start + 3], strict=False):
            with column:
                curve(name, metrics, f"runs-{name}")
    table_behind("The curves as a table",
                 pd.concat([pd.DataFrame(rows).assign(run=name) for name, rows in metrics.items()]))


def short_name(run: Run) -> str:
    """Return a short name for legends and columns."""
    return f"{run.spec().method} {run.id[-6:]}"


def show_details(run: Run) -> None:
    """Show a run's state, its error, the next steps and its log."""
    status, spec = run.status(), run.spec()
    took = f" · took {since(status)}" if since(status) else ""
    st.markdown(f"### {ICONS[status.state]} {title_of(spec)}")
    st.markdown(f"`{run.id}` · {spec.split} split · {spec.encoder.backbone}, {spec.encoder.pooling}, "
                f"{spec.encoder.size} px · {spec.device}{took}")
    message = state_line(run, status)
    if status.state == "failed":
        st.error(message, icon=":material/error:")
        with st.expander("Last lines of the error trace"):
            st.code(run.error() or run.log_tail(), language=None)
    elif status.state in ("stopped", "interrupted"):
        st.warning(message, icon=":material/pause_circle:")
    broken = run.broken_result() if status.state == "done" else None
    if broken:
        st.error(broken, icon=":material/error:")
    first, *_ = st.columns(4)
    if broken or status.state in ("failed", "stopped", "interrupted"):
        if first.button("Resume", icon=":material/play_arrow:", key=f"resume-{run.id}", width="stretch"):
            with show_user_errors():
                jobs.resume(run)
                st.rerun()
    elif status.state == "done":
        first.page_link("pages/retrieval.py", label="Search in this run", icon=":material/image_search:",
                        query_params={"run": run.id})
    with st.expander("Log", icon=":material/terminal:"):
        st.code(run.log_tail(200) or "The log is empty.", language=None)


def show_differences(first: Run, second: Run) -> None:
    """Show the options and hyper-parameters in which two runs differ."""
    options = [run.spec().model_dump(exclude={"fields", *NOT_COMPARED}) | hyperparameters(run)
               for run in (first, second)]
    differing = [name for name in options[0] | options[1] if options[0].get(name) != options[1].get(name)]
    st.subheader("Differences")
    st.dataframe(pd.DataFrame({"Field": differing} | {
        short_name(run): [str(values.get(name)) for name in differing]
        for run, values in zip((first, second), options, strict=True)}), hide_index=True, width="stretch")


def show_evaluations(compared: list[Run]) -> None:
    """Show the evaluation of each run beside frozen features and PCA."""
    evaluations = {short_name(run): evaluation for run in compared if (evaluation := run.evaluation()) is not None}
    if evaluations:
        st.subheader("Evaluation on the test half")
        st.dataframe(evaluation_table(evaluations).round(2), width="stretch")
        st.caption("In percent, except effective rank, width and number of images. Initial: the embedding before "
                   "training. Frozen: the backbone's features at full width. A run below PCA of the same width learned "
                   "nothing useful.")


st.title("Runs")
all_runs = list_runs(runs_folder())
if not all_runs:
    st.info("No runs yet. Start a run on the page **Train**, or press the button on **Home**.",
            icon=":material/lightbulb:")
    st.page_link("pages/train.py", label="Train", icon=":material/model_training:")
    st.stop()
with show_user_errors():
    chosen_runs = choose_runs(all_runs)
    compared_runs = chosen_runs[:MOST_COMPARED]
    live_now = live_runs(all_runs)
    if live_now:
        show_live_runs(compared_runs, live_now)
    else:
        show_curves(compared_runs)
    for run in compared_runs:
        show_details(run)
    if len(compared_runs) == MOST_COMPARED:
        show_differences(*compared_runs)
    show_evaluations(compared_runs)
    explore_similarities(compared_runs)
    precision_of(chosen_runs)
