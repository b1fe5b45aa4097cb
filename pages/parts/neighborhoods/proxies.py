"""A method's proxies: where they ended, and what each stands for."""

from __future__ import annotations

import numpy as np
import streamlit as st

from pages.parts.base.address import number_from_address, write_address
from pages.parts.base.cached import dataset_of
from pages.parts.base.selection import selection
from pages.parts.base.user_errors import show_user_errors
from pages.parts.components.gallery import clicked_tile, gallery, tile_of
from pages.parts.components.scatter import scatter
from pages.parts.map.shown_map import UNITS, colorings, covering_map
from pages.parts.neighborhoods.flat import direction_images
from pages.parts.retrieval.query import look_at
from udml_core.arrays import Array
from udml_core.explanations import Proxies
from udml_core.exploration import neighborhoods as views
from udml_core.runs import Run, find_run, runs_folder

NEAREST, SHOWN, AMID, SIDES = 200, 24, 5, 5
MET = 0.3


def proxies_of(run: Run) -> Proxies | None:
    """The proxies of the epoch that was kept; None of a method without."""
    return next((one for one in run.explanations(run.kept_epoch()) if isinstance(one, Proxies)), None)


@st.cache_data(max_entries=8, show_spinner=False)
def stood_for(folder: str) -> Array:
    """The data set positions of each proxy's nearest images, (c, n), nearest first."""
    run = find_run(folder, runs_folder())
    proxies = proxies_of(run)
    assert proxies is not None
    return views.proxies_near(proxies, run.embeddings("final"), NEAREST)


@st.fragment
@show_user_errors()
def explore_proxies(run_id: str) -> None:
    """Where the proxies ended, and what each stands for."""
    run = find_run(run_id, runs_folder())
    dataset, proxies, near = dataset_of(run), proxies_of(run), stood_for(str(run.folder))
    assert proxies is not None
    st.header("Proxies")
    st.markdown(f"Learnt points, {len(near)} of them, stand for what a batch does not see, each with a flat of its "
                "own. They are of the embedding after training.")
    spread = views.spread(proxies)
    if len(near) > 1 and spread < MET:
        st.warning(f"The proxies have met: two of them are {spread:.2f} apart on average, so they stand for the same, "
                   "or for nothing. Train with a lower field 'proxy_rate'.", icon=":material/compress:")
    chosen = int(number_from_address("proxy", 0, 0, len(near) - 1))
    shown = covering_map(run, np.arange(len(dataset)))
    if shown is not None:
        places = views.amid(shown.layout.positions, near[:, :AMID])
        placed = [{"at": at, "word": f"ρ{number + 1}" if number == chosen else ""}
                  for number, at in enumerate(places.tolist())]
        scatter(dataset, shown.layout, next(iter(colorings(shown).values()))(), selection(dataset),
                f"Map of all images with {len(placed)} proxies", "proxies-map", placed=placed, height=430)
        st.caption(f"A proxy is drawn amid its {AMID} nearest images, and the chosen one has its name. {UNITS}")
    first, owners = np.unique(near[:, 0], return_inverse=True)
    tiles = [tile_of(dataset, image, badge=", ".join(f"ρ{one + 1}" for one in np.flatnonzero(owners == number)))
             for number, image in enumerate(first.tolist())]
    st.caption("Each by the image nearest to it; click one to see what it stands for.")
    picked = gallery(dataset, tiles, "Proxies by their nearest images", "proxies-list", 72,
                     chosen=int(near[chosen, 0]), height=240)
    if picked is not None:
        write_address("proxy", str(int(np.flatnonzero(near[:, 0] == picked)[0])))
        st.rerun(scope="fragment")
    st.session_state["proxies-chosen"] = chosen
    st.selectbox("Proxy", range(len(near)), key="proxies-chosen", format_func=lambda one: f"ρ{one + 1}", width=160,
                 on_change=lambda: write_address("proxy", str(st.session_state["proxies-chosen"])))
    st.markdown(f"**The images nearest to ρ{chosen + 1}** · click one to look at its neighborhood, above")
    clicks = [gallery(dataset, [tile_of(dataset, image) for image in near[chosen, :SHOWN].tolist()],
                      "Images nearest to the proxy", "proxies-near", 72)]
    embedding = run.embeddings("final")
    for number, along in enumerate(views.along_directions(embedding[near[chosen]], proxies.places[chosen],
                                                          proxies.directions[chosen], SIDES), 1):
        clicks.append(direction_images(dataset, near[chosen][along.places], along, number, "proxy"))
    wanted = clicked_tile(clicks)
    if wanted is not None:
        look_at(wanted)
        st.rerun(scope="app")
