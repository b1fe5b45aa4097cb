"""A method's proxies: where training left them, and which images each stands for."""

from __future__ import annotations

import numpy as np
import streamlit as st

from udml_core.base.arrays import Array
from udml_core.data.dataset import Dataset
from udml_core.exploration import neighborhoods as views
from udml_core.numerics.explanations import Proxies
from udml_core.runs import Run

from ..draw.gallery import clicked_tile, gallery, tile_of
from ..maps.coloring import default_color
from ..maps.frame import UNITS, whole_map
from ..maps.scatter import draw_map
from ..shell.address import number_from_address, write_address
from ..shell.cached import dataset_of
from ..shell.run_hash import RUN_HASH
from ..shell.setting_words import setting_title
from ..shell.user_errors import fragment
from .center import set_images
from .rankings import SIDES, direction_images

NEAREST, SHOWN, AVERAGED = 200, 24, 5
"""Nearest images of a proxy: searched, shown, and averaged for its place on the map."""
COLLAPSED = 0.3
"""Mean distance between proxies below which they have collapsed."""


def proxies_of(run: Run) -> Proxies | None:
    """Return the proxies of the kept epoch; None if the method has none."""
    return next((record for record in run.explanations(run.kept_epoch()) if isinstance(record, Proxies)), None)


@st.cache_data(max_entries=8, show_spinner=False, hash_funcs=RUN_HASH)
def _nearest_images(run: Run) -> Array:
    """Return the indices of each proxy's nearest images, (c, n), nearest first."""
    proxies = proxies_of(run)
    assert proxies is not None
    return views.nearest_to_proxies(proxies, run.embeddings("final"), NEAREST)


@fragment
def explore_proxies(run: Run) -> None:
    """Show all proxies, and the current proxy with its nearest images."""
    dataset, proxies, nearest = dataset_of(run), proxies_of(run), _nearest_images(run)
    assert proxies is not None
    st.subheader("Proxies")
    st.markdown(f"{len(nearest)} proxies: learned points with flats of their own that represent the images outside a "
                "batch. They belong to the embedding after training.")
    distance = views.proxy_distance(proxies)
    if len(nearest) > 1 and distance < COLLAPSED:
        st.warning(f"The proxies have collapsed: their mean distance is {distance:.2f}, so they represent the same "
                   f"images or none. Train with a lower value of {setting_title('proxy_rate', 'plm')}.",
                   icon=":material/compress:")
    current = int(number_from_address("proxy", 0, 0, len(nearest) - 1))
    _draw_proxies(run, dataset, nearest, current)
    _show_list(dataset, nearest, current)
    _choose_proxy(len(nearest), current)
    _show_nearest_images(run, dataset, proxies, nearest[current], current)


def _draw_proxies(run: Run, dataset: Dataset, nearest: Array, current: int) -> None:
    shown = whole_map(run)
    if shown is None:
        return
    positions = views.mean_positions(shown.layout.positions, nearest[:, :AVERAGED])
    placed = [{"at": position, "word": _name(number) if number == current else ""}
              for number, position in enumerate(positions.tolist())]
    draw_map(dataset, shown.layout, default_color(shown), f"Map of all images with {len(placed)} proxies",
             "proxies-map", placed=placed, height=430)
    st.caption(f"A proxy is drawn at the mean position of its {AVERAGED} nearest images; the current proxy is labeled. "
               f"{UNITS}")


def _show_list(dataset: Dataset, nearest: Array, current: int) -> None:
    images, owners = np.unique(nearest[:, 0], return_inverse=True)
    tiles = [tile_of(dataset, image, badge=", ".join(map(_name, np.flatnonzero(owners == position).tolist())))
             for position, image in enumerate(images.tolist())]
    st.caption("Each proxy by its nearest image. Click an image to show its proxy.")
    clicked = gallery(dataset, tiles, "Proxies by their nearest images", "proxies-list", 72,
                      chosen=int(nearest[current, 0]), height=240)
    if clicked is not None:
        write_address("proxy", str(int(np.flatnonzero(nearest[:, 0] == clicked)[0])))
        st.rerun(scope="fragment")


def _choose_proxy(count: int, current: int) -> None:
    st.session_state["proxies-chosen"] = current
    st.selectbox("Proxy", range(count), key="proxies-chosen", format_func=_name, width=160,
                 on_change=lambda: write_address("proxy", str(st.session_state["proxies-chosen"])))


def _show_nearest_images(run: Run, dataset: Dataset, proxies: Proxies, nearest: Array, current: int) -> None:
    st.markdown(f"**The images nearest to {_name(current)}** · click an image to see its neighborhood above")
    clicks = [gallery(dataset, [tile_of(dataset, image) for image in nearest[:SHOWN].tolist()],
                      "Images nearest to the proxy", "proxies-near", 72)]
    directions = views.along_directions(run.embeddings("final")[nearest], proxies.places[current],
                                        proxies.directions[current], SIDES)
    clicks += [direction_images(dataset, nearest[along.positions], along, number, "proxy")
               for number, along in enumerate(directions, 1)]
    clicked = clicked_tile(clicks)
    if clicked is not None:
        set_images(clicked)
        st.rerun(scope="app")


def _name(number: int) -> str:
    return f"ρ{number + 1}"
