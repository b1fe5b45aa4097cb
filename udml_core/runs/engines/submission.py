"""Hand a run over to an engine.

submitit pickles its own job and reads it on the machine that works, so that write access to its folder is enough to
execute code there. The folder is therefore private, and it never holds what a user uploads.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import stat
import subprocess
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from udml_core.base.errors import UserError
from udml_core.base.paths import python_path
from udml_core.runs.engines.engine_request import EngineRequest
from udml_core.runs.engines.owner import FILE, Owner, read_owner

FOLDER = ".engines"
"""Folder of submitit's files, inside the folder of runs; the dot keeps it out of the list of runs."""
SETTING = "UDML_ENGINES"
"""Names another folder for submitit's files, which all machines of the cluster must see."""
PRIVATE = 0o700
PATIENCE = 300.0


def check_engine(request: EngineRequest) -> None:
    """Check that an engine is installed and has the options.

    Raises:
        UserError: It is not; the message says what to install.
    """
    request.check()
    if find_spec("submitit") is None:
        raise UserError(f"The engine '{request.engine}' needs the package submitit, which is not installed. Install it "
                        "with `pip install submitit`.")
    if request.engine == "slurm" and shutil.which("sbatch") is None:
        raise UserError("The engine 'slurm' needs Slurm's commands, and sbatch is not on the PATH. Run this on a "
                        "machine of the cluster that submits jobs, or use --engine submitit-local.")


def hand_over(folder: Path, request: EngineRequest, settings: Mapping[str, str]) -> Owner:
    """Submit the work of a run to an engine.

    The owner is stored before the submission, and a process of its own submits and stores the job's number, so that a
    death of this process at any moment loses no job.

    Args:
        folder: The run's folder.
        request: The engine and its options.
        settings: Environment variables of the worker.

    Raises:
        UserError: The engine is not installed or does not accept the job.
    """
    check_engine(request)
    pickles = private_folder(folder.parent) / folder.name
    pickles.mkdir(PRIVATE, exist_ok=True)
    Owner(request=request, host="" if request.engine == "slurm" else socket.gethostname()).write(folder)
    words = {"folder": str(folder), "pickles": str(pickles), "settings": dict(settings)}
    environment = os.environ | {"PYTHONPATH": python_path()}
    log = pickles / "submission.log"
    try:
        with log.open("wb") as out:
            done = subprocess.run([sys.executable, "-P", "-m", "udml_core.runs.engines.submit", json.dumps(words)],
                                  stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=environment, check=False,
                                  start_new_session=True, timeout=PATIENCE)
    except subprocess.TimeoutExpired as error:
        raise UserError(f"The engine '{request.engine}' did not answer within {PATIENCE:.0f} seconds. "
                        f"Read {log}.") from error
    owner = read_owner(folder)
    if done.returncode or owner is None or not owner.job:
        lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        reason = lines[-1].rstrip(".") if lines else "no reason was printed"
        raise UserError(f"The engine '{request.engine}' did not accept {folder.name}: {reason}. Change the "
                        f"engine options, then resume the run. The whole answer is in {log}.")
    return owner


def forget_owner(folder: Path) -> None:
    """Give a run back to the queue of this machine."""
    (folder / FILE).unlink(missing_ok=True)


def remove_submission(root: Path, run: str) -> None:
    """Remove submitit's files of a run that is deleted for good.

    Args:
        root: The folder of runs.
        run: The run's id.
    """
    for folder in {root / FOLDER, _chosen_folder(root)}:  # the setting may be younger than the run
        if not folder.is_symlink():
            shutil.rmtree(folder / run, ignore_errors=True)


def private_folder(root: Path) -> Path:
    """Create the folder of submitit's files, which other users cannot change.

    Args:
        root: The folder of runs.

    Raises:
        UserError: Others can write to the folder, or replace it.
    """
    folder = _chosen_folder(root)
    advice = f"Set {SETTING} to a folder that is yours alone and that all machines of the cluster see."
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        parent = folder.parent.stat()
        if parent.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not parent.st_mode & stat.S_ISVTX:
            raise UserError(f"Other users can write to {folder.parent}, and submitit's files in {folder} are executed. "
                            f"{advice}")
        folder.mkdir(PRIVATE, exist_ok=True)
        status = folder.lstat()
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
            raise UserError(f"{folder} belongs to another user or is a link, and submitit's files in it are executed. "
                            f"{advice}")
        folder.chmod(PRIVATE)
    except OSError as error:
        raise UserError(f"The folder {folder} for submitit's files cannot be used: {error.strerror}. {advice}"
                        ) from error
    return folder


def _chosen_folder(root: Path) -> Path:
    chosen = os.environ.get(SETTING)
    return Path(chosen).expanduser().absolute() if chosen else root / FOLDER
