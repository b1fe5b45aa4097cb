"""Sweeps: groups of runs that try several values, their progress, and the best of them."""

from collections.abc import Sequence

import streamlit as st

from pages.parts.shell.user_errors import show_user_errors
from pages.parts.sweeps.best import show_best
from pages.parts.sweeps.charts import show_multiples, show_parallel
from pages.parts.sweeps.choosing import choose_criterion, choose_dataset, choose_sweep
from pages.parts.sweeps.progress import show_actions, show_progress
from pages.parts.sweeps.table import show_table
from udml_core.runs import runs_folder
from udml_core.work import sweeps

EXAMPLE = """\
data: digits
methods:
  rpml: {alpha: [15, 30, 45]}
fields: {dimension: [16, 32]}
seeds: 3
"""


def show_how() -> None:
    """Explain how a sweep starts."""
    st.info("No sweeps yet. On the page **Train**, open **Try several values**, or start one in the terminal.",
            icon=":material/lightbulb:")
    st.page_link("pages/train.py", label="Train", icon=":material/model_training:")
    st.caption("A file sweep.yaml such as this one plans 18 runs; `python -m udml_core sweep sweep.yaml` starts them.")
    st.code(EXAMPLE, language=None)  # the colors of highlighted words are too pale


def show(groups: Sequence[sweeps.Sweep]) -> None:
    """Show a group: progress, the best combination, and every combination by its values."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        sweep = choose_sweep(groups)
        spec = sweep.spec
        criterion = choose_criterion(spec.criterion)
    members = sweep.members()
    progress = sweeps.progress_of(members)
    show_progress(sweep, progress)
    show_actions(sweep, progress)
    found = choose_dataset(sweeps.combinations(members, spec.varied, criterion.name))
    measured = [one for one in found if one.score is not None]
    show_best(found, criterion)
    if len(measured) > 1:
        show_multiples(measured, criterion)
        show_parallel(measured, criterion)
    show_table(found, criterion)


st.title("Sweeps")
with show_user_errors():
    groups = sweeps.list_sweeps(runs_folder())
    if groups:
        show(groups)
    else:
        show_how()
