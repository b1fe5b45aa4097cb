"""The selected images: one selection for all views of a data set.

The address holds the selection, so that a link shows it too.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import streamlit as st

from udml_core.base.arrays import Array
from udml_core.base.errors import UserError
from udml_core.data import selections
from udml_core.data.dataset import Dataset

from .address import whole_runs
from .run_status import escaped_message

PARAMETER = "selected"
NOTE = "selection-note"
PREFIX = 6
"""Number of digits of the data set's fingerprint that a selection in the address begins with."""


@dataclass(frozen=True)
class Selection:
    """The selected images of a data set.

    Attributes:
        fingerprint: The data set's fingerprint.
        ids: (s,) ascending image indices.
        revision: A number that rises with every change, so that views know the newest selection.
    """

    fingerprint: str
    ids: Array = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    revision: int = 0


def selection(dataset: Dataset) -> Selection:
    """Return this session's selection in a data set, else the address's selection.

    After Back or Forward the address's selection replaces the session's.
    """
    current = st.session_state.get("selection")
    if isinstance(current, Selection) and current.fingerprint == dataset.fingerprint and not _went_back(current):
        _write_to_address(current)
        return current
    ids = np.zeros(0, dtype=np.int64)
    prefix, _, token = st.query_params.get(PARAMETER, "").partition(":")
    if token:
        try:
            if prefix != dataset.fingerprint[:PREFIX]:
                raise UserError("The selection in this link is of another data set. Select images again.")
            ids = selections.load_selection(token, len(dataset))
        except UserError as error:
            st.warning(escaped_message(str(error)), icon=":material/link_off:")
    revision = current.revision if isinstance(current, Selection) else 0
    restored = Selection(dataset.fingerprint, ids, revision + 1)
    st.session_state["selection"] = restored
    _note(restored)
    return restored


def select(fingerprint: str, ids: Array, revision: int | None = None) -> None:
    """Change the selection.

    Args:
        fingerprint: The data set's fingerprint.
        ids: Indices of the images, in any order.
        revision: The component's revision if a component made the change.
    """
    current = st.session_state.get("selection")
    newest = current.revision if isinstance(current, Selection) else 0
    if revision is not None and revision <= newest:
        revision = newest + 1
    st.session_state["selection"] = Selection(fingerprint, np.unique(ids), newest + 1 if revision is None else revision)


def _went_back(current: Selection) -> bool:
    """Return whether the browser shows an earlier or later address of this page than the session's selection wrote."""
    revision, page, runs, token = st.session_state.get(NOTE, (None, "", 0, ""))
    return (revision == current.revision and page == st.session_state.get("page") and runs != whole_runs()
            and token != st.query_params.get(PARAMETER, ""))


def _note(current: Selection) -> None:
    """Remember the address that this selection has on this page."""
    st.session_state[NOTE] = (current.revision, st.session_state.get("page"), whole_runs(),
                              st.query_params.get(PARAMETER, ""))


def _write_to_address(current: Selection) -> None:
    name = selections.store_selection(current.ids)
    token = f"{current.fingerprint[:PREFIX]}:{name}" if name else ""
    if st.query_params.get(PARAMETER, "") != token:
        if token:
            st.query_params[PARAMETER] = token
        else:
            st.query_params.pop(PARAMETER, None)
    _note(current)
