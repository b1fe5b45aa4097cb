"""A training that plays in the browser: a map, a query with its neighbors, and bars that compare the run."""

from __future__ import annotations

import html
from collections.abc import Mapping
from typing import Any

import numpy as np
import streamlit as st

from udml_core.base.arrays import Array, rows_of
from udml_core.base.errors import UserError
from udml_core.data.splits import fixed_sample
from udml_core.exploration.instrument import Instrument, make_instrument, near_rows
from udml_core.results.embedding_words import in_numbers
from udml_core.runs import Run
from udml_core.runs.analyses import finished_maps
from udml_core.runs.baselines import JUDGED, judged_baselines
from udml_core.runs.examples import SHOWCASE
from udml_core.runs.search import epoch_words

from ..draw.thumbnails import own_sheet
from ..draw.transport import Message, component
from ..shell.analyses import load_projection
from ..shell.cached import dataset_of, load_split
from ..shell.focus import carry_image, choose_image, current_elsewhere, remember_frame
from ..shell.interesting import interesting_queries
from ..shell.pools import among_sample
from ..shell.run_hash import RUN_HASH
from ..shell.run_picker import PARAMETER, app_run
from ..shell.run_status import METHOD_TITLES, run_title
from ..shell.views import open_view
from .story import bars_of, lines_to_beat, tell_story

MOST_PLAYED = JUDGED
"""Images of the sample that are drawn."""
KEY = "home-instrument"
APP = ("The app finds similar images, and teaches a model which images are similar, with few labels or none. "
       "<b>Search my folder</b> starts with your images, <b>Try it live</b> trains a model while you watch, and "
       "<b>Learn</b> explains the ideas in short lessons. The app keeps each training as a run, which the other pages "
       "search, explain and compare.")
HTML = """<div class="instrument" role="group">
<div class="headline"><div class="title"></div>
<div class="legend" role="group" aria-label="Colors of the classes"></div><output class="epoch"></output></div>
<div class="stage"><canvas class="map" tabindex="0" role="application" aria-roledescription="map"
  aria-label="Map of the sample. Left and right move the epoch, up and down choose another query, Space plays, plus and
  minus zoom, 0 shows all images, Enter searches with the query."></canvas>
<div class="zooms" role="toolbar" aria-label="Zoom"><button type="button" class="closer" aria-label="Zoom in">+</button>
<button type="button" class="farther" aria-label="Zoom out">−</button>
<button type="button" class="fit" aria-label="Show all images">⤢</button></div>
<div class="tip" hidden><canvas width="72" height="72"></canvas><div></div></div></div>
<div class="controls"><button type="button" class="play" aria-label="Play">▶</button>
<input type="range" class="cursor" aria-label="Epoch"></div>
<div class="strip">
<div class="asked"><canvas class="picture" width="96" height="96" role="img" aria-label="The query"></canvas>
<div class="words"><small></small><b></b></div>
<div class="actions"><button type="button" class="other">Another</button>
<button type="button" class="search">Search</button><button type="button" class="open">Explore</button></div></div>
<div class="rows"><div class="earlier"><small></small><div class="tiles" role="group"
  aria-label="The nearest images without this training"></div></div>
<div class="later"><small></small><div class="tiles" role="group" aria-label="The nearest images of the query"></div>
</div><div class="meanings"><span class="hit">hit: same class</span>
<span class="miss">miss: other class</span><i class="pool"></i></div></div>
<div class="measured"><p class="point"></p><div class="bars" role="img"></div></div>
</div></div>
"""


def is_playable(run: Run) -> bool:
    """Return whether a run of a known method has finished and has epochs to play."""
    return (run.spec().method in METHOD_TITLES and run.stored_status().state == "done"
            and len(run.epoch_numbers()) > 1)


def run_to_play(runs: list[Run]) -> Run | None:
    """Return the run in the address, else the showcase, the chosen or the newest run; None if none can be played.

    The showcase stays the same whatever was trained since: the newest run is not the best first picture.

    Args:
        runs: The listed runs, the newest first.
    """
    playable = [run for run in runs if is_playable(run)]
    linked = [run for run in playable if run.id == st.query_params.get(PARAMETER)]
    pinned = [run for run in playable if run.id == SHOWCASE]
    chosen = [run for run in playable if run.id == app_run()]
    return next(iter([*linked, *pinned, *chosen, *playable]), None)


def show_instrument(run: Run) -> None:
    """Show the training of a run as a picture that plays by itself.

    Raises:
        UserError: The run's data set or its sample cannot be read.
    """
    dataset = dataset_of(run)
    carry_image(dataset.fingerprint)
    indices = run.sample_indices()[_played_rows(run)]
    played = _load_instrument(run)
    message = Message()
    query, chosen = _first_query(run, indices, played)
    pool = among_sample(len(indices), load_split(run), len(dataset))
    header = {
        "label": f"The training of {run_title(run)}", "name": f"{run_title(run)} · {len(indices):,} images",
        "token": _token(run, indices), "count": len(indices),
        "epochs": [epoch_words(run, epoch) for epoch in run.epoch_numbers()],
        "width": played.neighbors.shape[2], "query": query, "chosen": chosen,
        "positions": message.once(played.positions), "neighbors": message.once(played.neighbors),
        "classes": None if dataset.labels is None else message.once(dataset.labels[indices].astype(np.int32)),
        "classNames": list(dataset.class_names), "pool": pool, "bars": _load_bars(run),
        "rival": _rival(run, indices, message),
        "sheets": own_sheet(message, dataset, tuple(indices.tolist()), 64)}
    _draw(run, indices, message.pack(header))


def show_about(run: Run) -> None:
    """Say what the app is for, what the picture shows, how the method works and what training changed, in a menu.

    Raises:
        UserError: The run's data set or its sample cannot be read.
    """
    recall = _load_instrument(run).recall
    story = tell_story(run, recall, [] if recall is None else _load_lines(run))
    parts = [f"<b>{html.escape(part)}</b>" if place % 2 else html.escape(part)
             for place, part in enumerate(story.split("**"))]
    with st.popover("What is this?", icon=":material/info:", type="tertiary"):
        st.html(f'<div class="home-story"><b>UDML Explorer</b><p>{APP}</p>'
                f'<b>The picture: {html.escape(run_title(run))}</b><p>{"".join(parts)}</p></div>')


@st.fragment
def _draw(run: Run, indices: Array, message: bytes) -> None:
    """Draw the picture, and follow what the user does with it."""
    with st.container(key="home-training"):
        result = component("instrument", HTML)(data=message, key=KEY, on_view_change=lambda: None,
                                               on_searched_change=lambda: None, on_opened_change=lambda: None)
    if result.view:
        _remember_view(run, indices, result.view)
    if result.searched is not None:
        open_view("retrieval", query_params={"run": run.id, "add": str(indices[int(result.searched)])})
    if result.opened:
        _remember_view(run, indices, result.opened)
        open_view("explore", query_params={"run": run.id})


def _rival(run: Run, indices: Array, message: Message) -> dict[str, Any] | None:
    """Return PCA's neighbors of the played images, with which the training is compared; None if they are not known."""
    rival = _load_rival(run)
    if rival is None or len(rival[0]) != len(indices):
        return None
    neighbors, width = rival
    return {"name": f"with PCA, {in_numbers(width)}", "neighbors": message.once(neighbors)}


def _token(run: Run, indices: Array) -> str:
    """Return what tells the browser's pictures apart."""
    return f"{run.id} {len(indices)}"


def _remember_view(run: Run, indices: Array, view: Mapping[str, Any]) -> None:
    """Make the query the current image, and the epoch at which the training stands still the epoch of other pages.

    The view of another run, which the page showed before, is ignored.
    """
    if view["token"] != _token(run, indices):
        return
    choose_image(int(indices[int(view["query"])]))
    epoch = view["epoch"]
    remember_frame(run, None if epoch is None else str(run.epoch_numbers()[int(epoch)]))


def _first_query(run: Run, indices: Array, played: Instrument) -> tuple[int, str]:
    """Return the row of the current image, else of the query that differs most from PCA, and how it was chosen."""
    current = current_elsewhere()
    row = -1 if current is None else int(rows_of(indices, int(current)))
    if row >= 0:
        return row, "Query"
    rival, labels = _load_rival(run), dataset_of(run).labels
    if rival is not None and labels is not None and len(rival[0]) == len(indices):
        return played.changed_query(rival[0], labels[indices]), "Training and PCA differ here"
    rows = rows_of(indices, np.array([image for image, _ in interesting_queries(run)], dtype=np.int64))
    return int(next(iter(rows[rows >= 0]), played.clearest_query)), "A query that changed much"


def _played_rows(run: Run) -> Array:
    """Return the rows of the sample that are drawn: of a large sample the images that curves are computed from."""
    return np.flatnonzero(np.isin(run.sample_indices(), fixed_sample(load_split(run).test, MOST_PLAYED)))


@st.cache_data(max_entries=8, show_spinner=False, hash_funcs=RUN_HASH)
def _load_lines(run: Run) -> list[dict[str, Any]]:
    return lines_to_beat(run)


@st.cache_data(max_entries=8, show_spinner=False, hash_funcs=RUN_HASH)
def _load_bars(run: Run) -> dict[str, Any] | None:
    recall = _load_instrument(run).recall
    return bars_of(run, recall, [] if recall is None else _load_lines(run), len(_played_rows(run)))


@st.cache_data(max_entries=8, show_spinner=False, hash_funcs=RUN_HASH)
def _load_rival(run: Run) -> tuple[Array, int] | None:
    embeddings = (judged_baselines(run, dataset_of(run)) or {}).get("centered pca")
    if embeddings is None:
        return None
    return near_rows(embeddings), embeddings.shape[1]


@st.cache_data(max_entries=8, show_spinner=False, hash_funcs=RUN_HASH)
def _load_instrument(run: Run) -> Instrument:
    rows, epochs = _played_rows(run), run.epoch_numbers()
    labels = dataset_of(run).labels
    return make_instrument([run.epoch_sample(epoch)[rows] for epoch in epochs],
                           None if labels is None else labels[run.sample_indices()[rows]], _layouts(run, rows))


def _layouts(run: Run, rows: Array) -> list[Array] | None:
    """Return the layouts of every epoch from a stored map of the sample; None if there is no such map."""
    frames = tuple(str(epoch) for epoch in run.epoch_numbers())
    for analysis in finished_maps(run):
        spec = analysis.spec()
        if spec.frames == frames and not spec.declared.is_linear:
            try:
                projection = load_projection(run, analysis.id)
            except UserError:
                continue
            if np.array_equal(projection.indices, run.sample_indices()):
                return [positions[rows] for positions in projection.positions]
    return None
