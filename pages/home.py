"""What this is, the newest runs, and one press that trains the default."""

import streamlit as st

from pages.parts.base.cached import load_dataset
from pages.parts.base.run_picker import open_search
from pages.parts.base.run_status import ICONS, live_panel, state_line, title_of
from pages.parts.base.user_errors import show_user_errors
from pages.parts.components.gallery import gallery, tile_of
from udml_core import jobs
from udml_core.runs import Run, RunRequest, list_runs, runs_folder
from udml_core.tasks import LIVE_STATES

DEFAULT = RunRequest(dataset="fashion-mini", method="rpml")
NEWEST = 5


def start_here() -> None:
    """The one press."""
    left, right = st.columns([2, 3], gap="large", vertical_alignment="center")
    with left:
        st.subheader("Start here")
        st.write("Train **RPML** on 6,000 photographs of clothing that come with the app. No labels are used. "
                 "On two CPU cores it takes one to two minutes the first time; you can watch, leave and come back.")
        if st.button("Train RPML now", type="primary", icon=":material/play_arrow:", width="stretch"):
            with show_user_errors():
                run = jobs.submit(jobs.plan(DEFAULT, load_dataset(DEFAULT.dataset)), runs_folder())
                st.switch_page("pages/runs.py", query_params={"run": run.id})
        st.page_link("pages/data.py", label="Or bring your own images", icon=":material/drive_folder_upload:")
    with right, show_user_errors():
        dataset = load_dataset(DEFAULT.dataset)
        indices = range(0, 6000, 215)
        picked = gallery(dataset, [tile_of(dataset, index) for index in indices],
                         "Some of the images that the default trains on", "home-gallery", side=64)
        if picked is not None:
            open_search(dataset, picked)


@st.fragment(run_every="2s")
def newest_live() -> None:
    """Runs that are going on."""
    live = [run for run in list_runs(runs_folder()) if run.status().state in LIVE_STATES]
    if len(live) != st.session_state.get("home-live", len(live)):
        st.session_state["home-live"] = len(live)
        st.rerun(scope="app")
    st.session_state["home-live"] = len(live)
    for run in live[:NEWEST]:
        live_panel(run, "home")


def newest(runs: list[Run]) -> None:
    """The newest runs that ended."""
    st.subheader("Newest runs")
    if not runs:
        st.info("No runs yet. Press **Train RPML now**, or choose data and method under **Train**.",
                icon=":material/lightbulb:")
        return
    if any(run.status().state in LIVE_STATES for run in runs):
        newest_live()
    for run in [run for run in runs[:NEWEST * 4] if run.status().state not in LIVE_STATES][:NEWEST]:
        status, spec = run.status(), run.spec()
        final = (run.evaluation() or {}).get("final", {})
        with st.container(border=True):
            text, link = st.columns([5, 1], vertical_alignment="center")
            figures = "  ·  ".join(f"{name} {final[key]:.1f} %" for name, key in
                                   (("R@1", "recall@1"), ("MAP@R", "map@r")) if final.get(key) is not None)
            text.markdown(f"{ICONS[status.state]} **{title_of(spec)}**  \n"
                          f"{figures or state_line(run, status)[:300]}")
            target = "pages/retrieval.py" if status.state == "done" else "pages/runs.py"
            link.page_link(target, label="Browse" if status.state == "done" else "Look",
                           query_params={"run": run.id})


st.title("UDML Explorer")
st.markdown("Teach a computer which images are alike, **with few labels or none**, and see what it learnt and why. "
            "Pick images and a method, train in the background, then search. "
            "Everything runs on this machine; nothing is sent anywhere.")
start_here()
st.divider()
newest(list_runs(runs_folder()))
