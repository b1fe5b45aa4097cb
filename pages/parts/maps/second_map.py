"""Choosing what to show beside a map."""

from __future__ import annotations

import streamlit as st

from udml_core.runs import Run

from ..shell.address import choice_from_address, write_address
from ..shell.run_picker import pick_run
from .choosing import pick_map

COMPARISONS = {"": "Compare with …", "frame": "Another embedding", "run": "Another map or run"}


def pick_comparison(embeddings: int, width: int) -> str:
    """Choose what to show beside the map; the address holds the choice.

    Args:
        embeddings: Number of the map's embeddings; a map of one embedding has no other to compare with.
        width: Width in pixels.
    """
    offered = [name for name in COMPARISONS if name != "frame" or embeddings > 1]
    wanted = choice_from_address("compare", offered, "")
    comparison = st.selectbox("Compare with", offered, offered.index(wanted), format_func=COMPARISONS.__getitem__,
                              key="choose-compare", label_visibility="collapsed", width=width)
    write_address("compare", comparison)
    return comparison


def pick_second_map(run: Run) -> tuple[Run | None, str | None]:
    """Choose a run on the same images and one of its maps."""
    images = run.spec().fingerprint
    left, right = st.columns(2)
    with left:
        second_run = pick_run("Second run", "run2", lambda other: other.spec().fingerprint == images)
    with right:
        return second_run, pick_map(second_run, "map2", "Second map") if second_run else None
