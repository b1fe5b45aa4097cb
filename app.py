"""UDML Explorer: metric learning with few labels or none, made visible.

Start it with `make app`.
"""

from pathlib import Path

import streamlit as st

from udml_core.malloc import keep_freed_memory

ICON = Path(__file__).parent / "assets" / "icon.png"

st.cache_resource(show_spinner=False)(keep_freed_memory)()  # The cache makes it run once per process.
st.set_page_config(page_title="UDML Explorer", page_icon=str(ICON), layout="wide")
st.logo(str(ICON), size="large")
if st.context.theme.type == "dark":  # White text on the primary color is hard to read on a dark page.
    st.html("<style>[data-testid=stBaseButton-primary] * { color: #0b1220; }</style>")
st.navigation({
    "": [
        st.Page("pages/home.py", title="Home", icon=":material/home:", default=True),
        st.Page("pages/data.py", title="Data", icon=":material/photo_library:"),
        st.Page("pages/labels.py", title="Labels", icon=":material/new_label:"),
        st.Page("pages/train.py", title="Train", icon=":material/model_training:"),
        st.Page("pages/runs.py", title="Runs", icon=":material/monitoring:"),
    ],
    "Explore a run": [
        st.Page("pages/map.py", title="Map", icon=":material/scatter_plot:"),
        st.Page("pages/grid.py", title="Grid", icon=":material/grid_on:"),
        st.Page("pages/clusters.py", title="Clusters", icon=":material/workspaces:"),
        st.Page("pages/neighborhoods.py", title="Neighborhoods", icon=":material/hub:"),
        st.Page("pages/instances.py", title="Instances", icon=":material/fingerprint:"),
        st.Page("pages/triplets.py", title="Triplets", icon=":material/change_history:"),
        st.Page("pages/affinity.py", title="Labels & affinity", icon=":material/share:"),
        st.Page("pages/pairs.py", title="Pairs", icon=":material/link:"),
        st.Page("pages/retrieval.py", title="Retrieval", icon=":material/image_search:"),
        st.Page("pages/refine.py", title="Refine", icon=":material/auto_fix_high:"),
    ],
    "Compare with papers": [
        st.Page("pages/results.py", title="Results", icon=":material/table_chart:"),
    ],
    "Lessons": [
        st.Page("pages/lesson_epsilon.py", title="ε merges and shatters", icon=":material/school:"),
    ],
}).run()
