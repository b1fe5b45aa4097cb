"""Home: a training that plays, ways into the app, and the newest runs."""

import streamlit as st

from pages.parts.draw.gallery import gallery, tile_of
from pages.parts.home.doors import show_doors, show_first_run, show_starts
from pages.parts.home.instrument import run_to_play, show_instrument
from pages.parts.shell.cached import load_dataset
from pages.parts.shell.run_picker import app_run, open_search
from pages.parts.shell.run_status import ICONS, escaped, live_panel, run_title, state_line
from pages.parts.shell.user_errors import show_user_errors
from pages.parts.shell.views import view_link
from udml_core.base.errors import UserError
from udml_core.numerics.measures import MAIN_MEASURES
from udml_core.runs import Run, list_runs, runs_folder
from udml_core.runs.tasks import LIVE_STATES
from udml_core.work import jobs
from udml_core.work.jobs.advising import is_trial

MOST_SHOWN = 5
SAMPLE_STEP = 65  # One in so many images of the default data set is shown.


def start_here() -> None:
    """Show the button that trains the default run, beside sample images."""
    left, right = st.columns([2, 3], gap="large", vertical_alignment="center")
    with left:
        st.subheader("Start here")
        show_first_run()
        view_link("data", label="Import your own images", icon=":material/drive_folder_upload:",
                     query_params={"import": "1"})
    with right, show_user_errors():
        dataset = load_dataset(jobs.FIRST_RUN.dataset)
        clicked = gallery(dataset, [tile_of(dataset, index) for index in range(0, len(dataset), SAMPLE_STEP)],
                          "Sample images of the default data set", "home-gallery", side=64)
        if clicked is not None:
            open_search(dataset, clicked)


def show_training(runs: list[Run]) -> bool:
    """Show a training that plays, with the ways into the app; return whether a run could be played."""
    run = run_to_play(runs)
    if run is None:
        return False
    try:
        show_instrument(run)
    except UserError as error:
        st.warning(str(error), icon=":material/broken_image:")
        return False
    show_doors(run)
    show_starts()
    return True


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
    measures = "  ·  ".join(f"{measure.name} {measure.text(final[measure.key])}" for measure in MAIN_MEASURES[::-1]
                            if final.get(measure.key) is not None)
    with st.container(border=True):
        text, link = st.columns([5, 1], vertical_alignment="center")
        text.markdown(f"{ICONS[status.state]} **{escaped(run_title(run))}**  \n"
                      f"{measures or state_line(run, status)[:300]}")
        page, label = ("retrieval", "Search") if status.state == "done" else ("runs", "Details")
        with link:
            view_link(page, label=label, query_params={"run": run.id})


st.title("UDML Explorer")
st.markdown("Train a model to place similar images close together, **with few labels or none**, and see what it "
            "learned and why, on this computer.")
all_runs = [run for run in list_runs(runs_folder()) if not is_trial(run) or run.id == app_run()]
if not show_training(all_runs):
    start_here()
show_newest_runs(all_runs)
