"""How runs are named, described and polled."""

from __future__ import annotations

import html
from datetime import timedelta
from typing import Any

import streamlit as st

from udml_core import jobs
from udml_core.errors import UserError
from udml_core.methods import METHODS
from udml_core.runs import Run, Spec, runs_folder
from udml_core.tasks import ADVICE, Status

ICONS = {"waiting": ":material/hourglass_empty:", "running": ":material/autorenew:", "done": ":material/check_circle:",
         "failed": ":material/error:", "stopped": ":material/stop_circle:", "interrupted": ":material/power_off:"}


UNSEEN = "position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)"
"""Read out by screen readers, not drawn."""


def hyperparameters(run: Run) -> dict[str, Any]:
    """All of them; only those that were set where the method is not known here, or has other fields by now."""
    try:
        return run.spec().build_method().model_dump()
    except UserError:
        return run.spec().fields


def title_of(spec: Spec, with_dataset: bool = True) -> str:
    """A run in words: method, data set, what differs from the defaults, seed, the run that it continues."""
    changed = ", ".join(f"{name} {value}" for name, value in spec.fields.items())
    titles = {method.card.name: method.card.title for method in METHODS}
    parts = [titles.get(spec.method, f"{spec.method} (a method unknown here)"),
             f"on {spec.dataset_title}" if with_dataset else "",
             f"({changed})" if changed else "", f"seed {spec.seed}" if spec.seed else "",
             f"continuing {spec.starts_from[-6:]}" if spec.starts_from else ""]
    return " ".join(part for part in parts if part)


def duration(seconds: float) -> str:
    """A time for people: 40 s, 3 min, 1 h 5 min."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


def state_line(run: Run, status: Status) -> str:
    """Where a run stands, in one line."""
    match status.state:
        case "waiting":
            ahead = jobs.queue_position(run, runs_folder())
            return f"Waiting for the device: {ahead} before it." if ahead else "Waiting for the device: next."
        case "running":
            left = status.seconds_left
            parts = [f"Epoch {min(status.epoch + 1, status.epochs)} of {status.epochs}" if status.phase == "training"
                     else status.phase.capitalize(),
                     f"about {duration(left)} left" if left is not None else ""]
            return ", ".join(part for part in parts if part)
        case "done" | "failed" | "stopped" | "interrupted":
            return " ".join(part for part in (status.message, ADVICE[status.state]) if part)


def progress_of(status: Status) -> float:
    """The share of the whole training that is done, or of the phase before and after it."""
    if status.phase == "training" and status.epochs:
        return min(1.0, (status.epoch + status.share) / status.epochs)
    return min(1.0, status.share)


def live_panel(run: Run, key: str) -> None:
    """A run that is going on: progress, time left, stop."""
    status, spec = run.status(), run.spec()
    with st.container(border=True):
        left, right = st.columns([5, 1], vertical_alignment="center")
        with left:
            st.markdown(f"{ICONS[status.state]} **{title_of(spec)}**")
            line = state_line(run, status)
            st.progress(progress_of(status) if status.state == "running" else 0.0, line)
            st.html(f'<div role="status" aria-live="polite" style="{UNSEEN}">{html.escape(line)}</div>')
        with right:
            if st.button("Stop", icon=":material/stop:", key=f"{key}-stop-{run.id}", width="stretch",
                         help="Finished epochs stay, and the run can be resumed."):
                with st.spinner("Stopping …"):
                    jobs.stop(run)
                st.rerun(scope="app")


def row_of(run: Run) -> dict[str, Any]:
    """A run as a row of a table."""
    spec, status = run.spec(), run.status()
    final = (run.evaluation() or {}).get("final", {})
    return {"State": status.state, "Run": title_of(spec), "Split": spec.split, "Backbone": spec.encoder.backbone,
            "Epochs": f"{status.epoch}/{status.epochs}" if status.epochs else "–",
            "R@1": final.get("recall@1"), "MAP@R": final.get("map@r"),
            "Started": f"{run.id[:4]}-{run.id[4:6]}-{run.id[6:8]} {run.id[9:11]}:{run.id[11:13]}"}


def since(status: Status) -> str:
    """How long a run took, or nothing."""
    if status.started is None or status.finished is None:
        return ""
    return str(timedelta(seconds=round(status.finished - status.started)))
