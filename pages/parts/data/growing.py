"""A folder that has grown: a line about its changes, and a view of the new images beside the earlier ones."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from udml_core.base.arrays import Booleans
from udml_core.base.errors import UserError, counted
from udml_core.data.dataset import Dataset, UserImage
from udml_core.data.given.exclusions import exclude
from udml_core.data.given.growth import Changes, mark_seen, note_looked
from udml_core.data.image_facts import ImageFacts
from udml_core.data.text_tiles import file_of
from udml_core.exploration.audit import Audit, Findings
from udml_core.exploration.new_images import NewImage, new_images
from udml_core.runs import Run, list_runs, runs_folder
from udml_core.runs.analyses import finished_maps
from udml_core.runs.search import Hit, Retrieval
from udml_core.runs.search.naming import names_along
from udml_core.work import jobs
from udml_core.work.jobs.auditing import start_auditing

from ..draw.gallery import gallery, tile_of
from ..draw.tables import data_table
from ..shell.cached import load_retrieval, signature_of
from ..shell.growth import changes_to_say, load_changes
from ..shell.run_hash import RUN_HASH
from ..shell.run_status import escaped, run_titles
from ..shell.selection import selection
from ..shell.user_errors import keep_user_errors, show_user_errors
from ..shell.views import view_link
from .computed import chosen_encoder
from .excluding import ShownImages, change_list, confirm, keep_problem, list_buttons, offer_button, select_images

FINDING = "audit-finding"
"""Session key of the chosen finding of the audit."""
NEAREST = 12


def show_changes(dataset: Dataset, view: str) -> None:
    """Say what has changed in the folder since the user looked last, with the button that shows it.

    Args:
        dataset: The data set.
        view: Session key of the page's view.
    """
    changes = changes_to_say(dataset)
    if changes is None:
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="data-changes"):
        st.markdown(f":material/new_releases: **{changes.words}**", width="content")
        looks = st.button("Show them", key="growth-look", icon=":material/fact_check:",
                          on_click=_open, args=(view,),
                          help="Compares the new images with the others in the background; nothing is computed twice.")
        _seen_button(dataset, "growth-seen")
    with keep_user_errors("growth-look", dataset.fingerprint, looks):
        if looks:
            start_auditing(dataset, chosen_encoder(dataset), runs_folder())


def _seen_button(dataset: Dataset, key: str) -> None:
    """Show the button that ends the list of changes."""
    st.button("Mark as seen", key=key, icon=":material/done_all:", on_click=keep_problem,
              args=(lambda: mark_seen(dataset),),
              help="Empties this list: from now on it counts new changes of this folder.")


@st.fragment(run_every="10s")
def follow_files(name: str, signature: str) -> None:
    """Run the page again when the files of a data set change.

    Args:
        name: The data set's name.
        signature: The signature of its files that the page shows.
    """
    with suppress(UserError):  # the page says what is missing when it runs the next time
        if signature_of(name) != signature:
            st.rerun(scope="app")


def _open(view: str) -> None:
    st.session_state[view] = "audit"
    st.session_state.pop(FINDING, None)  # the address decides
    st.query_params["finding"] = "new"


def show_new(dataset: Dataset, audit: Audit, findings: Findings, kept: Booleans, facts: ImageFacts | None) -> None:
    """Show the new and changed images with what was found about each, and what else has changed."""
    changes = load_changes(dataset)
    if changes is None:
        st.success("Nothing has changed in this folder since you looked last.", icon=":material/check_circle:")
        return
    keep_problem(lambda: note_looked(dataset))
    found = new_images(audit, changes, findings, kept, facts, names_along(dataset, audit.neighbors))
    copies = np.array([image.index for image in found if image.is_copy], np.int64)
    chosen = selection(dataset).ids
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.button(f"Exclude selected ({len(chosen):,})", icon=":material/block:", key="audit-exclude", shortcut="X",
                  disabled=not len(chosen), on_click=change_list, args=(dataset, exclude, chosen),
                  help="New runs leave the selected images out; no file is changed.")
        offer_button(dataset, f"Exclude the new copies ({len(copies):,})", copies,
                     "Excludes new images that are duplicates of images that were there before.")
        _confirm_button(dataset, [image for image in found if image.name and (
            image.index in chosen if len(chosen) else not image.is_copy)])
        _seen_button(dataset, "growth-done")
        list_buttons(dataset)
    _show_others(changes)
    if found:
        select_images(dataset, ShownImages(np.array([image.index for image in found]), _badges(dataset, found),
                                           _caption(found)), "New and changed images", "audit-new")
        _show_in_runs(dataset, changes, found)


def show_new_files(dataset: Dataset) -> None:
    """Show the new and changed images before they are compared with the others."""
    changes = load_changes(dataset)
    if changes is not None and len(images := changes.to_look_at):
        names = [dataset.names[index].rsplit("/", 1)[-1] for index in images.tolist()]
        select_images(dataset, ShownImages(images, names, f"{counted(len(images), 'new or changed image')}."),
                      "New and changed images", "audit-new")


def _confirm_button(dataset: Dataset, named: list[NewImage]) -> None:
    """Show the button that assigns the proposed names of new images."""
    names = {image.index: (image.name, image.certainty) for image in named}
    st.button(f"Confirm {counted(len(named), 'name')}", icon=":material/check:", key="growth-confirm", shortcut="Y",
              disabled=not named, on_click=confirm, args=(dataset, names),
              help="Assigns the proposed names of the selected images, or of all new images that are no copies; Undo "
                   "reverts all of them.")


def _badges(dataset: Dataset, found: Sequence[NewImage]) -> list[str]:
    return [image.words(dataset) or dataset.names[image.index].rsplit("/", 1)[-1] for image in found]


def _caption(found: Sequence[NewImage]) -> str:
    copies, poor, named = (sum(bool(value) for value in values) for values in zip(*(
        (image.is_copy, image.poor, image.name) for image in found), strict=True))
    return (f"{counted(len(found), 'new or changed image')}: {copies:,} with a copy that was there before, {poor:,} "
            f"found by a check of quality, {named:,} with a proposed name and its certainty.")


def _show_others(changes: Changes) -> None:
    """List removed and renamed files, and new files that cannot be read."""
    if count := len(changes.renamed):
        st.info(f"{counted(count, 'file')} {'has' if count == 1 else 'have'} another name now. Labels and exclusions "
                "follow the content of a file.", icon=":material/drive_file_rename_outline:")
    rows: list[dict[str, Any]] = [{"File": skipped.file, "State": f"broken: {skipped.reason}"}
                                  for skipped in changes.broken]
    rows += [{"File": name, "State": f"renamed or moved to {now}"} for name, now in changes.renamed.items()]
    rows += [{"File": name, "State": "removed"} for name in changes.removed]
    if rows:
        renamed = f" {len(changes.renamed):,} renamed," if changes.renamed else ""
        with st.expander(f"{len(changes.broken):,} broken,{renamed} {len(changes.removed):,} removed",
                         icon=":material/list:"):
            data_table(pd.DataFrame(rows), hide_index=True, width="stretch")


def _show_in_runs(dataset: Dataset, changes: Changes, found: Sequence[NewImage]) -> None:
    """Search an earlier run of this folder with a new image, and place the new images on its map."""
    runs = [run for run in list_runs(runs_folder()) if run.stored_status().can_search
            and run.spec().dataset == dataset.name and run.spec().fingerprint != dataset.fingerprint]
    if not runs:
        return
    titles = run_titles(runs)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        chosen = st.selectbox("Earlier run", runs, format_func=lambda run: titles[run.id], key="growth-run", width=360,
                              help="The run whose model embeds the new images; its map and its images do not change.")
        with show_user_errors():
            _offer_map(chosen, dataset, changes)
    with show_user_errors():
        selected = [index for index in selection(dataset).ids.tolist() if index in changes.to_look_at]
        _show_nearest(chosen, dataset, selected[0] if selected else found[0].index)


def _offer_map(run: Run, dataset: Dataset, changes: Changes) -> None:
    maps = finished_maps(run)
    if not maps:
        return
    frame = "final" if "final" in maps[0].spec().frames else maps[0].spec().frames[-1]
    images = changes.to_look_at[:jobs.MOST_PLACED].tolist()
    if st.button(f"Place on its map ({len(images):,})", icon=":material/add_location:", key="growth-place",
                 help="Places the new images on the run's map, which is not computed again."):
        files = [(dataset.names[index], path.read_bytes()) for index in images
                 if (path := file_of(dataset, index)) is not None]
        jobs.place_images(run, maps[0], frame, files)
    view_link("explore", label="Open the map", icon=":material/explore:", query_params={"run": run.id},
              width="content")


def _show_nearest(run: Run, dataset: Dataset, index: int) -> None:
    """Show the nearest earlier images of a new image in a run's embedding."""
    st.markdown(f"**Nearest images of {escaped(dataset.names[index])} in this run**")
    retrieval = load_retrieval(run)
    tiles = [tile_of(retrieval.dataset, hit.index, badge=f"{hit.distance:.3f}")
             for hit in _nearest(run, dataset.digests[index], retrieval, dataset, index)]
    gallery(retrieval.dataset, tiles, "Nearest earlier images", "growth-nearest", 96, strip=True)
    st.caption("The first selected image, or the first of the new images, as the query. Number: distance to "
               "it, 0 for an equal image.")


@st.cache_data(max_entries=64, show_spinner="Embedding …", hash_funcs=RUN_HASH)
def _nearest(run: Run, digest: str, _retrieval: Retrieval, _dataset: Dataset, _index: int) -> list[Hit]:  # noqa: ARG001
    path = file_of(_dataset, _index)
    return [] if path is None else _retrieval.search_image(UserImage(path, _dataset.names[_index]), NEAREST)
