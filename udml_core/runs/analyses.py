"""Analyses of a finished run: maps, graphs, image grids, refined embeddings and the audit of its data set.

Analyses are computed in the background and stored with the run. An analysis is a folder RUN/analyses/KIND-HASH. The
hash covers the request, so the same analysis is computed only once. Only this module knows the names of the files in
it. It loads without torch, because the command line reads it at once.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, TypeVar, get_args

from pydantic import ConfigDict, Field, ValidationError, field_validator, model_validator

from udml_core.base.arrays import Array, misfit
from udml_core.base.declaration import Options, Shown
from udml_core.base.errors import UserError, quoted
from udml_core.base.files import publish_folder, read_arrays, read_regular, replace_arrays, version_of
from udml_core.numerics.refinement.recipe import Recipe
from udml_core.runs.tasks import ADVICE, State, Status, Task

if TYPE_CHECKING:
    from udml_core.exploration.audit import Audit
    from udml_core.numerics.graph import AuthorityGraph
    from udml_core.runs import Run

Kind = Literal["pca", "tsne", "umap", "graph", "grid", "placed", "refine", "audit"]
KINDS: tuple[Kind, ...] = get_args(Kind)
MAPS: tuple[Kind, ...] = ("pca", "tsne", "umap")
Scope = Literal["test", "train", "all", "sample"]
REFINED = "refine-"
"""Beginning of the id of a refinement, which is also the name of its embedding as a frame."""
Frame = Annotated[str, Field(pattern=rf"^(frozen|initial|final|0|[1-9][0-9]*|{REFINED}[0-9a-f]{{12}})$")]
MOST_RESULT = 2**31
"""Largest result in bytes that is read: the refinement of 500,000 images has half of it."""
DEFAULT_RECIPE = "views+whiten+average:k=20,times=2,alpha=3"
RELEVANT_FIELDS: dict[Kind, tuple[str, ...]] = {
    "pca": ("scope", "frames"),
    "tsne": ("scope", "frames", "perplexity", "seed"),
    "umap": ("scope", "frames", "n_neighbors", "min_dist", "seed"),
    "graph": ("scope", "frames", "n_neighbors"),
    "grid": ("source", "frame"),
    "placed": ("source", "frame", "names", "content"),
    "refine": ("scope", "frames", "recipe"),
    "audit": (),
}
"""The fields that change the result of each kind."""

_MAP = {"indices": "int m", "positions": "float f m 2", "neighbors": "int f m k", "trustworthiness": "float f m",
        "continuity": "float f m"}
SHAPES: dict[Kind, dict[str, str]] = dict.fromkeys(MAPS, _MAP) | {
    "graph": {"indices": "int n", "authority": "float n", "rows": "int e", "columns": "int e", "affinity": "float e"},
    "grid": {"indices": "int m", "cells": "int m", "right": "float rows steps", "down": "float drops columns"},
    "placed": {"indices": "int m", "positions": "float q 2", "nearest": "int q k"},
    "refine": {"indices": "int m", "embedding": "float m l", "neighbors": "int m k", "scores": "float m k",
               "before": "int m k", "protocol": "text", "seen": "text s 2", "names": "text t", "values": "float 2 t"},
    "audit": {"content": "int n", "pairs": "int p 2", "distances": "int p", "cosines": "float p",
              "neighbors": "int n k", "similarities": "float n k"}}
"""Types and axes of the arrays of a result; see `misfit`."""


class AnalysisSpec(Options):
    """A request for an analysis.

    The options of `udml analyse` and the sliders for a new map are generated from the fields.
    """

    # A stored spec is read leniently, because JSON has no tuples.
    model_config = ConfigDict(strict=False)

    kind: Kind
    """The kind of analysis; pca, tsne and umap are maps, a grid arranges a map's images, refine improves the embedding
    by what the unlabeled images know about each other, and audit compares all images by frozen features and hashes."""

    scope: Scope = "all"
    """The images: all, a half of the run without the images held out for validation, or the sample of test images
    whose embedding is stored for every epoch."""

    frames: Annotated[tuple[Frame, ...], Field(min_length=1, max_length=200)] = ("initial", "final")
    """The embeddings, in the order of their layouts; epoch numbers need the scope sample, the id of a refinement
    needs the scope of the refinement, and a graph has exactly one frame."""

    perplexity: Annotated[float, Field(ge=2, le=500), Shown(low=5, high=100, step=1)] = 30.0
    """Perplexity of t-SNE: the effective number of neighbors that each image is kept close to."""

    n_neighbors: Annotated[int, Field(ge=2, le=500), Shown(high=100, options=("--neighbors",))] = 15
    """Number of neighbors of UMAP and of the graph. Few neighbors show local detail, many show the global
    structure."""

    min_dist: Annotated[float, Field(ge=0, le=1), Shown(label="Minimum distance", high=0.99)] = 0.1
    """Smallest distance of UMAP. Small values pack similar images tightly."""

    seed: Annotated[int, Field(ge=0, le=2**31 - 1)] = 0
    """Seed of t-SNE and UMAP."""

    source: str = ""
    """The map whose images a grid arranges or on which images are placed, by its id."""

    frame: str = ""
    """Frame of that map."""

    names: tuple[str, ...] = ()
    """Names of the placed images."""

    content: str = ""
    """Digest of the placed images."""

    recipe: Annotated[str, Field(max_length=500)] = DEFAULT_RECIPE
    """The steps of a refinement in their order, such as views+whiten+average:k=20,times=2."""

    @model_validator(mode="before")
    @classmethod
    def _set_defaults_of_kind(cls, values: Any) -> Any:
        if not isinstance(values, Mapping):
            return values
        defaults: dict[Any, dict[str, Any]] = {"graph": {"n_neighbors": 50, "frames": ("frozen",)},
                                               "refine": {"scope": "test", "frames": ("final",)},
                                               "audit": {"frames": ("frozen",)}}
        return defaults.get(values.get("kind"), {}) | dict(values)

    @field_validator("recipe")
    @classmethod
    def _write_recipe_plainly(cls, text: str) -> str:
        """Return the recipe without spaces and default values, so that equal recipes have one id."""
        try:
            return str(Recipe.parse(text))
        except UserError as error:
            raise ValueError(str(error)) from error

    @model_validator(mode="after")
    def _check_combination(self) -> AnalysisSpec:
        frames = ", ".join(self.frames)
        if self.scope != "sample" and any(frame.isdecimal() for frame in self.frames):
            raise ValueError("epochs are stored for the sample only; use the scope 'sample' or the frames frozen, "
                             f"initial and final, got the frames {frames} with the scope '{self.scope}'")
        if self.scope not in ("test", "train") and any(frame.startswith(REFINED) for frame in self.frames):
            raise ValueError("a refinement has the embedding of one half; use its scope, 'test' or 'train', got "
                             f"{frames} with the scope '{self.scope}'")
        if len(set(self.frames)) < len(self.frames):
            raise ValueError(f"name each frame once, got {frames}")
        if self.kind in ("graph", "refine") and len(self.frames) > 1:
            raise ValueError(f"a {'graph' if self.kind == 'graph' else 'refinement'} has exactly one frame, got "
                             f"{frames}")
        if self.kind in ("grid", "placed") and not (self.source and self.frame):
            raise ValueError(f"the kind '{self.kind}' needs a map; set source to the id of a map, and frame to one of "
                             "its frames")
        return self

    @property
    def id(self) -> str:
        """The kind and a hash of the fields that change the result."""
        counted = self.model_dump(mode="json", include=set(RELEVANT_FIELDS[self.kind]))
        digest = hashlib.sha256(json.dumps(counted, sort_keys=True).encode()).hexdigest()
        return f"{self.kind}-{digest[:12]}"


def plan_analysis(**values: Any) -> AnalysisSpec:
    """Build a request from a user's values.

    Raises:
        UserError: A value is not allowed; the message names the field and the value received.
    """
    try:
        return AnalysisSpec(**values)
    except ValidationError as error:
        problems = "; ".join(map(_explanation, error.errors()))
        raise UserError(f"The analysis cannot be computed: {problems}.") from None


def _explanation(problem: Any) -> str:
    """Return a problem in words; a message of our own names the value received."""
    if problem["type"] == "value_error":
        return str(problem["ctx"]["error"]).removesuffix(".")
    return f"{problem['loc'][0]}: {problem['msg']}, got {quoted(problem['input'])}"


@dataclass(frozen=True)
class Projection:
    """Maps of the same images, one for each frame, aligned with each other.

    Attributes:
        indices: Image indices (m,) int64, ascending.
        frames: The frames.
        positions: Layouts (f, m, 2) float32.
        neighbors: Rows (f, m, k) int32, 0 … m−1, of the k = 10 nearest neighbors in the embedding, not on the map;
            fewer if there are fewer images, none on a map of more than `LARGE` images.
        trustworthiness: Trustworthiness (f, m) float32; see `udml_core.numerics.evaluation.distortion`. On a map of
            many images it is measured among a sample, and NaN for other images.
        continuity: Continuity (f, m) float32, measured in the same way.
    """

    indices: Array
    frames: tuple[str, ...]
    positions: Array
    neighbors: Array
    trustworthiness: Array
    continuity: Array

    @cached_property
    def bounds(self) -> tuple[float, float, float, float]:
        """The bounding box x0, y0, x1, y1 of all layouts."""
        low, high = self.positions.min(axis=(0, 1)), self.positions.max(axis=(0, 1))
        return float(low[0]), float(low[1]), float(high[0]), float(high[1])


@dataclass(frozen=True)
class ImageGrid:
    """The images of a map, each in its own cell.

    Attributes:
        indices: Image indices (m,) int64.
        cells: Cell of each image (m,) int64, row · columns + column; no cell occurs twice.
        right: Distances (rows, columns − 1) float32, in the embedding and not on the map, from the image in each cell
            to its right neighbor; NaN beside an empty cell.
        down: Distances (rows − 1, columns) float32 to the neighbor below.
    """

    indices: Array
    cells: Array
    right: Array
    down: Array

    @property
    def rows(self) -> int:
        return len(self.right)

    @property
    def columns(self) -> int:
        return int(self.down.shape[1])


@dataclass(frozen=True)
class Placed:
    """New images on a map.

    Attributes:
        indices: Indices (m,) int64 of the map's images.
        names: Names of the new images.
        positions: Positions of the new images (q, 2) float32.
        nearest: Indices (q, k) int64 of the nearest images of the map, nearest first.
    """

    indices: Array
    names: tuple[str, ...]
    positions: Array
    nearest: Array


@dataclass(frozen=True)
class Refined:
    """A refined embedding, with the neighbors before and after.

    Attributes:
        indices: Image indices (m,) int64, ascending: the gallery, whose images are also the queries.
        embedding: Refined unit rows (m, l) float32.
        neighbors: Rows (m, k) int32, 0 … m−1, of the nearest images after refinement, nearest first.
        scores: Scores (m, k) float32 of the neighbors, larger for nearer images.
        before: Rows (m, k) int32 of the nearest images before refinement.
        protocol: Which images the steps have seen: inductive or transductive.
        seen: For each step, its name and the images that it has seen: nothing, training half or gallery.
        measures: Values before and after by measure, in percent except for hubness. Reciprocity, hubness and neighbor
            stability always; Recall@1 and MAP@R where the images have labels.
    """

    indices: Array
    embedding: Array
    neighbors: Array
    scores: Array
    before: Array
    protocol: str
    seen: tuple[tuple[str, str], ...]
    measures: Mapping[str, tuple[float, float]]


Result: TypeAlias = "Projection | ImageGrid | AuthorityGraph | Placed | Refined | Audit"
OneResult = TypeVar("OneResult", "Projection", "Refined", "Audit")


@dataclass(frozen=True)
class Analysis(Task):
    """The folder of an analysis, with readers and writers of its files."""

    @property
    def run(self) -> Run:
        from udml_core.runs import Run

        return Run(self.folder.parent.parent)

    def spec(self) -> AnalysisSpec:
        """Read the request.

        Raises:
            UserError: The file is missing or damaged.
        """
        path = self.folder / "spec.json"
        try:
            return _read_spec(path, *version_of(path))
        except (OSError, ValueError) as error:
            raise UserError(f"{path} must describe an analysis, but could not be read: {error}") from error

    @property
    def images_folder(self) -> Path:
        """The folder of the images to place, 0000.png and following."""
        return self.folder / "images"

    @property
    def _result_path(self) -> Path:
        return self.folder / "result.npz"

    def remove(self) -> None:
        """Remove the analysis; a later request computes it again."""
        self.check_writable()
        shutil.rmtree(self.folder, ignore_errors=True)

    def is_done(self) -> bool:
        """Return whether the analysis has a result."""
        return self.stored_status().state == "done" and self._result_path.exists()

    def write_result(self, arrays: Mapping[str, Array]) -> None:
        """Store the arrays of a result; `indices` (m,) are the indices of its images."""
        self.check_writable()
        replace_arrays(self._result_path, arrays)

    def indices(self) -> Array:
        """Read the indices (m,) int64 of the images in the result, ascending."""
        return self._arrays()["indices"]

    def result(self) -> Result:
        """Read the result.

        Raises:
            UserError: The analysis is not done, or its result is damaged.
        """
        spec, arrays = self.spec(), self._arrays()
        match spec.kind:
            case "pca" | "tsne" | "umap":
                return Projection(frames=spec.frames, **arrays)
            case "grid":
                return ImageGrid(**arrays)
            case "placed":
                return Placed(names=spec.names, **arrays)
            case "refine":
                names, values = arrays.pop("names").tolist(), arrays.pop("values").tolist()
                measures = {name: (before, after) for name, before, after in zip(names, *values, strict=True)}
                seen = tuple((name, images) for name, images in arrays.pop("seen").tolist())
                return Refined(measures=measures, seen=seen, protocol=str(arrays.pop("protocol")), **arrays)
            case "graph":
                from udml_core.numerics.graph import AuthorityGraph

                return AuthorityGraph(arrays["authority"], arrays["rows"], arrays["columns"], arrays["affinity"])
            case "audit":
                from udml_core.exploration.audit import Audit

                return Audit(**arrays)

    def projection(self) -> Projection:
        """Read the result of a map.

        Raises:
            UserError: The analysis is not a map, or is not done.
        """
        return self._result_as(Projection, f"map ({', '.join(MAPS)})")

    def refined(self) -> Refined:
        """Read the result of a refinement.

        Raises:
            UserError: The analysis is not a refinement, or is not done.
        """
        return self._result_as(Refined, "refinement")

    def audit(self) -> Audit:
        """Read the result of an audit.

        Raises:
            UserError: The analysis is not an audit, or is not done.
        """
        from udml_core.exploration.audit import Audit

        return self._result_as(Audit, "audit")

    def _result_as(self, kind: type[OneResult], title: str) -> OneResult:
        """Read the result, which must be of a kind."""
        result = self.result()
        if not isinstance(result, kind):
            raise UserError(f"The analysis {self.id} is not a {title}. Choose one; "
                            f"`udml analyses {self.folder.parent.parent.name}` lists the analyses.")
        return result

    def _arrays(self) -> dict[str, Array]:
        status = self.status()
        if status.state != "done":
            raise UserError(" ".join(filter(None, (
                f"The analysis {self.id} is {status.state} and has no result.", status.message,
                ADVICE[status.state]))))
        arrays = read_arrays(self._result_path, MOST_RESULT)
        if problem := misfit(arrays, SHAPES[self.spec().kind]):
            raise UserError(f"{self._result_path} should hold the result of {self.id}, but {problem}. Remove the "
                            "analysis and compute it again.")
        return arrays


def analysis_at(run: Run, spec: AnalysisSpec) -> Analysis:
    """Return the analysis that a request belongs to, whether or not it exists."""
    return Analysis(run.folder / "analyses" / spec.id)


def create_analysis(run: Run, spec: AnalysisSpec, images: Mapping[str, bytes] | None = None,
                    state: State = "waiting", result: Mapping[str, Array] | None = None) -> Analysis:
    """Create the folder of an analysis atomically.

    If another process has created the folder meanwhile, that folder stays.

    Args:
        run: The run.
        spec: The request.
        images: PNG files to place, by name.
        state: The first state.
        result: Arrays of the result, if it is already computed.

    Raises:
        UserError: The folder cannot be written.
    """
    final = analysis_at(run, spec)
    final.check_writable()
    aside = Analysis(final.folder.with_name(f".{final.id}.{time.monotonic_ns()}.part"))
    try:
        aside.folder.parent.mkdir(exist_ok=True)
        aside.folder.mkdir()
        (aside.folder / "spec.json").write_text(spec.model_dump_json(indent=1), encoding="utf-8")
        for name, content in (images or {}).items():
            aside.images_folder.mkdir(exist_ok=True)
            (aside.images_folder / name).write_bytes(content)
        if result is not None:
            aside.write_result(result)
        aside.write_status(Status(state=state, ticket=time.time()))
        publish_folder(aside.folder, final.folder)
    except OSError as error:
        shutil.rmtree(aside.folder, ignore_errors=True)
        if not final.folder.is_dir():
            raise UserError(f"The folder of analyses {final.folder.parent} cannot be written: {error}. "
                            "Free some space, or allow writing to the folder.") from error
    return final


def list_analyses(run: Run, kind: Kind | None = None) -> list[Analysis]:
    """List the analyses of a run with a readable spec, newest first."""
    folders = (run.folder / "analyses").glob(f"{kind or '[!.]'}*-*")
    analyses = [Analysis(folder) for folder in folders if _is_readable(Analysis(folder))]
    return sorted(analyses, key=lambda analysis: analysis.stored_status().ticket, reverse=True)


def find_analysis(run: Run, text: str) -> Analysis:
    """Find an analysis of a run by its id or the beginning of its id.

    Raises:
        UserError: No analysis matches, or more than one.
    """
    matches = [analysis for analysis in list_analyses(run) if analysis.id.startswith(text)] if text else []
    exact = [analysis for analysis in matches if analysis.id == text]
    if exact or len(matches) == 1:
        return (exact or matches)[0]
    if matches:
        raise UserError(f"'{text}' is the beginning of {len(matches)} analysis ids: "
                        f"{', '.join(analysis.id for analysis in matches[:4])}. Give more of the id.")
    raise UserError(f"The run {run.id} has no analysis {quoted(text)}. `udml analyses {run.id}` lists its analyses.")


@lru_cache(maxsize=1024)
def _read_spec(path: Path, *_version: int) -> AnalysisSpec:
    """Parse a spec once, because every movement of a cursor lists the analyses of a run several times.

    A replaced file is parsed again.
    """
    return AnalysisSpec.model_validate_json(read_regular(path))


def _is_readable(analysis: Analysis) -> bool:
    try:
        analysis.spec()
        return True
    except UserError:
        return False
