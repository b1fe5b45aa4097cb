"""How a record was measured."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st


def show_provenance(provenance: Mapping[str, str]) -> None:
    """Show the command, protocol, device and versions of a measurement."""
    with st.expander("How was it measured?", icon=":material/terminal:"):
        for name, value in provenance.items():
            if name == "command":
                st.code(value, language="bash", wrap_lines=True)
            else:
                st.markdown(f"**{name.capitalize()}**: {value}")
