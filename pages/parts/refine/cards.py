"""The recipe's steps as cards with live sliders.

The address holds the recipe, so every widget reads its value from there.
"""

from __future__ import annotations

from typing import Any

import streamlit as st

from udml_core.base.declaration import Described, describe
from udml_core.base.errors import UserError
from udml_core.exploration.race_running import AVERAGES
from udml_core.numerics.refinement import STEPS, Recipe, Step, make_step
from udml_core.runs import Run
from udml_core.runs.recipe_choice import MILDEST, recipe_choice

from ..draw.slider import live_slider
from ..shell.address import write_address
from ..shell.race_verdict import advised_search
from ..shell.run_status import escaped_message

PARAMETER, FIRST = "recipe", "refine-first"
IN_USE = "recipe-in-use"
"""Session key, with a run's id, of the refinement that the view Search shows of the run."""
HIDDEN = ("shortlist",)
"""Fields that trade time for completeness, which the command line offers."""


def begin_with(run: Run) -> None:
    """Choose the recipe that the page shows of a run if the address names none.

    The refinement that Search shows comes first, then the advice of a race, then the second opinion's preference. The
    recipe is chosen once: an opinion that arrives later does not change what the user looks at.
    """
    key = f"{FIRST}-{run.id}"
    if in_use := st.session_state.pop(f"{IN_USE}-{run.id}", ""):
        forget_widgets()
        st.session_state[key] = in_use
    elif key not in st.session_state:
        st.session_state[key] = advised_recipe(run) or recipe_choice(run).recipe
    st.session_state[FIRST] = st.session_state[key]


def advised_recipe(run: Run) -> str:
    """Return the refinement of a run that a race for the best search advises; empty without one."""
    advised = advised_search(run)
    return "" if advised is None else str(advised.outcome.setup.parsed)


def note_in_use(run: Run, recipe: Recipe) -> None:
    """Note the refinement that Search shows of a run, which the view Refine then opens with; none if it is empty."""
    if recipe.steps:
        st.session_state[f"{IN_USE}-{run.id}"] = str(recipe)
    else:
        st.session_state.pop(f"{IN_USE}-{run.id}", None)


def recipe_in_use(run: Run) -> dict[str, str]:
    """Return the address parameter of the refinement that Search shows of a run; none without one."""
    recipe = st.session_state.get(f"{IN_USE}-{run.id}", "")
    return {PARAMETER: str(recipe)} if recipe else {}


def first_recipe() -> str:
    """Return the recipe that the current run begins with."""
    return str(st.session_state.get(FIRST, MILDEST))


def current_recipe() -> Recipe:
    """Return the recipe in the address, or the first recipe."""
    text = st.query_params.get(PARAMETER, first_recipe())
    try:
        recipe = Recipe.parse(text)
        names = [step.name for step in recipe.steps]
        if len(set(names)) < len(names):
            raise UserError(f"This page shows each step once; got '{recipe}'.")
        return recipe
    except UserError as error:
        st.warning(f"The link's recipe cannot be shown: {escaped_message(str(error))} The first recipe is shown "
                   "instead.", icon=":material/link_off:")
        return Recipe.parse(first_recipe())


def write_recipe(recipe: Recipe) -> None:
    """Keep a recipe in the address."""
    write_address(PARAMETER, str(recipe), first_recipe())


def forget_widgets() -> None:
    """Forget the choices of all steps, so that their widgets show the address's recipe."""
    for name in STEPS:
        for field in describe(STEPS[name]):
            if field.kind is bool or field.choices:
                st.session_state.pop(f"refine-{name}-{field.name}", None)


def choose_recipe(has_views: bool = True) -> Recipe:
    """Show a card for each step, the recipe's steps first and in their order.

    Args:
        has_views: Whether the step `views` is offered; a table of embeddings has no images to view.

    Returns:
        The recipe.
    """
    recipe = current_recipe() if has_views else current_recipe().without("views")
    steps = []
    for number, step in enumerate(recipe.steps):
        with st.container(border=True, key=f"card-{step.name}", gap="small"):
            _show_head(recipe, step.name, number)
            steps.append(_show_fields(step))
    changed = Recipe(tuple(steps))
    write_recipe(changed)
    with st.container(border=True, gap="small"):
        st.caption("Steps that are off")
        for name in STEPS:
            if all(step.name != name for step in recipe.steps) and (has_views or STEPS[name].role != "views"):
                _show_head(recipe, name, None)
    return changed


def _show_head(recipe: Recipe, name: str, number: int | None) -> None:
    """Show a step's switch and, if it can move, the button that moves it before the step above."""
    key, title = f"refine-on-{name}", STEPS[name].title
    st.session_state[key] = number is not None
    st.toggle(title if number is None else f"**{number + 1}. {title}**", key=key, on_change=switch_step,
              args=(name,), help=f"{STEPS[name].idea} {STEPS[name].technique} {STEPS[name].source}.")
    if number and STEPS[name].role == recipe.steps[number - 1].role == "rows":
        st.button("Move up", icon=":material/arrow_upward:", key=f"refine-up-{name}", type="tertiary",
                  on_click=move_step_up, args=(name,), help=f"Apply {title.lower()} one step earlier.")


def switch_step(name: str) -> None:
    """Switch a step of the address's recipe on or off.

    A step that is switched on again has the values that it had. Of two re-rankings the other one is switched off.
    """
    recipe, memory = current_recipe(), f"refine-values-{name}"
    current = next((step for step in recipe.steps if step.name == name), None)
    if current is not None:
        st.session_state[memory] = current
        write_recipe(Recipe(tuple(step for step in recipe.steps if step.name != name)))
    else:
        write_recipe(with_step(recipe, st.session_state.get(memory) or first_step(name)))


def first_step(name: str) -> Step:
    """Return a step as it is switched on first: with the values that races try, so that their verdict is known."""
    return next((step for step in Recipe.parse(AVERAGES[1]).steps if step.name == name), make_step(name, {}))


def with_step(recipe: Recipe, step: Step) -> Recipe:
    """Return a recipe with a further step at its usual place.

    A step of which a recipe can have only one replaces the other step of its kind.
    """
    steps = [other for other in recipe.steps if other.role != step.role or step.role == "rows"]
    order = list(STEPS)
    later = [position for position, other in enumerate(steps) if order.index(other.name) > order.index(step.name)]
    steps.insert(later[0] if later else len(steps), step)
    return Recipe(tuple(steps))


def move_step_up(name: str) -> None:
    """Exchange a step of the address's recipe and the step before it."""
    steps = list(current_recipe().steps)
    position = next(position for position, step in enumerate(steps) if step.name == name)
    steps[position - 1 : position + 1] = steps[position], steps[position - 1]
    write_recipe(Recipe(tuple(steps)))


def _show_fields(step: Step) -> Step:
    """Show a widget for each field of a step, and return the step with their values."""
    values = {field.name: getattr(step, field.name) for field in describe(type(step))}
    for field in describe(type(step)):
        if field.name not in HIDDEN:
            values[field.name] = _field_widget(field, f"refine-{step.name}-{field.name}", values[field.name])
    explained = [field for field in describe(type(step)) if field.name not in HIDDEN and not _has_help(field)]
    if explained:
        with st.expander("What the settings mean"):
            st.caption("  \n".join(f"**{field.words}**: {field.text}" for field in explained))
    return make_step(step.name, values)


def _has_help(field: Described) -> bool:
    """Return whether a field's widget explains it behind a question mark, which sliders lack."""
    return field.kind is bool or bool(field.choices)


def _field_widget(field: Described, key: str, value: Any) -> Any:
    if _has_help(field):
        st.session_state.setdefault(key, value)
        if field.kind is bool:
            return st.toggle(field.label, key=key, help=field.text)
        return st.segmented_control(field.label, field.choices, key=key, help=field.text, required=True)
    low, high, step = field.slider
    label = f"{field.words}{f' · {field.shown.symbol}' if field.shown.symbol else ''}"
    moved = live_slider(label, min(low, value), max(high, value), float(value), step, key, unit=field.shown.unit)
    return round(moved) if field.kind is int else round(moved, 6)
