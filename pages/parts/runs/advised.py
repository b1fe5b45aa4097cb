"""The searches that races advise, as rows beside the runs, and the search with steps that a race judged of a run."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import partial

import streamlit as st

from udml_core.base.errors import UserError, capitalized
from udml_core.exploration.race import Outcome, Race
from udml_core.exploration.race_certainty import close_words
from udml_core.exploration.race_figures import MEASURES, recipe_words, said_words
from udml_core.exploration.search_names import named_search, recipe_once
from udml_core.runs import Run
from udml_core.runs.analyses import Analysis
from udml_core.runs.recipe_choice import plainly
from udml_core.runs.search import FROZEN
from udml_core.work.jobs.concluding import advised_beside
from udml_core.work.jobs.raced import races_from

from ..data.answer import show_own
from ..data.using import SEARCH, Kind, chosen_search, search_link, use_button
from ..shell.cached import dataset_at_hand
from ..shell.race_judgments import recipe_of
from ..shell.race_verdict import concluded, conclusion_icon, judgments_version, race_verdict, raced_with_steps
from ..shell.run_hash import RUN_HASH
from ..shell.run_status import escaped, run_title
from ..shell.views import view_link
from .newer import offer_newer

JUDGE, COMPARE = ":material/thumbs_up_down:", ":material/compare_arrows:"
Advice = tuple[Run, Race, Outcome, Analysis]
"""The run of the frozen features, a race from it, the search that it advises, and its analysis."""
KINDS: tuple[Kind, Kind] = ("primary", "secondary")
"""How much the first button stands out, and further ones."""
USES = "All images are prepared for this search first, in seconds, on the page Data; then Search opens."


def show_advised(runs: Sequence[Run], chosen: Sequence[Run] = ()) -> None:
    """Show a row for each search that a race of the listed runs advises: name, verdict, date, and what opens it.

    Args:
        runs: The listed runs.
        chosen: The runs that are ticked in the table, with which a search can be compared.
    """
    own = _show_own(runs)
    rows = [row for row in _advised(runs) if (row[2].run, row[2].setup.recipe) not in own]
    if not rows:
        return
    is_aside = {row[0].spec().dataset for row in rows} <= set(own.values())
    with st.expander("What races advise beside it", icon=":material/trophy:") if is_aside else st.container():
        if not is_aside:
            st.markdown("**Best searches of races**", help="A race on the page Data compares ways to search. Blind "
                                                           "judgments decide before the race.")
        _show_rows(rows, chosen)


def _show_own(runs: Sequence[Run]) -> dict[tuple[str, str], str]:
    """Show the search that the user chose for each data set of the listed runs, with what judges and judgments say.

    Returns:
        The names of the data sets by their search: its run and its recipe.
    """
    own = dict[tuple[str, str], str]()
    for number, dataset in enumerate(dict.fromkeys(run.spec().dataset for run in runs)):
        used = chosen_search(dataset)
        if used is None:
            continue
        own[used[0].id, plainly(recipe_of(*used) or "")] = dataset
        show_own(*used, f"runs-own-{number}", f"For {escaped(used[0].spec().dataset_title)}.", partial(
            view_link, "retrieval", label="Search with it", icon=SEARCH, query_params=search_link(*used),
            width="content"))
        offer_newer(dataset, f"runs-newer-{number}")
    return own


def _show_rows(rows: Sequence[Advice], chosen: Sequence[Run]) -> None:
    """Show the searches that races advise, each in a row."""
    for number, (start, race, outcome, analysis) in enumerate(rows):
        of, named = concluded(race), named_search(race, outcome.setup)
        said = f". {recipe_once([named, of.headline], named)[1]}" if of.is_judged else (
            f": {said_words(*race.verdicts(outcome))}{close_words(race, outcome)}")
        with st.container(horizontal=True, vertical_alignment="center", gap="small", key=f"runs-advised-{number}"):
            finished = time.strftime("%d %b %Y, %H:%M", time.localtime(analysis.stored_status().finished or None))
            st.markdown(f"{conclusion_icon(of)} **{escaped(capitalized(named))}** on "
                        f"{escaped(start.spec().dataset_title)}{escaped(said)}  \n:small[:gray[Against "
                        f"the plain search, by a race for {MEASURES[race.serves]} that ended {finished}]]",
                        width="stretch")
            dataset = start.spec().dataset
            use_button("Search with it", SEARCH, race, outcome, "retrieval", USES, key=f"runs-advised-use-{number}",
                       dataset=dataset)
            label = "Continue judging" if of.is_begun else "Judge it"
            use_button(label, JUDGE, race, outcome, "compare", "Blind: you see queries with the results of this "
                       "search and of the plain search, without their names.",
                       key=f"runs-advised-judge-{number}", dataset=dataset)
            if rival := _rival(chosen, start, outcome):
                use_button("Compare", COMPARE, race, outcome, "compare",
                           "Blind, with the ticked run: queries with the results of this search and of "
                           f"{run_title(rival)}.",
                           key=f"runs-advised-compare-{number}", dataset=dataset, against=rival.id)


def _rival(chosen: Sequence[Run], start: Run, outcome: Outcome) -> Run | None:
    """Return the ticked run that can be compared with an advised search of the same images; None unless there is one.

    Of two ticked runs with the search's own run, it is the other one.
    """
    rivals = [run for run in chosen if run.id not in (start.id, outcome.run) and run.stored_status().state == "done"
              and run.spec().fingerprint == start.spec().fingerprint]
    return rivals[0] if len(rivals) == 1 else None


def _advised(runs: Sequence[Run]) -> Iterator[Advice]:
    """Yield the search to use after each newest race and judgments, unless it is a run; equal searches once."""
    known = set[tuple[str, str]]()
    for run in runs:
        for race, _, analysis in races_from(run) if run.spec().method == FROZEN else []:
            best = concluded(race).use
            if best is not None and best.setup.recipe and (best.run, best.setup.recipe) not in known:
                known.add((best.run, best.setup.recipe))
                yield run, race, best, analysis


def show_with_steps(run: Run) -> None:
    """Show what a race says of a trained run with further steps, and the button that searches with exactly these."""
    judged = raced_with_steps(run)
    if judged is None:
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key=f"with-steps-{run.id}"):
        st.markdown(f":material/balance: A race judged this training together with further steps. "
                    f"{race_verdict(run, is_brief=True)}", width="stretch")
        use_button("Search with it", SEARCH, *judged, "retrieval", USES, key=f"with-steps-use-{run.id}",
                   dataset=run.spec().dataset)


def show_advised_actions(run: Run) -> bool:
    """Show a button for each search that a race advises with the embedding of a run of frozen features.

    Returns:
        Whether there is one.
    """
    advised = [(race, outcome) for _, race, outcome, _ in _advised([run])
               if outcome.run == run.id and concluded(race).use == outcome]
    for number, (race, outcome) in enumerate(advised):
        served = f" for {MEASURES[race.serves]}" if len(advised) > 1 else ""
        steps, kind = escaped(recipe_words(outcome.setup.parsed)), KINDS[bool(number)]
        use_button(f"Use the best search{served}", ":material/trophy:", race, outcome, "retrieval",
                   f"Steps: {steps}. {USES}", kind=kind, key=f"search-advised-{number}", dataset=run.spec().dataset)
    return bool(advised)


def offer_advised(run: Run) -> None:
    """Show a button that uses the search that a race of a run's images advises, if that searches with another run."""
    found = _advised_beside(run, judgments_version(run))
    if found is None:
        return
    race, outcome = found
    use_button(f"Use the best search for {MEASURES[race.serves]}", ":material/trophy:", race, outcome, "retrieval",
               f"Switches from this run to {escaped(named_search(race, outcome.setup))}. {USES}",
               key="advised-instead", dataset=run.spec().dataset)


@st.cache_data(ttl="10s", max_entries=64, show_spinner=False, hash_funcs=RUN_HASH)
def _advised_beside(run: Run, version: tuple[int, ...]) -> tuple[Race, Outcome] | None:  # noqa: ARG001
    try:
        return advised_beside(run, dataset_at_hand(run.spec().dataset))
    except UserError:  # the images are missing, which other pages say
        return advised_beside(run)
