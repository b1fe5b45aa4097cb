"""Make a search of a race usable, and open the page that searches or judges with it."""

from __future__ import annotations

from typing import Literal

import streamlit as st

from udml_core.base.errors import duration
from udml_core.exploration.race import TIMES, Outcome, Race
from udml_core.exploration.race_measured import Serves
from udml_core.runs import Run, find_run, list_runs, runs_folder
from udml_core.runs.analyses import Analysis, AnalysisSpec, find_analysis, plan_analysis
from udml_core.runs.analyses.kinds.advice import Advice
from udml_core.runs.search import FINAL
from udml_core.runs.search.judged_runs import is_frozen
from udml_core.runs.tasks import LIVE_STATES, Status
from udml_core.runs.used import use_search, used_on
from udml_core.work import jobs
from udml_core.work.jobs.advising import use_outcome

from ..shell.run_status import escaped, escaped_message, run_title
from ..shell.user_errors import show_user_errors
from ..shell.views import open_view

Kind = Literal["primary", "secondary", "tertiary"]
"""How much a button stands out."""
BUDGETS = {str(minutes): f"{minutes} min" for minutes in TIMES}
"""The times that can be chosen."""
SEARCH, PIN = ":material/image_search:", ":material/push_pin:"
"""Icons of the buttons that search with a candidate, and that keep the search in use."""
ACTION, FOLLOW = "Find the best search", "Follow the race for the best search"
"""What the buttons say that lead to a race, before it and while it runs."""
KEEP = "Keep my search"
"""What the button says that keeps the search in use, beside what could take its place."""
USE = "Search with it. A refinement of all images is computed first, in seconds."
"""Help of the buttons that search with a candidate."""
USED = "advice-used"
"""Session key of a search that is made usable: runs of start and search, refinement, and the page that opens it."""
REPLACED = "search-replaced"
"""Session key of the search that the last choice replaced and of this choice: run and embedding of each."""
OPENS = {"compare": "Judge", "retrieval": "Search"}
"""The pages that open, as the navigation names them."""


def show_race_button(label: str, spec: AnalysisSpec, key: str) -> None:
    """Show a button that shows another race, if the choices of this page lead to it."""
    kind = spec.build_kind()
    assert isinstance(kind, Advice), "only races are shown here"
    budget = f"{kind.budget:g}"
    if budget in BUDGETS and spec == plan_analysis(Advice, budget=kind.budget, serves=kind.serves) and st.button(
            label, icon=":material/visibility:", key=key):
        st.query_params.update(budget=budget, serves=kind.serves)
        st.rerun(scope="app")


def use_button(label: str, icon: str, race: Race, outcome: Outcome, page: str, help_text: str,
               kind: Kind = "secondary", key: str = "", dataset: str = "", against: str = "") -> None:
    """Show a button that makes a candidate's search usable, and then opens a page with it.

    Args:
        label: The button's label.
        icon: Its icon.
        race: The race.
        outcome: A judged candidate.
        page: The view that opens.
        help_text: What the button does.
        kind: How much it stands out; the main action is primary.
        key: Its key; made of view and label by default.
        dataset: Name of the data set, for a button on another page than the race: Data then shows the progress.
        against: Id of a run whose embedding is judged beside the search; the frozen features by default.
    """
    if st.button(label, icon=icon, key=key or f"advice-{page}-{label[:6]}", help=help_text,
                 type=kind):
        with show_user_errors():
            run, refinement = use_outcome(outcome, runs_folder())
            start = f"{against}:final" if against else f"{race.run}:frozen"
            st.session_state[USED] = start, run.id, refinement and refinement.id, page, race.serves
            if dataset:
                open_view("data", {"dataset": dataset, "view": "advice", "budget": f"{race.budget:g}",
                                   "serves": race.serves})
            st.rerun()


def awaited_search() -> Analysis | None:
    """Return the refinement of a search that was chosen while it is computed; open its page as soon as it is there."""
    if USED not in st.session_state:
        return None
    start, run_id, refinement_id, page, serves = st.session_state[USED]
    with show_user_errors():
        run = find_run(run_id, runs_folder())
        refinement = None if refinement_id is None else find_analysis(run, refinement_id)
        if refinement is not None and refinement.status().state in LIVE_STATES:
            return refinement
        del st.session_state[USED]
        if refinement is not None and not refinement.is_done():
            st.error(f"The refinement is {refinement.status().state}. {escaped_message(refinement.status().message)}",
                     icon=":material/error:")
            return None
        if page == "compare":
            open_view(page, query_params=judge_link(start, run_id, refinement_id, serves))
        open_used(run, refinement_id or FINAL)
    st.session_state.pop(USED, None)  # the run was removed
    return None


@st.fragment(run_every="0.5s")
@show_user_errors()
def show_awaited(refinement: Analysis) -> None:
    """Show the progress of a search that was chosen, and what opens then; run the page again when it ends."""
    status = refinement.status()
    if status.state not in LIVE_STATES or USED not in st.session_state:
        st.rerun(scope="app")
    opens = OPENS.get(st.session_state[USED][3], "The page")
    with st.container(horizontal=True, vertical_alignment="center", key="advice-awaited"):
        st.progress(min(1.0, status.share), f"{opens} opens by itself as soon as all images are prepared for this "
                                            f"search ({escaped(_step_words(refinement, status))}).")
        if st.button("Stay here", icon=":material/close:", type="tertiary", key="advice-stay",
                     help="The search is prepared nevertheless."):
            del st.session_state[USED]
            st.rerun(scope="app")


def _step_words(refinement: Analysis, status: Status) -> str:
    """Return what a refinement does, or which analysis it waits for, with the time that this one still takes."""
    before = jobs.running_before(refinement) if status.state == "waiting" else None
    seconds = (status if before is None else before.status()).seconds_left
    left = f", about {duration(seconds)} left" if seconds else ""
    if before is None:
        return f"{status.phase or 'starting'}{left}"
    return f"waiting for the {before.spec().build_kind().noun} of {run_title(before.run)}{left}"


def chosen_search(dataset: str) -> tuple[Run, str] | None:
    """Return the search that the user chose for the images of a data set; None for no choice, or the plain search."""
    used = _used_on(dataset)
    return None if used is None or is_frozen(*used) else used


def chosen_frame(run: Run) -> str | None:
    """Return the embedding of a run with which the user searches its images; None for the plain or another search."""
    chosen = chosen_search(run.spec().dataset)
    return chosen[1] if chosen is not None and chosen[0].id == run.id else None


def _used_on(dataset: str) -> tuple[Run, str] | None:
    return used_on(dataset, list_runs(runs_folder()))


def open_used(run: Run, frame: str) -> None:
    """Note a search as the one that the user chose for these images, and open Search with it alone.

    Search says which earlier choice it replaces.
    """
    before = _used_on(run.spec().dataset)
    use_search(run, frame)
    st.session_state[REPLACED] = None if before in (None, (run, frame)) else (before[0].id, before[1], run.id, frame)
    open_view("retrieval", query_params=search_link(run, frame))


def search_link(run: Run, frame: str) -> dict[str, str]:
    """Return the address parameters of the page Search for an embedding of a run."""
    return {"run": run.id, "compare": frame}


def judge_link(start: str, run_id: str, refinement_id: str | None, serves: Serves = "first") -> dict[str, str]:
    """Return the address parameters of the part Judge of the view Compare: an embedding against a search.

    Args:
        start: The embedding, RUN:FRAME; of the frozen features by default in a race.
        run_id: Id of the run of the search.
        refinement_id: Id of its refinement; None for the run's own embedding.
        serves: What the search serves, which is judged: first results, or whole groups.
    """
    return {"part": "Judge", "runs": ".".join(dict.fromkeys((start.partition(":")[0], run_id))), "a": start,
            "b": f"{run_id}:{refinement_id or 'final'}"} | ({"results": "group"} if serves == "groups" else {})
