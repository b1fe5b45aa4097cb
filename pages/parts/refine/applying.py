"""A recipe applied to all test images in the background, and as text to copy."""

from __future__ import annotations

import streamlit as st

from udml_core.numerics.measures import measure_of
from udml_core.numerics.refinement import Recipe
from udml_core.runs import Run
from udml_core.runs.analyses import Refined, analysis_at, plan_analysis
from udml_core.runs.tasks import LIVE_STATES

from ..shell.analyses import load_result, request_analysis


def show_actions(run: Run, recipe: Recipe) -> None:
    """Show the buttons that apply and copy a recipe, and exact figures once it is applied."""
    if not recipe.steps:
        st.info("The recipe has no steps. Switch a step on.", icon=":material/toggle_on:")
        return
    spec = plan_analysis(kind="refine", recipe=str(recipe))
    analysis = analysis_at(run, spec)
    is_done = analysis.is_done()
    with st.container(horizontal=True, vertical_alignment="center"):
        if not is_done and not (analysis.folder.exists() and analysis.status().state in LIVE_STATES):
            request_analysis(run, spec, "Apply to all images", "refine-apply",
                             "Compute this refinement exactly for all test images, and keep it with the run.",
                             primary=True)
        if is_done:
            st.page_link("pages/retrieval.py", label="Search the refined embedding", icon=":material/image_search:",
                         query_params={"run": run.id, "refined": analysis.id})
        with st.popover("Copy recipe", icon=":material/content_copy:"):
            show_copies(run, recipe)
    if is_done:
        show_exact(run, analysis.id)


def show_copies(run: Run, recipe: Recipe) -> None:
    """Show a recipe as a command and as Python."""
    st.caption("On the command line")
    st.code(f"udml refine {run.id} --recipe '{recipe}'", language="bash", wrap_lines=True)
    st.caption("In Python, on arrays of embeddings" + (" of several views (n, v, d)" if recipe.find("views") else ""))
    st.code('from udml_core.numerics.refinement import Refiner\n'
            f'Refiner("{recipe}").fit(gallery, training=training).neighbors(10)', language="python", wrap_lines=True)


def show_exact(run: Run, analysis_id: str) -> None:
    """Show the exact measures of a finished refinement."""
    result = load_result(run, analysis_id)
    assert isinstance(result, Refined)
    figures = ", ".join(f"{measure_of(name).name} {before:.1f} → **{after:.1f}**" for name, (before, after)
                        in result.measures.items())
    applied = f"Applied to all {len(result.indices):,} test images ({result.protocol}): {figures}."
    before, after = (round(value, 1) for value in result.measures.get("recall@1", (0.0, 0.0)))
    if after < before:
        st.warning(f"{applied} R@1 falls by {before - after:.1f} points: the nearest image is a miss more often.",
                   icon=":material/trending_down:")
    else:
        st.success(applied, icon=":material/task_alt:")
