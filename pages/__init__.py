"""The pages: widgets, calls into udml_core, drawing. Nothing is computed here."""

import streamlit as st
from streamlit.runtime.pages_manager import PagesManager

# Until app.py has called st.navigation once, Streamlit takes this folder for its older kind of pages and would run the
# page of the very first link by itself, without app.py. That link is then answered a second time, by app.py. serve.py
# imports this package before the first link, so nothing is answered twice.
runs_without_app = PagesManager.uses_pages_directory
PagesManager.uses_pages_directory = False
if runs_without_app:
    st.rerun()
