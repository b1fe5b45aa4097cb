"""Deleting a run, undoing it, and the trash."""

from __future__ import annotations

import streamlit as st

from udml_core.base.errors import byte_words
from udml_core.runs import Run, runs_folder
from udml_core.runs.tasks import LIVE_STATES
from udml_core.runs.trash import DAYS_KEPT, contents, delete_run, deleted_runs, empty_trash, restore_run

from ..shell.run_status import escaped, run_title
from ..shell.user_errors import show_user_errors

JUST_DELETED = "runs-just-deleted"


def loss_words(run: Run) -> str:
    """Return what a deletion loses, such as 3 epochs, 2 analyses and 12.3 MB."""
    lost = contents(run)
    counts = [f"{count} {word if count != 1 else one}" for count, word, one in
              ((lost.epochs, "epochs", "epoch"), (lost.analyses, "analyses (maps, graphs)", "analysis")) if count]
    return " and ".join([", ".join(counts), f"its results ({byte_words(lost.size)})"] if counts else
                        [f"its results ({byte_words(lost.size)})"])


def delete_menu(run: Run) -> None:
    """Show the menu that moves a run into the trash, after saying what is lost."""
    live = run.status().state in LIVE_STATES
    with st.popover("Delete", icon=":material/delete:", disabled=live, key=f"delete-menu-{run.id}",
                    help="Stop the run first." if live else None):
        st.markdown(f"Delete **{escaped(run_title(run))}** with {loss_words(run)}? It stays in the trash for "
                    f"{DAYS_KEPT:.0f} days.")
        if st.button("Move to trash", type="primary", icon=":material/delete:", key=f"delete-{run.id}"):
            with show_user_errors():
                title = run_title(run)
                delete_run(run)
                st.session_state[JUST_DELETED] = (run.id, title)
                for parameter in ("run", "with"):
                    st.query_params.pop(parameter, None)
                st.rerun(scope="app")


def show_undo() -> None:
    """Offer to restore the run that was deleted just now, and remove what is too old."""
    empty_trash(runs_folder(), DAYS_KEPT)
    deleted = st.session_state.get(JUST_DELETED)
    if deleted is None or deleted[0] not in {run.id for run in deleted_runs(runs_folder())}:
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        st.success(f"Deleted: {escaped(deleted[1])}", icon=":material/delete:")
        if st.button("Undo", icon=":material/undo:", key="undo-delete"):
            _restore(deleted[0])


def show_trash() -> None:
    """List the deleted runs, with buttons that restore them or empty the trash."""
    deleted = deleted_runs(runs_folder())
    if not deleted:
        return
    size = byte_words(sum(contents(run).size for run in deleted))
    with st.expander(f"Trash ({len(deleted)})", icon=":material/delete:"):
        for run in deleted:
            with st.container(horizontal=True, vertical_alignment="center"):
                name = escaped(run_title(run)) if run.has_spec() else run.id
                st.markdown(f"{name} · `{run.id}`", width="stretch")
                if st.button("Restore", icon=":material/undo:", key=f"restore-{run.id}"):
                    _restore(run.id)
        st.caption(f"Runs are removed for good {DAYS_KEPT:.0f} days after their deletion.")
        if st.button(f"Empty trash ({size})", icon=":material/delete_forever:", key="empty-trash",
                     help="Removes these runs for good."):
            empty_trash(runs_folder())
            st.rerun(scope="app")


def _restore(run_id: str) -> None:
    """Restore a run and choose it."""
    with show_user_errors():
        restore_run(run_id, runs_folder())
        st.session_state.pop(JUST_DELETED, None)
        st.query_params["run"] = run_id
        st.query_params.pop("with", None)
        st.rerun(scope="app")
