"""Undo and redo of selections, filters, queries and exclusions.

A page names the parts of its view that can be undone, and the history notices their changes whenever the page is drawn.
Labels and deleted runs have an undo of their own, because theirs survives the session.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import streamlit as st

from udml_core.data.dataset import Dataset

from .address import write_address
from .selection import select, selection

HISTORY = "view-history"
MOST = 50
"""Most changes that can be undone."""
SELECTED = "selected"
"""The part that all pages share: the data set's selection."""
View = dict[str, Any]
"""Values of parts of the view, by name."""


@dataclass
class History:
    """The changes of one data set's views in a session.

    Attributes:
        fingerprint: The data set's fingerprint.
        page: The page that was drawn last.
        last: The page's parts as they were drawn last.
        undone: Earlier values of the parts that a change replaced, the newest change last, for Undo; and the values
            that Undo replaced, for Redo.
    """

    fingerprint: str
    page: str = ""
    last: View = field(default_factory=dict)
    undone: dict[str, list[View]] = field(default_factory=lambda: {"Undo": [], "Redo": []})

    def notice(self, page: str, now: View) -> None:
        """Remember what a change since the last drawing replaced.

        Another page has other filters, so that only the selection's changes stay.
        """
        if page != self.page:
            self.page = page
            self.last = {name: value for name, value in self.last.items() if name == SELECTED}
            for kind, changes in self.undone.items():
                self.undone[kind] = [change for change in changes if set(change) == {SELECTED}]
        replaced = {name: old for name, old in self.last.items()
                    if name in now and not np.array_equal(old, now[name])}
        if replaced:
            self.undone["Undo"] = [*self.undone["Undo"], replaced][-MOST:]
            self.undone["Redo"].clear()
        self.last = now

    def take(self, kind: str) -> View:
        """Remove the newest change from Undo or Redo, and keep what it replaces for the other."""
        change = self.undone[kind].pop()
        self.undone["Redo" if kind == "Undo" else "Undo"].append({name: self.last[name] for name in change})
        self.last |= change
        return change


def undo_buttons(dataset: Dataset, key: str, parameters: Sequence[str] = (), widgets: Sequence[str] = (),
                 selects: bool = True, is_narrow: bool = False) -> None:
    """Show buttons that undo and redo changes of the view; they stand there before a change, so that nothing moves.

    Args:
        dataset: The data set of the view.
        key: Prefix of the buttons' keys.
        parameters: Address parameters that belong to the view.
        widgets: Keys of widgets that belong to the view.
        selects: Whether the data set's selection belongs to the view.
        is_narrow: Whether the buttons show their icons alone; their words stand in tooltips.
    """
    history = st.session_state.get(HISTORY)
    if not isinstance(history, History) or history.fingerprint != dataset.fingerprint:
        history = st.session_state[HISTORY] = History(dataset.fingerprint)
    view: View = {f"?{name}": st.query_params.get(name, "") for name in parameters}
    view |= {name: st.session_state[name] for name in widgets if name in st.session_state}
    view |= {SELECTED: selection(dataset).ids} if selects else {}
    history.notice(st.session_state.get("page", ""), view)
    name = f"{'icons' if is_narrow else 'undo'}-of-{key}"  # app.css shows the icons alone
    with st.container(horizontal=True, width="content", gap="small", key=name):  # side by side, also in a narrow row
        for kind, icon, shortcut in (("Undo", "undo", "U"), ("Redo", "redo", "Shift+U")):
            st.button(kind, icon=f":material/{icon}:", key=f"{key}-{kind.lower()}", shortcut=shortcut, type="tertiary",
                      disabled=not history.undone[kind], on_click=_restore, args=(history, kind),
                      help=f"{kind}. Key {shortcut}." if is_narrow else None)


def _restore(history: History, kind: str) -> None:
    """Restore the parts of the view that the newest change replaced."""
    for name, value in history.take(kind).items():
        if name == SELECTED:
            select(history.fingerprint, value)
        elif name.startswith("?"):
            write_address(name[1:], value)
        else:
            st.session_state[name] = value
