"""Labels & affinity: effects of few labels on a neighbor graph, and collapse."""

from __future__ import annotations

import streamlit as st

from pages.parts.base.address import write_address
from pages.parts.base.cached import dataset_of
from pages.parts.base.run_picker import pick_run
from pages.parts.base.user_errors import show_user_errors
from pages.parts.components.gallery import clicked_tile
from pages.parts.curves.spectrum import explore_spectrum
from pages.parts.kit.downloads import Download, share, table_file
from pages.parts.kit.pictures import picture
from pages.parts.labels.affinities import ego_graphs, sorted_halves
from pages.parts.labels.few_labels import gamma_slider
from pages.parts.labels.graph_view import (
    GraphView,
    image_in_address,
    load_view,
    pick_graph_epoch,
    pick_source,
    warn_if_outside,
)
from pages.parts.labels.label_reach import label_reach
from udml_core.exploration import affinity as views
from udml_core.runs import Run
from udml_core.tasks import ADVICE

MOST_IMAGES = 600  # Around the current image, so that affinities follow the slider


@st.fragment
@show_user_errors()
def explore(run: Run, source: str, epoch: int) -> None:
    """Show everything that changes with γ or the image."""
    view = load_view(run, dataset_of(run), source, epoch)
    warnings = st.container()
    warn_if_outside(warnings, view, image_in_address(view.dataset))
    show_image(view)
    run_gamma = run.spec().build_method().model_dump().get("gamma") if source == "training" else None
    gamma = gamma_slider(f"affinity-gamma-{source}", run_gamma)
    part = views.propagate_subgraph(view.graph, view.graph.rows_around(view.row, MOST_IMAGES), gamma)
    ego_graphs(view, part)
    clicks = [sorted_halves(view, part), label_reach(view, gamma)]
    neighbors = view.graph.images[part.rows[part.neighbors[0]]]
    share([Download("Neighbors as a table", "affinities.csv", "text/csv", lambda: table_file(
        view.dataset, neighbors, {"before": part.before[0], "after": part.after[0]}))], "affinity")
    clicked = clicked_tile(clicks)
    if clicked is not None and not warn_if_outside(warnings, view, clicked):
        write_address("picked", str(clicked))
        st.rerun(scope="fragment")


def show_image(view: GraphView) -> None:
    """Show the current image and its label."""
    label = view.label_name(view.row)
    with st.container(horizontal=True, vertical_alignment="center"):
        picture(view.dataset.images[view.image], 96, f"Current image: {view.dataset.names[view.image]}")
        st.markdown(f"**{view.dataset.caption(view.image)}**  \n{(view.graph.codes >= 0).sum()} of "
                    f"{len(view.graph.images):,} images of this graph have a label"
                    + (f"; this image has the label {label}." if label else "."))


@show_user_errors()
def show_graph(run: Run) -> None:
    """Show a finished run's graph with few labels, if there are labels."""
    source = pick_source(run, dataset_of(run))
    if source is not None:
        explore(run, source, pick_graph_epoch(run) if source == "training" else 0)


def show_spectrum(run: Run) -> None:
    """Show the embedding's effective rank, on request beside another run's."""
    st.header("Is the embedding collapsing?")
    st.markdown("The effective rank measures how many directions the embedding uses. A metric that may grow and shrink "
                "freely can reduce its loss by putting everything into few directions. With an orthonormal L the loss "
                "can instead push all points apart until they are evenly spread: the effective rank rises while recall "
                "falls. Compare a run with *orthogonal* off to a run with it on.")
    other = pick_run("Compare with", "run2", lambda candidate: candidate.spec().fingerprint == run.spec().fingerprint
                     and candidate.id != run.id and bool(candidate.epoch_numbers()), optional=True, unfinished=True)
    explore_spectrum((run,) if other is None else (run, other))


st.title("Labels & affinity")
with show_user_errors():
    run = pick_run(unfinished=True)
    if run is not None:
        state = run.status().state
        if state == "done":
            show_graph(run)
        else:
            st.info(f"Graph, affinities and triplets need a finished run; {run.id} is {state}. {ADVICE[state]} The "
                    "embedding's effective rank is shown below.", icon=":material/hourglass_top:")
        show_spectrum(run)
