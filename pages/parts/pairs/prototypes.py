"""NML's prototypes: similar images, pictures, and the kernel's response."""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import streamlit as st
from PIL import Image

from udml_core.base.arrays import Array
from udml_core.data.dataset import Dataset
from udml_core.exploration import prototypes as views
from udml_core.numerics.explanations import Prototypes
from udml_core.runs import Run

from ..draw.downloads import Download, share, table_file
from ..draw.figures import COLORS, CURSOR, draw
from ..draw.gallery import gallery, tile_of
from ..draw.pictures import picture
from ..draw.slider import live_slider
from ..draw.tables import table_behind
from ..shell.address import number_from_address, write_address
from ..shell.cached import dataset_of, load_split
from ..shell.epochs import load_record
from ..shell.user_errors import fragment

MOST_SIMILAR = 24
SIDE = 168
TICKS = 201
LEVEL_STEP = 0.01
"""Step of the slider for l: 1 % of the mean feature, the slider's unit, so that it fits any number of features."""
KERNELS = {"chi2": ("χ²", "saturates"), "intersection": ("Smoothed intersection", "stops growing at l"),
           "hellinger": ("Hellinger", "grows ever more slowly"), "rbf": ("Gaussian", "decreases beyond l")}
"""Title of each kernel, and how its response to one feature behaves."""


@fragment
def explore_prototypes(run: Run) -> None:
    """Show all prototypes, the current prototype and the kernel."""
    record, dataset = load_record(run, run.kept_epoch(), Prototypes), dataset_of(run)
    assert record is not None
    embedding = run.embeddings("final")
    current = int(number_from_address("prototype", 1, 1, embedding.shape[1])) - 1
    st.markdown(f"Each of the **{embedding.shape[1]} dimensions** of the embedding is a learned prototype l. An "
                "image's value in it is the kernel similarity k(l, x) of the image's features x to the prototype.")
    pick_prototype(dataset, embedding, current)
    similar_images(run, dataset, record, embedding[:, current], current)
    kernel_response(run, record, current)
    share([Download(f"Value of every image for prototype {current + 1}", "prototype.csv", "text/csv",
                    lambda: table_file(dataset, np.arange(len(dataset)), {"k": embedding[:, current]}))], "prototypes")


def pick_prototype(dataset: Dataset, embedding: Array, current: int) -> None:
    """Show each prototype by its most similar image.

    A click makes the prototype the current prototype.
    """
    images, owners = np.unique(np.argmax(embedding, axis=0), return_inverse=True)
    names = [", ".join(str(prototype + 1) for prototype in np.flatnonzero(owners == number))
             for number in range(len(images))]
    st.caption("Each prototype is shown by its most similar image, under the prototype's number. Click an image to "
               "make its prototype the current prototype.")
    clicked = gallery(dataset, [tile_of(dataset, image, badge=name)
                                for image, name in zip(images.tolist(), names, strict=True)],
                      "Prototypes by their most similar images", "prototypes-list", 72,
                      chosen=int(images[owners[current]]), height=240)
    if clicked is not None:
        write_address("prototype", str(int(np.flatnonzero(images[owners] == clicked)[0]) + 1), "1")
        st.rerun(scope="fragment")
    st.session_state["prototypes-chosen"] = current
    st.selectbox("Current prototype", range(embedding.shape[1]), key="prototypes-chosen", width=200,
                 format_func=lambda prototype: f"Prototype {prototype + 1}",
                 on_change=lambda: write_address("prototype", str(st.session_state["prototypes-chosen"] + 1), "1"))


def similar_images(run: Run, dataset: Dataset, record: Prototypes, values: Array, current: int) -> None:
    """Show the most similar images of both halves to a prototype.

    If features are pixels, the prototype is shown as an image, too.
    """
    encoder, split = run.spec().encoder, load_split(run)
    if encoder.backbone == "pixels":
        image = Image.fromarray(views.picture(record.rows[current], encoder.size, encoder.gray))
        picture(image.resize((SIDE, SIDE), Image.Resampling.NEAREST), SIDE,
                f"Prototype {current + 1} as an image of {encoder.size} × {encoder.size} pixels; larger entries are "
                "brighter", "As an image")
    for half, rows, key in (("training half", split.train, "train"), ("test half", split.test, "test")):
        nearest = views.strongest_rows(values, rows, MOST_SIMILAR)
        st.markdown(f"**Images of the {half} most similar to prototype {current + 1}** · badge: rank and k(l, x)")
        gallery(dataset, [tile_of(dataset, image, badge=f"{rank} · {values[image]:.3f}")
                          for rank, image in enumerate(nearest.tolist(), 1)],
                f"Images of the {half} most similar to prototype {current + 1}", f"prototypes-{key}", 76)


def kernel_response(run: Run, record: Prototypes, current: int) -> None:
    """Chart the contribution of one feature to the kernel and to a linear kernel."""
    fields, width = run.spec().build_method().model_dump(), record.rows.shape[1]
    name, behavior = KERNELS[fields["kernel"]]
    st.subheader(f"One feature: the {name} kernel {behavior}; a linear kernel does not")
    entries = width * record.rows[current]
    default, high = round(float(entries.max()), 2), float(np.ceil(width * record.rows.max()))
    level = live_slider(f"Entry l of the prototype, in units of the mean feature 1/{width}", 0.0, high,
                        number_from_address("level", default, 0, high), LEVEL_STEP, "prototypes-level",
                        marks={default: f"largest entry of prototype {current + 1}"})
    write_address("level", f"{level:g}", f"{default:g}")
    ticks = np.linspace(0, 2 * high, TICKS)
    response, linear = views.response(fields["kernel"], fields["scale"], width, level, ticks)
    figure = go.Figure()
    figure.add_scatter(x=ticks, y=response, name=f"{name} kernel", line={"color": COLORS[0]})
    figure.add_scatter(x=ticks, y=linear, name="linear, scaled to meet at x = l",
                       line={"color": COLORS[1], "dash": "dash"})
    figure.add_vline(level, line=CURSOR, annotation_text="x = l")
    figure.update_layout(height=300, margin={"l": 8, "r": 8, "t": 24, "b": 8}, legend={"orientation": "h", "y": -0.3},
                         xaxis_title="feature x of the image, in units of the mean feature",
                         yaxis_title="factor of k(l, x)" if name == "Gaussian" else "contribution to k(l, x)")
    draw(figure, "prototypes-response", f"Response of the {name} kernel to one feature at l = {level:g}: "
         f"{response[-1]:.3g} at x = {ticks[-1]:g}.")
    table_behind("Curves as a table", pd.DataFrame({"x": ticks, name: response, "Linear, scaled": linear}))
