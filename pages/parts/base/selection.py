"""The selected images: one for all views of a data set, in the address, so that a link shows the same."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import streamlit as st

from udml_core.arrays import Array
from udml_core.data import selections
from udml_core.data.dataset import Dataset
from udml_core.errors import UserError

PARAMETER = "selected"
OF = 6
"""A selection in the address begins with so many digits of its data set's fingerprint."""


@dataclass(frozen=True)
class Selection:
    """ids: ascending positions in the data set. revision: rises with every change, so that views know the newest."""

    fingerprint: str
    ids: Array = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    revision: int = 0


def selection(dataset: Dataset) -> Selection:
    """What is selected in a data set: what this session holds, or what the address names."""
    held = st.session_state.get("selection")
    if isinstance(held, Selection) and held.fingerprint == dataset.fingerprint:
        _into_address(held)
        return held
    ids = np.zeros(0, dtype=np.int64)
    of, _, token = st.query_params.get(PARAMETER, "").partition(":")
    if token:
        try:
            if of != dataset.fingerprint[:OF]:
                raise UserError("The selection in this link is of another data set. Select anew.")
            ids = selections.recall(token, len(dataset))
        except UserError as error:
            st.warning(str(error), icon=":material/link_off:")
    newest = held.revision if isinstance(held, Selection) else 0
    found = Selection(dataset.fingerprint, ids, newest + 1)
    st.session_state["selection"] = found
    return found


def select(fingerprint: str, ids: Array, revision: int | None = None) -> None:
    """Change what is selected; the revision is a component's where the change came from one."""
    held = st.session_state.get("selection")
    newest = held.revision if isinstance(held, Selection) else 0
    if revision is not None and revision <= newest:
        revision = newest + 1
    st.session_state["selection"] = Selection(fingerprint, np.unique(ids), newest + 1 if revision is None else revision)


def _into_address(held: Selection) -> None:
    name = selections.keep(held.ids)
    token = f"{held.fingerprint[:OF]}:{name}" if name else ""
    if st.query_params.get(PARAMETER, "") == token:
        return
    if token:
        st.query_params[PARAMETER] = token
    else:
        st.query_params.pop(PARAMETER, None)
