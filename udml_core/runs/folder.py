"""The folder of a run. Only this module knows the names of the files in it."""

from __future__ import annotations

import json
import secrets
import shutil
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
import safetensors
from safetensors.torch import save
from torch import Tensor

from udml_core.base import paths
from udml_core.base.arrays import Array, misfit
from udml_core.base.errors import UserError
from udml_core.base.files import (
    append_line,
    check_regular,
    jsonable,
    publish_folder,
    read_array,
    read_arrays,
    read_json,
    read_lines,
    replace_array,
    replace_arrays,
    replace_bytes,
    replace_text,
    version_of,
)
from udml_core.data import catalog
from udml_core.data.dataset import Dataset, Report
from udml_core.data.given.pair_sets import PairSet
from udml_core.data.splits import fixed_sample
from udml_core.methods import Embedder, find_method, is_normalized
from udml_core.numerics.explanations import RECORDS, Explanation, axes_of, to_arrays
from udml_core.runs.notes import Notes, read_notes, write_notes
from udml_core.runs.selection import best_epoch
from udml_core.runs.spec import Spec
from udml_core.runs.tasks import Status, Task

PRIVATE = 0o700
"""The mode of a run's folder: only the user reads it."""
MOST_ARRAYS = 2**30
"""Largest explanation and largest list of pairs in bytes that are read."""
EPOCH = "epoch"
"""Key of the epoch's number in the metadata of a checkpoint's state."""
REPLACED = ".replaced"
"""Ending of a checkpoint's folder while another takes its name."""
EXPORTED = ("spec.json", "pairs.npz", "metrics.jsonl", "evaluation.json", "embedder.safetensors",
            "initial.safetensors", "embeddings.npy", "embeddings-initial.npy", "index.faiss")
"""The files that an export copies."""


@dataclass(frozen=True)
class Run(Task):
    """The folder of a run, with readers and writers of its files."""

    def spec(self) -> Spec:
        """Read the spec.

        Raises:
            UserError: The file is missing or damaged.
        """
        return self.read_spec(Spec, "a run")

    def dataset(self, report: Report = lambda _share, _what: None) -> Dataset:
        """Load the run's data set; of a folder that has grown since, the images that it had when the run began.

        Raises:
            UserError: The data set is missing, or most of its images have changed since the run began.
        """
        spec = self.spec()
        dataset = catalog.load_version(spec.dataset, spec.fingerprint, report)
        self.check_dataset(dataset)
        return dataset

    def check_dataset(self, dataset: Dataset) -> None:
        """Check that a data set is the run's.

        Raises:
            UserError: Its images or their order differ.
        """
        if dataset.fingerprint != self.spec().fingerprint:
            raise UserError(f"The data set '{dataset.name}' has changed since this run was started: its images or "
                            "their order differ. Restore it, or start a new run.")

    def pairs(self) -> PairSet:
        """Read the pairs that the run was started with, by image index.

        Raises:
            UserError: The file is missing or damaged.
        """
        stored = read_arrays(self.folder / "pairs.npz", MOST_ARRAYS)
        return PairSet(stored["pairs"], stored["same"])

    def unused_pairs(self, pairs: PairSet) -> PairSet:
        """Return the pairs that this run and the runs it continues have not learned from."""
        spec = self.spec()
        if spec.pairs == "given":
            pairs = pairs.without(self.pairs())
        earlier = _earlier_run(self.folder.parent, spec.starts_from) if spec.starts_from else None
        return earlier.unused_pairs(pairs) if earlier and earlier.has_spec() else pairs

    @property
    def root(self) -> Path:
        """The folder for new runs that are made from this run: the user's, if this run is an example."""
        return paths.runs_folder() if self.is_example else self.folder.parent

    def notes(self) -> Notes:
        """Read the name, note and tags that a user gave the run."""
        return read_notes(self.folder)

    def write_notes(self, notes: Notes) -> None:
        """Store the name, note and tags of the run."""
        self.check_writable()
        write_notes(self.folder, notes)

    # Curves and epochs

    def metrics(self, offset: int = 0) -> tuple[list[dict[str, Any]], int]:
        """Read the curves of the finished epochs.

        Args:
            offset: Byte offset to read from, as returned by the previous call.

        Returns:
            One row for each epoch, and the next offset. An unfinished last line is left for the next call.
        """
        rows, offset = read_lines(self.folder / "metrics.jsonl", offset)
        return [row for row in rows if isinstance(row.get("epoch"), int)], offset

    def append_metrics(self, row: Mapping[str, Any]) -> None:
        """Append the curves of an epoch."""
        self.check_writable()
        append_line(self.folder / "metrics.jsonl", row)

    def write_epoch(self, number: int, records: Iterable[Explanation], sample: Array,
                    trained: Array | None = None) -> None:
        """Store an epoch atomically; an epoch that is stored and readable does not change.

        Args:
            number: Number of the epoch.
            records: Explanations.
            sample: Embedding (s, l) of the fixed sample of test images.
            trained: Embedding (t, l) of a fixed sample of training images.
        """
        self.check_writable()
        final = self.folder / "epochs" / f"{number:04d}"
        if self._has_epoch(number):
            return
        shutil.rmtree(final, ignore_errors=True)
        aside = final.with_suffix(".part")
        shutil.rmtree(aside, ignore_errors=True)
        aside.parent.mkdir(exist_ok=True)  # without parents: a run that a user has removed stays removed
        aside.mkdir()
        np.save(aside / "sample.npy", sample.astype(np.float32))
        if trained is not None:
            np.save(aside / "trained.npy", trained.astype(np.float32))
        for record in records:
            np.savez(aside / f"{record.stored_as}.npz", **to_arrays(record))  # type: ignore[arg-type]
        publish_folder(aside, final)

    def _has_epoch(self, number: int) -> bool:
        """Return whether an epoch is stored and its sample can be read."""
        try:
            return bool(len(self.epoch_sample(number)))
        except UserError:
            return False

    def kept_epoch(self) -> int:
        """Return the number of the last or selected epoch, which has the final embedder."""
        spec, best = self.spec(), None
        if spec.select != "last":
            best = best_epoch(self.metrics()[0], find_method(spec.method).rank_shows_collapse, spec.select)
        return max(self.epoch_numbers(), default=0) if best is None else best

    def epoch_numbers(self) -> list[int]:
        """List the numbers of the stored epochs, ascending."""
        return sorted(int(path.name) for path in (self.folder / "epochs").glob("[0-9]*") if path.name.isdecimal())

    def write_sample_indices(self, indices: Array) -> None:
        """Store the indices (s,) of the fixed sample."""
        self.check_writable()
        path = self.folder / "epochs" / "sample.npy"
        path.parent.mkdir(exist_ok=True)
        replace_array(path, indices)

    def sample_indices(self) -> Array:
        """Read the image indices (s,) int64, ascending, of the fixed sample.

        The embedding of the sample is stored for every epoch. Older runs did not store the indices; theirs are computed
        from the data set.

        Raises:
            UserError: The run has no epoch yet, or an older run has lost its data set.
        """
        path = self.folder / "epochs" / "sample.npy"
        if path.exists():
            return _checked(path, read_array(path), "int s")
        numbers = self.epoch_numbers()
        if not numbers:
            raise UserError(f"The run {self.id} has no epoch yet, and therefore no sample. Wait for its first epoch.")
        test = self.spec().halves(self.dataset(), "last").test
        return fixed_sample(test, len(self.epoch_sample(numbers[0])))

    def epoch_sample(self, number: int) -> Array:
        """Read the fixed sample's embedding (s, l) of an epoch; 0 is before training.

        Raises:
            UserError: The file is missing or damaged, or of another number of images than the sample.
        """
        path = self.folder / "epochs" / f"{number:04d}" / "sample.npy"
        return _as_long_as(self.folder / "epochs" / "sample.npy", path, _read_embedding(path))

    def epoch_trained(self, number: int) -> Array | None:
        """Read the embedding (t, l) of `fixed_sample(split.train, t)` after an epoch.

        Returns:
            The embedding; None if none was stored, as with the split `all` and in older runs.
        """
        path = self.folder / "epochs" / f"{number:04d}" / "trained.npy"
        return _read_embedding(path) if path.exists() else None

    def explanations(self, number: int) -> list[Explanation]:
        """Read the explanations of an epoch.

        Damaged records, and those in which another version stored other fields, are left out.
        """
        records: list[Explanation] = []
        for kind in RECORDS:
            path = self.folder / "epochs" / f"{number:04d}" / f"{kind.stored_as}.npz"
            if path.exists():
                with suppress(UserError):
                    stored = read_arrays(path, MOST_ARRAYS)
                    if misfit(stored, axes_of(kind)) is None:
                        records.append(kind(**stored))
        return records

    # Checkpoints

    def write_checkpoint(self, number: int, state: Mapping[str, Tensor], embedder: Embedder) -> None:
        """Store the state after an epoch atomically, and remove earlier checkpoints."""
        final = self._replace_checkpoint(f"{number:04d}", number, state, embedder)
        for folder in self._checkpoints():
            if folder != final:
                shutil.rmtree(folder, ignore_errors=True)

    def write_best(self, number: int, state: Mapping[str, Tensor], embedder: Embedder) -> None:
        """Store the state after the best epoch so far, by the selection measure."""
        self._replace_checkpoint("best", number, state, embedder)

    def has_best(self, number: int, done: int) -> bool:
        """Return whether the model of the best epoch can be read.

        Args:
            number: The best of the recorded epochs.
            done: The epoch of the checkpoint. A kill can leave the model of a later epoch, which is trained again.
        """
        folder = self.best_embedder_path.parent
        replaced = folder.with_suffix(REPLACED)
        if replaced.exists() and not folder.exists():  # a kill between the two renames
            replaced.rename(folder)
        if _read_state(folder) is None:
            return False
        try:
            Embedder.load(self.best_embedder_path)
        except UserError:
            return False
        stored = _epoch_of(folder)  # older versions stored none
        return stored is None or stored == number or stored > done

    def _replace_checkpoint(self, name: str, number: int, state: Mapping[str, Tensor], embedder: Embedder) -> Path:
        self.check_writable()
        final = self.folder / "checkpoint" / name
        aside, replaced = final.with_suffix(".part"), final.with_suffix(REPLACED)
        shutil.rmtree(aside, ignore_errors=True)
        aside.parent.mkdir(exist_ok=True)
        aside.mkdir()
        tensors = {name: value.detach().cpu().contiguous() for name, value in state.items()}
        replace_bytes(aside / "state.safetensors", save(tensors, {EPOCH: str(number)}))
        embedder.save(aside / "embedder.safetensors")
        if final.is_dir():  # kept until the new folder has its name
            shutil.rmtree(replaced, ignore_errors=True)
            final.rename(replaced)
        publish_folder(aside, final)
        shutil.rmtree(replaced, ignore_errors=True)
        return final

    def read_checkpoint(self) -> tuple[int, dict[str, Tensor], Path] | None:
        """Read the newest readable checkpoint.

        Returns:
            Number of the epoch, state, and path of the embedder; None before the first epoch.
        """
        for folder in reversed(self._checkpoints()):
            state = _read_state(folder)
            if state is not None:
                return int(folder.name), state, folder / "embedder.safetensors"
        return None

    def kept_checkpoint(self) -> Path:
        """Return the folder of the checkpoint whose embedder is the final one.

        Raises:
            UserError: The checkpoint is missing or damaged.
        """
        for folder in (self.folder / "checkpoint" / f"{self.kept_epoch():04d}", self.best_embedder_path.parent):
            if _read_state(folder) is not None:
                return folder
        raise UserError(f"A run is continued from its last checkpoint, and {self.id} has lost its folder "
                        "'checkpoint'. Restore the folder, or start a new run.")

    def read_start(self) -> tuple[dict[str, Tensor], Path] | None:
        """Read the state of the run that this run continues.

        Returns:
            State, and path of the embedder; None if this run continues none.

        Raises:
            UserError: The state is missing or damaged.
        """
        earlier, folder = self.spec().starts_from, self.folder / "start"
        if earlier is None:
            return None
        state = _read_state(folder)
        if state is None:
            raise UserError(f"{folder} must hold the state of {earlier}, from which this run starts, but could not be "
                            "read. Continue that run again.")
        return state, folder / "embedder.safetensors"

    def _checkpoints(self) -> list[Path]:
        return sorted(path for path in (self.folder / "checkpoint").glob("[0-9]*") if path.name.isdecimal())

    @property
    def best_embedder_path(self) -> Path:
        """Path of the embedder of the best epoch, by the selection measure."""
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

    @property
    def gallery_path(self) -> Path:
        """The folder of the search index of a large data set, which has it in place of `index_path`."""
        return self.folder / "gallery"

    def write_embeddings(self, which: Literal["initial", "final"], embeddings: Array) -> None:
        self.check_writable()
        replace_array(self._embeddings_path(which), embeddings)

    def embeddings(self, which: Literal["initial", "final"]) -> Array:
        """Read the embeddings (n, l) float32 of all images, memory-mapped.

        Raises:
            UserError: The file is missing or damaged, or of another number of images than the other embeddings.
        """
        path, other = self._embeddings_path(which), self._embeddings_path("initial" if which == "final" else "final")
        return _as_long_as(other, path, _read_embedding(path, mapped=True))

    def is_normalized(self, which: Literal["initial", "final"]) -> bool:
        """Return whether the embeddings have unit length.

        With unit length, distance and cosine similarity rank equally.
        """
        return is_normalized(self.initial_embedder_path if which == "initial" else self.embedder_path)

    def _embeddings_path(self, which: Literal["initial", "final"]) -> Path:
        return self.folder / ("embeddings.npy" if which == "final" else "embeddings-initial.npy")

    def evaluation(self) -> dict[str, dict[str, Any]] | None:
        """Read the evaluation in percent, by embedding and measure.

        The embeddings are initial, frozen, pca and final, and the method's own.

        Returns:
            The evaluation; None if there is none yet or the file is damaged.
        """
        path = self.folder / "evaluation.json"
        try:
            evaluation = _read_evaluation(path, *version_of(path))
        except (OSError, ValueError):
            return None
        is_valid = isinstance(evaluation, dict) and all(isinstance(row, dict) for row in evaluation.values())
        return {name: dict(row) for name, row in evaluation.items()} if is_valid else None

    def broken_result(self) -> str | None:
        """Return why a result of a finished run cannot be read; None if all can be read."""
        try:
            for which in ("initial", "final"):
                self.embeddings(which)
                self.is_normalized(which)
        except UserError as error:
            return str(error)
        return None if self.evaluation() is not None else f"{self.folder / 'evaluation.json'} could not be read."

    def write_evaluation(self, evaluation: Mapping[str, Mapping[str, float]]) -> None:
        self.check_writable()
        replace_text(self.folder / "evaluation.json", json.dumps(jsonable(evaluation), indent=1))

    def files_to_export(self) -> list[Path]:
        """List the existing files that an export copies."""
        return [self.folder / name for name in EXPORTED if (self.folder / name).exists()]


def create_run(spec: Spec, root: Path, pairs: PairSet | None = None) -> Run:
    """Create the folder of a run atomically.

    Args:
        spec: The spec. If it continues a run in `root` or an example, that run's checkpoint is copied.
        root: The folder of runs.
        pairs: Pairs to learn from, if the spec says that they were given; stored with the run.

    Raises:
        UserError: The folder of runs cannot be written, or the checkpoint to continue from is missing.
    """
    stamp = time.strftime("%Y%m%d-%H%M%S", time.localtime(spec.created))
    final = root / f"{stamp}-{spec.method}-{secrets.token_hex(3)}"
    aside = root / f".{final.name}"
    try:
        root.mkdir(parents=True, exist_ok=True)
        aside.mkdir(PRIVATE)
        (aside / "spec.json").write_text(spec.model_dump_json(indent=1), encoding="utf-8")
        if pairs is not None:
            replace_arrays(aside / "pairs.npz", {"pairs": pairs.pairs, "same": pairs.same})
        if spec.starts_from is not None:
            shutil.copytree(_earlier_run(root, spec.starts_from).kept_checkpoint(), aside / "start")
        (aside / "status.json").write_text(Status(ticket=time.time()).model_dump_json(), encoding="utf-8")
        publish_folder(aside, final)
    except OSError as error:
        raise UserError(f"The folder of runs {root} cannot be written: {error}. "
                        "Choose another folder with --runs or UDML_RUNS.") from error
    return Run(final)


def _earlier_run(root: Path, run_id: str) -> Run:
    """Return the run that another run in `root` continues; it may be an example."""
    own, example = Run(root / run_id), Run(paths.EXAMPLES / run_id)
    return own if own.has_spec() or not example.has_spec() else example


@lru_cache(maxsize=1024)
def _read_evaluation(path: Path, *_version: int) -> Any:
    """Parse an evaluation once, because the leaderboard shows the evaluations of all runs."""
    return read_json(path)


def _read_embedding(path: Path, mapped: bool = False) -> Array:
    """Read an embedding (n, l).

    Raises:
        UserError: The file is missing or damaged, or holds something else.
    """
    return _checked(path, read_array(path, mapped), "float n l")


def _as_long_as(other: Path, path: Path, array: Array) -> Array:
    """Return an array if another file, as far as it can be read, holds an array of as many rows.

    Raises:
        UserError: It does not.
    """
    try:
        expected = read_array(other, mapped=True).shape[:1]
    except UserError:  # the readers of the other file report it
        return array
    if expected not in ((), array.shape[:1]):
        raise UserError(f"{path} and {other.name} should have a row for each image, but have {len(array):,} and "
                        f"{expected[0]:,} rows. Resume the run, or start a new one.")
    return array


def _checked(path: Path, array: Array, shape: str) -> Array:
    """Return an array if it has a type and axes; see `misfit`.

    Raises:
        UserError: It has not.
    """
    if problem := misfit({"array": array}, {"array": shape}):
        raise UserError(f"{path} should hold an array of another kind: {problem.removeprefix('array ')}. "
                        "Resume the run, or start a new one.")
    return array


def _read_state(folder: Path) -> dict[str, Tensor] | None:
    """Read the state of a checkpoint; None if it is missing or damaged."""
    try:
        check_regular(folder / "state.safetensors")
        with safetensors.safe_open(folder / "state.safetensors", framework="pt", device="cpu") as file:
            return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (OSError, safetensors.SafetensorError):
        return None


def _epoch_of(folder: Path) -> int | None:
    """Read the number of the epoch of a readable checkpoint; None if an older version stored none."""
    with safetensors.safe_open(folder / "state.safetensors", framework="pt", device="cpu") as file:
        number = (file.metadata() or {}).get(EPOCH)
    return int(number) if number is not None and number.isdecimal() else None
