"""The similar and dissimilar pairs that contain the current image."""

from __future__ import annotations

import numpy as np
import streamlit as st

from udml_core.numerics.explanations import Pairs

from ..draw.gallery import Mark, tile_of
from ..pairs.stored import StoredPairs
from ..shell.address import join_indices
from .workbench import DeepLink, Workbench, explain, link, say_stand_in

MOST = 20


def show_pairs(bench: Workbench) -> DeepLink:
    """Show the other images of the current image's pairs with their distances."""
    record, epoch = bench.record(Pairs), bench.epoch_with(Pairs)
    assert record is not None
    explain("Similar pairs should end up nearer than b, dissimilar pairs farther, both by a margin m.",
            "A pair violates the margin if m − y(b − d²) is above 0, where y is 1 for a similar and −1 for a "
            "dissimilar pair, and d² the squared distance.")
    stored = StoredPairs(bench.run, bench.dataset, record)
    shown = bench.nearest_of(np.unique(stored.pairs))
    say_stand_in(bench, shown, "in a stored pair")
    rows = np.flatnonzero((stored.pairs == shown).any(axis=1))
    rows = rows[np.argsort(-np.asarray(record.argument)[rows], kind="stable")]
    others = np.where(stored.pairs[rows, 0] == shown, stored.pairs[rows, 1], stored.pairs[rows, 0])
    kinds: tuple[tuple[str, bool, Mark], ...] = (("Similar", True, "same"), ("Dissimilar", False, "different"))
    for word, same, mark in kinds:
        of_kind = np.asarray(record.same)[rows] == same
        st.markdown(f"**{word} pairs: {of_kind.sum():,}**"
                    + (f" · {(np.asarray(record.argument)[rows][of_kind] > 0).sum():,} violate the margin"
                       if of_kind.any() else ""))
        if of_kind.any():
            tiles = [tile_of(bench.dataset, int(other), mark, f"{record.before[row]:.3f} → {record.after[row]:.3f}")
                     for row, other in zip(rows[of_kind][:MOST], others[of_kind][:MOST], strict=True)]
            bench.tiles(tiles, f"{word} to the image", f"pairs-{word.lower()}", 96)
    st.caption("The numbers are d² before training and after the epoch. Pairs that violate the margin most come first.")
    return link("pairs", bench, epoch=epoch, pair=join_indices(stored.pairs[rows[0]].tolist()))
