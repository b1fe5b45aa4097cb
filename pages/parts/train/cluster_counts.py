"""How many clusters the map of Lab shows, in words that follow the slider of ε while it moves."""

from __future__ import annotations

import numpy as np
import streamlit as st

from udml_core.base.arrays import Array, Integers
from udml_core.base.errors import counted

from ..draw.transport import component
from .start_map import EPSILON_SLIDER, EPSILONS

HTML = '<div class="counts" role="status" aria-live="polite"></div>\n'


def count_clusters(assignments: Array, epsilon: float) -> None:
    """Count the clusters of the images on the map at ε, as the map's legend does.

    Args:
        assignments: Cluster of each image at each of `EPSILONS`, (t, s); −1 for an image alone.
        epsilon: The planned ε.
    """
    st.markdown(f"**Clusters of the {assignments.shape[1]:,} images on the map**", help=(
        "ε decides which images share a cluster. A triplet is an anchor, a positive of the same cluster and a negative "
        "of another cluster; training corrects triplets beyond α."))
    words = [count_words(assignment, at) for assignment, at in zip(assignments, EPSILONS, strict=True)]
    component("counts", HTML)(data={"slider": EPSILON_SLIDER, "low": EPSILONS[0], "step": EPSILONS[1] - EPSILONS[0],
                                    "words": words, "value": epsilon}, key="train-counts")


def count_words(assignment: Integers, epsilon: float) -> str:
    """Count clusters (s,) in a sentence."""
    clusters, alone, largest = cluster_counts(assignment)
    return (f"ε = {epsilon:g}: {counted(clusters, 'cluster')}, {counted(alone, 'image')} alone; "
            f"{counted(largest, 'image')} in the largest cluster.")


def cluster_counts(assignment: Integers) -> tuple[int, int, int]:
    """Return the number of clusters, of images alone, and of images in the largest cluster."""
    sizes = np.bincount(assignment[assignment >= 0], minlength=1)
    return int((sizes > 0).sum()), int((assignment < 0).sum()), int(sizes.max())
