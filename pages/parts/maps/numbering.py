"""The numbers of clusters on a map, which a session keeps while a slider moves."""

from __future__ import annotations

import streamlit as st

from udml_core.base.arrays import Integers
from udml_core.exploration.identity import Numbered, number_clusters
from udml_core.exploration.map_content import Color

NUMBERED = "clusters-numbered"
MOST_NAMED = 10_000
"""Clusters that have a color; a large data set can have hundreds of thousands, most of them of few images."""


def keep_numbers(images: str, assignment: Integers) -> Integers:
    """Return numbers (n,) from 0 for clusters, the same as before for clusters that stay.

    Args:
        images: Names the clustered images; clusters of other images get new numbers.
        assignment: (n,) code of each image's cluster; −1 for an image alone.
    """
    key, before = st.session_state.get(NUMBERED, ("", None))
    known = before if key == images and before is not None and len(before.numbers) == len(assignment) else None
    now: Numbered = number_clusters(assignment, known)
    st.session_state[NUMBERED] = (images, now)
    return now.numbers


def numbered_color(label: str, numbers: Integers, none: str, highest: int = -1) -> Color:
    """Return the colors of clusters by their numbers (n,) from 0, which the legend counts from 1.

    Args:
        label: Name of the coloring.
        numbers: The numbers; −1 for an image without a cluster.
        none: What an image without a cluster is called.
        highest: Highest number that has a name although no cluster has it now.
    """
    named = numbers < MOST_NAMED
    names = tuple(f"cluster {number + 1}" for number in range(int(numbers[named].max(initial=highest)) + 1))
    rest = "" if named.all() else f", or outside the {MOST_NAMED:,} largest"
    return Color(label, numbers * named - ~named, names, none=none + rest, fixed=True)
