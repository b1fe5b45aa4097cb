"""Live curves, queue, stop and resume; two ticked runs side by side, mprec@K of many; a failure's reason."""

import pandas as pd
import streamlit as st

from pages.parts.base.address import write_address
from pages.parts.base.run_status import ICONS, hyperparameters, live_panel, row_of, since, state_line, title_of
from pages.parts.base.user_errors import show_user_errors
from pages.parts.curves.precision import precision_of
from pages.parts.curves.similarities import explore_similarities
from pages.parts.kit.figures import curve, curve_names, evaluation_table, table_behind
from udml_core import jobs
from udml_core.runs import Run, find_run, list_runs, runs_folder
from udml_core.tasks import LIVE_STATES

MOST_LISTED = 200


def ticked(runs: list[Run]) -> list[Run]:
    """The table of runs; those that are ticked, or those in the address, or the newest."""
    frame = pd.DataFrame([row_of(run) for run in runs[:MOST_LISTED]])
    event = st.dataframe(
        frame, hide_index=True, width="stretch", height="content" if len(frame) <= 8 else 320, on_select="rerun",
        selection_mode="multi-row", key="runs-table",
        column_config={"R@1": st.column_config.NumberColumn(format="%.1f"),
                       "MAP@R": st.column_config.NumberColumn(format="%.1f")})
    rows = event.selection.rows
    if rows:
        chosen = [runs[row] for row in rows]
        if len(rows) > 2:
            st.caption("Two runs are compared at a time, the first two ticked; mprec@K, at the end, is of all.")
        st.query_params["run"] = chosen[0].id
        write_address("with", ".".join(run.id for run in chosen[1:]))
        return chosen
    st.caption("Tick a run to look at it, two to compare them, more to see mprec@K of all in one chart.")
    by_id = {run.id: run for run in runs}
    wanted = [st.query_params.get("run", ""), *st.query_params.get("with", "").split(".")]
    return [by_id[one] for one in dict.fromkeys(wanted) if one in by_id] or runs[:1]


def live_among(runs: list[Run]) -> list[Run]:
    """Those that wait or run."""
    return [run for run in runs if run.status().state in LIVE_STATES]


@st.fragment(run_every="2s")
def show_analysis_progress(run_ids: tuple[str, ...], live_ids: tuple[str, ...]) -> None:
    """Runs that wait or run, and the curves of the chosen ones; the page begins anew when one starts or ends."""
    live = live_among(list_runs(runs_folder()))
    for run in live:
        live_panel(run, "runs")
    chosen = [find_run(run_id, runs_folder()) for run_id in run_ids]
    curves(chosen)
    if tuple(run.id for run in live) != live_ids:
        st.rerun(scope="app")


def curves(chosen: list[Run]) -> None:
    """Small multiples: a chart a curve, a line a run."""
    rows = {short(run): run.metrics()[0] for run in chosen}
    names = curve_names([row for one in rows.values() for row in one])
    if not names:
        st.info("The first epoch has not ended yet. Its curves appear here by themselves.", icon=":material/schedule:")
        return
    for start in range(0, len(names), 3):
        for column, name in zip(st.columns(3), names[start : start + 3], strict=False):
            with column:
                curve(name, rows, f"runs-{name}")
    table_behind("The curves as a table", pd.concat([pd.DataFrame(one).assign(run=name) for name, one in rows.items()]))


def short(run: Run) -> str:
    """A run's name where space is scarce."""
    return f"{run.spec().method} {run.id[-6:]}"


def details(run: Run) -> None:
    """Where a run stands, what can be done about it, its log and its failure."""
    status, spec = run.status(), run.spec()
    st.markdown(f"### {ICONS[status.state]} {title_of(spec)}")
    st.markdown(f"`{run.id}` · {spec.split} split · {spec.encoder.backbone}, {spec.encoder.pooling}, "
                f"{spec.encoder.size} px · {spec.device}" + (f" · took {since(status)}" if since(status) else ""))
    message = state_line(run, status)
    if status.state == "failed":
        st.error(message, icon=":material/error:")
        with st.expander("The last lines of its trace"):
            st.code(run.error() or run.log_tail(), language=None)
    elif status.state in ("stopped", "interrupted"):
        st.warning(message, icon=":material/pause_circle:")
    broken = run.broken_result() if status.state == "done" else None
    if broken:
        st.error(broken, icon=":material/error:")
    buttons = st.columns(4)
    if (broken or status.state in ("failed", "stopped", "interrupted")) and buttons[0].button(
            "Resume", icon=":material/play_arrow:", key=f"resume-{run.id}", width="stretch"):
        with show_user_errors():
            jobs.resume(run)
            st.rerun()
    if status.state == "done" and not broken:
        buttons[0].page_link("pages/retrieval.py", label="Search in it", icon=":material/image_search:",
                             query_params={"run": run.id})
    with st.expander("Log", icon=":material/terminal:"):
        st.code(run.log_tail(200) or "Nothing yet.", language=None)


def comparison(chosen: list[Run]) -> None:
    """Evaluations, and what differs between two runs."""
    if len(chosen) == 2:
        first, second = (run.spec().model_dump() | {"fields": None} | hyperparameters(run) for run in chosen)
        differing = [name for name in first | second
                     if first.get(name) != second.get(name) and name not in ("created", "fingerprint", "versions")]
        st.subheader("What differs")
        st.dataframe(pd.DataFrame({"Field": differing, short(chosen[0]): [str(first.get(one)) for one in differing],
                                   short(chosen[1]): [str(second.get(one)) for one in differing]}),
                     hide_index=True, width="stretch")
    evaluations = {short(run): found for run in chosen if (found := run.evaluation()) is not None}
    if evaluations:
        st.subheader("Evaluation on the test half")
        st.dataframe(evaluation_table(evaluations).round(2), width="stretch")
        st.caption("In percent, but for effective rank, width and images. Initial: the embedder that training started "
                   "from. Frozen: the backbone's features at full width. Whoever does not beat PCA of the same width "
                   "has learnt nothing that counts.")


st.title("Runs")
everything = list_runs(runs_folder())
if not everything:
    st.info("No runs yet. Start one on the page **Train**, or press the button on **Home**.",
            icon=":material/lightbulb:")
    st.page_link("pages/train.py", label="Train", icon=":material/model_training:")
    st.stop()
with show_user_errors():
    every = ticked(everything)
    selected = every[:2]
    live_ids = tuple(run.id for run in live_among(everything))
    if live_ids:
        show_analysis_progress(tuple(run.id for run in selected), live_ids)
    else:
        curves(selected)
    for one in selected:
        details(one)
    comparison(selected)
    explore_similarities(tuple(selected))
    precision_of(every)
