"""Names for all images of an embedding, from the labels that a user assigned to some of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from udml_core.base.arrays import Booleans, Floats, Integers, rows_of
from udml_core.base.errors import UserError, counted
from udml_core.data.dataset import Dataset, Report
from udml_core.data.given.exclusions import excluded_images
from udml_core.data.given.labels import (
    assigned_classes,
    assigned_now,
    judged_names,
    rejected_classes,
    unseen_images,
)
from udml_core.exploration.accepting import ENOUGH, PRECISION, Threshold, calibrate, trials_of
from udml_core.exploration.grouping import Proposal, by_size, proposals
from udml_core.exploration.label_spread import label_codes
from udml_core.exploration.naming import GAMMA, Naming, folded_reach, reach_of, symmetric_walk
from udml_core.numerics.neighbors import ignore_progress
from udml_core.runs import Run
from udml_core.runs.analyses import REFINED, Analysis, analysis_at, find_analysis, finished_analyses, plan_analysis
from udml_core.runs.analyses.kinds.graph import NeighborGraph
from udml_core.runs.analyses.kinds.groups import Grouping, Groups, group_images
from udml_core.runs.search.retrieval import Retrieval

DEFAULT_LEAST, NONE_ACCEPTED = 0.5, 1.01
"""Certainty from which names are proposed as long as too little is known for a calibration; none is accepted then."""
GUESSES = 24
"""Most certain names that are proposed in any case as guesses, so that a user can check some."""
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
    def threshold(self) -> Threshold | None:
        """The calibrated threshold; None as long as too little is known."""
        judged = judged_names(self.dataset)
        answers = (np.array([name.certainty for name in judged]), np.array([name.is_right for name in judged], bool))
        return calibrate(self.naming, self.seen, answers, self.target, self.left_out)

    @cached_property
    def seen(self) -> Booleans:
        """Whether a user looked at each image (n,) when it was named; images that were named in bulk are guesses."""
        names = unseen_images(self.dataset)
        return np.array([self.dataset.names[image] not in names for image in self.images.tolist()], bool)

    @property
    def least(self) -> float:
        """Certainty from which a name is accepted: the chosen one, else the calibrated one; above 1 if none is."""
        if self.chosen is not None:
            return self.chosen
        return NONE_ACCEPTED if self.threshold is None else self.threshold.least

    @property
    def are_guesses(self) -> bool:
        """Whether it is not known of the names, from the certainty in use on, that enough of them are right."""
        return self.least > 1 or self.threshold is None or self.least < self.threshold.least

    @property
    def words(self) -> str:
        """What is known about the accepted names."""
        chosen = "" if self.chosen is None else "You accept no other names" if self.chosen > 1 else (
            f"You accept names from a certainty of {100 * self.chosen:.0f} %")
        if self.threshold is None:
            said = f"{chosen}." if chosen and self.least <= 1 else "No other image gets a name by itself."
            return f"How many names are right is not known yet. {said} {self._missing}"
        if not chosen or self.chosen == self.threshold.least:
            return self.threshold.words
        if self.threshold.least > 1:
            return self.threshold.words if self.least > 1 else (
                f"{chosen}, where too many may be wrong. {self.threshold.failure}")
        return f"{chosen}; {100 * self.threshold.least:.0f} % is advised. {self.threshold.evidence}"

    @property
    def _missing(self) -> str:
        """What is missing to find out how many names are right."""
        trials, checks = trials_of(self.naming, self.seen), ENOUGH - len(judged_names(self.dataset))
        if len(np.unique(trials.classes)) < 2:
            wanted = f"name several images of each of two classes or more, {ENOUGH} images in all"
        else:
            wanted = f"name {counted(ENOUGH - len(trials.certainty), 'more image')} of the classes that you named"
        more = "more " if checks < ENOUGH else ""
        return f"To find out, {wanted}, with a look at each; or check {counted(checks, f'{more}proposed name')}."

    @cached_property
    def left_out(self) -> Booleans:
        """Whether a user excluded each image (n,) since the run."""
        return np.isin(self.images, excluded_images(self.dataset))

    @cached_property
    def accepted(self) -> Integers:
        """Class (n,) of each image with a label or an accepted name; −1 for the others, and for excluded images."""
        return self.accepted_from(self.least)

    def accepted_from(self, least: float) -> Integers:
        """Return the class (n,) of each image with a label or a name of this certainty; −1 for the others."""
        return np.where(self.left_out, -1, self.naming.accepted(least))

    @property
    def least_proposed(self) -> float:
        """Certainty from which a name is proposed: if no name is accepted, the most certain names are guesses."""
        if self.least <= 1:
            return self.least
        best, certainty = self.naming.named
        open_names = np.sort(certainty[(best >= 0) & (self.codes < 0) & ~self.left_out])
        return min(DEFAULT_LEAST, float(open_names[-GUESSES:].min(initial=DEFAULT_LEAST)))

    @property
    def proposals(self) -> list[Proposal]:
        """Images with an accepted name that no user has confirmed, by class, without excluded images.

        If no name is accepted, the most certain names are proposed all the same: judging them calibrates the others.
        """
        best, certainty = self.naming.named
        return proposals(np.where(self.left_out, -1, best), certainty, self.codes, self.least_proposed)

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
    naming = Naming(folded_reach(codes, len(classes), reach), codes, rejected_rows(dataset, images, classes))
    return NamedImages(dataset, images, labels, classes, codes, naming, target, chosen)


def name_codes(codes: Integers, classes: int, reach: Reach) -> Integers:
    """Return the accepted class (n,) of images from labels that are no user's; −1 without.

    Args:
        codes: Class (n,) of each labeled image; −1 for the others.
        classes: Number of classes.
        reach: Computes how often walks from each image end at some images.
    """
    naming = Naming(folded_reach(codes, classes, reach), codes, np.zeros((0, 2), int))
    threshold = calibrate(naming, np.ones(len(codes), bool), (np.zeros(0), np.zeros(0, bool)))
    return naming.accepted(DEFAULT_LEAST if threshold is None else threshold.least)


def names_along(dataset: Dataset, neighbors: Integers) -> dict[int, tuple[str, float]]:
    """Return the proposed class and its certainty for images without a label, by walks along neighbors (n, k).

    Args:
        dataset: The data set, all of whose images have neighbors.
        neighbors: Indices of the nearest images of each image.
    """
    if not assigned_now(dataset) or not neighbors.shape[1]:
        return {}
    named = name_images(dataset, np.arange(len(dataset)), reach_along(neighbors, GAMMA))
    least = DEFAULT_LEAST if named.least > 1 else named.least
    best, certainty = named.accepted_from(least), named.naming.named[1]
    return {row: (named.classes[best[row]], float(certainty[row]))
            for row in np.flatnonzero((best >= 0) & (named.codes < 0)).tolist()}


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
