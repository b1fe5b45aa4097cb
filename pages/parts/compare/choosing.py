"""Choosing the runs to compare; the address keeps them."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from pages.parts.base.address import write_address
from pages.parts.base.run_picker import app_run
from pages.parts.base.run_status import run_title
from udml_core.runs import Run

FEWEST, MOST = 2, 6
PARAMETER = "runs"


def choose_compared(runs: Sequence[Run]) -> list[Run]:
    """Choose two to six runs; at first those in the address, else the run in the sidebar and the newest on its images.

    Args:
        runs: Finished runs, newest first.
    """
    by_id = {run.id: run for run in runs}
    named = list(dict.fromkeys(filter(None, st.query_params.get(PARAMETER, "").split("."))))
    known = [run_id for run_id in named if run_id in by_id][:MOST]
    if len(known) < len(named):
        st.warning(f"The link names {len(named)} runs, of which {len(known)} can be compared: a run was removed or is "
                   f"not finished, or there are more than {MOST}.", icon=":material/link_off:")
    shown = [run for run in runs if run.id == app_run()]
    default = known or newest_on_same_images([*shown, *(run for run in runs if run not in shown)])
    chosen = st.multiselect("Runs to compare", list(by_id), default, key="compare-runs", max_selections=MOST,
                            format_func=lambda run_id: f"{run_title(by_id[run_id])} · {run_id[-6:]}",
                            placeholder="Choose two to six runs", label_visibility="collapsed")
    write_address(PARAMETER, ".".join(chosen))
    return [by_id[run_id] for run_id in chosen]


def newest_on_same_images(runs: Sequence[Run]) -> list[str]:
    """Return the ids of the newest two runs on the same test images; fewer if there are none."""
    for position, run in enumerate(runs):
        for other in runs[position + 1 :]:
            if share_images([run, other]):
                return [run.id, other.id]
    return [run.id for run in runs[:FEWEST]]


def share_images(runs: Sequence[Run]) -> bool:
    """Return whether the runs search the same test images."""
    return len({(run.spec().fingerprint, run.spec().split) for run in runs}) == 1
