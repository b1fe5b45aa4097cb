"""Refinement as switches above the results: its effect on the current query, beside the other embeddings.

The address parameter `recipe` holds the steps that are on, as on the view Refine.
"""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from udml_core.base.errors import UserError
from udml_core.exploration.race_figures import MEASURES, recipe_words
from udml_core.numerics.refinement import STEPS, Recipe, Step
from udml_core.runs.analyses import REFINED as REFINED_NAME
from udml_core.runs.analyses import find_analysis
from udml_core.runs.search import OF_ALL, RECIPE, Gallery, Retrieval
from udml_core.runs.search.at_once import is_at_once

from ..draw.palette import REFINED
from ..refine.cards import PARAMETER, first_step, note_in_use, with_step
from ..runs.advised import offer_advised
from ..shell.address import VISIT, write_address
from ..shell.race_verdict import advised_search
from .embeddings import Column, hide_embedding, refined_title, show_embedding

OFFERED = {"views": "Views", "whiten": "Whitening", "average": "Averaging", "rerank": "Re-ranking",
           "diffuse": "Diffusion"}
"""The steps that have a switch; the view Refine has all steps with their values."""
TAKEN_OUT = f"{VISIT}search-off-"
"""Session key, with a step's name, of the step as it was before its switch turned it off."""
LEFT_OUT = f"{VISIT}search-without"
"""Session key of the stored refinement that a switch replaced by a recipe without its views."""
EXPLAINED = ("Each step improves the results without labels and without training. "
             + " ".join(f"{title}: {STEPS[name].idea[0].lower()}{STEPS[name].idea[1:]}"
                        for name, title in OFFERED.items()))
LIVE = "refined-at-once"
"""The name of the refined embedding beside the others."""


def recipe_at_once(retrieval: Retrieval) -> Recipe:
    """Return the recipe in the address, without views that are not stored, as they take minutes; empty if nonsense."""
    try:
        recipe = Recipe.parse(st.query_params.get(PARAMETER, ""))
    except UserError:
        return Recipe()
    return recipe if is_at_once(retrieval.run, recipe) else recipe.without("views")


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


def show_switches(retrieval: Retrieval, columns: Sequence[Column], gallery: Gallery) -> Column | None:
    """Show a switch for each step.

    While a stored refinement is shown, the switches show the steps of its recipe. A switch then replaces it by the
    changed recipe.

    Args:
        retrieval: The search of a run.
        columns: The embeddings that are shown.
        gallery: The images that are searched, which the recipe refines.

    Returns:
        The embedding after training with the steps that are on; None if no step is on.
    """
    at_once = recipe_at_once(retrieval)
    stored, of_stored = ("", Recipe()) if at_once.steps else shown_refinement(retrieval, columns)
    recipe = at_once if at_once.steps else of_stored
    note_in_use(retrieval.run, recipe)
    on = {step.name for step in recipe.steps}
    st.markdown("**Steps**", width="content", help=EXPLAINED)
    offered = [name for name in OFFERED if name != "views" or _has_views(retrieval, recipe)]
    _show_other_steps(recipe, offered)
    for name in offered:
        key = f"search-{name}"
        st.session_state[key] = name in on
        st.toggle(OFFERED[name], key=key, on_change=_switch, args=(name, recipe, retrieval, stored),
                  help=STEPS[name].idea if name == "views" else None)
    _offer_advised(retrieval, recipe, stored)
    if not at_once.steps:
        return None
    frame = retrieval.frame(f"{RECIPE}{OF_ALL if gallery == 'all' else ''}{recipe}")
    return Column(LIVE, refined_title(retrieval.run, recipe_words(recipe)), REFINED, retrieval, frame)


def _has_views(retrieval: Retrieval, recipe: Recipe) -> bool:
    """Return whether views can be switched at once: the recipe's views, or the views that races try."""
    views = recipe.find("views") or _step("views")
    return retrieval.spec.encoder.reads_images and is_at_once(retrieval.run, Recipe((views,)))


def _step(name: str) -> Step:
    """Return a step as it is switched on: with the values that it had before, so that off and on changes nothing."""
    known = st.session_state.get(TAKEN_OUT + name)
    return first_step(name) if known is None else known


def _show_other_steps(recipe: Recipe, offered: Sequence[str]) -> None:
    """Name the steps that are on but have no switch, such as the views of a stored refinement."""
    for step in recipe.steps:
        if step.name not in offered:
            words = ("In use. A switch beside it turns the views off, because they take minutes to compute."
                     if step.name == "views" else "In use. The view Refine changes this step.")
            st.markdown(f":blue-badge[:material/check: {STEPS[step.name].title}]", width="content",
                        help=f"{words} {STEPS[step.name].idea}")


def _offer_advised(retrieval: Retrieval, recipe: Recipe, stored: str) -> None:
    """Offer the search that a race advises, or the refinement whose views a switch left out, while another is shown."""
    advised = advised_search(retrieval.run)
    wanted = Recipe() if advised is None else advised.outcome.setup.parsed
    if advised is not None and is_at_once(retrieval.run, wanted) and wanted != recipe:
        aim = MEASURES[advised.serves]
        st.button(f"Show the search advised for {aim}", key="search-advised", icon=":material/trophy:", on_click=_use,
                  args=(wanted, retrieval, stored), help=f"What a race for {aim} advises: {recipe_words(wanted)}.")
    elif (left_out := st.session_state.get(LEFT_OUT)) and not stored:
        st.caption(":material/info: The views are left out, because they take minutes.", width="content")
        st.button("Back to the search before", key="search-back", icon=":material/undo:", on_click=_go_back,
                  args=(retrieval, left_out))
    elif advised is None:
        offer_advised(retrieval.run)


def _use(recipe: Recipe, retrieval: Retrieval, stored: str) -> None:
    """Search with a recipe in place of the recipe or the stored refinement that is shown."""
    if stored:
        hide_embedding(retrieval, stored)
    write_address(PARAMETER, str(recipe))


def _go_back(retrieval: Retrieval, name: str) -> None:
    """Show a stored refinement again in place of the recipe in the address."""
    write_address(PARAMETER, "")
    show_embedding(retrieval, name)


def _switch(name: str, shown: Recipe, retrieval: Retrieval, stored: str) -> None:
    """Switch a step on or off as its switch says; of two re-rankings the other one is switched off.

    The browser reports a switch that another part of the page has replaced once more, without a click: then the switch
    says what the recipe says.

    Args:
        name: The step.
        shown: The recipe that the switches showed.
        retrieval: The search of the run.
        stored: The stored refinement that the changed recipe replaces; empty if there is none.
    """
    written = recipe_at_once(retrieval)  # a second click that arrives with the first finds its recipe here
    recipe = shown if stored and not written.steps else written
    step = next((step for step in recipe.steps if step.name == name), None)
    if st.session_state[f"search-{name}"] == (step is not None):
        return
    if step is not None:
        st.session_state[TAKEN_OUT + name] = step
        changed = Recipe(tuple(other for other in recipe.steps if other.name != name))
    else:
        changed = with_step(recipe, _step(name))
        for replaced in {other.name for other in recipe.steps} - {other.name for other in changed.steps}:
            st.toast(f"{OFFERED[name]} replaces {STEPS[replaced].title.lower()}: a search has one of them.",
                     icon=":material/swap_horiz:")
    if changed.find("views") and not is_at_once(retrieval.run, changed):  # these take minutes
        changed = changed.without("views")
        st.session_state[LEFT_OUT] = stored
    _use(changed, retrieval, stored)
