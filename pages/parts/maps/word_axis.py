"""Values of a map's images along an attribute axis: by how much an image is nearer to one text than to another."""

from __future__ import annotations

import streamlit as st

from udml_core.base.arrays import Array
from udml_core.base.errors import UserError
from udml_core.exploration.words import attribute_values
from udml_core.runs.search.words import LONGEST_TEXT, mean_direction, read_texts

from ..shell.address import write_address
from ..shell.cached import load_retrieval
from ..shell.run_status import escaped_message
from ..shell.words import frame_of_words, vectors_of_words
from .frame import MapFrame

AXIS = "attribute axis"
ENDS = {"low": "small", "high": "large"}
"""The parameters of the address with the texts at both ends, and an example of each."""


def ask_for_axis() -> None:
    """Show the boxes for the texts at both ends; the address holds them."""
    with st.popover("Two texts", icon=":material/straighten:", key="map-axis"):
        for end, example in ENDS.items():
            key = f"map-axis-{end}"
            st.session_state[key] = st.query_params.get(end, "")
            st.text_input(f"Text at the {end} end", key=key, max_chars=LONGEST_TEXT, placeholder=example,
                          on_change=_keep, args=(end, key),
                          help="The color is the cosine of the image with the text at the high end minus that with the "
                               "text at the low end.")


def _keep(end: str, key: str) -> None:
    write_address(end, st.session_state[key].strip())


def axis_values(shown: MapFrame) -> tuple[str, Array] | None:
    """Return the name of the axis, and the value (n,) of each point; None until both texts are typed."""
    low, high = (st.query_params.get(end, "").strip() for end in ENDS)
    if not (low and high):
        return None
    try:
        directions = [mean_direction(vectors_of_words(shown.run, read_texts(text))) for text in (low, high)]
        rows = frame_of_words(load_retrieval(shown.run)).take(shown.projection.indices)
    except UserError as error:
        st.warning(escaped_message(str(error)), icon=":material/warning:")
        return None
    return f"{low} → {high}", attribute_values(rows, *directions)
