"""Refinement as switches above the results: its effect on the current query, beside the other embeddings.

The address parameter `recipe` holds the steps that are on, as on the view Refine.
"""

from __future__ import annotations

import streamlit as st

from udml_core.base.errors import UserError
from udml_core.numerics.refinement import STEPS, Recipe, make_step
from udml_core.runs.search import RECIPE, Retrieval

from ..draw.palette import REFINED
from ..refine.cards import PARAMETER, with_step
from ..shell.address import write_address
from ..shell.views import view_link
from .embeddings import Column

OFFERED = {"whiten": "Whitening", "average": "Averaging", "rerank": "Re-ranking", "diffuse": "Diffusion"}
"""The steps that have a switch; the view Refine has all steps with their values."""
EXPLAINED = ("Improves the embedding after training without labels and without training. "
             + " ".join(f"{title}: {STEPS[name].idea[0].lower()}{STEPS[name].idea[1:]}"
                        for name, title in OFFERED.items()))
LIVE = "refined-at-once"
"""The name of the refined embedding beside the others."""


def recipe_at_once() -> Recipe:
    """Return the recipe in the address, without the views of images, which take minutes; empty if it is nonsense."""
    try:
        return Recipe.parse(st.query_params.get(PARAMETER, "")).without("views")
    except UserError:
        return Recipe()


def show_switches(retrieval: Retrieval, query: int | None) -> Column | None:
    """Show a switch for each step, and the way to the page that explains and tunes them.

    Args:
        retrieval: The search of a run.
        query: Index of the query, which the view Refine shows too; None for a query from outside.

    Returns:
        The embedding after training with the steps that are on; None if no step is on.
    """
    recipe = recipe_at_once()
    on = {step.name for step in recipe.steps}
    st.markdown("**Refine**", width="content", help=EXPLAINED)
    for name, title in OFFERED.items():
        key = f"search-{name}"
        st.session_state[key] = name in on
        st.toggle(title, key=key, on_change=_switch, args=(name,))
    parameters = {"run": retrieval.run.id} | ({PARAMETER: str(recipe)} if recipe.steps else {})
    view_link("refine", label="Tune", icon=":material/auto_fix_high:",
              query_params=parameters | ({} if query is None else {"query": str(query)}),
              help="The view Refine: values of each step, their effect on all queries, and who judges it.")
    if not recipe.steps:
        return None
    frame = retrieval.frame(f"{RECIPE}{recipe}")
    return Column(LIVE, f"Refined: {recipe_words(recipe)}", REFINED, retrieval, frame)


def recipe_words(recipe: Recipe) -> str:
    """Name the steps of a recipe, such as "whitening, averaging"."""
    return ", ".join(OFFERED.get(step.name, STEPS[step.name].title).lower() for step in recipe.steps)


def _switch(name: str) -> None:
    """Switch a step on or off; of two re-rankings the other one is switched off."""
    recipe = recipe_at_once()
    if any(step.name == name for step in recipe.steps):
        changed = Recipe(tuple(step for step in recipe.steps if step.name != name))
    else:
        changed = with_step(recipe, make_step(name, {}))
    write_address(PARAMETER, str(changed))
