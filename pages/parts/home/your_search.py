"""Home's first line: the search that the user chose last, or what the newest race found for the user's images."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from udml_core.exploration.race_advice import both_aims_words
from udml_core.exploration.race_conclusion import Conclusion
from udml_core.exploration.race_figures import MEASURES
from udml_core.runs import Run, runs_folder
from udml_core.runs.aims import kept_aim
from udml_core.runs.search import FINAL, FROZEN
from udml_core.runs.used import chosen_at, used_search
from udml_core.work.jobs.answering import relation_to
from udml_core.work.jobs.raced import races_from

from ..data.answer import evidence_line, judged_of, judgments_line, own_line
from ..data.using import SEARCH, USE, search_link, use_button
from ..runs.newer import offer_newer
from ..shell.race_judgments import recipe_of
from ..shell.race_verdict import concluded, conclusion_icon
from ..shell.run_status import escaped
from ..shell.verdict_bars import show_verdict_bars
from ..shell.views import view_link
from .own_images import show_folder


def show_your_search(runs: Sequence[Run]) -> Callable[[], None]:
    """Show the search that the user chose last, with what the race of its images and judgments say, and its links.

    Before a choice, the conclusion of the newest race stands alone; before a race, the newest opened folder does.

    Args:
        runs: The user's runs, the newest first.

    Returns:
        Offers a newer training on the card, which can take seconds: the page below comes first.
    """
    used = used_search(runs)
    images = None if used is None else used[0].spec().dataset
    found = _concluded([run for run in runs if images in (None, run.spec().dataset)])
    if used is None and found is None:
        show_folder(runs)
        return lambda: None
    with st.container(border=True, gap="small", key="home-used"):
        with st.container(horizontal=True, vertical_alignment="center", gap="small", key="home-search"):
            if used is not None:
                st.markdown(f"{own_line(*used)} For {escaped(used[0].spec().dataset_title)}.", width="content")
                _link_search(search_link(*used))
            elif found is not None:
                run, of, _ = found
                st.markdown(f"{conclusion_icon(of)} **{escaped(run.spec().dataset_title)}**", width="content")
                if of.use is None:
                    _link_search(search_link(run, FINAL))
                else:
                    use_button("Search with it", SEARCH, of.race, of.use, "retrieval", USE, kind="primary",
                               key="home-use", dataset=run.spec().dataset)
            if found is not None:
                run, of, _ = found
                view_link("data", label="Best search", icon=":material/trophy:", width="content", query_params={
                    "dataset": run.spec().dataset, "view": "advice", "budget": f"{of.race.budget:g}",
                    "serves": of.race.serves})
        if used is not None:
            _show_evidence(*used)
            if found is not None and (newer := _newer_words(*used, *found[1:])):
                st.caption(newer)
        elif found is not None:
            _show_found(found[1])
        place = st.container()
    return partial(_offer_newer, place, images)


def _offer_newer(place: DeltaGenerator, dataset: str | None) -> None:
    """Offer a newer training than the search of a data set in a place; nothing without a search."""
    if dataset is not None:
        with place:
            offer_newer(dataset, "home-newer")


def _concluded(runs: Sequence[Run]) -> tuple[Run, Conclusion, float] | None:
    """Return what to use after the newest race among some runs, and after judgments, for what the user looks for.

    Returns:
        The run from which the race started, the conclusion, and when the race ended, in seconds since 1970; None
        without a race.
    """
    for run in runs:
        if run.spec().method == FROZEN and (raced := races_from(run)):
            aim = kept_aim(runs_folder(), run.spec().dataset)
            race, _, analysis = max(raced, key=lambda of: (of[0].serves == aim, of[2].stored_status().ticket))
            return run, concluded(race.serving(aim)), analysis.stored_status().finished or 0.0
    return None


def _show_found(of: Conclusion) -> None:
    """Show what a race and judgments say: the search to use, and its counts as bars or in words."""
    above = st.container()
    aims = "" if of.use is not None and show_verdict_bars(of.race, of.use) else both_aims_words(of.race, of.use)
    above.caption(_headline(of, aims))


def _show_evidence(run: Run, frame: str) -> None:
    """Show what judges and judgments say of the search that the user chose."""
    judged = judged_of(run, frame)
    words = judgments_line(run, frame) if judged is not None and show_verdict_bars(*judged) else (
        evidence_line(run, frame))
    if words:
        st.caption(words)


def _newer_words(run: Run, frame: str, of: Conclusion, finished: float) -> str:
    """Return what a race advises that ended after a search was chosen, in Markdown; empty if it agrees."""
    if finished <= chosen_at(run):
        return ""
    relation, _ = relation_to(of, of.race, run.id, recipe_of(run, frame))
    is_new = relation not in ("same", "equal") and of.use is not None
    return f":material/new_releases: {_served(of, of.headline)}" if is_new else ""


def _headline(of: Conclusion, more: str = "") -> str:
    """Return what a race and judgments say to use, and more words, in Markdown."""
    return _served(of, " ".join([of.plain_headline, *of.once(of.headline, more)[1:]]))


def _served(of: Conclusion, words: str) -> str:
    """Return words behind what a race serves, in Markdown."""
    return f"{MEASURES[of.race.serves].capitalize()}: {escaped(words)}"


def _link_search(parameters: dict[str, str]) -> None:
    view_link("retrieval", label="Search", icon=":material/image_search:", query_params=parameters, width="content")
