"""Data: choose or import a data set, browse its images without training, and find the best search."""

from collections.abc import Sequence

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.parts.data.advising import show_advice
from pages.parts.data.audited import VIEW
from pages.parts.data.auditing import audit_line, show_audit
from pages.parts.data.browsing import show_gallery
from pages.parts.data.classes import show_caution, show_classes_and_splits, show_overview
from pages.parts.data.computed import browse_bar
from pages.parts.data.growing import follow_files, show_changes
from pages.parts.data.importing import audit_browsed, import_folder, offer_folder
from pages.parts.data.leading import lead_on, lead_to_race
from pages.parts.shell.address import address_decides, choice_from_address, note_address, note_click, write_address
from pages.parts.shell.cached import load_dataset, signature_of
from pages.parts.shell.run_picker import app_dataset, app_run, note_dataset
from pages.parts.shell.run_status import escaped, escaped_message
from pages.parts.shell.user_errors import show_user_errors
from udml_core.base.paths import is_exposed, readable_roots
from udml_core.data import catalog
from udml_core.data.dataset import Dataset

CHOICE = "data-dataset"
# Session key of the data set that was shown last, and of the app's run at that time.
BROWSED = "data-browsed"
# The data set that was drawn last.
DRAWN = "data-drawn"
VIEWS = {"gallery": "Gallery", "advice": "Best search", "audit": "Audit", "classes": "Classes and splits"}
# They mean nothing in another data set.
OF_DATASET = ("class", "find", "sort", "sample", "count", "finding", "check", "budget", "serves")
# Views in older links, which are findings of the audit now.
FORMER_VIEWS = {"duplicates": "near", "outliers": "outliers"}


def choose_name() -> str | None:
    """Choose a data set; the address holds its name.

    Returns:
        The name; None if the files are missing.
    """
    sources = catalog.sources()
    names = [source.name for source in sources]
    titles = {source.name: source.title + ("" if source.missing() is None else " (not available)")
              for source in sources}
    wanted = st.query_params.get("dataset") or _last_shown(names)
    is_linked, is_new = address_decides("dataset", CHOICE) or st.session_state[CHOICE] not in names, False
    if is_linked and wanted not in names:
        if is_new := offer_folder(wanted):
            st.info(f"The link names **{escaped(wanted[:200])}**, which was not opened here yet. Press "
                    "**Open** below.", icon=":material/folder_open:")
        else:
            st.warning(f"The data set '{escaped(wanted[:200])}' in the link is not listed here, so another data set "
                       "is shown. Choose a data set, or import its folder.", icon=":material/link_off:")
    if is_linked:
        st.session_state[CHOICE] = wanted if wanted in names else None if is_new else names[0]
    first = None if st.session_state[CHOICE] is None else 0  # a box that begins empty can be emptied
    name = st.selectbox("Data set", names, first, key=CHOICE, on_change=note_click, args=(CHOICE,),
                        format_func=titles.__getitem__, label_visibility="collapsed", placeholder="Choose a data set",
                        help=next(escaped(source.summary) for source in sources if source.name == wanted)
                        if wanted in names else None)
    if name is None:  # not another data set in place of the folder that the link names
        return None
    if name != st.query_params.get("dataset"):
        for parameter in OF_DATASET:
            st.query_params.pop(parameter, None)
    st.query_params.update(dataset=name, view=st.query_params.get("view", "gallery"))  # together: one history entry
    note_address("dataset")
    st.session_state[BROWSED] = name, app_run()
    note_dataset(name)
    problem = next(source for source in sources if source.name == name).missing()
    if problem:
        st.warning(escaped_message(problem), icon=":material/download:")
        return None
    return name


def _last_shown(names: Sequence[str]) -> str:
    """Return the data set of an address without one: the last that was shown, unless another run was chosen since."""
    name, run = st.session_state.get(BROWSED, (None, None))
    return name if name in names and run == app_run() else app_dataset(names)


def fresh_place(name: str | None) -> DeltaGenerator:
    """Return the place below the choice, empty at once if another data set was drawn there, whose images would stay."""
    is_other, st.session_state[DRAWN] = st.session_state.get(DRAWN) != name, name
    return st.empty().container() if is_other else st.container()


def show_view(dataset: Dataset, top: DeltaGenerator) -> None:
    """Show the state of browsing, and the gallery or another view.

    Args:
        dataset: The data set.
        top: The place beside the page's title, where the view is chosen.
    """
    if finding := FORMER_VIEWS.get(st.query_params.get("view", "")):
        st.query_params.update(view="audit", finding=finding)
    if address_decides("view", VIEW):
        st.session_state[VIEW] = choice_from_address("view", VIEWS, "gallery")
    left, right = st.columns([2, 3], gap="medium", vertical_alignment="center")
    with left:
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            show_overview(dataset)
            leads_to_audit = audit_line(dataset)
        show_caution(dataset)
    show_changes(dataset, VIEW)
    nearest = None
    if st.session_state[VIEW] != "advice":  # which has its own progress
        with right.container(key="data-state"), show_user_errors():  # the list of excluded images stays in reach
            nearest = browse_bar(dataset, links_to_search=st.session_state[VIEW] != "audit")  # which has its own
    toolbar = st.container(horizontal=True, gap="small", key="data-toolbar",
                           vertical_alignment="center" if st.session_state[VIEW] == "audit" else "bottom")
    view = top.segmented_control("View", list(VIEWS), format_func=VIEWS.__getitem__, key=VIEW,
                                 required=True, label_visibility="collapsed", on_change=note_click,
                                 args=(VIEW,)) or "gallery"
    write_address("view", view)  # always: keys.js keeps an entry of the history for each data set and view
    note_address("view")
    with toolbar:  # the view of the best search has actions of its own
        if view == "audit":
            lead_on(dataset)
        elif view != "advice":
            lead_to_race(dataset, is_main=not leads_to_audit)
    match view:
        case "advice":
            show_advice(dataset)
        case "audit":
            show_audit(dataset)
        case "classes":
            show_classes_and_splits(dataset)
        case _:
            show_gallery(dataset, nearest, toolbar)


top = st.container(horizontal=True, vertical_alignment="center", gap="medium", key="page-top")
top.title("Data", width="content")
if is_exposed():
    st.caption(f":material/public: Other people can reach this server. It reads images only from "
               f"{', '.join(readable_roots())}, and everyone who reaches it sees all runs and uploads.")
with show_user_errors():
    left, right = st.container(key="data-top").columns([3, 2], gap="medium")
    with left:
        chosen = choose_name()
    with right:
        import_folder()
    with fresh_place(chosen):
        if chosen is not None:
            dataset = load_dataset(chosen)
            follow_files(chosen, signature_of(chosen))
            audit_browsed(dataset)
            show_view(dataset, top)
