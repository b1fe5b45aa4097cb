"""Labels & affinity: effects of few labels on a neighbor graph, and collapse."""

from __future__ import annotations

import streamlit as st

from pages.parts.curves.spectrum import explore_spectrum
from pages.parts.draw.downloads import Download, share, table_file
from pages.parts.draw.run_header import header_place, run_header
from pages.parts.draw.sections import Section, show_sections
from pages.parts.labels.affinities import affinity_table, ego_graphs, sorted_halves
from pages.parts.labels.graph_view import (
    GraphView,
    gamma_slider,
    graph_embedding,
    has_labels,
    load_view,
    offer_labeling,
    pick_graph_epoch,
    pick_source,
    warn_if_outside,
)
from pages.parts.labels.label_reach import label_reach
from pages.parts.shell.address import write_address
from pages.parts.shell.cached import dataset_of
from pages.parts.shell.interesting import image_in_address
from pages.parts.shell.run_picker import pick_run
from pages.parts.shell.run_status import escaped
from pages.parts.shell.user_errors import fragment, show_user_errors
from udml_core.data.dataset import Dataset
from udml_core.exploration import affinity as views
from udml_core.results.embedding_words import words_of
from udml_core.runs import Run
from udml_core.runs.tasks import ADVICE

COLLAPSE = "Is the embedding collapsing?"
MOST_IMAGES = 600  # Around the current image, so that affinities follow the slider


@fragment
def explore(run: Run, dataset: Dataset) -> None:
    """Show γ, the graph around the current image, and the open section."""
    header = header_place()
    left, right = st.columns([5, 1], vertical_alignment="bottom")
    with right.popover("Graph", icon=":material/share:", width="stretch"):
        source = pick_source(run, dataset)
        assert source is not None
        epoch = pick_graph_epoch(run) if source == "training" else 0
    run_header(run, graph_embedding(run, source, epoch), header)
    view = load_view(run, dataset, source, epoch)
    run_gamma = run.spec().build_method().model_dump().get("gamma") if source == "training" else None
    with left:
        gamma = gamma_slider(f"affinity-gamma-{source}", run_gamma)
    warnings = st.container()
    warn_if_outside(warnings, view, image_in_address(view.dataset))
    show_image(view)
    part = views.propagate_subgraph(view.graph, view.graph.rows_around(view.row, MOST_IMAGES), gamma)
    with st.container(key="affinity-graphs"):
        ego_graphs(view, part)
    clicked = show_sections([
        Section("halves", "Positives and negatives", lambda: sorted_halves(view, part)),
        Section("reach", "How far a label reaches", lambda: label_reach(view, gamma)),
        Section("table", "Affinities", lambda: show_table(view, part)),
        Section("collapse", COLLAPSE, lambda: show_spectrum(run))], "affinity-section",
        first_section())
    if clicked is not None and not warn_if_outside(warnings, view, clicked):
        write_address("picked", str(clicked))
        st.rerun(scope="fragment")


def first_section() -> str:
    """Return the section that the address asks for."""
    sections = (("label", "reach"), ("run2", "collapse"), ("moment", "collapse"))
    return next((name for parameter, name in sections if parameter in st.query_params), "")


def show_table(view: GraphView, part: views.Subgraph) -> None:
    """Show the affinities as a table, and the download."""
    affinity_table(view, part)
    neighbors = view.graph.images[part.rows[part.neighbors[0]]]
    share([Download("Neighbors as a table", "affinities.csv", "text/csv", lambda: table_file(
        view.dataset, neighbors, {"before": part.before[0], "after": part.after[0]}))], "affinity")


def show_image(view: GraphView) -> None:
    """Show the name of the current image and its label."""
    label = view.label_name(view.row)
    st.markdown(f"**{escaped(view.dataset.caption(view.image))}** · {(view.graph.codes >= 0).sum()} of "
                f"{len(view.graph.images):,} images of this graph have a label"
                + (f"; this image has the label {escaped(label)}." if label else "."))


def show_spectrum(run: Run) -> None:
    """Show the embedding's effective rank, on request beside another run's."""
    st.caption("The effective rank measures how many directions the embedding uses.", help=(
        "A metric that may stretch and shrink freely can lower its loss by using only a few directions. With an "
        "orthonormal L the loss can instead push all points apart until they are evenly spread: the effective rank "
        "rises while R@1 falls. Compare a run with *orthogonal* off to a run with it on."))
    other = pick_run("Compare with", "run2", lambda candidate: candidate.spec().fingerprint == run.spec().fingerprint
                     and candidate.id != run.id and bool(candidate.epoch_numbers()), optional=True, unfinished=True)
    explore_spectrum((run,) if other is None else (run, other))


def show_graph(run: Run) -> bool:
    """Show the graph of a finished run with labels, or why there is none.

    Returns:
        Whether there is a graph.
    """
    state = run.status().state
    if state != "done":
        run_header(run, words_of(str(run.kept_epoch())).sentence)
        st.info(f"Graph, affinities and triplets need a finished run; {run.id} is {state}. {ADVICE[state]} The "
                "embedding's effective rank is shown below.", icon=":material/hourglass_top:")
        return False
    dataset = dataset_of(run)
    if not has_labels(run, dataset):
        run_header(run)
        offer_labeling(run)
        return False
    explore(run, dataset)
    return True


def draw() -> None:
    """Draw the view."""
    with show_user_errors():
        run = pick_run(unfinished=True, shows=lambda run: has_labels(run, dataset_of(run)))
        if run is not None:
            is_shown = False
            with show_user_errors():
                is_shown = show_graph(run)
            if not is_shown:
                st.subheader(COLLAPSE)
                show_spectrum(run)
