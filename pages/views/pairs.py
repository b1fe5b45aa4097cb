"""Pairs: a run's similar and dissimilar pairs, and NML's prototypes."""

from __future__ import annotations

import streamlit as st

from pages.parts.draw.downloads import Download, share, table_file
from pages.parts.draw.run_header import header_place, run_header
from pages.parts.draw.sections import slot
from pages.parts.pairs.hinge import default_hinge, distance_charts, hinge_sliders
from pages.parts.pairs.prototypes import explore_prototypes
from pages.parts.pairs.session import ask_about
from pages.parts.pairs.stored import StoredPairs, pair_detail, pair_list, pick_rows, violations
from pages.parts.shell.address import choose_segment, indices_from_address
from pages.parts.shell.cached import dataset_of
from pages.parts.shell.empty_state import offer_example, show_empty
from pages.parts.shell.epochs import has_record, load_record, pick_epoch
from pages.parts.shell.run_picker import pick_run
from pages.parts.shell.user_errors import fragment, show_user_errors
from pages.parts.shell.views import open_view, view_link
from udml_core.base.errors import listed
from udml_core.exploration import pairs as views
from udml_core.methods import METHODS
from udml_core.methods.nml import NML
from udml_core.numerics.explanations import Pairs, Prototypes
from udml_core.runs import Run
from udml_core.runs.search import epoch_words

STORED, PROTOTYPES = "learnt", "prototypes"
SHOWN = {STORED: "Training pairs", PROTOTYPES: "Prototypes"}


@fragment
def explore(run: Run) -> None:
    """Show the sliders, the distances, the current pair and the list of pairs."""
    header = header_place()
    controls, right = st.columns([6, 1], vertical_alignment="bottom")
    with right:
        epoch = pick_epoch(run, Pairs)
    run_header(run, epoch_words(run, epoch), header)
    record = load_record(run, epoch, Pairs)
    assert record is not None
    stored = StoredPairs(run, dataset_of(run), record)
    with controls:
        hinge = hinge_sliders(run, "pairs")
    arguments = hinge.arguments(record.after, record.same)
    charts = slot("pairs-charts")
    violations(stored, hinge, arguments, epoch)
    current_pair = slot("pairs-current")
    rows = pick_rows(stored, arguments)
    current = views.position_of_pair(stored.pairs, tuple(indices_from_address("pair", len(stored.dataset))))
    current = int(rows[0]) if current is None and len(rows) else current
    default = default_hinge(run)
    with charts:
        distance_charts(record.before, record.after, record.same, hinge, 2 * (default.bias + default.margin),
                        None if current is None else (float(record.before[current]), float(record.after[current])))
    pair_list(stored, rows, current)
    if current is not None:
        first, second = stored.pairs[current].tolist()
        with current_pair:
            pair_detail(stored, current, hinge, float(arguments[current]))
            if st.button("Label this pair", icon=":material/edit:", key="pairs-answer"):
                ask_about(stored.dataset, (first, second))
                open_view("pair_labels", {"run": run.id})
    share([Download("Pairs as a table", "pairs.csv", "text/csv", lambda: table_file(
        stored.dataset, stored.pairs[:, 0], {
            "second": stored.pairs[:, 1], "same": record.same, "d2 before": record.before, "d2 after": record.after,
            "loss": arguments.clip(0)}))], "pairs")


def explain_missing(run: Run, view: str) -> None:
    """Show why a view has nothing to show, a link to train a method that fills it, and an example."""
    from_pairs = [method.card.title for method in METHODS if method.card.supervision == "pairs"]
    show_empty(f"This run did not learn from pairs; {listed(from_pairs)} do. "
               "Choose another run or train one. "
               "You can also mark pairs of these images yourself." if view == STORED else
               f"This run has no prototypes; {NML.card.title} learns them. Choose another run or train one.")
    offer_example(primary=True)
    with st.container(horizontal=True, horizontal_alignment="center"):
        if view == STORED:
            view_link("pair_labels", {"run": run.id}, label="Mark pairs", icon=":material/link:", width="content")
        view_link("train", label=f"Train {NML.card.title}", icon=":material/model_training:", width="content",
                  query_params={"dataset": run.spec().dataset, "method": NML.card.name})


def draw() -> None:
    """Draw the view."""
    with show_user_errors():
        run = pick_run(shows=lambda run: has_record(run, Pairs))
        if run is None:
            return
        shown = choose_segment("Shown", "show", SHOWN, STORED, key="pairs-show", label_visibility="collapsed")
        if shown == STORED and has_record(run, Pairs):
            explore(run)
            return
        run_header(run)
        if has_record(run, Pairs if shown == STORED else Prototypes):
            explore_prototypes(run)
        else:
            explain_missing(run, shown)
