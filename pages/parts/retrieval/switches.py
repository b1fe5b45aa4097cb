"""Refinement as switches above the results: its effect on the current query, beside the other embeddings.

The address parameter `recipe` holds the steps that are on, as on the view Refine.
"""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from udml_core.base.errors import UserError
from udml_core.exploration.race_figures import recipe_words
from udml_core.numerics.refinement import STEPS, Recipe
from udml_core.runs.analyses import REFINED as REFINED_NAME
from udml_core.runs.analyses import find_analysis
from udml_core.runs.search import OF_ALL, RECIPE, Gallery, Retrieval

from ..draw.palette import REFINED
from ..refine.cards import PARAMETER, first_step, note_in_use, with_step
from ..shell.address import write_address
from ..shell.views import view_link
from .embeddings import Column, hide_embedding

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


def shown_refinement(retrieval: Retrieval, columns: Sequence[Column]) -> tuple[str, Recipe]:
    """Return the first stored refinement of the embedding after training that is shown: its name and its recipe.

    Returns:
        Empty values if none is shown.
    """
    for column in columns:
        if column.retrieval.run == retrieval.run and column.frame.name.startswith(REFINED_NAME):
            spec = find_analysis(retrieval.run, column.frame.name).spec()
            if spec.frames == ("final",):
                return column.name, Recipe.parse(str(spec.recipe))
    return "", Recipe()


def show_switches(retrieval: Retrieval, query: int | None, columns: Sequence[Column],
                  gallery: Gallery) -> Column | None:
    """Show a switch for each step, and the way to the page that explains and tunes them.

    While a stored refinement is shown, the switches show the steps of its recipe. A switch then replaces it by the
    changed recipe.

    Args:
        retrieval: The search of a run.
        query: Index of the query, which the view Refine shows too; None for a query from outside.
        columns: The embeddings that are shown.
        gallery: The images that are searched, which the recipe refines.

    Returns:
        The embedding after training with the steps that are on; None if no step is on.
    """
    at_once = recipe_at_once()
    stored, of_stored = ("", Recipe()) if at_once.steps else shown_refinement(retrieval, columns)
    recipe = at_once if at_once.steps else of_stored
    note_in_use(retrieval.run, recipe)
    on = {step.name for step in recipe.steps}
    st.markdown("**Refine**", width="content", help=EXPLAINED)
    _show_other_steps(recipe)
    for name, title in OFFERED.items():
        key = f"search-{name}"
        st.session_state[key] = name in on
        st.toggle(title, key=key, on_change=_switch, args=(name, recipe, retrieval, stored))
    parameters = {"run": retrieval.run.id} | ({PARAMETER: str(recipe)} if recipe.steps else {})
    view_link("refine", label="Tune", icon=":material/auto_fix_high:",
              query_params=parameters | ({} if query is None else {"query": str(query)}),
              help="The view Refine: values of each step, their effect on all queries, and who judges it.")
    if not at_once.steps:
        return None
    frame = retrieval.frame(f"{RECIPE}{OF_ALL if gallery == 'all' else ''}{recipe}")
    return Column(LIVE, f"Refined: {recipe_words(recipe)}", REFINED, retrieval, frame)


def _show_other_steps(recipe: Recipe) -> None:
    """Name the steps that are on but have no switch, such as the views of a stored refinement."""
    for step in recipe.steps:
        if step.name not in OFFERED:
            words = ("In use. A switch beside it turns the views off, because they take minutes to compute."
                     if step.name == "views" else "In use. The view Refine changes this step.")
            st.markdown(f":blue-badge[:material/check: {STEPS[step.name].title}]", width="content",
                        help=f"{words} {STEPS[step.name].idea}")


def _switch(name: str, recipe: Recipe, retrieval: Retrieval, stored: str) -> None:
    """Switch a step on or off; of two re-rankings the other one is switched off.

    Args:
        name: The step.
        recipe: The recipe that the switches showed.
        retrieval: The search of the run.
        stored: The stored refinement that the changed recipe replaces; empty if there is none.
    """
    if stored:
        hide_embedding(retrieval, stored)
        recipe = recipe.without("views")  # these take minutes
    if any(step.name == name for step in recipe.steps):
        changed = Recipe(tuple(step for step in recipe.steps if step.name != name))
    else:
        changed = with_step(recipe, first_step(name))
    write_address(PARAMETER, str(changed))
