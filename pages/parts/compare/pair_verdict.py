"""The verdict on two searches in view, of which one at least has steps after training: one against the other."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import streamlit as st

from udml_core.base.errors import capitalized
from udml_core.exploration.race_figures import recipe_words, said_words
from udml_core.numerics.refinement import Recipe
from udml_core.runs import Run
from udml_core.runs.search import FINAL
from udml_core.work.jobs.concluding import START
from udml_core.work.jobs.raced import judged_in_race

from ..data.answer import show_own
from ..data.using import SEARCH, chosen_search, search_link
from ..shell.race_judgments import recipe_of, search_name, side_words
from ..shell.race_verdict import said_of, show_frames_verdict
from ..shell.run_status import escaped
from ..shell.views import view_link
from .opinions import Search, judged_searches


def search_names(searches: Sequence[Search]) -> list[str]:
    """Return the full names of searches: what was trained, then the steps."""
    return [capitalized(side_words(*search)) for search in searches]


def steps_words(run: Run, frame: str) -> str:
    """Return the steps of a search after training in words; none of an embedding without them."""
    recipe = recipe_of(run, frame)
    return recipe_words(Recipe.parse(recipe), is_sentence=True) if recipe else "none"


def show_searches_verdict(searches: Sequence[Search], names: Sequence[str]) -> None:
    """State what judges say of a search against another one.

    Of the search that the user chose, every page says the same. The plain search is what others are compared with. A
    race or judgments that compared the other search with it decide. Without judges of both, the page says what is known
    of each search alone.

    Args:
        searches: A and B.
        names: Their names.
    """
    if _show_own_verdict(searches):
        return
    named = sorted(zip(searches, names, strict=True), key=lambda of: _is_start(of[0]))
    (first, name), (second, other) = named
    if _is_start(second) and _is_raced(*first) and show_frames_verdict([first]):
        return
    pair = judged_searches(first, second)
    if _is_start(second):
        name, other = capitalized(search_name(*first)), START
    if pair is not None:
        pair.show(name, other)
        return
    shown = [_show_alone(*search, name) for search, name in named if not _is_start(search)]
    if not any(shown):
        _offer_judges([search for search, _ in named if not _is_start(search)])
    elif not _is_start(second):
        st.caption("No encoder that took no part can compare these two searches directly.")


def _show_own_verdict(searches: Sequence[Search]) -> bool:
    """Show what is known of the search that the user chose, and its links, if it is compared with the plain search.

    Returns:
        Whether it is.
    """
    own = chosen_search(searches[0][0].spec().dataset)
    if own is None or own not in searches or sum(_is_start(search) for search in searches) != 1:
        return False
    show_own(*own, "compare-own", "It is compared with the plain search.", partial(
        view_link, "retrieval", label="Search with it", icon=SEARCH, query_params=search_link(*own), width="content"))
    return True


def _is_start(search: Search) -> bool:
    """Return whether a search is the plain search."""
    return side_words(*search) == START


def _is_raced(run: Run, frame: str) -> bool:
    """Return whether a race judged a search against the plain search."""
    recipe = recipe_of(run, frame)
    return recipe is not None and judged_in_race(run, recipe) is not None


def _show_alone(run: Run, frame: str, name: str) -> bool:
    """Show what judges said of a search before, with its name; return whether one was judged."""
    said = said_of(run) if frame == FINAL and not _is_raced(run, frame) else None
    if said is None:
        return show_frames_verdict([(run, frame)])
    st.caption(f":material/balance: {escaped(name)} against the plain search, judged without labels: "
               f"{said_words(*said.verdicts)}. {escaped(said.note)}".rstrip())
    return True


def _offer_judges(searches: Sequence[Search]) -> None:
    """Say that nothing judged a refinement, and where judges are asked."""
    for run, frame in searches:
        if recipe := recipe_of(run, frame):
            st.caption(f":material/balance: No race judged {escaped(side_words(run, frame))}, and it has no second "
                       "opinion yet. The view Refine asks the judges.")
            view_link("refine", label="Ask the judges", icon=":material/balance:",
                      query_params={"run": run.id, "recipe": recipe})
            return
