"""The graph that the view Affinity shows, and the current image."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from udml_core.base.arrays import Array
from udml_core.base.declaration import describe_field
from udml_core.data.dataset import Dataset
from udml_core.data.given.labels import assigned_classes, assigned_now
from udml_core.exploration import affinity as views
from udml_core.exploration import label_spread as spreading
from udml_core.exploration.gallery_content import Mark
from udml_core.methods.ssdml import SSDML
from udml_core.numerics.explanations import Affinities
from udml_core.runs import Run
from udml_core.runs.search import FROZEN, frame_words

from ..draw.slider import field_slider
from ..shell.address import choose_segment
from ..shell.cached import load_split
from ..shell.empty_state import offer_example, show_empty
from ..shell.epochs import epochs_with, load_record, pick_epoch
from ..shell.interesting import current_image
from ..shell.label_graph import graph_of_run, training_labels
from ..shell.run_status import escaped
from ..shell.views import view_link

SOURCES = {"training": "Training graph, training labels", "told": "Final embedding, training labels",
           "given": "Final embedding, assigned labels"}


@dataclass(frozen=True)
class GraphView:
    """A neighbor graph with few labels, and the current image.

    Attributes:
        run: The run.
        dataset: The run's data set.
        source: A key of SOURCES.
        graph: The graph with the labels.
        names: The classes of the graph's codes.
        trained: Propagated affinities W of the training graph at the run's γ, (p, k); None of other graphs.
        row: Row of the current image.
    """

    run: Run
    dataset: Dataset
    source: str
    graph: views.LabelGraph
    names: tuple[str, ...]
    trained: Array | None
    row: int

    @property
    def image(self) -> int:
        """Index of the current image."""
        return int(self.graph.images[self.row])

    def label_name(self, row: int) -> str:
        """Return the class of a row's label, empty without a label."""
        return "" if self.graph.codes[row] < 0 else self.names[self.graph.codes[row]]

    @property
    def label_words(self) -> str:
        """The name of the labels in texts."""
        return "assigned labels" if self.source == "given" else "training labels"

    @cached_property
    def classes(self) -> Array:
        """The classes that triplets are judged by, (p,), −1 if unknown.

        The classes are the data set's; without them, the labels.
        """
        return self.graph.codes if self.dataset.labels is None else self.dataset.labels[self.graph.images]

    def mark(self, row: int) -> Mark:
        """Return whether a row has the image's class; empty if a class is unknown."""
        own, other = self.classes[[self.row, row]]
        if own < 0 or other < 0:
            return ""
        return "hit" if own == other else "miss"

    def agreement_words(self, role: Mark, rows: Array) -> str:
        """Return how many images have the class that their role asks for; empty if no class is known.

        Args:
            role: "positive" or "negative".
            rows: Rows of the images.
        """
        marks = [mark for row in rows.tolist() if (mark := self.mark(row))]
        if not marks:
            return ""
        agreeing = sum((mark == "hit") == (role == "positive") for mark in marks)
        words = "this image's class" if role == "positive" else "another class"
        return f": {agreeing} of {len(marks)} have {words}; all {role}s should"


def _sources(run: Run, dataset: Dataset) -> list[str]:
    """Return the keys of SOURCES that a run has."""
    available = {"training": bool(epochs_with(run, Affinities)), "told": training_labels(run, dataset) is not None,
                 "given": bool(assigned_now(dataset))}
    return [source for source, is_available in available.items() if is_available]


def has_labels(run: Run, dataset: Dataset) -> bool:
    """Return whether a run's graph has labels: the method's, or assigned labels."""
    return bool(_sources(run, dataset))


def offer_labeling(run: Run) -> None:
    """Show that a run's graph has no labels, a link to assign some, and an example with labels."""
    show_empty("This run did not learn from few labels, and no labels are assigned to its images. Assign a few to see "
               "them spread.")
    offer_example(primary=True)
    with st.container(horizontal_alignment="center"):
        view_link("labels", label="Assign labels", icon=":material/new_label:", width="content",
                  query_params={"run": run.id})


def pick_source(run: Run, dataset: Dataset) -> str | None:
    """Choose the graph and the labels; the address holds the choice.

    Returns:
        A key of SOURCES; None, with a link to assign labels, if there are no labels.
    """
    choices = _sources(run, dataset)
    if not choices:
        offer_labeling(run)
        return None
    return choose_segment("Graph and labels", "source", choices, choices[0], format_func=SOURCES.__getitem__,
                          key=f"affinity-source-{run.id}")


def pick_graph_epoch(run: Run) -> int:
    """Choose the epoch whose graph to show, if the run built several graphs."""
    epochs = epochs_with(run, Affinities)
    return pick_epoch(run, Affinities) if len(epochs) > 1 else epochs[0]


def graph_embedding(run: Run, source: str, epoch: int) -> str:
    """Return the name of the embedding whose neighbors a graph joins: a training graph joins features, below L."""
    if source != "training":
        return frame_words("final", run)
    return f"features at epoch {epoch}" if run.spec().build_method().trains_encoder else frame_words(FROZEN)


def load_view(run: Run, dataset: Dataset, source: str, epoch: int) -> GraphView:
    """Return the graph of a source at the current image.

    Returns:
        The graph at the image in the address, else at the image that pages show first if the graph contains it, else at
        the image with the most classes around it.
    """
    received = training_labels(run, dataset)
    trained = None
    if source == "training":
        record = load_record(run, epoch, Affinities)
        assert record is not None
        assert received is not None
        graph, names, trained = views.training_graph(record, load_split(run).train), received[1], record.after
    else:
        images, neighbors = graph_of_run(run)
        if source == "told":
            assert received is not None
            codes, names = received[0][images], received[1]
        else:
            labels, names = assigned_now(dataset), assigned_classes(dataset)
            codes = spreading.label_codes(labels, names, images)
        graph = views.LabelGraph(images, neighbors, codes)
    row = graph.row_of(current_image(run, dataset))
    return GraphView(run, dataset, source, graph, names, trained, graph.most_informative_row if row is None else row)


def warn_if_outside(container: DeltaGenerator, view: GraphView, image: int) -> bool:
    """Show a warning if a requested image is not in the graph.

    Args:
        container: Where to show the warning.
        view: The graph and the current image, which is shown instead.
        image: Index of the requested image; −1 for none.

    Returns:
        Whether the image was requested and is not in the graph.
    """
    is_outside = image >= 0 and view.graph.row_of(image) is None
    if is_outside:
        container.warning(f"{escaped(view.dataset.caption(image))} is not among the {len(view.graph.images):,} images "
                          "of this graph, which belong to the training half. "
                          f"{escaped(view.dataset.caption(view.image))} is shown instead; choose another image of the "
                          "graph.", icon=":material/hub:")
    return is_outside


def gamma_slider(key: str, run_gamma: float | None = None, mark: str = "") -> float:
    """Show a slider for γ, whose value the address holds.

    Args:
        key: The widget's key.
        run_gamma: The run's own γ, which is the default; the default if None.
        mark: Words below the default.
    """
    field = describe_field(SSDML, "gamma")
    default = float(field.default if run_gamma is None else run_gamma)
    # Labels reach much farther at 0.999 than at 0.99, so a run's γ with more decimals gets a step as fine as its last.
    decimals = len(f"{default:f}".rstrip("0").partition(".")[2])
    step = min(field.slider[2], 10.0**-decimals)
    finer = replace(field, shown=replace(field.shown, label="Reach of labels", step=step))
    mark = mark or ("default" if run_gamma is None else "this run")
    return field_slider(finer, key, default, "how far a label reaches", marks={default: mark})
