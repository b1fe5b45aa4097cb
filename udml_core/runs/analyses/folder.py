"""The folder of an analysis: RUN/analyses/KIND-HASH.

The hash covers the request, so the same analysis is computed only once. Only this module knows the names of the files
in the folder.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar

from udml_core.base.arrays import Array, misfit
from udml_core.base.errors import UserError, quoted
from udml_core.base.files import append_line, publish_folder, read_arrays, read_lines, replace_arrays
from udml_core.runs.analyses.kind import AnalysisKind, Arrays
from udml_core.runs.analyses.kinds import MAPS
from udml_core.runs.analyses.map_kind import Projection
from udml_core.runs.analyses.spec import AnalysisSpec
from udml_core.runs.tasks import ADVICE, LIVE_STATES, State, Status, Task

if TYPE_CHECKING:
    from udml_core.runs import Run

MOST_RESULT = 2**31
"""Largest result in bytes that is read: the refinement of 500,000 images has half of it."""
Record = TypeVar("Record", covariant=True)


class _RecordedAs(Protocol[Record]):
    """A kind of analysis, with the type of its results."""

    name: ClassVar[str]

    def result(self, arrays: Arrays) -> Record: ...


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
        return self.read_spec(AnalysisSpec, "an analysis")

    @property
    def images_folder(self) -> Path:
        """The folder of the images to place, 0000.png and following."""
        return self.folder / "images"

    @property
    def _result_path(self) -> Path:
        return self.folder / "result.npz"

    @property
    def _earlier_path(self) -> Path:
        return self.folder / "earlier.npz"

    @property
    def _parts_path(self) -> Path:
        return self.folder / "parts.jsonl"

    def remove(self) -> None:
        """Remove the analysis; a later request computes it again."""
        self.check_writable()
        shutil.rmtree(self.folder, ignore_errors=True)

    def is_done(self) -> bool:
        """Return whether the analysis has a result."""
        return self.stored_status().state == "done" and self._result_path.exists()

    def is_damaged(self) -> bool:
        """Return whether the analysis has a result that cannot be read, so that it counts as not computed."""
        if not self.is_done():
            return False
        try:
            self.result()
        except UserError:
            return True
        return False

    def write_result(self, arrays: Mapping[str, Array]) -> None:
        """Store the arrays of a result; `indices` (m,) are the indices of its images."""
        self.check_writable()
        replace_arrays(self._result_path, arrays)
        self._earlier_path.unlink(missing_ok=True)

    def set_result_aside(self) -> None:
        """Prepare a computation from the beginning; the result stays as the earlier result until it is replaced."""
        self.check_writable()
        self._parts_path.unlink(missing_ok=True)
        self._result_path.replace(self._earlier_path)

    def has_earlier(self) -> bool:
        """Return whether a finished result is kept while the analysis is computed once more."""
        return self._earlier_path.exists()

    def restore_earlier(self) -> None:
        """Give up a further computation, and return to the earlier result.

        Raises:
            UserError: The further computation is still in progress.
        """
        self.check_writable()
        status = self.status()
        if status.state in LIVE_STATES:
            raise UserError(f"The analysis {self.id} is {status.state}. Stop it before its earlier result is restored.")
        self.clear_failure()
        self._parts_path.unlink(missing_ok=True)
        self._earlier_path.replace(self._result_path)
        self.write_status(Status(state="done", ticket=status.ticket))

    def append_part(self, row: Mapping[str, Any]) -> None:
        """Store a finished part of a result that takes long, before the result is complete."""
        self.check_writable()
        append_line(self._parts_path, row)

    def parts(self) -> list[dict[str, Any]]:
        """Read the finished parts in their order; they stay when the analysis is stopped."""
        return read_lines(self._parts_path)[0]

    def indices(self) -> Array:
        """Read the indices (m,) int64 of the images in the result, ascending."""
        return self._arrays()["indices"]

    def result(self) -> object:
        """Read the result as the record of its kind.

        Raises:
            UserError: The analysis is not done, or its result is damaged.
        """
        return self.spec().build_kind().result(self._arrays())

    def result_of(self, *kinds: type[_RecordedAs[Record]]) -> Record:
        """Read the result as the record of given kinds.

        Raises:
            UserError: The analysis is of another kind, is not done, or its result is damaged.
        """
        kind = self.spec().build_kind()
        if not isinstance(kind, kinds):
            raise UserError(f"The analysis {self.id} is not of the kind {' or '.join(kind.name for kind in kinds)}. "
                            f"Choose one; `udml analyses {self.folder.parent.parent.name}` lists the analyses.")
        return kind.result(self._arrays())

    def earlier_result_of(self, kind: type[_RecordedAs[Record]]) -> Record | None:
        """Read the earlier result while the analysis is computed once more; None without one that can be read."""
        own = self.spec().build_kind()
        if not isinstance(own, kind) or not self.has_earlier():
            return None
        arrays = read_arrays(self._earlier_path, MOST_RESULT)
        return None if misfit(arrays, own.shapes(arrays)) else own.result(arrays)

    def projection(self) -> Projection:
        """Read the result of a map.

        Raises:
            UserError: The analysis is not a map, or is not done.
        """
        return self.result_of(*MAPS)

    def _arrays(self) -> dict[str, Array]:
        status = self.status()
        if status.state != "done":
            raise UserError(" ".join(filter(None, (
                f"The analysis {self.id} is {status.state} and has no result.", status.message,
                ADVICE[status.state]))))
        arrays = read_arrays(self._result_path, MOST_RESULT)
        if problem := misfit(arrays, self.spec().declared.shapes(arrays)):
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
        (aside.folder / "spec.json").write_text(spec.stored(), encoding="utf-8")
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


def list_analyses(run: Run, *kinds: type[AnalysisKind]) -> list[Analysis]:
    """List the analyses of a run with a readable spec, newest first; of all kinds if none is given."""
    names = [kind.name for kind in kinds]
    folders = [folder for folder in (run.folder / "analyses").glob("[!.]*-*")
               if not names or folder.name.rpartition("-")[0] in names]
    analyses = [Analysis(folder) for folder in folders if _is_readable(Analysis(folder))]
    return sorted(analyses, key=lambda analysis: analysis.stored_status().ticket, reverse=True)


def finished_analyses(run: Run, *kinds: type[AnalysisKind]) -> list[Analysis]:
    """List the analyses of a run that have a result, newest first; of all kinds if none is given."""
    return [analysis for analysis in list_analyses(run, *kinds) if analysis.is_done()]


def finished_maps(run: Run) -> list[Analysis]:
    """List the finished maps of a run, the preferred one first.

    Preferred are UMAP to t-SNE to PCA, then maps of all images, then of few embeddings, then newer ones.
    """
    def rank(analysis: Analysis) -> tuple[bool, int]:
        spec = analysis.spec()
        return spec.scope != "all", len(spec.frames)

    return [analysis for kind in MAPS for analysis in sorted(finished_analyses(run, kind), key=rank)]


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


def _is_readable(analysis: Analysis) -> bool:
    try:
        analysis.spec()
        return True
    except UserError:
        return False
