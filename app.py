"""UDML Explorer: metric learning with few labels or none, made visible.

Start it with `make app`.
"""

from pathlib import Path

import streamlit as st

from udml_core.base.paths import prefer_package

ROOT = Path(__file__).parent
prefer_package("pages", ROOT)  # the environment may hold another package of this name

from pages.parts.shell.warming import wait_for_step

wait_for_step()  # before the imports below, so that they never happen in two threads at once

from pages.parts.draw.keys import listen_to_keys
from pages.parts.shell.address import drop_foreign_parameters
from pages.parts.shell.run_picker import begin_page, begin_sidebar, end_page
from udml_core.base.malloc import keep_freed_memory
from udml_core.base.paths import expose
from udml_core.runs import runs_folder
from udml_core.work import jobs

ASSETS = ROOT / "assets"
ICON = ASSETS / "icon.png"

st.cache_resource(show_spinner=False)(keep_freed_memory)()  # The cache makes it run once per process.
expose(st.get_option("server.address"))
st.cache_resource(show_spinner=False)(jobs.wake)(runs_folder())  # Resume the queue after a restart.
st.set_page_config(page_title="UDML Explorer", page_icon=str(ICON), layout="wide")
st.logo(str(ICON), size="large")
st.html(ASSETS / "app.css")
if st.context.theme.type == "dark":  # White text on the primary color is hard to read on a dark page.
    st.html('<style>:is([data-testid=stBaseButton-primary], [data-baseweb="tag"]) * { color: #0b1220; }</style>')
st.set_option("client.showSidebarNavigation", True)  # false in the configuration, see there
SECTIONS = {
    "": [
        st.Page("pages/home.py", title="Home", icon=":material/home:", default=True,
                help="Watch an example train itself, and find a way in."),
        st.Page("pages/learn.py", title="Learn", icon=":material/school:",
                help="Twelve short lessons on metric learning."),
        st.Page("pages/lesson_epsilon.py", title="ε merges and shatters", visibility="hidden"),
    ],
    "Training": [
        st.Page("pages/data.py", title="Data", icon=":material/photo_library:",
                help="Look at a data set, or import your own images."),
        st.Page("pages/train.py", title="Train", icon=":material/model_training:",
                help="Choose images and a method, and start a run."),
        st.Page("pages/runs.py", title="Runs", icon=":material/monitoring:",
                help="Queue, curves and evaluation of all runs."),
    ],
    "Exploration": [
        st.Page("pages/explore.py", title="Explore", icon=":material/explore:",
                help="One run on one page: its map, and the neighbors, cluster or triplets of an image."),
        st.Page("pages/map.py", title="Map", icon=":material/scatter_plot:",
                help="All images in two dimensions, before and after training."),
        st.Page("pages/retrieval.py", title="Retrieval", icon=":material/image_search:",
                help="Search with an image, and see what training changed."),
        st.Page("pages/compare.py", title="Compare", icon=":material/compare:",
                help="Two to six runs in one view, and the queries on which they differ."),
    ],
    "More tools": [
        st.Page("pages/labels.py", title="Labels", icon=":material/new_label:",
                help="Assign a few classes and see how far they reach."),
        st.Page("pages/sweeps.py", title="Sweeps", icon=":material/ssid_chart:",
                help="Groups of runs that try several values, and the best of them."),
        st.Page("pages/grid.py", title="Grid", icon=":material/grid_on:",
                help="All images in a grid, with similar images side by side."),
        st.Page("pages/refine.py", title="Refine", icon=":material/auto_fix_high:",
                help="Improve the neighbors of a finished run without training."),
    ],
    "Inside a method": [
        st.Page("pages/clusters.py", title="Clusters", icon=":material/workspaces:",
                help="Which images share a pseudo-label, and how ε changes it."),
        st.Page("pages/neighborhoods.py", title="Neighborhoods", icon=":material/hub:",
                help="The linear neighborhood of an image, and why PLM finds two images similar."),
        st.Page("pages/triplets.py", title="Triplets", icon=":material/change_history:",
                help="Which anchors, positives and negatives the method compares, and the angle α."),
        st.Page("pages/instances.py", title="Instances", icon=":material/fingerprint:",
                help="Which images an image is pushed away from, and how strongly."),
        st.Page("pages/affinity.py", title="Labels & affinity", icon=":material/share:",
                help="How a few labels spread to similar images."),
        st.Page("pages/pairs.py", title="Pairs", icon=":material/link:",
                help="Pairs marked as similar or dissimilar, and the loss of each."),
    ],
    "Papers": [
        st.Page("pages/results.py", title="Results", icon=":material/table_chart:",
                help="Measurements of this project beside the papers' figures."),
        st.Page("pages/benchmark.py", title="Benchmark", icon=":material/leaderboard:",
                help="All methods with one encoder and one budget, ranked by any measure."),
    ],
}
# The sidebar shows a newcomer these sections; the others appear on a click, and on their own pages.
FIRST_SECTIONS = ("", "Training", "Exploration")
first = [page for section in FIRST_SECTIONS for page in SECTIONS[section]]
begin_sidebar()
page = st.navigation(SECTIONS, expanded=sum(page.visibility == "visible" for page in first))
if page not in first:
    page = st.navigation(SECTIONS, expanded=True)  # the sidebar shows where the user is
drop_foreign_parameters(page.url_path)
listen_to_keys(SECTIONS)
begin_page()
st.session_state["page"] = page.url_path  # a page without runs offers the example that shows it best
page.run()
end_page()
