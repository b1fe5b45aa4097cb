"""The page without a sweep: what a sweep shows, from a record, and a small sweep to begin with."""

from __future__ import annotations

import re

import plotly.graph_objects as go
import streamlit as st

from udml_core.base.files import read_json
from udml_core.results.records import FOLDER
from udml_core.runs import runs_folder
from udml_core.work import sweeps

from ..draw.figures import draw, line_style, titled
from ..draw.palette import BEFORE
from ..shell.cached import load_dataset
from ..shell.user_errors import show_user_errors
from ..shell.views import open_view

RECORD = FOLDER / "rpml-regimes.json"
WIDTHS = {"Birds": "64 dimensions", "Fashion-MNIST": "64 dimensions", "Digits": "32 dimensions"}
"""The data sets of the record, and the width that the picture shows."""
ROW = re.compile(r"α = (\d+)°, random triplets")
FIRST = {"data": "digits", "methods": {"rpml": {"alpha": [15, 30, 45], "dimension": 8}},
         "options": {"backbone": "pixels", "split": "seen"}}
"""A sweep that takes seconds."""
NAME = "RPML on digits: three angles"
EXAMPLE = """\
data: digits
methods:
  rpml: {alpha: [15, 30, 45]}
fields: {dimension: [16, 32]}
seeds: 3
"""


def show_empty() -> None:
    """Show a recorded sweep as the picture, and the button that starts a small one."""
    st.markdown("A **sweep** trains one run for each of several values and shows which value is best.")
    _draw_record()
    if st.button("Try α = 15°, 30° and 45° on the digits", type="primary", icon=":material/play_arrow:",
                 key="sweeps-first", help="Three short runs of RPML on 1,797 small images."):
        with show_user_errors():
            begun = sweeps.start_sweep(sweeps.make_sweep(FIRST, NAME), runs_folder(), load_dataset)
            open_view("sweeps", query_params={"sweep": begun.sweep.id})
    with st.expander("Other values, and sweeps from the terminal", icon=":material/terminal:"):
        st.caption("**Try several values** below the form of **One run** varies any fields of any method. A file "
                   "sweep.yaml such as this one plans 18 runs; `python -m udml_core sweep sweep.yaml` starts them.")
        st.code(EXAMPLE, language=None)  # the colors of highlighted words are too pale


def recorded() -> dict[str, list[tuple[float, float]]]:
    """Return α in degrees and the difference in MAP@R to PCA in points, by data set, from the record."""
    curves: dict[str, list[tuple[float, float]]] = {}
    for title, table in read_json(RECORD)["datasets"].items():
        name = next((name for name in WIDTHS if title.startswith(name)), "")
        if "MAP@R minus" not in title or not name:
            continue
        curves[name] = [(float(found[1]), float(row[WIDTHS[name]])) for text, row in table["rows"].items()
                        if (found := ROW.fullmatch(text)) is not None]
    return curves


def _draw_record() -> None:
    figure = go.Figure()
    ends = []
    for number, (name, points) in enumerate(recorded().items()):
        named = f"{name}, {WIDTHS[name].split()[0]} numbers"
        figure.add_scatter(x=[x for x, _ in points], y=[y for _, y in points], name=named, mode="lines+markers",
                           line=line_style(number), hovertemplate="%{y:.1f} points")
        ends.append(f"{name} {points[0][1]:.1f} at {points[0][0]:g}° to {points[-1][1]:.1f} at {points[-1][0]:g}°")
    figure.add_hline(0, line={"color": BEFORE, "dash": "dash"}, annotation_text="PCA", annotation_position="top left")
    title = ("A recorded sweep of RPML on unseen classes: birds and clothes need an angle α of 35° or more, digits do "
             "best at 25°")
    st.markdown(f"**{title}**")  # a chart's own title would be cut on a phone
    titled(figure, "", 430, hovermode="x unified", legend={"orientation": "h", "y": -0.3})
    figure.update_xaxes(title="largest half angle α, °")
    figure.update_yaxes(title="MAP@R against PCA, points")
    draw(figure, "sweeps-record", f"{title}. Difference in MAP@R: {'; '.join(ends)}.")
    st.caption("Measured on images of classes that no run had trained on, beside PCA with as many numbers for each "
               "image. The small sweep below asks which angle is best for the digits in another setting: its test "
               "images show the ten digits that it trained on, with 8 numbers each.")
