"""Home: a training that plays, ways into the app, and the newest runs and examples."""

import streamlit as st

from pages.parts.draw.gallery import gallery, tile_of
from pages.parts.home.doors import show_doors
from pages.parts.home.instrument import is_playable, run_to_play, show_about, show_instrument
from pages.parts.home.listing import show_examples_with_points, show_newest_runs
from pages.parts.home.own_images import say_example, show_own_map
from pages.parts.home.your_search import show_your_search
from pages.parts.shell.cached import load_dataset
from pages.parts.shell.run_picker import app_run, open_search, put_on_stage
from pages.parts.shell.run_status import escaped_message
from pages.parts.shell.user_errors import show_user_errors
from udml_core.base.errors import UserError
from udml_core.runs import Run, list_runs, runs_folder
from udml_core.work import jobs
from udml_core.work.jobs.advising import is_trial

SAMPLE_STEP = 65  # One in so many images of the default data set is shown.


def show_sample() -> None:
    """Show images of the default data set where no training can be played."""
    with show_user_errors():
        dataset = load_dataset(jobs.FIRST_RUN.dataset)
        clicked = gallery(dataset, [tile_of(dataset, index) for index in range(0, len(dataset), SAMPLE_STEP)],
                          "Sample images of the default data set", "home-gallery", side=64)
        if clicked is not None:
            open_search(dataset, clicked)


def show_own(runs: list[Run]) -> bool:
    """Show the map of the folder that was opened last; return whether it could be shown."""
    try:
        return show_own_map(runs)
    except UserError as error:
        st.warning(escaped_message(str(error)), icon=":material/broken_image:")
        return False


def show_training(run: Run | None) -> bool:
    """Show a training that plays; return whether it could be shown."""
    if run is None:
        return False
    try:
        show_instrument(run)
    except UserError as error:
        st.warning(escaped_message(str(error)), icon=":material/broken_image:")
        return False
    return True


all_runs = [run for run in list_runs(runs_folder()) if not is_trial(run) or run.id == app_run()]
own_runs = [run for run in all_runs if not run.is_example]
played = run_to_play(all_runs)
with st.container(key="home"):
    with st.container(horizontal=True, vertical_alignment="center", key="home-top"):
        st.title("UDML Explorer", width="stretch")
        about = st.container(width="content")
    with st.container(key="home-intro"):
        st.markdown("Find similar images in your own folder **with few labels or none**, and watch a model learn.")
    last = []  # what is drawn after the pictures
    with show_user_errors():
        last.append(show_your_search(own_runs))
    is_own = show_own(own_runs)
    if not is_own and played is not None and played.is_example:
        say_example(own_runs)
    if not is_own and show_training(played) and played is not None:
        put_on_stage(played, [run for run in all_runs if is_playable(run)])
        with about:
            show_about(played)
    elif not is_own:
        show_sample()
    show_doors()
    with st.container(key="home-newest"):
        show_newest_runs(own_runs)
        show_examples_with_points([run for run in all_runs if run.is_example])
    for draw in last:
        with show_user_errors():
            draw()
