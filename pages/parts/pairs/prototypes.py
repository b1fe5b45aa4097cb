"""NML's prototypes: the images that each answers to most, its picture, and a kernel's response to one feature."""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import streamlit as st
from PIL import Image

from pages.parts.base.address import number_from_address, write_address
from pages.parts.base.cached import dataset_of, load_split
from pages.parts.base.epochs import load_record
from pages.parts.base.user_errors import show_user_errors
from pages.parts.components.gallery import gallery, tile_of
from pages.parts.components.slider import live_slider
from pages.parts.kit.downloads import Download, share, table_file
from pages.parts.kit.figures import COLORS, GRAY, draw, table_behind
from pages.parts.kit.pictures import picture
from udml_core.arrays import Array
from udml_core.data.dataset import Dataset
from udml_core.explanations import Prototypes
from udml_core.exploration import prototypes as views
from udml_core.runs import Run, find_run, runs_folder

SHOWN = 24
PICTURE = 168
TICKS = 201
KERNELS = {"chi2": ("χ²", "saturates"), "intersection": ("Smoothed intersection", "stops at l"),
           "hellinger": ("Hellinger", "rises ever slower"), "rbf": ("Gaussian", "falls again behind l")}
"""What a kernel is called, and what its response to one feature does."""


@st.fragment
@show_user_errors()
def explore_prototypes(run_id: str) -> None:
    """All prototypes, the chosen one, and the kernel."""
    run = find_run(run_id, runs_folder())
    record, dataset = load_record(run, run.kept_epoch(), Prototypes), dataset_of(run)
    assert record is not None
    values = run.embeddings("final")
    chosen = int(number_from_address("prototype", 1, 1, values.shape[1])) - 1
    st.markdown(f"Each of the **{values.shape[1]} dimensions** of the embedding is a learnt row l, and an image's "
                "value in it is how much its features are like that row by the kernel.")
    pick_prototype(dataset, values, chosen)
    answers(run, dataset, record, values[:, chosen], chosen)
    response(run, record, chosen)
    share([Download(f"Every image's value for prototype {chosen + 1}", "prototype.csv", "text/csv", lambda: table_file(
        dataset, np.arange(len(dataset)), {"k": values[:, chosen]}))], "prototypes")


def pick_prototype(dataset: Dataset, values: Array, chosen: int) -> None:
    """All prototypes, each as the image that answers to it most; one that is picked is looked at."""
    first, owners = np.unique(np.argmax(values, axis=0), return_inverse=True)
    names = [", ".join(str(one + 1) for one in np.flatnonzero(owners == number)) for number in range(len(first))]
    st.caption("Each by the image of its largest value; click one to look at it.")
    picked = gallery(dataset, [tile_of(dataset, image, badge=name)
                               for image, name in zip(first.tolist(), names, strict=True)],
                     "Prototypes by the image that answers most", "prototypes-list", 72,
                     chosen=int(first[owners[chosen]]), height=240)
    if picked is not None:
        write_address("prototype", str(int(np.flatnonzero(first[owners] == picked)[0]) + 1), "1")
        st.rerun(scope="fragment")
    st.session_state["prototypes-chosen"] = chosen
    st.selectbox("Looked at", range(values.shape[1]), key="prototypes-chosen", width=200,
                 format_func=lambda one: f"Prototype {one + 1}",
                 on_change=lambda: write_address("prototype", str(st.session_state["prototypes-chosen"] + 1), "1"))


def answers(run: Run, dataset: Dataset, record: Prototypes, values: Array, chosen: int) -> None:
    """One prototype: its picture where features are pixels, and who answers to it most in both halves."""
    encoder, split = run.spec().encoder, load_split(run)
    if encoder.backbone == "pixels":
        image = Image.fromarray(views.picture(record.rows[chosen], encoder.size, encoder.gray))
        picture(image.resize((PICTURE, PICTURE), Image.Resampling.NEAREST), PICTURE,
                f"Prototype {chosen + 1} as a picture of {encoder.size} × {encoder.size} pixels, the brighter the "
                "larger its entry", "As a picture")
    for words, rows, key in (("training half", split.train, "train"), ("test half", split.test, "test")):
        near = views.strongest(values, rows, SHOWN)
        st.markdown(f"**Of the {words}, these answer to prototype {chosen + 1} most** · the number is k(l, x)")
        gallery(dataset, [tile_of(dataset, image, badge=f"{rank}. {values[image]:.3f}")
                          for rank, image in enumerate(near.tolist(), 1)],
                f"Images of the {words} that answer to prototype {chosen + 1} most", f"prototypes-{key}", 76)


def response(run: Run, record: Prototypes, chosen: int) -> None:
    """What one feature adds to the kernel, as it grows, beside what it would add to a product."""
    method, width = run.spec().build_method().model_dump(), record.rows.shape[1]
    name, does = KERNELS[method["kernel"]]
    st.subheader(f"One feature: the {name} kernel {does}, a product does not")
    entries = width * record.rows[chosen]
    usual, high = round(float(entries.max()), 2), float(np.ceil(width * record.rows.max()))
    level = live_slider(f"l, the row's entry, in units of the mean feature 1/{width}", 0.0, high,
                        number_from_address("level", usual, 0, high), 0.01, "prototypes-level",
                        marks={usual: f"largest entry of prototype {chosen + 1}"})
    write_address("level", f"{level:g}", f"{usual:g}")
    ticks = np.linspace(0, 2 * high, TICKS)
    found, line = views.response(method["kernel"], method["scale"], width, level, ticks)
    figure = go.Figure()
    figure.add_scatter(x=ticks, y=found, name=f"{name} kernel", line={"color": COLORS[0]})
    figure.add_scatter(x=ticks, y=line, name="linear, scaled to meet at x = l",
                       line={"color": COLORS[1], "dash": "dash"})
    figure.add_vline(level, line={"width": 2, "dash": "dot", "color": GRAY}, annotation_text="x = l")
    figure.update_layout(height=300, margin={"l": 8, "r": 8, "t": 24, "b": 8}, legend={"orientation": "h", "y": -0.3},
                         xaxis_title="x, the image's feature, in units of the mean feature",
                         yaxis_title="its factor of k(l, x)" if name == "Gaussian" else "its part of k(l, x)")
    draw(figure, "prototypes-response", f"The {name} kernel's response to one feature at l = {level:g}: "
         f"{found[-1]:.3g} at x = {ticks[-1]:g}.")
    table_behind("The curves as a table", pd.DataFrame({"x": ticks, name: found, "Linear, scaled": line}))
