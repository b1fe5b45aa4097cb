"""The options of a new map, generated from the declaration of analyses."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from udml_core.runs.analyses import AnalysisSpec


def options_of_each_map() -> None:
    """Show the options of each kind of map, and the values."""
    import streamlit as st

    from pages.parts.maps.choosing import pick_options

    st.json(pick_options(st.query_params["kind"]))


@pytest.mark.parametrize(("kind", "options"), [
    ("pca", {}), ("tsne", {"perplexity": 30.0, "seed": 0}),
    ("umap", {"n_neighbors": 15, "min_dist": 0.1, "seed": 0})])
def test_a_map_offers_the_numeric_options_that_change_it(kind: str, options: dict[str, float]) -> None:
    test = AppTest.from_function(options_of_each_map, default_timeout=60)
    test.query_params["kind"] = kind
    test.run()
    assert not test.exception
    widgets = {widget.key: widget for name in ("slider", "number_input") for widget in test.get(name)}
    assert {key.removeprefix("new-"): widget.value for key, widget in widgets.items()} == options
    for name, default in options.items():
        assert default == AnalysisSpec.model_fields[name].get_default()
    if kind == "umap":
        slider = widgets["new-min_dist"]
        assert (slider.label, slider.min, slider.max, slider.step) == ("Minimum distance", 0.0, 0.99, 0.01)
    if kind == "tsne":
        assert (widgets["new-perplexity"].min, widgets["new-perplexity"].max) == (5.0, 100.0)
