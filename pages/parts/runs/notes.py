"""The form for a run's name, note and tags."""

from __future__ import annotations

import streamlit as st

from udml_core.runs import Run
from udml_core.runs.notes import LONGEST_NAME, LONGEST_NOTE, MOST_TAGS, Notes

from ..shell.run_status import title_of
from ..shell.user_errors import show_user_errors


def notes_menu(run: Run, known_tags: list[str]) -> None:
    """Show the menu that changes a run's name, note and tags."""
    notes = run.notes()
    with (st.popover("Name and note", icon=":material/edit:", key=f"notes-menu-{run.id}"),
          st.form(f"notes-{run.id}", border=False)):
        name = st.text_input("Name", notes.name, max_chars=LONGEST_NAME, key=f"name-{run.id}",
                             placeholder=title_of(run.spec()), help="Shown wherever the run is named.")
        tags = st.multiselect("Tags", sorted({*known_tags, *notes.tags}), list(notes.tags), key=f"tags-{run.id}",
                              accept_new_options=True, max_selections=MOST_TAGS, placeholder="Type a tag, press Enter")
        note = st.text_area("Note", notes.note, max_chars=LONGEST_NOTE, key=f"note-{run.id}")
        if st.form_submit_button("Save", type="primary"):
            with show_user_errors():
                run.write_notes(Notes.make(name, note, tuple(tags)))
                st.rerun(scope="app")


def show_notes(run: Run) -> None:
    """Show a run's tags and note as text, and whether the file was damaged."""
    notes = run.notes()
    if notes.problem:
        st.warning(notes.problem, icon=":material/warning:")
    if notes.tags:
        with st.container(horizontal=True, gap="small"):
            for tag in notes.tags:
                st.badge(tag, color="gray")
    if notes.note:
        st.text(notes.note)
