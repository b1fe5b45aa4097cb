"""A frame of a training on the page Lab: the map, the query and its neighbors at one epoch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from udml_core.base.arrays import Array, rows_of
from udml_core.exploration.interesting import first_query
from udml_core.exploration.map_content import Color, Layout
from udml_core.exploration.neighborhoods import nearest_rows
from udml_core.runs import Run
from udml_core.runs.search import epoch_words
from udml_core.runs.tasks import Status

from ..maps.scatter import Ring
from ..shell.focus import choose_image, current_elsewhere
from .start_map import framed, map_name, raw_words
from .watched import Watched, color_of, first_frame, live_map, untrained

NEIGHBORS = 8
SETTLED = 2
"""Stored epochs from which the first query is chosen for good: only then has anything changed."""


@dataclass(frozen=True)
class Shown:
    """A frame of the training. All of it is computed before any of it is drawn, so that all parts show one epoch.

    Attributes:
        watched: The images.
        epoch: The number of finished epochs.
        newest: The newest epoch that is stored.
        words: The name of the embedding.
        raw: The name of the raw features if the map shows them, else empty.
        is_moving: Whether the next frame follows by itself.
        layout: The positions on the map.
        color: The colors.
        ring: The query with its neighbors on the map.
        rows: The neighbors in rows below the map: words, images and name of the place.
    """

    watched: Watched
    epoch: float
    newest: float
    words: str
    raw: str
    is_moving: bool
    layout: Layout
    color: Color
    ring: Ring
    rows: Sequence[tuple[str, list[int], str]]


def frame_at(watched: Watched, epoch: float, epochs: Sequence[float], status: Status, raw: str, is_moving: bool
             ) -> Shown:
    """Compute the frame of an epoch; see `Shown`."""
    run, images, query = watched.run, watched.images, _query(watched)
    before, frozen = first_frame(watched), untrained(watched)
    positions = live_map(run.id).frame(epoch, epochs, watched.sample, None if before is None else before.positions)
    embedding = watched.sample(epoch)
    words = raw or moment_words(run, epoch, status)
    first = _nearest(watched, watched.sample(epochs[0]) if frozen is None else frozen, query)
    of_start = moment_words(run, epochs[0], status) if frozen is None else f"by {raw_words(run.spec())}"
    rows = [(of_start, first, "before")]
    if not raw and (frozen is not None or epoch != epochs[0]):
        now = _nearest(watched, embedding, query)
        rows.append((words + same_words(first, now), now, "now"))
    if raw and before is not None and frozen is not None:
        positions, embedding = before.positions, frozen
    near = images[nearest_rows(embedding, query, NEIGHBORS)]
    return Shown(watched, epoch, epochs[-1], words, raw, is_moving, framed(map_name(run.spec()), images, positions),
                 color_of(watched, epoch), Ring(int(images[query]), "query", near), rows)


def moment_words(run: Run, epoch: float, status: Status) -> str:
    """Return the name of an epoch; the newest epoch is not the last while a run trains."""
    if epoch % 1:
        return f"after {epoch % 1:.0%} of epoch {int(epoch) + 1}".replace("%", " %")
    epoch = int(epoch)
    is_last = status.state == "done" and epoch == run.kept_epoch()
    return f"after epoch {epoch}" if epoch and not is_last else epoch_words(run, epoch)


def _nearest(watched: Watched, embedding: Array, query: int) -> list[int]:
    """Return the images nearest to the query in an embedding (s, d) of all, nearest first."""
    return [int(index) for index in watched.images[nearest_rows(embedding, query, NEIGHBORS)]]


def same_words(before: list[int], now: list[int]) -> str:
    """Say that two rows show the same images; nothing if they do not."""
    if before == now:
        return ", the same images"
    return ", the same images in another order" if sorted(before) == sorted(now) else ""


def _query(watched: Watched) -> int:
    """Return the row of the query: the image that was clicked on the map or in a row, else the app's current image.

    Without a current image among the shown images, the query is the image that the first epochs improve most.
    """
    key = f"lab-query-{watched.run.id}"
    row = _clicked(watched)
    if row >= 0:
        choose_image(int(watched.images[row]))
        st.session_state[key] = row
    if key in st.session_state:
        return int(st.session_state[key])
    current = current_elsewhere()
    row = -1 if current is None else int(rows_of(watched.images, int(current)))
    epochs = watched.run.epoch_numbers()[:SETTLED]
    if row < 0:
        frozen = untrained(watched)
        row = first_query(watched.sample(epochs[0]) if frozen is None else frozen, watched.sample(epochs[-1]),
                          watched.labels)
    if len(epochs) == SETTLED:
        st.session_state[key] = row
    return row


def _clicked(watched: Watched) -> int:
    """Return the row of the image that was clicked on the map or below it; −1 without a click."""
    found = -1
    for place in ("lab-map", "lab-before", "lab-now"):
        index = getattr(st.session_state.get(place), "picked", None)
        row = -1 if index is None else int(rows_of(watched.images, int(index)))
        found = row if row >= 0 else found
    return found
