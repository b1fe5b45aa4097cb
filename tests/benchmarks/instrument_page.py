"""The page that the instrument benchmark measures: the same points on our map or on Plotly's scattergl.

The address selects what is shown: ?view=lasso|clusters|gallery & peer=ours|plotly & n=100000
"""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go
import streamlit as st
from sklearn.datasets import load_digits

from pages.parts.draw.gallery import gallery, tile_of
from pages.parts.draw.slider import live_slider
from pages.parts.maps.scatter import draw_map
from pages.parts.shell.cached import load_dataset
from pages.parts.shell.selection import selection
from udml_core.data.dataset import ArrayImages, Dataset
from udml_core.exploration.map_content import Color, Layout
from udml_core.numerics.graph import AuthorityGraph


@st.cache_resource
def positions(count: int) -> np.ndarray:
    """Return `count` digits, drawn with replacement, on their two principal axes, with noise."""
    pixels = load_digits().data - load_digits().data.mean(axis=0)
    plane = pixels @ np.linalg.svd(pixels, full_matrices=False)[2][:2].T
    random = np.random.default_rng(0)
    return (plane[random.integers(len(plane), size=count)] + random.normal(0, 1.5, (count, 2))).astype(np.float32)


@st.cache_resource
def graph(count: int) -> AuthorityGraph:
    return AuthorityGraph.build(positions(count), 50)


@st.cache_resource
def blank_images(count: int) -> Dataset:
    return Dataset("points", "Points", ArrayImages(np.zeros((count, 1, 1), np.uint8)), None, (), f"points-{count}", 1,
                   True, ())


def lasso(peer: str, count: int) -> None:
    points = positions(count)
    if peer == "ours":
        data = blank_images(count)
        draw_map(data, Layout(np.arange(count), points), Color("x", points[:, 0]), "Points", "map", images=False)
        chosen = len(selection(data).ids)
    else:
        figure = go.Figure(go.Scattergl(x=points[:, 0], y=points[:, 1], mode="markers",
                                        marker={"size": 4, "color": points[:, 0], "colorscale": "Cividis"}))
        figure.update_layout(dragmode="lasso", height=560)
        event = st.plotly_chart(figure, on_select="rerun", selection_mode="lasso", key="map")
        chosen = len(event["selection"]["point_indices"])
    st.markdown(f"chosen {chosen}")


@st.fragment
def clusters(peer: str, count: int) -> None:
    points = positions(count)
    epsilon = live_slider("ε", 0.0, 1.0, 0.65, 0.01, "epsilon")
    result = graph(count).clusters(epsilon)
    if peer == "ours":
        data = blank_images(count)
        names = tuple(str(number) for number in range(len(result.modes)))
        draw_map(data, Layout(np.arange(count), points), Color("cluster", result.labels, names), "Points", "map",
                 images=False)
    else:
        figure = go.Figure(go.Scattergl(x=points[:, 0], y=points[:, 1], mode="markers",
                                        marker={"size": 4, "color": result.labels, "colorscale": "Cividis"}))
        figure.update_layout(height=560, meta=f"{len(result.modes)} clusters")
        st.plotly_chart(figure, key="map")
    st.markdown(f"{len(result.modes)} clusters")


def tiles(count: int) -> None:
    data = load_dataset("fashion-mini")
    picked = gallery(data, [tile_of(data, index) for index in range(count)], "Images", "tiles", side=72, height=700)
    if st.button("Again"):
        st.session_state["again"] = st.session_state.get("again", 0) + 1
    st.markdown(f"picked {picked} again {st.session_state.get('again', 0)}")


st.set_page_config(layout="wide")
size = int(st.query_params.get("n", 100_000))
match st.query_params.get("view", "lasso"):
    case "lasso":
        lasso(st.query_params.get("peer", "ours"), size)
    case "clusters":
        clusters(st.query_params.get("peer", "ours"), size)
    case _:
        tiles(size)
