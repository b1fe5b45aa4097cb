"""Home: what the app does, how to train the first run, and the newest runs."""

import streamlit as st

from pages.parts.base.cached import load_dataset
from pages.parts.base.run_picker import open_search
from pages.parts.base.run_status import ICONS, live_panel, state_line, title_of
from pages.parts.base.user_errors import show_user_errors
from pages.parts.components.gallery import gallery, tile_of
from udml_core import jobs
from udml_core.runs import Run, list_runs, runs_folder
from udml_core.tasks import LIVE_STATES

MOST_SHOWN = 5
SHOWN_MEASURES = {"R@1": "recall@1", "MAP@R": "map@r"}
SAMPLE_STEP = 65  # One in so many images of the default data set is shown.


def start_here() -> None:
    """Show the button that trains the default run, beside sample images."""
    left, right = st.columns([2, 3], gap="large", vertical_alignment="center")
    with left:
        st.subheader("Start here")
        st.write("Train **RPML** on 1,797 handwritten digits that come with the app. Training uses no labels. It "
                 "reduces the pixels to 4 dimensions, from a random start, and takes less than half a minute on two "
                 "CPU cores. You can leave the page and come back.")
        if st.button("Train RPML now", type="primary", icon=":material/play_arrow:", width="stretch"):
            with show_user_errors():
                run = jobs.submit(jobs.plan(jobs.FIRST_RUN, load_dataset(jobs.FIRST_RUN.dataset)), runs_folder())
                st.switch_page("pages/runs.py", query_params={"run": run.id})
        st.page_link("pages/data.py", label="Import your own images", icon=":material/drive_folder_upload:",
                     query_params={"import": "1"})
    with right, show_user_errors():
        dataset = load_dataset(jobs.FIRST_RUN.dataset)
        clicked = gallery(dataset, [tile_of(dataset, index) for index in range(0, len(dataset), SAMPLE_STEP)],
                          "Sample images of the default data set", "home-gallery", side=64)
        if clicked is not None:
            open_search(dataset, clicked)


@st.fragment(run_every="2s")
def show_live_runs() -> None:
    """Show the waiting and running runs; run the page again when one starts or ends."""
    live = [run for run in list_runs(runs_folder()) if run.status().state in LIVE_STATES]
    if len(live) != st.session_state.get("home-live", len(live)):
        st.session_state["home-live"] = len(live)
        st.rerun(scope="app")
    st.session_state["home-live"] = len(live)
    for run in live[:MOST_SHOWN]:
        live_panel(run, "home")


def show_newest_runs(runs: list[Run]) -> None:
    """Show the newest runs, those in progress first."""
    st.subheader("Newest runs")
    if not runs:
        st.info("No runs yet. Press **Train RPML now**, or choose a data set and a method on the page **Train**.",
                icon=":material/lightbulb:")
        return
    if any(run.status().state in LIVE_STATES for run in runs):
        show_live_runs()
    ended = [run for run in runs[:MOST_SHOWN * 4] if run.status().state not in LIVE_STATES]
    for run in ended[:MOST_SHOWN]:
        show_ended_run(run)


def show_ended_run(run: Run) -> None:
    """Show a run's title, main measures and a link."""
    status = run.status()
    final = (run.evaluation() or {}).get("final", {})
    measures = "  ·  ".join(f"{name} {final[key]:.1f} %" for name, key in SHOWN_MEASURES.items()
                            if final.get(key) is not None)
    with st.container(border=True):
        text, link = st.columns([5, 1], vertical_alignment="center")
        text.markdown(f"{ICONS[status.state]} **{title_of(run.spec())}**  \n"
                      f"{measures or state_line(run, status)[:300]}")
        page, label = ("retrieval", "Search") if status.state == "done" else ("runs", "Details")
        link.page_link(f"pages/{page}.py", label=label, query_params={"run": run.id})


st.title("UDML Explorer")
st.markdown("Train a model to place similar images close together, **with few labels or none**, and see what it "
            "learned and why. Choose images and a method, train in the background, then search. "
            "Everything runs on this computer; no data leaves it.")
start_here()
st.divider()
show_newest_runs(list_runs(runs_folder()))
