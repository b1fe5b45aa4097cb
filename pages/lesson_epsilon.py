"""The former address of the lesson on ε."""

import streamlit as st

kept = {"epsilon": st.query_params["epsilon"]} if "epsilon" in st.query_params else {}
st.switch_page("pages/learn.py", query_params={"lesson": "epsilon", "images": "digits", **kept})
