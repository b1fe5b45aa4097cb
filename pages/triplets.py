"""In the making."""

import streamlit as st

st.title("triplets")
