"""Charts of the similarity s: among images, and around a point in the plane."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from udml_core.exploration import neighborhoods as views
from udml_core.exploration.neighborhoods import Heat, similarity_in_plane

from ..draw.figures import draw
from ..draw.tables import table_behind
from ..shell.selection import selection
from .center import Center, surroundings_of

SET_SIZE, LARGEST_SET = 60, 150
"""Number of nearest images in the set without a selection, and the largest selection that is drawn."""
FEWEST_NAMED = 4
"""A smaller class gets no name on the axis, where it would overlap other names."""
COLOR_BAR = {"orientation": "h", "y": -0.2, "thickness": 14, "title": {"text": "s", "side": "right"}}


def show_heat(center: Center, geometry: views.Geometry) -> None:
    """Show s among the selected or the nearest images against the true classes."""
    st.subheader("Does s agree with the classes?")
    labels = center.dataset.labels
    if labels is None:
        st.caption("These images have no classes to compare with.")
        return
    selected = selection(center.dataset).ids
    own = [center.index] if center.index >= 0 else []
    nearest = np.unique(np.append(center.nearest[:SET_SIZE], own).astype(np.int64))
    use_selection = 1 < len(selected) <= LARGEST_SET
    images = selected if use_selection else nearest
    heat = views.heat(surroundings_of(center.run, center.which, tuple(images.tolist())), geometry, labels[images])
    words = f"The {len(images)} selected images." if use_selection else (
        f"The first image and its {min(SET_SIZE, len(center.nearest))} nearest images. Select 2 to {LARGEST_SET} "
        "images on a map to compare them instead"
        + (f"; {len(selected):,} selected images are too many." if len(selected) > LARGEST_SET else "."))
    st.caption(f"{words} The blocks on the diagonal are the classes.")
    heat_picture(heat, [center.dataset.class_names[label] for label in np.unique(labels[images])])
    if np.isfinite(heat.correlation):
        st.markdown(f"Mean s within a class **{heat.within:.3f}**, between classes **{heat.between:.3f}**; "
                    f"correlation with the true similarity **{heat.correlation:.2f}** (1 is perfect).")
    else:
        st.caption("All images have the same class, or each has its own, so that s cannot be compared with classes.")


def heat_picture(heat: Heat, classes: Sequence[str]) -> None:
    """Show s among images sorted by class, with the class names on the axis."""
    figure = go.Figure(go.Heatmap(z=heat.values, colorscale="Viridis", zmin=0, zmax=1, colorbar=COLOR_BAR,
                                  hovertemplate="s %{z:.3f}<extra></extra>"))
    for start in heat.starts[1:].tolist():
        figure.add_vline(x=start - 0.5, line={"width": 1, "color": "white"})
        figure.add_hline(y=start - 0.5, line={"width": 1, "color": "white"})
    ends = np.append(heat.starts[1:], len(heat.order))
    named = np.flatnonzero(ends - heat.starts >= FEWEST_NAMED)
    figure.update_layout(height=420, margin={"l": 8, "r": 8, "t": 8, "b": 8}, uirevision="kept")
    figure.update_xaxes(title="images by class", showticklabels=False, scaleanchor="y", constrain="domain")
    figure.update_yaxes(title="class", tickvals=(heat.starts + ends - 1)[named] / 2,
                        ticktext=[classes[row] for row in named.tolist()], autorange="reversed", constrain="domain")
    draw(figure, "neighborhood-heat", f"Similarities among {len(heat.order)} images sorted by class, in "
         f"{len(classes)} classes" + (f": {heat.within:.2f} on average within a class, {heat.between:.2f} between "
                                      "classes." if np.isfinite(heat.correlation) else "."))
    table = pd.DataFrame(heat.by_class.round(3), columns=list(classes))
    table.insert(0, "Class", list(classes))
    table_behind("Mean s between classes as a table", table)


def show_contours(n_alpha: float, n_beta: float) -> None:
    """Show lines of equal similarity around a point whose flat is horizontal."""
    st.caption("A point in the middle with the horizontal axis as its flat, at the Nα and Nβ above. If Nα is at least "
               "2Nβ, similarity decays faster across the flat than along it at every distance. If Nα is below 2Nβ, "
               "this does not hold close to the point.")
    ticks, values = similarity_in_plane(n_alpha, n_beta)
    figure = go.Figure(go.Contour(x=ticks, y=ticks, z=values, colorscale="Viridis", colorbar=COLOR_BAR,
                                  contours={"start": 0.1, "end": 0.9, "size": 0.1, "showlabels": True,
                                            "labelfont": {"color": "white"}}))
    figure.update_layout(height=360, margin={"l": 8, "r": 8, "t": 8, "b": 8}, xaxis_title="along the flat, p",
                         yaxis_title="across the flat, o")
    figure.update_yaxes(scaleanchor="x", constrain="domain")
    figure.update_xaxes(constrain="domain")
    at = np.linspace(0, len(ticks) // 2, 9).astype(int) + len(ticks) // 2
    table = pd.DataFrame({"Distance": ticks[at], "s along the flat": values[len(ticks) // 2, at],
                          "s across it": values[at, len(ticks) // 2]}).round(3)
    draw(figure, "neighborhood-toy", f"Equal similarity around a point at Nα {n_alpha:g} and Nβ {n_beta:g}: at "
         f"distance 1 s is {table['s along the flat'][4]} along the flat and {table['s across it'][4]} across it.")
    table_behind("Similarity along and across as a table", table)
