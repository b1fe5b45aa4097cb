"""Make the example runs that come with the app, in assets/examples.

    python -m experiments.make_examples
    python -m experiments.make_examples 20261122-120000-rpml-digits
    python -m experiments.make_examples --opinions

Every example is an ordinary run of this version: it is trained, evaluated and analyzed on one CPU thread, so that a
repetition gives the same figures. What only a worker needs (lock, log, index, checkpoints that cannot be continued) is
left out, and arrays are compressed. `--opinions` computes only the second opinions of the existing examples again, and
leaves everything else as it is.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from udml_core.base.paths import EXAMPLES
from udml_core.data import catalog
from udml_core.runs import Run, RunRequest, create_run, own_copy
from udml_core.runs.analyses import plan_analysis
from udml_core.runs.analyses.kinds.grid import Grid
from udml_core.runs.analyses.kinds.pca import PCA
from udml_core.runs.analyses.kinds.refine import Refinement
from udml_core.runs.analyses.kinds.tsne import TSNE
from udml_core.runs.analyses.kinds.umap import UMAP
from udml_core.runs.notes import Notes
from udml_core.runs.opinions import OF_REFINEMENTS, OF_RUN
from udml_core.runs.tasks import Status
from udml_core.work.jobs import FIRST_RUN, plan
from udml_core.work.workers import analyse, train

LARGEST = 25_500_000
"""Bytes that all examples together may take."""
CREATED = 1_795_348_800.0
"""Time of creation in every spec: 22 November 2026, 12:00 UTC."""
ONLY_OPINIONS = "--opinions"
OPINIONS = (OF_RUN, OF_REFINEMENTS)
LEFT_OUT = ("lock", "log.txt", "index.faiss", "ballast", "*.lock", "*.part")


@dataclass(frozen=True)
class Example:
    """A run to make.

    Attributes:
        request: Its options.
        recipe: The refinement of the test half.
        name: Its name; empty for method and data set.
    """

    request: RunRequest
    recipe: str = "whiten+average:k=10,times=2,alpha=3"
    name: str = ""


EXAMPLES_TO_MAKE = {
    "20261122-120000-rpml-digits": Example(FIRST_RUN),
    "20261122-120100-plm-clothes": Example(RunRequest(
        dataset="fashion-mini", method="plm", backbone="pixels", split="seen",
        fields={"dimension": 8, "beginning": "random", "epochs": 6, "learning_rate": 0.003})),
    "20261122-120200-isif-emoji": Example(RunRequest(
        dataset="emoji", method="isif", split="seen",
        fields={"dimension": 16, "beginning": "random", "epochs": 10, "learning_rate": 0.01})),
    "20261122-120300-ssdml-digits": Example(RunRequest(
        dataset="digits", method="ssdml", backbone="pixels", split="seen", fields={"dimension": 8})),
    "20261122-120400-nml-digits": Example(RunRequest(
        dataset="digits", method="nml", backbone="pixels", split="seen", fields={"dimension": 16, "epochs": 15})),
    "20261122-120600-distill-clothes": Example(RunRequest(
        dataset="fashion-mini", method="distill", split="seen",
        fields={"dimension": 48, "beginning": "random", "trains": "head", "epochs": 6, "learning_rate": 0.002}),
        name="Clothes without labels"),
}
"""The examples by id, which orders them: the first is the one that pages open by default, and Home plays the last. Low
dimensions keep the files small and leave training something to gain."""


def make(run_id: str, example: Example) -> None:
    """Train, evaluate, analyze and pack an example."""
    dataset = catalog.load(example.request.dataset)
    spec = plan(example.request, dataset).model_copy(update={"created": CREATED})
    with tempfile.TemporaryDirectory() as folder:
        run = create_run(spec, Path(folder))
        status = train.work(run)
        if status.state != "done":
            sys.exit(f"{run_id} is {status.state}: {status.message}")
        if example.name:
            run.write_notes(Notes(name=example.name))
        analyze(run, example)
        pack(run, EXAMPLES / run_id)


def analyze(run: Run, example: Example) -> None:
    """Compute maps before and after training and through all epochs, grids, a refinement and second opinions.

    PCA and the graph of the training half come with the run.
    """
    epochs = tuple(str(number) for number in run.epoch_numbers())
    maps = [plan_analysis(PCA), plan_analysis(TSNE), plan_analysis(UMAP)]
    grids = [plan_analysis(Grid, source=spec.id, frame=frame) for spec in maps for frame in spec.frames
             if frame == "final" or spec.declared is UMAP]
    through = plan_analysis(UMAP, scope="sample", frames=epochs)
    for spec in [through, *maps, *grids, plan_analysis(Refinement, recipe=example.recipe), *OPINIONS]:
        analyse.keep(run, spec, lambda _share, _step: None)


def add_opinions(run_id: str) -> None:
    """Compute the second opinions of an existing example, and pack them."""
    with tempfile.TemporaryDirectory() as folder:
        copy = own_copy(Run(EXAMPLES / run_id), Path(folder))
        for spec in OPINIONS:
            shutil.rmtree(copy.folder / "analyses" / spec.id, ignore_errors=True)
            analysis = analyse.keep(copy, spec, lambda _share, _step: None)
            pack_folder(analysis.folder, EXAMPLES / run_id / "analyses" / spec.id, LEFT_OUT)


def pack(run: Run, folder: Path) -> None:
    """Copy what pages read of a finished run, with compressed arrays."""
    pack_folder(run.folder, folder,
                LEFT_OUT if run.spec().build_method().continues_with_pairs else (*LEFT_OUT, "checkpoint"))


def pack_folder(source: Path, folder: Path, left_out: tuple[str, ...]) -> None:
    """Replace a folder by a copy of another one, with compressed arrays and without the process of a worker."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(source, folder, ignore=shutil.ignore_patterns(*left_out))
    for path in folder.rglob("*.npz"):
        with np.load(path, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        np.savez_compressed(path, allow_pickle=False, **arrays)
    for path in folder.rglob("status.json"):
        status = Status.model_validate_json(path.read_text(encoding="utf-8"))
        kept = status.model_copy(update={"pid": None, "pid_born": 0.0})
        path.write_text(kept.model_dump_json(), encoding="utf-8")


def size_of(folder: Path) -> int:
    """Return the bytes of all files below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def main(chosen: list[str]) -> None:
    """Make the chosen examples, or all, and print their figures and sizes."""
    torch.set_num_threads(1)
    for run_id in [name for name in chosen if name != ONLY_OPINIONS] or EXAMPLES_TO_MAKE:
        if ONLY_OPINIONS in chosen:
            add_opinions(run_id)
        else:
            make(run_id, EXAMPLES_TO_MAKE[run_id])
    for run_id in EXAMPLES_TO_MAKE:
        run = Run(EXAMPLES / run_id)
        evaluation = run.evaluation() or {}
        figures = [f"{name} {row['recall@1']:.1f}/{row['map@r']:.1f}" for name, row in evaluation.items()]
        print(f"{run_id}: R@1/MAP@R {', '.join(figures)}; {size_of(run.folder):,} bytes")
    if (total := size_of(EXAMPLES)) > LARGEST:
        sys.exit(f"The examples take {total:,} bytes, more than {LARGEST:,}.")
    print(f"all: {total:,} bytes")


if __name__ == "__main__":
    main(sys.argv[1:])
