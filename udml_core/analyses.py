"""What is computed about a finished run in the background and kept with it: maps, graphs, image grids.

An analysis is a folder RUN/analyses/KIND-HASH; the hash is of what was asked for, so the same is never computed twice.
The only file that knows the names of an analysis's files.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from udml_core.arrays import Array
from udml_core.errors import UserError
from udml_core.files import read_arrays, replace_arrays
from udml_core.graph import AuthorityGraph
from udml_core.runs import Run
from udml_core.tasks import ADVICE, State, Status, Task

Kind = Literal["pca", "tsne", "umap", "graph", "grid", "placed"]
KINDS: tuple[Kind, ...] = get_args(Kind)
MAPS: tuple[Kind, ...] = ("pca", "tsne", "umap")
Scope = Literal["test", "train", "all", "sample"]
Frame = Annotated[str, Field(pattern=r"^(frozen|initial|final|0|[1-9][0-9]*)$")]
COUNTED: dict[Kind, tuple[str, ...]] = {
    "pca": ("scope", "frames"),
    "tsne": ("scope", "frames", "perplexity", "seed"),
    "umap": ("scope", "frames", "n_neighbors", "min_dist", "seed"),
    "graph": ("scope", "frames", "n_neighbors"),
    "grid": ("source", "frame"),
    "placed": ("source", "frame", "names", "content"),
}
"""Which fields make a difference to each kind."""


class AnalysisSpec(BaseModel):
    """What is asked for.

    scope: which images. test and train are the halves as the run used them, so without the images held out for
    validation; sample is the fixed sample of test images whose embedding is kept for every epoch.
    frames: which embeddings, in the order in which they are laid out; epoch numbers need the scope `sample`. A graph
    has one. source, frame: the map that a grid is snapped from, or into which images are placed, and which of its
    frames. names, content: of the placed images, and their digest.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Kind
    scope: Scope = "all"
    frames: Annotated[tuple[Frame, ...], Field(min_length=1, max_length=200)] = ("initial", "final")
    perplexity: Annotated[float, Field(ge=2, le=500)] = 30.0
    n_neighbors: Annotated[int, Field(ge=2, le=500)] = 15
    min_dist: Annotated[float, Field(ge=0, le=1)] = 0.1
    seed: Annotated[int, Field(ge=0, lt=2**31)] = 0
    source: str = ""
    frame: str = ""
    names: tuple[str, ...] = ()
    content: str = ""

    @model_validator(mode="before")
    @classmethod
    def _defaults_of_a_graph(cls, values: Any) -> Any:
        if isinstance(values, Mapping) and values.get("kind") == "graph":
            return {"n_neighbors": 50, "frames": ("frozen",)} | dict(values)
        return values

    @model_validator(mode="after")
    def _fits_together(self) -> AnalysisSpec:
        if self.scope != "sample" and any(frame.isdecimal() for frame in self.frames):
            raise ValueError("epochs are kept for the sample only: use the scope 'sample' or the frames frozen, "
                             f"initial and final, got the frames {', '.join(self.frames)} with '{self.scope}'")
        if len(set(self.frames)) < len(self.frames):
            raise ValueError(f"each frame can be there once, got {', '.join(self.frames)}")
        if self.kind == "graph" and len(self.frames) > 1:
            raise ValueError(f"a graph is of one frame, got {', '.join(self.frames)}")
        if self.kind in ("grid", "placed") and not (self.source and self.frame):
            raise ValueError(f"the kind '{self.kind}' needs a map: give source, the id of one, and one of its frames")
        return self

    @property
    def id(self) -> str:
        """The kind and a hash of what makes a difference to it."""
        counted = self.model_dump(mode="json", include=set(COUNTED[self.kind]))
        digest = hashlib.sha256(json.dumps(counted, sort_keys=True).encode()).hexdigest()
        return f"{self.kind}-{digest[:12]}"


def plan_analysis(**values: Any) -> AnalysisSpec:
    """What is asked for, from values that a person gave.

    Raises:
        UserError: a value does not fit, naming it.
    """
    try:
        return AnalysisSpec(**values)
    except ValidationError as error:
        said = "; ".join(f"{problem['loc'][0]}: {problem['msg']}, got {problem['input']!r}" if problem["loc"]
                         else problem["msg"].removeprefix("Value error, ") for problem in error.errors())
        raise UserError(f"The analysis cannot be made so: {said}.") from None


@dataclass(frozen=True)
class Projection:
    """Maps of the same images, one for each frame, turned so that they can be compared.

    indices (m,) int64: data set positions, ascending. positions (f, m, 2) float32.
    neighbors (f, m, k) int32: row numbers, 0 … m−1, of the k = 10 nearest in the embedding, not on the map; fewer
    where there are not so many.
    trustworthiness, continuity (f, m) float32: see `udml_core.evaluation.distortion`.
    """

    indices: Array
    frames: tuple[str, ...]
    positions: Array
    neighbors: Array
    trustworthiness: Array
    continuity: Array


@dataclass(frozen=True)
class ImageGrid:
    """A map's images, each in a cell of its own.

    indices (m,) int64: data set positions. cells (m,) int64: row · columns + column of each, no two alike.
    right (rows, columns − 1), down (rows − 1, columns) float32: the true distance of each cell's image to the one to
    the right and below, in the embedding, not on the map; NaN beside an empty cell.
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
    """New images on a map. positions (q, 2) float32; nearest (q, k) int64: data set positions, nearest first."""

    indices: Array
    names: tuple[str, ...]
    positions: Array
    nearest: Array


Result = Projection | ImageGrid | AuthorityGraph | Placed


@dataclass(frozen=True)
class Analysis(Task):
    """An analysis's folder, with reading and writing of every file in it."""

    @property
    def run(self) -> Run:
        return Run(self.folder.parent.parent)

    def spec(self) -> AnalysisSpec:
        """Raises:
        UserError: the file is missing or broken."""
        path = self.folder / "spec.json"
        try:
            return AnalysisSpec.model_validate_json(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise UserError(f"{path} must describe an analysis and could not be read: {error}") from error

    @property
    def images_folder(self) -> Path:
        """The images that are to be placed, 0000.png and on."""
        return self.folder / "images"

    @property
    def _result_path(self) -> Path:
        return self.folder / "result.npz"

    def remove(self) -> None:
        """Forget it; asked for again, it is computed again."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def is_done(self) -> bool:
        """Whether there is a result to read."""
        return self.stored_status().state == "done" and self._result_path.exists()

    def write_result(self, arrays: Mapping[str, Array]) -> None:
        """Keep a result's arrays; `indices` (m,) are among them, the data set positions that it is about."""
        replace_arrays(self._result_path, arrays)

    def indices(self) -> Array:
        """Data set positions (m,) int64, ascending, of the images that the result is about."""
        return self._arrays()["indices"]

    def result(self) -> Result:
        """Raises:
        UserError: it is not done, or what it left cannot be read."""
        spec, arrays = self.spec(), self._arrays()
        match spec.kind:
            case "pca" | "tsne" | "umap":
                return Projection(frames=spec.frames, **arrays)
            case "grid":
                return ImageGrid(**arrays)
            case "placed":
                return Placed(names=spec.names, **arrays)
            case "graph":
                return AuthorityGraph(arrays["authority"], arrays["rows"], arrays["columns"], arrays["affinity"])

    def projection(self) -> Projection:
        """The result of a map.

        Raises:
            UserError: it is no map, or not done.
        """
        result = self.result()
        if not isinstance(result, Projection):
            raise UserError(f"A map is needed ({', '.join(MAPS)}), and {self.id} is none. "
                            "Name another: `python -m udml_core analyses RUN` lists them.")
        return result

    def _arrays(self) -> dict[str, Array]:
        status = self.status()
        if status.state != "done":
            raise UserError(f"The analysis {self.id} is {status.state}, so there is no result yet. "
                            f"{status.message} {ADVICE[status.state]}")
        return read_arrays(self._result_path)


def analysis_at(run: Run, spec: AnalysisSpec) -> Analysis:
    """Where an analysis lies, whether or not it was ever asked for."""
    return Analysis(run.folder / "analyses" / spec.id)


def create_analysis(run: Run, spec: AnalysisSpec, images: Mapping[str, bytes] | None = None,
                    state: State = "waiting", result: Mapping[str, Array] | None = None) -> Analysis:
    """Make an analysis's folder, whole or not at all; one that somebody made meanwhile is taken as it is.

    Args:
        images: PNG files to place, by name. state, result: for one that is computed already.

    Raises:
        UserError: the folder cannot be written.
    """
    final = analysis_at(run, spec)
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
        aside.folder.rename(final.folder)
    except OSError as error:
        shutil.rmtree(aside.folder, ignore_errors=True)
        if not final.folder.is_dir():
            raise UserError(f"Analyses are kept in {final.folder.parent}, which cannot be written: {error}. "
                            "Make room or give write access.") from error
    return final


def list_analyses(run: Run, kind: Kind | None = None) -> list[Analysis]:
    """A run's analyses, newest first; one whose spec cannot be read is left out."""
    found = [Analysis(path) for path in (run.folder / "analyses").glob(f"{kind or '[!.]'}*-*") if _has_spec(path)]
    return sorted(found, key=lambda one: one.stored_status().ticket, reverse=True)


def find_analysis(run: Run, text: str) -> Analysis:
    """A run's analysis by its id or the start of one.

    Raises:
        UserError: there is none, or more than one.
    """
    matches = [one for one in list_analyses(run) if one.id.startswith(text)] if text else []
    exact = [one for one in matches if one.id == text]
    if exact or len(matches) == 1:
        return (exact or matches)[0]
    if matches:
        raise UserError(f"'{text}' starts {len(matches)} analyses: {', '.join(one.id for one in matches[:4])}. "
                        "Give more of the id.")
    raise UserError(f"The run {run.id} has no analysis '{text}'. `python -m udml_core analyses {run.id}` lists them.")


def _has_spec(folder: Path) -> bool:
    try:
        Analysis(folder).spec()
        return True
    except UserError:
        return False
