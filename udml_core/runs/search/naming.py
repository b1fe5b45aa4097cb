"""Names for all images of an embedding, from the labels that a user assigned to some of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from udml_core.base.arrays import Booleans, Floats, Integers, rows_of
from udml_core.base.errors import UserError
from udml_core.data.dataset import Dataset, Report
from udml_core.data.given.exclusions import excluded_images
from udml_core.data.given.labels import (
    assigned_classes,
    assigned_now,
    judged_names,
    refused_classes,
    rejected_classes,
    unseen_images,
)
from udml_core.exploration.accepting import PRECISION, Acceptance, calibrate
from udml_core.exploration.grouping import Proposal, by_size, proposals
from udml_core.exploration.label_spread import label_codes
from udml_core.exploration.naming import GAMMA, Naming, Reached, reach_of, symmetric_walk
from udml_core.exploration.next_names import MOST, next_proposals
from udml_core.numerics.neighbors import ignore_progress
from udml_core.runs import Run
from udml_core.runs.analyses import REFINED, Analysis, analysis_at, find_analysis, finished_analyses, plan_analysis
from udml_core.runs.analyses.kinds.graph import NeighborGraph
from udml_core.runs.analyses.kinds.groups import Grouping, Groups, group_images
from udml_core.runs.search.retrieval import Retrieval

DEFAULT_LEAST = 0.5
"""Certainty from which names are proposed in any case, without being accepted."""
GUESSES = 24
"""Most certain names that are proposed if fewer are as certain, so that a user can check some."""
SEEN = 60
"""Most images that a page shows at once, so that a user can look at each."""
Reach = Callable[[Booleans], Floats]


def groups_analysis(run: Run, frame: str) -> Analysis | None:
    """Return the finished analysis of the groups of an embedding; None without it."""
    scope = "all" if not frame.startswith(REFINED) else find_analysis(run, frame).spec().scope
    if frame.startswith(REFINED) and scope == "all":
        return None  # an analysis of a refinement needs the scope of a half
    analysis = analysis_at(run, plan_analysis(Groups, scope=scope, frames=(frame,)))
    return analysis if analysis.folder.exists() and analysis.is_done() else None


def stored_grouping(run: Run, frame: str) -> Grouping | None:
    """Return the stored groups of an embedding; None without."""
    analysis = groups_analysis(run, frame)
    return None if analysis is None else analysis.result_of(Groups)


def grouping_of(opened: Retrieval, frame: str = "final", report: Report = ignore_progress) -> Grouping:
    """Return the groups of an embedding's images that the run does not exclude: stored, or computed now.

    Args:
        opened: The run.
        frame: Name of the embedding.
        report: Receives the progress.

    Raises:
        UserError: The run does not have the embedding, or there are too few images.
    """
    stored = stored_grouping(opened.run, frame)
    kept = np.setdiff1d(opened.frame(frame).indices, opened.split.excluded)
    if stored is not None and np.array_equal(stored.indices, kept):
        return stored
    return group_images(kept, opened.frame(frame).take(kept), report)


def groups_at_epsilon(opened: Retrieval, grouping: Grouping, frame: str, epsilon: float) -> Integers:
    """Return the group (n,) of each image by authority ascent at an ε, numbered by falling size.

    Images outside the graph are a group of their own.

    Raises:
        UserError: The run has no neighbor graph of the embedding.
    """
    graph = _graph_of(opened.run, frame)
    if graph is None:
        raise UserError(f"The run {opened.run.id} has no neighbor graph of the embedding {frame}. Build it: udml "
                        f"analyse {opened.run.id} --kind graph --scope all --frames {frame}")
    clusters = graph.result_of(NeighborGraph).clusters(epsilon)
    rows = rows_of(graph.indices(), grouping.indices)
    return by_size(np.where(rows >= 0, np.asarray(clusters.labels)[rows], len(clusters.modes)))


def _graph_of(run: Run, frame: str) -> Analysis | None:
    return next((graph for graph in finished_analyses(run, NeighborGraph) if graph.spec().frames == (frame,)), None)


def has_graph(run: Run, frame: str) -> bool:
    """Return whether groups of an embedding can be formed at an ε."""
    return _graph_of(run, frame) is not None


@dataclass(frozen=True, eq=False)
class NamedImages:
    """The names of an embedding's images.

    Attributes:
        dataset: The data set.
        images: Image indices (n,), ascending.
        labels: The assigned class of each labeled image, by index.
        classes: The classes.
        codes: Class (n,) of each labeled image; −1 for the others.
        naming: The most probable classes.
        target: Share of the accepted names that should be right.
        chosen: Certainty from which names are accepted, if a user chose one.
    """

    dataset: Dataset
    images: Integers
    labels: dict[int, str]
    classes: tuple[str, ...]
    codes: Integers
    naming: Naming
    target: float = PRECISION
    chosen: float | None = None

    @cached_property
    def acceptance(self) -> Acceptance:
        """The certainties from which the names of each class are accepted, by the names that a user checked."""
        judged, code_of = judged_names(self.dataset), {name: code for code, name in enumerate(self.classes)}
        index_of = self.dataset.indices_by_name([name.image for name in judged])
        found = np.array([(index_of[name.image], code_of[name.name]) for name in judged
                          if name.image in index_of and name.name in code_of], int).reshape(-1, 2)
        rows = rows_of(self.images, found[:, 0])
        return calibrate(self.naming, rows[rows >= 0], found[rows >= 0, 1], self.target)

    @cached_property
    def seen(self) -> Booleans:
        """Whether a user looked at each image (n,) when it was named; images that were named in bulk are guesses."""
        names = unseen_images(self.dataset)
        return np.array([self.dataset.names[image] not in names for image in self.images.tolist()], bool)

    @property
    def least(self) -> Floats:
        """The certainty (c,) from which the names of each class are accepted: the chosen one, else the calibrated."""
        return self.acceptance.least if self.chosen is None else np.full(len(self.classes), self.chosen)

    @property
    def least_by_class(self) -> dict[str, float]:
        """The certainty of each class that accepts names, by its name."""
        return {name: least for name, least in zip(self.classes, self.least.tolist(), strict=True) if least <= 1}

    def are_guesses(self, code: int) -> bool:
        """Return whether it is not known that enough of the proposed names of a class are right."""
        return bool(self.least[code] > 1 or self.least[code] < self.acceptance.least[code])

    def are_proven(self, code: int, certainty: Floats) -> bool:
        """Return whether names of a class are as certain as checked names of which enough were right."""
        return bool((certainty >= self.acceptance.least[code]).all())

    @property
    def words(self) -> str:
        """What is known about the accepted names."""
        if self.chosen is None:
            return self.acceptance.words(self.classes)
        doubt = ", where too many may be wrong" if (self.chosen < self.acceptance.least).any() else ""
        return (f"You accept names from a certainty of {100 * self.chosen:.0f} %{doubt}." if self.chosen <= 1 else
                "You accept no other names.")

    @cached_property
    def left_out(self) -> Booleans:
        """Whether a user excluded each image (n,) since the run."""
        return np.isin(self.images, excluded_images(self.dataset))

    @cached_property
    def accepted(self) -> Integers:
        """Class (n,) of each image with a label or an accepted name; −1 for the others, and for excluded images."""
        return np.where(self.left_out, -1, self.naming.accepted(self.least))

    @cached_property
    def least_proposed(self) -> Floats:
        """The certainty (c,) from which the names of each class are proposed: accepted ones, and the most certain."""
        if self.chosen is not None and self.chosen <= 1:
            return self.least
        best, certainty = self.naming.named
        is_open = (best >= 0) & (self.codes < 0) & ~self.left_out & ~self.naming.reaches(self.least)
        guesses = np.sort(certainty[is_open])[-GUESSES:]
        return np.minimum(self.least, min(DEFAULT_LEAST, float(guesses.min(initial=DEFAULT_LEAST))))

    @property
    def proposals(self) -> list[Proposal]:
        """Images with a proposed name that no user has confirmed, by class, without excluded images."""
        best, certainty = self.naming.named
        is_proposed = ~self.left_out & self.naming.reaches(self.least_proposed)
        return proposals(np.where(is_proposed, best, -1), certainty, self.codes)

    @cached_property
    def next_names(self) -> list[Proposal]:
        """The next images of each class to ask about; classes come last of which all were rejected last."""
        most = np.where(self.acceptance.least <= 1, SEEN, MOST)
        found = next_proposals(self.naming, (self.codes < 0) & ~self.left_out, most)
        refused = {name: number for number, name in enumerate(refused_classes(self.dataset), 1)}
        return sorted(found, key=lambda proposal: refused.get(self.classes[proposal.code], 0))

    def class_of(self, row: int) -> str:
        """Return the accepted class of a row; empty without."""
        code = int(self.accepted[row])
        return "" if code < 0 else self.classes[code]


def reach_along(neighbors: Integers, gamma: float) -> Reach:
    """Return the function that computes how often walks along neighbors (n, k) end at some images."""
    walk = symmetric_walk(neighbors)
    return lambda labeled: reach_of(walk, labeled, gamma)


def name_images(dataset: Dataset, images: Integers, reach: Reach, target: float = PRECISION,
                chosen: float | None = None) -> NamedImages:
    """Name images from the labels that are assigned now.

    Args:
        dataset: The data set.
        images: Image indices (n,), ascending.
        reach: Computes how often walks from each image end at some images.
        target: Share of the accepted names that should be right.
        chosen: Certainty from which names are accepted; calibrated by default.
    """
    labels, classes = assigned_now(dataset), assigned_classes(dataset)
    codes = label_codes(labels, classes, images)
    naming = Naming(Reached(codes, len(classes), reach), rejected_rows(dataset, images, classes))
    return NamedImages(dataset, images, labels, classes, codes, naming, target, chosen)


def name_codes(codes: Integers, classes: int, reach: Reach) -> Integers:
    """Return the class (n,) of images that labels of no user give with some certainty; −1 without.

    Args:
        codes: Class (n,) of each labeled image; −1 for the others.
        classes: Number of classes.
        reach: Computes how often walks from each image end at some images.
    """
    return Naming(Reached(codes, classes, reach), np.zeros((0, 2), int)).accepted(DEFAULT_LEAST)


def names_along(dataset: Dataset, neighbors: Integers) -> dict[int, tuple[str, float]]:
    """Return the proposed class and its certainty for images without a label, by walks along neighbors (n, k).

    Args:
        dataset: The data set, all of whose images have neighbors.
        neighbors: Indices of the nearest images of each image.
    """
    if not assigned_now(dataset) or not neighbors.shape[1]:
        return {}
    named = name_images(dataset, np.arange(len(dataset)), reach_along(neighbors, GAMMA))
    best, certainty = named.naming.named
    is_proposed = (best >= 0) & (named.codes < 0) & ~named.left_out & named.naming.reaches(
        np.minimum(named.least, DEFAULT_LEAST))
    return {row: (named.classes[best[row]], float(certainty[row])) for row in np.flatnonzero(is_proposed).tolist()}


def rejected_rows(dataset: Dataset, images: Integers, classes: Sequence[str]) -> Integers:
    """Return the rows and classes (r, 2) that a user rejected."""
    rejected, code_of = rejected_classes(dataset), {name: code for code, name in enumerate(classes)}
    index_of = dataset.indices_by_name(rejected)
    pairs = [(index_of[image], code_of[name]) for image, names in rejected.items() if image in index_of
             for name in sorted(names) if name in code_of]
    found = np.array(pairs, int).reshape(-1, 2)
    rows = rows_of(images, found[:, 0])
    return np.stack([rows, found[:, 1]], axis=1)[rows >= 0]


def name_all(opened: Retrieval, frame: str = "final", gamma: float = GAMMA, target: float = PRECISION,
             chosen: float | None = None, report: Report = ignore_progress) -> NamedImages:
    """Name all images of an embedding that are not excluded, from the labels that are assigned now.

    Args:
        opened: The run.
        frame: Name of the embedding.
        gamma: Probability γ that a walk continues.
        target: Share of the accepted names that should be right.
        chosen: Certainty from which names are accepted; calibrated by default.
        report: Receives the progress.

    Raises:
        UserError: The run does not have the embedding.
    """
    grouping = grouping_of(opened, frame, report)
    return name_images(opened.dataset, grouping.indices, reach_along(grouping.neighbors, gamma), target, chosen)
