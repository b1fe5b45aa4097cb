"""A run is a folder. The only file that knows the names of a run's own files."""

from __future__ import annotations

import json
import math
import os
import platform
import re
import secrets
import shutil
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

import numpy as np
import safetensors
from pydantic import BaseModel, ConfigDict, Field
from safetensors.torch import save
from torch import Tensor

from udml_core.arrays import Array
from udml_core.backbones import EncoderSpec
from udml_core.data import catalog
from udml_core.data.dataset import Dataset, Report
from udml_core.data.given.pairs import MOST_PAIRS, PairSet
from udml_core.data.label_budget import LabelSource, default_per_class, drawn_labels, given_labels
from udml_core.data.splits import Select, SplitName, fixed_sample, make_split
from udml_core.errors import UserError
from udml_core.explanations import KINDS, Explanation, name_of, to_arrays
from udml_core.files import read_array, read_arrays, replace_array, replace_arrays, replace_bytes, replace_text
from udml_core.methods import Embedder, Method, find_method, is_normalized
from udml_core.paths import existing_path
from udml_core.tasks import Status, Task

PairSource = Literal["labels", "given"]
TRAINED_RANK = "training effective rank"
RANKS_KEPT = (1 / 2, 5 / 4)
"""Between which shares of the effective rank at the start an embedding has not collapsed."""
PACKAGES = ("torch", "numpy", "faiss-cpu", "scikit-learn", "scipy")


class Spec(BaseModel):
    """What a run is asked to do; with the same versions it gives the same result on a CPU.

    labels, labels_per_class, given_labels: what a method that learns from few labels is told. Given labels, image name
    to class, are kept here as they were at the start, so that a resumed run sees the same.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    dataset: str
    dataset_title: str
    fingerprint: str
    method: str
    fields: dict[str, Any]
    encoder: EncoderSpec
    split: SplitName
    seed: int
    device: str
    select: Select = "last"
    labels: LabelSource = "drawn"
    labels_per_class: int | None = None
    given_labels: dict[str, str] = Field(default_factory=dict)
    pairs: PairSource = "labels"
    """Where a method that learns from pairs has them from; given ones lie in the run's folder."""
    most_pairs: int = MOST_PAIRS
    """How many pairs are drawn from labels, at most."""
    starts_from: str | None = None
    """The id of the finished run that this one goes on from with further pairs; its kept state lies in the folder."""
    created: float = Field(default_factory=time.time)
    versions: dict[str, str] = Field(default_factory=lambda: installed_versions())

    def build_method(self) -> Method:
        """The method with its hyper-parameters."""
        return find_method(self.method).make(self.fields)

    @property
    def holds_out(self) -> Select:
        """How images of the training half are held out for choosing an epoch: none where labels were given, as those
        choose it themselves."""
        return self.select if self.labels == "drawn" else "last"

    def few_labels(self, dataset: Dataset, train: Array) -> Array | None:
        """The labels that the method is told, (n,) int64, −1 elsewhere; None where it learns from all or none."""
        if find_method(self.method).supervision != "few":
            return None
        if self.labels == "given":
            return given_labels(dataset, train, self.given_labels)
        return drawn_labels(dataset, train, self.labels_per_class or default_per_class(dataset, train), self.seed)


def best_epoch(rows: Iterable[Mapping[str, Any]], rank_tells: bool = True) -> int | None:
    """The epoch that selection keeps, by an epoch's row of curves each; None where no row tells.

    The first of the highest MAP@R of the held-out images. Where labels were given, the last of the highest recall@1
    among these, of the epochs before the collapse; the first epoch where that is none. A few labels that the method
    was told are found again long after the neighborhoods around them dissolved, hence the second condition.

    Args:
        rank_tells: whether there is such a condition; see `Method`.
    """
    by_epoch = {int(row["epoch"]): row for row in rows}
    trained = {epoch: row for epoch, row in by_epoch.items() if epoch}
    held_out = {epoch: row["validation map@r"] for epoch, row in trained.items() if "validation map@r" in row}
    if held_out:
        return max(held_out, key=lambda epoch: (held_out[epoch], -epoch))
    given = {epoch: row["given recall@1"] for epoch, row in trained.items() if "given recall@1" in row}
    if not given:
        return None
    end = first_collapsed(by_epoch) if rank_tells else max(given) + 1
    sound = [epoch for epoch in given if epoch < end]
    return max(sound, key=lambda epoch: (given[epoch], epoch)) if sound else min(given)


def first_collapsed(by_epoch: Mapping[int, Mapping[str, Any]]) -> int:
    """The first epoch whose effective rank left `RANKS_KEPT` of the start's; the one after the last where none did.

    Of the training images, as choosing an epoch never looks at the test half; older runs kept the rank of that only.
    Either end counts: a metric that is free can win its loss on few directions, and then the rank falls; with SSDML's
    orthonormal one everything flees from everything, and it *rises*: see the table there, where recall is fine up to
    1.2 times the start's and ruined from 1.3 times on. That a later epoch's rank comes back tells nothing.
    """
    name = TRAINED_RANK if TRAINED_RANK in by_epoch[0] else "effective rank"
    low, high = (share * by_epoch[0][name] for share in RANKS_KEPT)
    return min((epoch for epoch, row in by_epoch.items() if not low <= row[name] <= high), default=max(by_epoch) + 1)


def installed_versions() -> dict[str, str]:
    """Python's and the numerical packages' versions."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def runs_folder() -> Path:
    """UDML_RUNS, or `runs` in the current folder."""
    return Path(os.environ.get("UDML_RUNS") or "runs").resolve()


@dataclass(frozen=True)
class Run(Task):
    """A run's folder, with reading and writing of every file in it."""

    def spec(self) -> Spec:
        """Raises:
        UserError: the file is missing or broken."""
        path = self.folder / "spec.json"
        try:
            return Spec.model_validate_json(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise UserError(f"{path} must describe a run and could not be read: {error}") from error

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

    def further(self, pairs: PairSet) -> PairSet:
        """Those that were given neither to this run nor to those that it goes on from, as far as these are still there.
        """
        spec = self.spec()
        if spec.pairs == "given":
            pairs = pairs.without(self.pairs())
        earlier = Run(self.folder.parent / (spec.starts_from or ""))
        return earlier.further(pairs) if spec.starts_from and earlier.is_there() else pairs

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
        tells = find_method(spec.method).rank_tells
        best = best_epoch(self.metrics()[0], tells) if spec.select == "validation" else None
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


def create(spec: Spec, root: Path, pairs: PairSet | None = None) -> Run:
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


def _state_in(folder: Path) -> dict[str, Tensor] | None:
    """A checkpoint's state; None where it is missing or broken."""
    try:
        with safetensors.safe_open(folder / "state.safetensors", framework="pt", device="cpu") as file:
            return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (OSError, safetensors.SafetensorError):
        return None


def list_runs(root: Path) -> list[Run]:
    """All runs, newest first; a folder whose spec cannot be read is left out, so that it spoils no other's list."""
    if not root.is_dir():
        return []
    return [Run(path) for path in sorted(root.iterdir(), reverse=True)
            if not path.name.startswith(".") and _has_spec(Run(path))]


def _has_spec(run: Run) -> bool:
    try:
        run.spec()
        return True
    except UserError:
        return False


def find_run(text: str, root: Path) -> Run:
    """A run by its id, the start of one, or its folder.

    Raises:
        UserError: no run, or more than one.
    """
    if re.fullmatch(r"[\w-]+", text):
        matches = [run for run in list_runs(root) if run.id.startswith(text)]
        exact = [run for run in matches if run.id == text]
        if exact or len(matches) == 1:
            return (exact or matches)[0]
        if matches:
            raise UserError(f"'{text}' starts {len(matches)} runs: {', '.join(run.id for run in matches[:4])}, … "
                            "Give more of the id.")
    path = existing_path(text)
    if path is not None and (path / "spec.json").exists():
        return Run(path.resolve())
    raise UserError(f"There is no run '{text}' in {root}, and it is no folder of a run. "
                    "`python -m udml_core runs` lists them.")


def jsonable(value: Any) -> Any:
    """Numbers that JSON lacks become null, NumPy's scalars become Python's."""
    if isinstance(value, Mapping):
        return {str(key): jsonable(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(one) for one in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value
