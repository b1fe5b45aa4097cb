"""What a kind of analysis declares, and what it receives.

A kind is one file in `kinds`: a class with its fields, the arrays it stores, `compute` and its words. Only fields
that change the result are declared; the id of an analysis is a hash of them.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from pydantic import ConfigDict

from udml_core.base.arrays import Array
from udml_core.base.declaration import Options
from udml_core.runs.analyses.fields import FrameOfMap, Frames, Images, MapId, Scope

if TYPE_CHECKING:
    from udml_core.data.dataset import Dataset, Report
    from udml_core.exploration.race import Setup
    from udml_core.methods.model import Model
    from udml_core.numerics.refinement.recipe import Views
    from udml_core.runs import Run

Arrays = dict[str, Array]


class Material(Protocol):
    """The input of an analysis: a run's embeddings, images and frozen features."""

    report: Report

    @property
    def dataset(self) -> Dataset: ...

    @property
    def backbone(self) -> str:
        """The backbone of the run's encoder."""

    @property
    def images_to_place(self) -> list[Path]:
        """The files of the images that came with the request, in their order."""

    def indices(self, scope: Scope) -> Array:
        """Return the image indices (m,), ascending, of a scope."""

    def training_indices(self) -> Array:
        """Return the indices (m,) of the training half; none if the test half has the same images."""

    def vectors(self, frame: str, indices: Array) -> Array:
        """Return the embeddings (m, d) float32 of images in a frame."""

    def model(self, frame: str) -> Model:
        """Return the model that embeds new images in a frame."""

    def view_vectors(self, frame: str, views: Views) -> Array:
        """Return the embeddings (n, d) of all images in a frame, from features averaged over views."""

    def refinement(self, name: str) -> tuple[str, str]:
        """Return the recipe of a refinement of the run, and the frame that it refines."""

    def part_features(self) -> list[Array]:
        """Return the features (n, d) of all images by each of several encoders side by side; none for a single one."""

    def judge_features(self, backbone: str) -> Array:
        """Return the features (n, d) of all images by another encoder than the run's."""

    def judge_views(self, backbone: str, indices: Array) -> Array | None:
        """Return a judge's features (m, d) of another view of some images; None if it is a table of vectors."""

    @property
    def run_id(self) -> str:
        """The id of the run."""

    @property
    def chosen(self) -> Setup | None:
        """The search that the user chose for these images, if it refines the run's embedding."""

    def of(self, setup: Setup) -> Material:
        """Return the material of the run whose embedding a search refines; train it first unless it is finished.

        Raises:
            UserError: The run is not possible, or was not finished.
        """

    def training_time(self, setup: Setup) -> tuple[float, bool]:
        """Return the expected seconds until `of` returns, 0 if the run is finished, and whether they are measured."""

    def feature_time(self, backbone: str, views: Views | None = None) -> tuple[float, bool]:
        """Return the expected seconds of features that are not stored, and whether they are measured."""

    def evaluate_exactly(self) -> Mapping[str, Mapping[str, float]]:
        """Evaluate the run with every test image as a query, store the measures with it, and return them."""

    def append(self, row: Mapping[str, Any]) -> None:
        """Store a finished part of the result, which others can read at once."""

    def parts(self) -> list[dict[str, Any]]:
        """Return the parts that an earlier attempt has stored."""

    def source(self, kind: OnMap) -> tuple[AnalysisKind, Array, Array, Array]:
        """Return the map that an analysis starts from.

        Returns:
            Map, image indices (m,), and layout (m, 2) and embeddings (m, d) in the frame.
        """


class AnalysisKind(Options, ABC):
    """A kind of analysis with the values of its fields."""

    # A stored spec is read leniently, because JSON has no tuples.
    model_config = ConfigDict(strict=False)

    name: ClassVar[str]
    """The name in requests and in ids."""
    title: ClassVar[str]
    """The name on pages."""
    noun: ClassVar[str]
    """The name in messages, after an article."""
    text: ClassVar[str] = ""
    """Its sentence in the help of the command line; empty for no sentence."""
    order: ClassVar[int] = 100
    """Position in lists of kinds."""
    is_linear: ClassVar[bool] = False
    """Whether it projects, which takes seconds for any number of images."""
    arrays: ClassVar[Mapping[str, str]]
    """Types and axes of the stored arrays; see `misfit`."""
    added: ClassVar[Mapping[str, str]] = {}
    """Further arrays, which results of earlier versions lack."""
    settings: ClassVar[str] = ""
    """Words of its settings in titles, with the fields in braces."""
    differences: ClassVar[Mapping[str, str]] = {}
    """Words of each setting in short titles, which name a setting only if it is not the default."""

    @abstractmethod
    def compute(self, material: Material) -> Arrays:
        """Compute the arrays of the result.

        Raises:
            UserError: There are too few images, or something that the analysis needs is missing.
        """

    @abstractmethod
    def result(self, arrays: Arrays) -> object:
        """Return the stored arrays as a record."""

    @classmethod
    def shapes(cls, arrays: Arrays) -> dict[str, str]:
        """Return the types and axes that stored arrays must have."""
        return {**cls.arrays, **{name: shape for name, shape in cls.added.items() if name in arrays}}

    @property
    def id(self) -> str:
        """The name and a hash of the fields that change the result."""
        digest = hashlib.sha256(json.dumps(self.model_dump(mode="json"), sort_keys=True).encode()).hexdigest()
        return f"{self.name}-{digest[:12]}"

    @property
    def setting_words(self) -> str:
        """The settings in words; empty if there are none."""
        return self.settings.format_map(dict(self))

    @property
    def difference_words(self) -> list[str]:
        """The settings in words that differ from the defaults."""
        return [words.format(getattr(self, name)) for name, words in self.differences.items()
                if getattr(self, name) != type(self).model_fields[name].get_default()]

    def check(self) -> None:
        """Check the fields together.

        Raises:
            ValueError: They do not fit each other.
        """

    def expected_bytes(self, images: int, width: int, largest: int) -> float:
        """Estimate the memory of the computation besides the program's own.

        Args:
            images: Number of images that it covers.
            width: Dimension of the embedding.
            largest: Number of these images that one class has at most; 0 without classes.
        """
        return 12.0 * images * width

    def check_run(self, run: Run) -> None:
        """Check that a run can be analyzed so.

        Raises:
            UserError: It cannot.
        """

    def findings(self, read: Callable[[], Any]) -> dict[str, Any]:
        """Return what the command line prints of a result besides the request.

        Args:
            read: Reads the result.
        """
        return {}

    @staticmethod
    def lines(findings: Mapping[str, Any]) -> list[str]:  # noqa: ARG004
        """Return the findings as lines of text."""
        return []


class OfOneFrame(AnalysisKind):
    """An analysis of one embedding."""

    scope: Images = "all"
    frames: Frames = ("final",)

    def check(self) -> None:
        """Reject several frames."""
        if len(self.frames) > 1:
            raise ValueError(f"a {self.noun} has exactly one frame, got {', '.join(self.frames)}")


class OnMap(AnalysisKind):
    """An analysis that starts from a finished map."""

    source: MapId = ""
    frame: FrameOfMap = ""

    def check(self) -> None:
        """Reject a request without a map."""
        if not (self.source and self.frame):
            raise ValueError(f"the kind '{self.name}' needs a map; set source to the id of a map, and frame to one of "
                             "its frames")
