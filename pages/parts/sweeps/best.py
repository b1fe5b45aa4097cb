"""The best combination of a sweep on one data set."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from udml_core.numerics.measures import Measure
from udml_core.work import sweeps
from udml_core.work.sweeps import Combination

from .words import combination_words, criterion_text, measured


def show_best(found: Sequence[Combination], criterion: Measure) -> None:
    """Show the best combination, its measure on the test half, and the ways to its run."""
    best = next(iter(sweeps.best_combinations(found).values()), None)
    if best is None:
        finished = any(member.state == "done" for one in found for member in one.members)
        st.caption(f"The finished runs have not measured this: {criterion.name}. Choose another measure." if finished
                   else "The best combination appears when the first run has finished.")
        return
    unfinished = sum(len(one.runs) < len(one.members) for one in found)
    seeds = f"mean of {len(best.runs)} seeds" if len(best.runs) > 1 else "one seed"
    st.success(f"**Best{' so far' if unfinished else ''}: {combination_words(best)}** · {criterion.name}: "
               f"{criterion_text(best, criterion)}, {seeds}.", icon=":material/trophy:")
    test = "" if best.test is None else (f"On the test half its MAP@R is {measured(best.test)}; the test half has no "
                                         "influence on the choice. ")
    st.caption(f"{test}{criterion.help}")
    run = sweeps.best_run(best, criterion.key)
    with st.container(horizontal=True, gap="small"):
        st.page_link("pages/runs.py", label="Its run" if len(best.runs) == 1 else "Its median run",
                     icon=":material/monitoring:", query_params={"run": run.id})
        st.page_link("pages/train.py", label="Train with its values", icon=":material/content_copy:",
                     query_params={"like": run.id}, help="Opens Train with every field of this run filled in.")
