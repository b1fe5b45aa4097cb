"""Home's first line: the search that the user chose last, or what the newest race found for the user's images."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from udml_core.exploration.race import Outcome, Race
from udml_core.exploration.race_advice import both_aims_words
from udml_core.exploration.race_conclusion import Conclusion
from udml_core.exploration.race_figures import MEASURES
from udml_core.runs import Run
from udml_core.runs.search import FINAL, FROZEN
from udml_core.runs.used import used_search
from udml_core.work.jobs.advising import judged_in_race, races_from

from ..data.using import SEARCH, USE, search_link, use_button
from ..shell.race_judgments import outcome_judgments, recipe_of, search_name
from ..shell.race_verdict import concluded, conclusion_icon
from ..shell.run_status import escaped
from ..shell.verdict_bars import show_verdict_bars
from ..shell.views import view_link
from .own_images import show_folder


def show_your_search(runs: Sequence[Run]) -> None:
    """Show the search that the user chose last, with what the race of its images and judgments say, and its links.

    Before a choice, the conclusion of the newest race stands alone; before a race, the newest opened folder does.

    Args:
        runs: The user's runs, the newest first.
    """
    used = used_search(runs)
    images = None if used is None else used[0].spec().dataset
    found = _concluded([run for run in runs if images in (None, run.spec().dataset)])
    if used is None and found is None:
        show_folder(runs)
        return
    with st.container(border=True, horizontal=True, vertical_alignment="center", gap="small", key="home-used"):
        if used is not None:
            with st.container(width="stretch", gap="xsmall"):
                st.markdown(f":material/push_pin: **{escaped(used[0].spec().dataset_title)}**: you chose "
                            f"**{escaped(search_name(*used))}** for these images.")
                if (judged := _judged(*used)) is not None and show_verdict_bars(*judged):
                    if own := outcome_judgments(*judged, ("first", "ten")):
                        st.caption(own)
                    if found is not None and (found[1].use is None or found[1].use.setup != judged[1].setup):
                        st.caption(_headline(found[1]))
                elif found is not None:
                    _show_found(found[1])
            _link_search(search_link(*used))
        elif found is not None:
            run, of = found
            with st.container(width="stretch", gap="xsmall"):
                st.markdown(f"{conclusion_icon(of)} **{escaped(run.spec().dataset_title)}**")
                _show_found(of)
            if of.use is None:
                _link_search(search_link(run, FINAL))
            else:
                use_button("Search with it", SEARCH, of.race, of.use, "retrieval", USE, kind="primary",
                           key="home-use", dataset=run.spec().dataset)
        if found is not None:
            run, of = found
            view_link("data", label="Best search", icon=":material/trophy:", width="content", query_params={
                "dataset": run.spec().dataset, "view": "advice", "budget": f"{of.race.budget:g}",
                "serves": of.race.serves})


def _concluded(runs: Sequence[Run]) -> tuple[Run, Conclusion] | None:
    """Return the newest race's start among some runs, and what to use after it and judgments; None without a race."""
    for run in runs:
        for race, _, _ in races_from(run) if run.spec().method == FROZEN else []:
            return run, concluded(race)
    return None


def _show_found(of: Conclusion) -> None:
    """Show what a race and judgments say: the search to use, and its counts as bars or in words."""
    above = st.container()
    aims = "" if of.use is not None and show_verdict_bars(of.race, of.use) else both_aims_words(of.race, of.use)
    above.caption(_headline(of, aims))


def _judged(run: Run, frame: str) -> tuple[Race, Outcome] | None:
    """Return the race that judged a search, and what it said; None without one."""
    recipe = recipe_of(run, frame)
    return None if recipe is None else judged_in_race(run, recipe)


def _headline(of: Conclusion, more: str = "") -> str:
    """Return what a race and judgments say to use, and more words, in Markdown."""
    return f"The race for {MEASURES[of.race.serves]}: {escaped(' '.join(of.once(of.headline, more)))}"


def _link_search(parameters: dict[str, str]) -> None:
    view_link("retrieval", label="Search", icon=":material/image_search:", query_params=parameters, width="content")
