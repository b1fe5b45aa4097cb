"""The chooser of the method: a card each, a few at first, all in groups by the labels that they need."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

from udml_core.data.dataset import Dataset
from udml_core.methods import METHODS, Method

from ..draw.transport import component
from ..shell.method_lines import line_of

HTML = '<div class="cards" role="radiogroup"></div>\n'
GROUPS = {"none": "Without labels", "few": "With a few labels", "pairs": "With pairs of images",
          "all": "With the class of every training image"}
SUGGESTED, SECOND = "Suggested for these images", "To watch a training"
"""Headings of the first card: of the suggestion, and where a race advises no training."""
OTHERS = "Other methods"
"""Heading of the rest of the short list."""
SHORT = ("rpml", "plm", "ssdml")
"""Methods of the short list beside the suggested one: two that need no labels, and one that needs a few."""
MARKS = {"few": "needs labels", "pairs": "needs pairs", "all": "needs labels"}


def card_groups(suggested: str, heading: str, reason: Callable[[type[Method]], str]) -> list[dict[str, Any]]:
    """Return the cards in groups: the suggested method, then the others by the labels that they need.

    Args:
        suggested: Name of the method that is suggested for the data set.
        heading: What stands above it.
        reason: Returns why a method cannot be chosen; empty if it can.
    """
    def card(method: type[Method]) -> dict[str, Any]:
        return {"name": method.card.name, "title": method.card.title, "line": line_of(method),
                "mark": MARKS.get(method.card.supervision, ""), "reason": reason(method),
                "short": method.card.name in (suggested, *SHORT)}

    first = [method for method in METHODS if method.card.name == suggested]
    groups = [{"title": heading, "cards": list(map(card, first))}]
    for supervision, title in GROUPS.items():
        members = [method for method in METHODS if method.card.supervision == supervision and method not in first]
        groups.append({"title": title, "cards": list(map(card, members))})
    return [group for group in groups if group["cards"]]


def method_cards(chosen: str, suggested: str, heading: str, reason: Callable[[type[Method]], str],
                 on_pick: Callable[[str], None]) -> None:
    """Show the cards.

    Args:
        chosen: Name of the chosen method.
        suggested: Name of the method that is suggested for the data set.
        heading: What stands above it.
        reason: Returns why a method cannot be chosen; empty if it can.
        on_pick: Called with the name of another method before the page runs again.
    """
    def picked() -> None:
        name = st.session_state["lab-methods"].picked
        if name:
            on_pick(str(name))

    groups = card_groups(suggested, heading, reason)
    component("cards", HTML)(data={"label": "Method", "others": OTHERS, "chosen": chosen, "groups": groups},
                             key="lab-methods", on_picked_change=picked)


def lacking(method: type[Method], dataset: Dataset) -> str:
    """Return why a method cannot be chosen for a data set without labels; empty if pairs can be given beside it."""
    if method.card.supervision == "pairs":
        return ""
    if method.card.supervision == "few":
        return "Assign labels to images of two classes first, on the page Label."
    return f"Needs the class of every image; {'this table has' if dataset.is_table else 'these images have'} none."
