"""A sweep as a named group of runs: one small file in the folder of runs.

The file holds the sweep's description and the key of every planned run. Everything else derives from the runs: a run
belongs to the group if its key is planned, so that runs that existed before belong to it, no run is repeated, and a
kill at any moment loses nothing.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from udml_core.base.errors import UserError, quoted
from udml_core.base.files import read_regular, replace_text, version_of
from udml_core.runs import Run, RunRequest, Spec, list_runs
from udml_core.runs.engines import EngineRequest
from udml_core.runs.tasks import LIVE_STATES, State, Status
from udml_core.work.sweeps.plan import SweepSpec, requests_of

FOLDER = ".sweeps"
"""Folder of the groups inside the folder of runs; the dot keeps it out of `list_runs`."""
NOT_COMPARED = {"created", "dataset_title", "exclusions", "fields_format", "preset", "version", "versions", "weights"}
"""What equal runs may differ in: `encoder` has the hash of the weights, `excluded` the digest of the excluded images,
and `fields` all values of a preset. Another version of this project repeats no run."""
MOST_BYTES = 2_000_000


def key_of(spec: Spec) -> str:
    """Return a digest of all settings that decide a run's result; equal runs have equal keys.

    Defaults are left out, so that a field that a later version adds changes no key.
    """
    settings = spec.model_dump(mode="json", exclude=NOT_COMPARED, exclude_defaults=True)
    content = json.dumps(settings | {"fields": spec.changed_fields()}, sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()[:20]


class Stored(BaseModel):
    """The content of a group's file.

    Attributes:
        created: Time of creation in seconds since 1970.
        spec: The description.
        keys: The key of each request of the description, in order; empty for a combination that was skipped.
        engine: The engine of new runs; None for the queue of this machine.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    created: float = Field(default_factory=time.time)
    spec: SweepSpec
    keys: tuple[str, ...]
    engine: EngineRequest | None = None


@dataclass(frozen=True)
class Member:
    """A planned run.

    Attributes:
        request: Its request.
        key: Its key.
        run: The run; None if it was not created, or was deleted.
    """

    request: RunRequest
    key: str
    run: Run | None

    def status(self) -> Status:
        """Return the run's status; only a run in progress is checked for life."""
        if self.run is None:
            return Status()
        stored = self.run.stored_status()
        return self.run.status() if stored.state in LIVE_STATES else stored

    @property
    def state(self) -> State | None:
        """The run's state; None without a run."""
        return None if self.run is None else self.status().state


@dataclass(frozen=True)
class Sweep:
    """A group of runs.

    Attributes:
        path: Its file.
    """

    path: Path

    @property
    def id(self) -> str:
        return self.path.stem

    @property
    def root(self) -> Path:
        """The folder of runs."""
        return self.path.parent.parent

    def stored(self) -> Stored:
        """Read the file.

        Raises:
            UserError: The file is missing or damaged.
        """
        try:
            return _read(self.path, *version_of(self.path))[0]
        except (OSError, ValueError, UserError) as error:
            raise UserError(f"{self.path} should describe a sweep, but could not be read: {error}. Start the sweep "
                            "again from its file; its runs are kept.") from error

    @property
    def spec(self) -> SweepSpec:
        return self.stored().spec

    def members(self, runs: Mapping[str, Run] | None = None) -> list[Member]:
        """Return the planned runs in order, each once.

        Args:
            runs: The runs in the folder by key, if they are known.
        """
        keys = self.stored().keys
        requests = _read(self.path, *version_of(self.path))[1]
        return members_of(keys, requests, runs_by_key(self.root) if runs is None else runs)


def members_of(keys: Sequence[str], requests: Sequence[RunRequest], runs: Mapping[str, Run]) -> list[Member]:
    """Return the planned runs in order, each once.

    Args:
        keys: The key of each request; empty for a skipped combination.
        requests: The requests.
        runs: The runs that exist, by key.
    """
    members: dict[str, Member] = {}
    for key, request in zip(keys, requests, strict=True):
        if key:
            members.setdefault(key, Member(request, key, runs.get(key)))
    return list(members.values())


@lru_cache(maxsize=256)
def _read(path: Path, *_version: int) -> tuple[Stored, list[RunRequest]]:
    """Parse a file once; a replaced file is parsed again.

    Raises:
        ValueError: The content is not a sweep's.
    """
    stored = Stored.model_validate_json(read_regular(path, MOST_BYTES))
    requests = requests_of(stored.spec)
    if len(requests) != len(stored.keys):
        raise ValueError(f"it plans {len(stored.keys)} runs, and its values give {len(requests)}")
    return stored, requests


def runs_by_key(root: Path) -> dict[str, Run]:
    """Return the runs in a folder and the examples by key; of equal runs a finished one, else the newest."""
    runs: dict[str, Run] = {}
    for run in list_runs(root):
        try:
            key = _key_of_run(run, *version_of(run.folder / "spec.json"))
        except (OSError, UserError):  # removed since it was listed
            continue
        if key not in runs or (_is_done(run) and not _is_done(runs[key])):
            runs[key] = run
    return runs


def _is_done(run: Run) -> bool:
    return run.stored_status().state == "done"


@lru_cache(maxsize=4096)
def _key_of_run(run: Run, *_version: int) -> str:
    return key_of(run.spec())


def list_sweeps(root: Path) -> list[Sweep]:
    """List the groups in a folder of runs, newest first; a damaged file is left out."""
    dated = []
    for path in (root / FOLDER).glob("[!.]*.json"):
        try:
            dated.append((Sweep(path).stored().created, path))
        except UserError:
            continue
    return [Sweep(path) for _, path in sorted(dated, reverse=True)]


def find_sweep(text: str, root: Path) -> Sweep:
    """Find a group by its id or its name.

    Raises:
        UserError: There is none.
    """
    sweep = next((sweep for sweep in list_sweeps(root) if text in (sweep.id, sweep.spec.name)), None)
    if sweep is None:
        names = ", ".join(sweep.id for sweep in list_sweeps(root)[:8]) or "none"
        raise UserError(f"No sweep {quoted(text)} in {root}. Its sweeps are: {names}.")
    return sweep


def sweep_at(name: str, root: Path) -> Sweep:
    """Return the group of a name, whether it exists or not."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    slug = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")
    if slug != name.lower().replace(" ", "-"):  # other letters were lost, and names that differ in them must not meet
        slug = f"{slug}-{hashlib.sha256(name.encode()).hexdigest()[:6]}".strip("-")
    return Sweep(root / FOLDER / f"{slug}.json")


def write_sweep(sweep: Sweep, stored: Stored) -> None:
    """Store a group atomically.

    Raises:
        UserError: The folder cannot be written.
    """
    try:
        sweep.path.parent.mkdir(parents=True, exist_ok=True)
        replace_text(sweep.path, stored.model_dump_json(indent=1))
    except OSError as error:
        raise UserError(f"{sweep.path} could not be written: {error}. Choose another folder with --runs or "
                        "UDML_RUNS.") from error


def forget_sweep(sweep: Sweep) -> None:
    """Remove a group. Its runs stay."""
    sweep.path.unlink(missing_ok=True)


