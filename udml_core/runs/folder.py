"""A run is a folder. Only this module knows the names of the files in it."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
import safetensors
from safetensors.torch import save
from torch import Tensor

from udml_core.arrays import Array
from udml_core.data import catalog
from udml_core.data.dataset import Dataset, Report
from udml_core.data.given.pairs import PairSet
from udml_core.data.splits import fixed_sample, make_split
from udml_core.errors import UserError
from udml_core.explanations import KINDS, Explanation, name_of, to_arrays
from udml_core.files import (
    jsonable,
    read_array,
    read_arrays,
    replace_array,
    replace_arrays,
    replace_bytes,
    replace_text,
)
from udml_core.methods import Embedder, find_method, is_normalized
from udml_core.runs.selection import best_epoch
from udml_core.runs.spec import Spec
from udml_core.tasks import Status, Task


@dataclass(frozen=True)
class Run(Task):
    """A run's folder, with reading and writing of every file in it."""

    def spec(self) -> Spec:
        """Raises:
        UserError: the file is missing or broken."""
        path = self.folder / "spec.json"
        try:
            state = path.stat()
            return _read_spec(path, state.st_mtime_ns, state.st_size)
        except (OSError, ValueError) as error:
            raise UserError(f"{path} must describe a run, but could not be read: {error}") from error

    def dataset(self, report: Report = lambda _share, _what: None) -> Dataset:
        """The data set that the run began with.

        Raises:
            UserError: it is gone, or has changed since.
        """
        dataset = catalog.load(self.spec().dataset, report)
        self.check_dataset(dataset)
        return dataset

    def check_dataset(self, dataset: Dataset) -> None:
        """Raises:
        UserError: it is not the one that the run began with."""
        if dataset.fingerprint != self.spec().fingerprint:
            raise UserError(f"The data set '{dataset.name}' has changed since this run was started, so its images and "
                            "their order are not the same. Restore it, or start a new run.")

    def pairs(self) -> PairSet:
        """The pairs that the run was given, by position in the data set.

        Raises:
            UserError: they are missing or broken.
        """
        stored = read_arrays(self.folder / "pairs.npz")
        return PairSet(stored["pairs"], stored["same"])

    def unused_pairs(self, pairs: PairSet) -> PairSet:
        """Those that were given neither to this run nor to those that it goes on from, as far as these are still there.
        """
        spec = self.spec()
        if spec.pairs == "given":
            pairs = pairs.without(self.pairs())
        earlier = Run(self.folder.parent / (spec.starts_from or ""))
        return earlier.unused_pairs(pairs) if spec.starts_from and earlier.has_spec() else pairs

    # Curves and epochs

    def metrics(self, offset: int = 0) -> tuple[list[dict[str, Any]], int]:
        """Finished epochs from a byte offset on, and the offset to go on from; half a line is left for later."""
        try:
            with (self.folder / "metrics.jsonl").open("rb") as file:
                file.seek(offset)
                content = file.read()
        except OSError:
            return [], offset
        end = content.rfind(b"\n") + 1
        rows = []
        for line in content[:end].splitlines():
            try:
                row = json.loads(line)
            except ValueError:
                continue
            if isinstance(row, dict) and "epoch" in row:
                rows.append(row)
        return rows, offset + end

    def append_metrics(self, row: Mapping[str, Any]) -> None:
        path = self.folder / "metrics.jsonl"
        line = json.dumps(jsonable(row)) + "\n"
        with path.open("ab") as file:
            if file.tell() and not path.read_bytes().endswith(b"\n"):
                line = "\n" + line  # a writer was killed within its line
            file.write(line.encode())
            file.flush()
            os.fsync(file.fileno())

    def write_epoch(self, number: int, records: Iterable[Explanation], sample: Array,
                    trained: Array | None = None) -> None:
        """Keep an epoch's explanations and the embedding of the fixed sample; also that of one of the training half."""
        final = self.folder / "epochs" / f"{number:04d}"
        if final.exists():
            return
        aside = final.with_suffix(".part")
        shutil.rmtree(aside, ignore_errors=True)
        aside.parent.mkdir(exist_ok=True)  # the run's own folder is never made again where somebody removed it
        aside.mkdir()
        np.save(aside / "sample.npy", sample.astype(np.float32))
        if trained is not None:
            np.save(aside / "trained.npy", trained.astype(np.float32))
        for record in records:
            np.savez(aside / f"{name_of(record)}.npz", **to_arrays(record))  # type: ignore[arg-type]
        aside.rename(final)

    def kept_epoch(self) -> int:
        """The epoch whose embedder is the final one: the last, or the one that was selected."""
        spec = self.spec()
        shows_collapse = find_method(spec.method).rank_shows_collapse
        best = best_epoch(self.metrics()[0], shows_collapse) if spec.select == "validation" else None
        return max(self.epoch_numbers(), default=0) if best is None else best

    def epoch_numbers(self) -> list[int]:
        """Epochs that can be read, ascending."""
        return sorted(int(path.name) for path in (self.folder / "epochs").glob("[0-9]*") if path.name.isdecimal())

    def write_sample_indices(self, indices: Array) -> None:
        """Keep which images the fixed sample is."""
        path = self.folder / "epochs" / "sample.npy"
        path.parent.mkdir(exist_ok=True)
        replace_array(path, indices)

    def sample_indices(self) -> Array:
        """Data set positions (s,) int64, ascending, of the fixed sample whose embedding is kept for every epoch.

        Raises:
            UserError: no epoch is there yet, or a run from before they were kept has lost its data set.
        """
        path = self.folder / "epochs" / "sample.npy"
        if path.exists():
            return read_array(path)
        numbers = self.epoch_numbers()
        if not numbers:
            raise UserError(f"The run {self.id} has no epoch yet, so it has no sample. Wait for its first epoch.")
        test = make_split(self.dataset(), self.spec().split).test
        return fixed_sample(test, len(self.epoch_sample(numbers[0])))

    def epoch_sample(self, number: int) -> Array:
        """The embedding of the fixed sample after an epoch (0: before the first)."""
        return read_array(self.folder / "epochs" / f"{number:04d}" / "sample.npy")

    def epoch_trained(self, number: int) -> Array | None:
        """The embedding (t, l), after an epoch, of `fixed_sample(split.train, t)`; None where none was kept, as in the
        split `all` and in older runs."""
        path = self.folder / "epochs" / f"{number:04d}" / "trained.npy"
        return read_array(path) if path.exists() else None

    def explanations(self, number: int) -> list[Explanation]:
        """What the method explained itself with in an epoch, as arrays."""
        found: list[Explanation] = []
        for name, kind in KINDS.items():
            path = self.folder / "epochs" / f"{number:04d}" / f"{name}.npz"
            if path.exists():
                with np.load(path, allow_pickle=False) as stored:
                    if set(stored.files) == {one.name for one in fields(kind)}:  # else of a version that kept others
                        found.append(kind(**{key: stored[key] for key in stored.files}))
        return found

    # Checkpoints

    def write_checkpoint(self, number: int, state: Mapping[str, Tensor], embedder: Embedder) -> None:
        """Put the state after an epoch in place, whole or not at all, and drop the older ones."""
        final = self._put_checkpoint(f"{number:04d}", state, embedder)
        for other in self._checkpoints():
            if other != final:
                shutil.rmtree(other, ignore_errors=True)

    def write_best(self, state: Mapping[str, Tensor], embedder: Embedder) -> None:
        """Keep the state after the epoch that is the best so far on the validation images."""
        self._put_checkpoint("best", state, embedder)

    def _put_checkpoint(self, name: str, state: Mapping[str, Tensor], embedder: Embedder) -> Path:
        final = self.folder / "checkpoint" / name
        aside = final.with_suffix(".part")
        shutil.rmtree(aside, ignore_errors=True)
        aside.parent.mkdir(exist_ok=True)
        aside.mkdir()
        tensors = {name: value.detach().cpu().contiguous() for name, value in state.items()}
        replace_bytes(aside / "state.safetensors", save(tensors))
        embedder.save(aside / "embedder.safetensors")
        shutil.rmtree(final, ignore_errors=True)
        aside.rename(final)
        return final

    def read_checkpoint(self) -> tuple[int, dict[str, Tensor], Path] | None:
        """The newest epoch's number and state, and where its embedder lies; None before the first."""
        for folder in reversed(self._checkpoints()):
            state = _state_in(folder)
            if state is not None:
                return int(folder.name), state, folder / "embedder.safetensors"
        return None

    def kept_checkpoint(self) -> Path:
        """The folder of state and embedder after the epoch whose embedder is the final one.

        Raises:
            UserError: it was lost.
        """
        for folder in (self.folder / "checkpoint" / f"{self.kept_epoch():04d}", self.best_embedder_path.parent):
            if _state_in(folder) is not None:
                return folder
        raise UserError(f"A run is continued from the state that it kept, and {self.id} has lost its folder "
                        "'checkpoint'. Restore it, or train anew.")

    def read_start(self) -> tuple[dict[str, Tensor], Path] | None:
        """The state that this run goes on from, and where its embedder lies; None where it begins anew.

        Raises:
            UserError: it is missing or broken.
        """
        earlier, folder = self.spec().starts_from, self.folder / "start"
        if earlier is None:
            return None
        state = _state_in(folder)
        if state is None:
            raise UserError(f"{folder} must hold the state of {earlier}, where this run starts, and could not be "
                            "read. Continue that run again.")
        return state, folder / "embedder.safetensors"

    def _checkpoints(self) -> list[Path]:
        return sorted(path for path in (self.folder / "checkpoint").glob("[0-9]*") if path.name.isdecimal())

    @property
    def best_embedder_path(self) -> Path:
        """The embedder of the epoch that was best on the validation images."""
        return self.folder / "checkpoint" / "best" / "embedder.safetensors"

    # Results

    @property
    def embedder_path(self) -> Path:
        return self.folder / "embedder.safetensors"

    @property
    def initial_embedder_path(self) -> Path:
        return self.folder / "initial.safetensors"

    @property
    def index_path(self) -> Path:
        return self.folder / "index.faiss"

    def write_embeddings(self, which: Literal["initial", "final"], embeddings: Array) -> None:
        replace_array(self._embeddings_path(which), embeddings)

    def embeddings(self, which: Literal["initial", "final"]) -> Array:
        """(n, l) float32 of all images, memory-mapped."""
        return read_array(self._embeddings_path(which), mapped=True)

    def is_normalized(self, which: Literal["initial", "final"]) -> bool:
        """Whether they are of unit length, so that the order by distance is the cosine's."""
        return is_normalized(self.initial_embedder_path if which == "initial" else self.embedder_path)

    def _embeddings_path(self, which: Literal["initial", "final"]) -> Path:
        return self.folder / ("embeddings.npy" if which == "final" else "embeddings-initial.npy")

    def evaluation(self) -> dict[str, dict[str, Any]] | None:
        """{"initial": …, "frozen": …, "pca": …, "final": …} in percent, or None where it is not there yet."""
        try:
            found = json.loads((self.folder / "evaluation.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        is_one = isinstance(found, dict) and all(isinstance(row, dict) for row in found.values())
        return found if is_one else None

    def broken_result(self) -> str | None:
        """What cannot be read of the results of a run that is done; None where all is there."""
        try:
            for which in ("initial", "final"):
                self.embeddings(which)
                self.is_normalized(which)
        except UserError as error:
            return str(error)
        return None if self.evaluation() is not None else f"{self.folder / 'evaluation.json'} could not be read."

    def write_evaluation(self, evaluation: Mapping[str, Mapping[str, float]]) -> None:
        replace_text(self.folder / "evaluation.json", json.dumps(jsonable(evaluation), indent=1))

    def files_to_export(self) -> list[Path]:
        names = ("spec.json", "pairs.npz", "metrics.jsonl", "evaluation.json", "embedder.safetensors",
                 "initial.safetensors", "embeddings.npy", "embeddings-initial.npy", "index.faiss")
        return [self.folder / name for name in names if (self.folder / name).exists()]


def create_run(spec: Spec, root: Path, pairs: PairSet | None = None) -> Run:
    """Make a run's folder, whole or not at all; with the kept state of the run in `root` that it starts from, if any.

    Args:
        pairs: those that a person or a file gave, where the spec says so; they stay with the run.

    Raises:
        UserError: the folder of runs cannot be written, or the state to start from was lost.
    """
    stamp = time.strftime("%Y%m%d-%H%M%S", time.localtime(spec.created))
    final = root / f"{stamp}-{spec.method}-{secrets.token_hex(3)}"
    aside = root / f".{final.name}"
    try:
        aside.mkdir(parents=True)
        (aside / "spec.json").write_text(spec.model_dump_json(indent=1), encoding="utf-8")
        if pairs is not None:
            replace_arrays(aside / "pairs.npz", {"pairs": pairs.pairs, "same": pairs.same})
        if spec.starts_from is not None:
            shutil.copytree(Run(root / spec.starts_from).kept_checkpoint(), aside / "start")
        (aside / "status.json").write_text(Status(ticket=time.time()).model_dump_json(), encoding="utf-8")
        aside.rename(final)
    except OSError as error:
        raise UserError(f"Runs are kept in {root}, which cannot be written: {error}. "
                        "Choose another folder with --runs or UDML_RUNS.") from error
    return Run(final)


@lru_cache(maxsize=1024)
def _read_spec(path: Path, _modified: int, _size: int) -> Spec:
    """Parse a spec once; a list of many runs and every step of a slider ask for it again."""
    return Spec.model_validate_json(path.read_text(encoding="utf-8"))


def _state_in(folder: Path) -> dict[str, Tensor] | None:
    """A checkpoint's state; None where it is missing or broken."""
    try:
        with safetensors.safe_open(folder / "state.safetensors", framework="pt", device="cpu") as file:
            return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (OSError, safetensors.SafetensorError):
        return None


