"""The top of a page: its title, the control that chooses a view, and links to views that the run has no records for."""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module

import streamlit as st

from udml_core.base.errors import UserError
from udml_core.methods.shared.instance import InstanceMethod
from udml_core.numerics.explanations import Affinities, Pairs, Triplets
from udml_core.runs import Run

from .epochs import has_record
from .run_picker import app_run, first_chosen, searchable_runs
from .views import PAGES, VIEWS, module_of, open_view, view_in_address, view_link, views_of

RECORDS = {"triplets": Triplets, "affinity": Affinities, "pairs": Pairs}
"""The records that a view shows; the other views show every run."""


def show_view(page: str) -> None:
    """Show a page: its title, the control that chooses a view, and the view.

    Args:
        page: The page's name.
    """
    current = view_in_address(page)
    runs = searchable_runs()
    run = next((run for run in runs if run.id == app_run()), first_chosen(runs) if runs else None)
    offered = [name for name in views_of(page) if name == current or run is None or fits(name, run)]
    with st.container(horizontal=True, vertical_alignment="center", gap="medium", key="page-top"):
        st.title(PAGES[page].title, help=VIEWS[current].help, width="content")
        # A key of each view, because the address decides after Back and Forward.
        chosen = st.segmented_control("View", offered, default=current, required=True, key=f"view-of-{current}",
                                      format_func=lambda name: VIEWS[name].title, label_visibility="collapsed")
        _show_others([name for name in views_of(page) if name not in offered], run)
    if chosen and chosen != current:
        others = st.query_params.get("with", "")  # the further runs that a user chose on Runs
        open_view(chosen, {} if run is None else
                  {"runs": f"{run.id}.{others}"} if others and chosen == "compare" else {"run": run.id})
    import_module(module_of(current)).draw()


def fits(name: str, run: Run) -> bool:
    """Return whether a run has what a view shows: the records of its method."""
    if name == "instances":
        with suppress(UserError):  # a run of a method that this version does not know
            return isinstance(run.spec().build_method(), InstanceMethod)
        return False
    return name not in RECORDS or has_record(run, RECORDS[name])


def _show_others(names: list[str], run: Run | None) -> None:
    """Show a menu of the views for which the run's method keeps no records."""
    if names:
        with st.popover("Other views", type="tertiary", key="more-views"):
            st.caption("Made for other methods:")
            for name in names:
                view_link(name, {} if run is None else {"run": run.id}, label=VIEWS[name].title,
                          help=VIEWS[name].help)
