"""Choosing a run, and advice when there is none.

One run is chosen for the whole app. Its select box is in the sidebar, and the session remembers it, so that every page
opens with the same run. The address holds it as well, so that a link or a reload shows the same.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping, Sequence

import streamlit as st

from udml_core.data.catalog import remembered_folders
from udml_core.data.dataset import Dataset
from udml_core.data.sources.opened import opened_at
from udml_core.results.embedding_words import words_of
from udml_core.runs import Run, example_runs, list_runs, runs_folder
from udml_core.runs.search import FROZEN
from udml_core.runs.tasks import LIVE_STATES
from udml_core.runs.used import searches_in_use, used_on
from udml_core.work.jobs.advising import is_trial

from .address import write_address
from .awaited import awaited_run, renewed, say_ended, show_awaited, stop_waiting
from .empty_state import best_example, offer_example, offer_lab, show_empty
from .focus import carry_image, note_page
from .race_judgments import recipe_of
from .run_status import escaped, run_title, run_titles
from .user_errors import show_user_errors
from .views import open_view

ADVICE = "Train a run on the page **Lab**, or open an example."
IMAGE_PARAMETERS = ("add", "subtract", "classes", "clusters", "pair", "picked", "selected", "cluster", "triplet",
                    "second", "label", "asked", "query", "image")
"""Address parameters that name images or classes and so have no meaning on another data set."""
PARAMETER = "run"
CHOSEN = "app-run"
"""Session key of the id of the run that the user chose, or that the first page showed."""
IN_BOX = "app-run-just-chosen"
"""Session key of the id of a run that the user has just chosen in the sidebar's box."""
INSTEAD = "app-run-instead"
"""Session key of the id of the run that a page shows because the chosen run does not fit it."""
EXAMPLE = "app-example"
"""Session key of the id of the first example that a page showed to a user who has chosen no run."""
MEANWHILE = (":material/hourglass_top: The images are prepared again without the images that you excluded, which "
             "Search leaves out already.")
PASSED = "app-folder-passed"
"""Session key of the folder that was opened last when the user chose another data set."""
IS_DRAWN, IS_KEPT = "app-run-is-drawn", "app-run-is-kept"
"""Session keys: whether the page has drawn the box, and whether the address keeps the run that end_page draws."""
TRAINED = "app-run-trained"
"""Session key of the id of a run that is the app's run because it was trained, not because the user chose it."""
PICKED = "app-run-picked"
"""Session key of the id of the run that the user chose last in the sidebar's box."""
BOX = "choose-run"


def pick_run(label: str = "Run", parameter: str = PARAMETER, fits: Callable[[Run], bool] = lambda _run: True,
             missing: str = "There is no finished run yet.", optional: bool = False,
             unfinished: bool = False, shows: Callable[[Run], bool] = lambda _run: True) -> Run | None:
    """Choose a finished run; the address holds its id.

    The app's run is chosen in the sidebar, every other run on the page. If no run can be chosen, the page shows advice.

    Args:
        label: The label of the widget.
        parameter: Name in the address; "run" is the app's run.
        fits: Whether a run can be chosen.
        missing: The message when no run can be chosen.
        optional: Whether "none" can be chosen.
        unfinished: Whether running and stopped runs with at least one epoch can be chosen.
        shows: Whether a run has what the page shows; an example that has not gives way to the page's own.

    Returns:
        The run; None if there is none.
    """
    if parameter == PARAMETER and _waits():
        return None
    runs = list_runs(runs_folder())
    named = {st.query_params.get(parameter), st.session_state.get(CHOSEN) if parameter == PARAMETER else None}
    listed = {run.id for run in runs}  # a copied example has the example's id, and replaces it
    runs += [run for run in example_runs() if run.id in named - listed]  # a link opens a hidden example
    finished = [run for run in runs if run.stored_status().can_search and fits(run)]
    begun = [run for run in runs if unfinished and run not in finished and run.epoch_numbers() and fits(run)]
    if not finished + begun:
        if not optional:
            show_empty(f"{missing} {ADVICE}")
            if not offer_example(fits, primary=True):
                offer_lab()
        return None
    titles = _titles_with_states(finished + begun)
    if parameter == PARAMETER:
        return _pick_app_run(runs, finished + begun, label, shows)
    choices = [*([""] if optional else []), *titles]
    wanted = st.query_params.get(parameter, choices[0])
    if wanted not in choices:
        warn_of_link(wanted)
    chosen = st.selectbox(label, choices, choices.index(wanted) if wanted in choices else 0, key=f"choose-{parameter}",
                          format_func=lambda run_id: titles.get(run_id, "none"))
    write_address(parameter, chosen)
    return next((run for run in finished + begun if run.id == chosen), None)


def _waits() -> bool:
    """Show the progress of the images that the user has just opened; choose their run as soon as they are ready."""
    run = awaited_run()
    before = "" if run is None else _run_before(run)
    if run is not None and st.query_params.get(PARAMETER, before) != before:  # a link to another run
        stop_waiting()
    elif run is not None and run.stored_status().can_search:
        choose_run(run)
    elif run is not None and run.status().state in LIVE_STATES:
        if before:
            st.caption(MEANWHILE)
            return False
        _await(run)
        return True
    else:
        stop_waiting()
    say_ended()
    return _waits_for_excluded()


def _waits_for_excluded() -> bool:
    """Show the progress if images were excluded from the app's run in this session and it is made again."""
    chosen = next((run for run in list_runs(runs_folder()) if run.id == st.session_state.get(CHOSEN)), None)
    if chosen is None or st.query_params.get(PARAMETER, chosen.id) != chosen.id:
        return False
    with show_user_errors():
        run = renewed(chosen)
        if run is not None and run != chosen:
            choose_run(run)
        elif run is None and (awaited := awaited_run()) is not None:
            if _run_before(awaited):
                st.caption(MEANWHILE)
                return False
            st.query_params.pop(PARAMETER, None)  # a link to a run would end the waiting
            _await(awaited)
            return True
    return False


def _run_before(awaited: Run) -> str:
    """Return the id of the run with which Search goes on while its images are prepared without those excluded since.

    Args:
        awaited: The run of the images without those.

    Returns:
        The run of the same features that the page had before, which leaves them out as well; empty on other pages.
    """
    chosen = next((known for known in searchable_runs() if known.id == st.session_state.get(CHOSEN)), None)
    if st.session_state.get("page") != "retrieval" or chosen is None or chosen.spec().method != FROZEN or (
            chosen.spec().fingerprint, chosen.spec().encoder) != (awaited.spec().fingerprint, awaited.spec().encoder):
        return ""
    return chosen.id


def _await(run: Run) -> None:
    """Show how far a run's images are in the place of the page, and name this run in the sidebar."""
    _draw_box([run, *(other for other in searchable_runs() if other != run)], run, _remember_choice)
    show_awaited(run)


def _pick_app_run(runs: list[Run], fitting: list[Run], label: str, shows: Callable[[Run], bool]) -> Run:
    """Choose the app's run in the sidebar among the runs that fit the page."""
    by_id = {run.id: run for run in runs}
    _remember_link(by_id)
    wanted = by_id.get(st.session_state.get(CHOSEN, ""))
    preferred = wanted if wanted in fitting else _like(wanted, fitting)
    if wanted is None and _is_example(preferred):
        wanted = by_id.get(st.session_state.get(EXAMPLE, ""))
        preferred = (wanted if wanted in fitting and shows(wanted) else
                     best_example(st.session_state.get("page", ""), fitting) or preferred)
    run = by_id[_draw_box(fitting, preferred, _remember_choice, label)]
    _name_above(run_title(run))
    if wanted is None:
        _remember_first(run)
    if wanted not in (None, run):
        _say_instead(wanted, run)
    st.session_state[INSTEAD] = run.id if wanted != run and st.session_state.get(CHOSEN) != run.id else ""
    previous = by_id.get(st.query_params.get(PARAMETER, ""))
    if previous and previous.spec().fingerprint != run.spec().fingerprint:
        for parameter in IMAGE_PARAMETERS:
            write_address(parameter, "")
    write_address(PARAMETER, run.id)
    carry_image(run.spec().fingerprint)
    return run


def _remember_link(by_id: Mapping[str, Run]) -> None:
    """Remember the run in the address, unless a page wrote it there in place of the remembered run."""
    linked = st.query_params.get(PARAMETER, "")
    if linked in by_id and linked != st.session_state.get(INSTEAD):
        st.session_state[CHOSEN] = linked
    elif linked and linked not in by_id:
        warn_of_link(linked)


def _like(wanted: Run | None, fitting: list[Run]) -> Run:
    """Return the newest fitting run on the same data set, else the newest fitting run."""
    alike = [run for run in fitting if wanted and run.spec().fingerprint == wanted.spec().fingerprint]
    return first_chosen(alike or fitting)


def first_chosen(runs: Sequence[Run]) -> Run:
    """Return the run to begin with: the search that the user chose for the images of the first run, else this run.

    The first run is one that a user started, not a race for the best search, if there is any.
    """
    first = next((run for run in runs if not is_trial(run)), runs[0])
    used = used_on(first.spec().dataset, runs)
    return first if used is None else used[0]


def _draw_box(runs: Sequence[Run], preferred: Run, on_change: Callable[[], None], label: str = "Run") -> str:
    """Draw the select box of the app's run in the sidebar; return the chosen id."""
    st.session_state[IS_DRAWN] = True
    st.session_state[BOX] = preferred.id  # The user's own choice is remembered before the page runs, so it is kept.
    titles = _titles_with_states(runs)
    use = "Every page shows this run" if label == "Run" else label
    with st.sidebar.container(key="app-run-box"):
        chosen = st.selectbox("Run", list(titles), key=BOX, on_change=on_change,
                              format_func=lambda run_id: titles.get(run_id, run_id),
                              help=f"{use}: {escaped(titles[preferred.id])}, `{preferred.id}`.")
        # app.css lays the whole name over the box, whose own text has one line. Readers hear the box.
        st.html(f'<div class="run-name" aria-hidden="true">{html.escape(titles.get(chosen, chosen))}</div>')
        return chosen


def _name_above(title: str) -> None:
    """Give app.css the name of the run for the top of a phone's screen, where the sidebar is closed."""
    quoted = "".join(letter if letter.isalnum() or letter in " .,:+-·" else f"\\{ord(letter):x} " for letter in title)
    st.html(f'<style>:root {{ --run-name: "{quoted}"; }}</style>')


def _titles_with_states(runs: Sequence[Run]) -> dict[str, str]:
    """Return the names of runs by id, with the state where a run ended early, and the steps of a search in use.

    A name must not change when a run starts or finishes, because the browser would send the former name as a choice.
    """
    states = {run.id: run.stored_status().state for run in runs}
    return {run_id: title if states[run_id] in ("done", *LIVE_STATES) else f"{title} · {states[run_id]}"
            for run_id, title in (run_titles(runs) | titles_in_use(runs)).items()}


def titles_in_use(runs: Sequence[Run]) -> dict[str, str]:
    """Return the names of runs by id whose embedding the user searches with further steps."""
    titles = {}
    for run, frame in searches_in_use(runs):
        if recipe_of(run, frame):
            title, plain = run_title(run), words_of("plain").title
            titles[run.id] = (f"Refined search{title.removeprefix(plain)}" if title.startswith(plain)
                              else f"{title}, refined")
    return titles


def title_in_use(run: Run) -> str:
    """Return the name of a run, with the steps of the search in use if it is of the run."""
    same = [other for other in list_runs(run.root) if other.spec().dataset == run.spec().dataset]
    return titles_in_use(same).get(run.id) or run_title(run)


def _remember_choice() -> None:
    """Remember the run chosen in the sidebar; the page then writes it to the address, which has the previous one."""
    if _is_choice():
        _take_choice()
        st.session_state[INSTEAD] = st.query_params.get(PARAMETER, "")


def _open_choice() -> None:
    """Remember the run chosen in the sidebar, and show it on a page that reads the address itself.

    Home plays its showcase unless the address names a run.
    """
    if not _is_choice():
        return
    _take_choice()
    if PARAMETER in st.query_params or st.session_state.get("page") == "home":
        st.query_params[PARAMETER] = st.session_state[BOX]


def _take_choice() -> None:
    """Make the run of the box the app's run, and its data set the one that pages begin with."""
    stop_waiting()
    st.session_state.pop(TRAINED, None)
    st.session_state[CHOSEN] = st.session_state[IN_BOX] = st.session_state[PICKED] = st.session_state[BOX]
    note_dataset(next(run for run in list_runs(runs_folder()) if run.id == st.session_state[BOX]).spec().dataset)


def _is_choice() -> bool:
    """Return whether the box holds a run: the browser sends a former name back when a name has just changed."""
    return any(run.id == st.session_state[BOX] for run in list_runs(runs_folder()))


def _say_instead(wanted: Run, shown: Run) -> None:
    """Say in one line why a page shows another run than the remembered one."""
    reason = "has not finished" if not wanted.stored_status().can_search else "lacks what this page shows"
    title = (run_titles([shown]) | titles_in_use([shown]))[shown.id]
    st.info(f"**{escaped(run_title(wanted))}** {reason}. Shown instead: **{escaped(title)}**.",
            icon=":material/swap_horiz:")


def warn_of_link(wanted: str) -> None:
    """Say that a link names a run that cannot be shown, so that another run is shown."""
    st.warning(f"The link names a run that cannot be shown here: {escaped(wanted[:60])}. It was removed, is not "
               "finished, or does not fit this page, so another run is shown.", icon=":material/link_off:")


def begin_sidebar() -> None:
    """Put an element that is not seen into the sidebar before the links to the pages.

    Streamlit shows all links, with a lower logo, until the sidebar has an element, and then hides most of them.
    """
    st.sidebar.container(key="sidebar-begun").html("<span></span>")


def begin_page() -> None:
    """Note that the page has not drawn the app's run yet, and whether it was just opened."""
    st.session_state[IS_DRAWN] = st.session_state[IS_KEPT] = False
    note_page()


def keep_app_run() -> None:
    """Let the address keep the run in the sidebar of a page that chooses no run itself, so that a reload keeps it."""
    st.session_state[IS_KEPT] = True


def end_page() -> None:
    """Draw the app's run in the sidebar of a page that does not choose a run itself."""
    if st.session_state.get(IS_DRAWN):
        return
    runs = list_runs(runs_folder())
    linked = st.query_params.get(PARAMETER)
    # A page writes the kept example to the address by itself, which is no choice.
    is_kept = CHOSEN not in st.session_state and linked == st.session_state.get(EXAMPLE)
    if not is_kept and any(run.id == linked for run in runs):
        st.session_state[CHOSEN] = linked
    # A chosen run is listed before it has finished, because a box that changes at its end looks like a click.
    listed = [run for run in runs
              if run.id == st.session_state.get(CHOSEN) or run.stored_status().can_search]
    if listed:
        shown = next((run for run in listed if run.id == st.session_state.get(CHOSEN)), None)
        if shown is None:
            on_page = [run for run in listed if run.spec().dataset == st.query_params.get("dataset")]
            first = first_chosen(on_page or listed)
            kept = next((run for run in listed if run.id == st.session_state.get(EXAMPLE)), first)
            shown = kept if _is_example(first) else first
            _remember_first(shown)
        _draw_box(listed, shown, _open_choice)
        if st.session_state.get(IS_KEPT):
            write_address(PARAMETER, shown.id)


def put_on_stage(run: Run, playable: Sequence[Run]) -> None:
    """Draw the box of the sidebar with the run that Home plays; a choice there plays another run."""
    if any(linked.id == st.query_params.get(PARAMETER) for linked in playable):
        st.session_state[CHOSEN] = st.query_params[PARAMETER]
    elif CHOSEN not in st.session_state and (listed := searchable_runs()):
        first = first_chosen(listed)
        _remember_first(run if _is_example(first) and _is_example(run) else first)
    _draw_box(playable, run, _open_choice, "Home plays this run")


def _remember_first(shown: Run) -> None:
    """Remember the first run that a page shows, so that every page keeps it when a newer run finishes.

    An example is kept only until the user has a run.
    """
    if not _is_example(shown):
        st.session_state[CHOSEN] = shown.id
    else:
        st.session_state.setdefault(EXAMPLE, shown.id)


def _is_example(run: Run) -> bool:
    return any(run.id == example.id for example in example_runs())


def choose_run(run: Run) -> None:
    """Make a run that was just started the run of the app, which every page opens with."""
    stop_waiting()
    st.session_state[CHOSEN] = run.id
    if PARAMETER in st.query_params:
        st.query_params[PARAMETER] = run.id


def choose_trained(run: Run) -> None:
    """Make a training that was just started the run of the app, except on Search; see `return_to_used`."""
    choose_run(run)
    st.session_state[TRAINED] = run.id


def return_to_used() -> None:
    """Let Search begin with the search that the user chose for these images.

    A run that was trained since gives way to it, and the plain search does, unless the user chose it in the sidebar.
    """
    chosen, runs = st.session_state.get(CHOSEN), list_runs(runs_folder())
    shown = next((run for run in runs if run.id == chosen), None)
    if PARAMETER in st.query_params or shown is None or chosen == st.session_state.get(PICKED):
        return
    used = used_on(shown.spec().dataset, runs)
    if used is not None and (chosen == st.session_state.get(TRAINED) or shown.spec().method == FROZEN):
        st.session_state[CHOSEN] = used[0].id
        st.session_state.pop(TRAINED, None)


def app_run() -> str | None:
    """Return the id of the remembered run; None if no page has shown a run yet."""
    return st.query_params.get(PARAMETER) or st.session_state.get(CHOSEN) or st.session_state.get(EXAMPLE)


def run_just_chosen() -> str | None:
    """Return, once, the id of the run that the user has just chosen in the sidebar; None if the user chose none."""
    chosen: str | None = st.session_state.pop(IN_BOX, None)
    return chosen


def searchable_runs() -> list[Run]:
    """Return the runs that have embedded all of their images, the newest first."""
    return [run for run in list_runs(runs_folder()) if run.stored_status().can_search]


def app_dataset(names: Sequence[str]) -> str:
    """Return the folder that was opened last until the user chooses another data set, else that of the sidebar's run.

    Args:
        names: The data sets; the first of them is returned if the run's is not among them.
    """
    if (folder := _folder_ahead(names)) and PARAMETER not in st.query_params:
        return folder
    finished = searchable_runs()
    run = next((run for run in finished if run.id == app_run()), finished[0] if finished else None)
    return run.spec().dataset if run is not None and run.spec().dataset in names else names[0]


def note_dataset(name: str) -> None:
    """Note which data set the user chose: the folder that was opened last gives way to another one.

    Args:
        name: The data set.
    """
    if not (folders := remembered_folders()):
        return
    if name != folders[-1]:
        st.session_state[PASSED] = folders[-1]
    elif st.session_state.get(PASSED) == name:
        del st.session_state[PASSED]


def _folder_ahead(names: Sequence[str]) -> str:
    """Return the folder that was opened last, unless the user has chosen another data set or trained since; else empty.
    """
    folders = [name for name in remembered_folders() if name in names]
    if not folders or st.session_state.get(PASSED) == folders[-1]:
        return ""
    own = next((run for run in list_runs(runs_folder()) if not _is_example(run)), None)
    is_passed = own is not None and (own.stored_status().started or 0.0) > opened_at()
    return "" if is_passed else folders[-1]


def open_search(dataset: Dataset, index: int) -> None:
    """Open the page Search with an image of a data set as the query.

    The search uses the app's run, else the newest run on the data set.
    """
    searchable = [run for run in searchable_runs() if run.spec().fingerprint == dataset.fingerprint]
    if not searchable:
        st.toast(f"This is {escaped(dataset.caption(index))}. Train on this data set first to search with its images.",
                 icon=":material/image_search:")
        return
    run = next((run for run in searchable if run.id == app_run()), searchable[0])
    open_view("retrieval", query_params={"run": run.id, "add": str(index)})
