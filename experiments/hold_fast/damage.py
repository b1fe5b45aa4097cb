"""Damage files of a finished run; each reader must give a result or one clear message."""

from __future__ import annotations

import io
import json
import os
import traceback
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

import numpy as np
from PIL import Image

from experiments.hold_fast.attempt import HangsError, Hostility, count_event, shared_folder
from experiments.hold_fast.forked import answer_of, in_child
from experiments.hold_fast.kills import link_tree
from experiments.hold_fast.small_runs import undisturbed
from tests.app.opening import opened
from udml_core.base.errors import UserError
from udml_core.data import catalog
from udml_core.runs import Run, list_runs
from udml_core.runs.analyses import AnalysisSpec, create_analysis, find_analysis, list_analyses, plan_analysis
from udml_core.runs.analyses.kinds.grid import Grid
from udml_core.runs.analyses.kinds.pca import PCA
from udml_core.runs.analyses.kinds.refine import Refinement
from udml_core.runs.baselines import baselines_of
from udml_core.runs.search import Retrieval
from udml_core.runs.trash import contents, delete_run, deleted_runs, restore_run
from udml_core.runs.verdict import verdict
from udml_core.work import jobs
from udml_core.work.exporting import embeddings_file, export
from udml_core.work.jobs import dispatch
from udml_core.work.workers import analyse as analysis_worker

KINDS = ("empty", "half", "zeros", "text", "pickle", "folder", "pipe", "huge", "missing")
FURTHER_KINDS = (*KINDS, "link", "noise", "list", "object", "nested", "dtype", "rows", "columns", "flat")
METHODS = ("rpml", "plm", "ssdml", "pslr", "lrml")
PAGES = ("home", "runs", "compare", "explore", "clusters", "neighborhoods", "instances", "triplets",
         "affinity", "retrieval", "refine", "labels", "pairs")


def damage(path: Path, kind: str) -> None:
    """Replace a file by something else; kinds that only fit arrays write noise in place of other files."""
    whole = path.read_bytes()
    path.unlink()
    match kind:
        case "empty":
            path.write_bytes(b"")
        case "half":
            path.write_bytes(whole[:len(whole) // 2])
        case "zeros":
            path.write_bytes(bytes(len(whole)))
        case "text":
            path.write_text("not an array\n" * 30, encoding="utf-8")
        case "pickle":
            path.write_bytes(b"\x80\x04cos\nsystem\n(S'true'\ntR.")
        case "folder":
            path.mkdir()
        case "pipe":
            os.mkfifo(path)
        case "huge":
            header = repr({"descr": "<f8", "fortran_order": False, "shape": (10**9, 10**9)}).encode().ljust(117) + b"\n"
            path.write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
        case "missing":
            pass
        case "link":
            path.symlink_to(path.with_name("nowhere"))
        case "list":
            path.write_text("[1, [2], null]\n", encoding="utf-8")
        case "object":
            path.write_text('{"epoch": "x", "indices": [1], "share": {}}\n', encoding="utf-8")
        case "nested":
            path.write_text("[" * 100_000, encoding="utf-8")
        case "dtype" | "rows" | "columns" | "flat":
            path.write_bytes(reshaped(path.suffix, whole, kind))
        case "noise":
            path.write_bytes(np.random.default_rng(0).bytes(len(whole)))


def reshaped(suffix: str, whole: bytes, kind: str) -> bytes:
    """Return the file of an array, or of several, with another dtype or shape; noise for other files."""
    change: Callable[[np.ndarray], np.ndarray] = {
        "dtype": lambda array: array.astype("U8"), "rows": lambda array: array[:len(array) // 2],
        "columns": lambda array: array[..., :array.shape[-1] // 2] if array.ndim else array, "flat": np.ravel}[kind]
    buffer = io.BytesIO()
    if suffix == ".npy":
        np.save(buffer, change(np.load(io.BytesIO(whole))))
    elif suffix == ".npz":
        with np.load(io.BytesIO(whole)) as stored:
            np.savez(buffer, **{name: change(stored[name]) if stored[name].ndim else stored[name] for name in stored})
    else:
        return np.random.default_rng(0).bytes(len(whole))
    return buffer.getvalue()


@cache
def analyzed(method: str) -> Run:
    """Return a finished run with every kind of analysis."""
    run = Run(shared_folder(f"analyzed-{method}") / undisturbed(method).id)
    if not run.folder.exists():
        link_tree(undisturbed(method).folder, run.folder)
    source = list_analyses(run, PCA)[0].id
    for spec in (plan_analysis(Grid, source=source, frame="final"), plan_analysis(Refinement),
                 plan_analysis(PCA, scope="sample", frames=("0", "1"))):
        in_child(partial(_compute, run, spec))
    return run


def _compute(run: Run, spec: AnalysisSpec) -> None:
    analysis_worker.work(create_analysis(run, spec))


def damaged_copy(random: np.random.Generator, scratch: Path) -> tuple[Run, str]:
    """Copy a finished run and damage one to three of its files; return it with a description."""
    whole = analyzed(str(random.choice(METHODS)))
    run = Run(scratch / "runs" / whole.id)
    link_tree(whole.folder, run.folder)
    files = sorted(path for path in run.folder.rglob("*") if path.is_file() and path.name != "lock")
    damaged = []
    for path in random.choice(np.array(files, dtype=object), int(random.integers(1, 4)), replace=False):
        kind = str(random.choice(FURTHER_KINDS))
        damage(path, kind)
        count_event()
        damaged.append(f"{path.relative_to(run.folder)} ({kind})")
    return run, ", ".join(damaged)


def read_damaged(random: np.random.Generator, scratch: Path) -> str | None:
    """Damage files of a finished run and call every reader."""
    run, damaged = damaged_copy(random, scratch)
    report = scratch / "report"

    def read_all() -> None:
        problems: list[str] = []
        for name, reader in READERS.items():
            report.write_text(f"{damaged}: {name} hangs", encoding="utf-8")
            problems += filter(None, [_read(name, reader, run, scratch)])
        report.write_text("\n".join(problems), encoding="utf-8")

    try:
        code = in_child(read_all)
    except HangsError:
        return report.read_text(encoding="utf-8")
    problems = report.read_text(encoding="utf-8") if report.exists() else f"the process ended with {code}"
    return f"{damaged}: {problems}" if problems else None


def _read(name: str, reader: Callable[[Run, Path], object], run: Run, scratch: Path) -> str | None:
    try:
        reader(run, scratch)
    except UserError as error:
        return None if str(error).strip() else f"{name}: an empty message"
    except Exception:
        return f"{name}: {traceback.format_exc()}"
    return None


def _each_epoch(run: Run, _scratch: Path) -> None:
    for number in run.epoch_numbers():
        run.explanations(number)
    for number in run.epoch_numbers():
        run.epoch_sample(number)
        run.epoch_trained(number)


def _each_analysis(run: Run, _scratch: Path) -> None:
    problems = []
    for analysis in list_analyses(run):
        find_analysis(run, analysis.id)
        try:
            analysis.result()
            analysis.indices()
        except UserError as error:
            problems.append(str(error))
    if problems:
        raise UserError(" ".join(problems))


def _jobs(run: Run, _scratch: Path) -> None:
    root = run.folder.parent
    jobs.waiting_runs(root)
    for other in list_runs(root):
        jobs.queue_position(other, root)
        jobs.are_maps_coming(other)
        jobs.stop(other)
    dispatch.head(root, "cpu")
    dispatch.head(root, dispatch.ANALYSES)


def _texts(run: Run, _scratch: Path) -> None:
    run.log_tail()
    run.error()
    run.notes()
    run.status()
    list_runs(run.folder.parent)


def _trash(run: Run, _scratch: Path) -> None:
    contents(run)
    delete_run(run)
    try:
        deleted_runs(run.folder.parent)
    finally:
        restore_run(run.id, run.folder.parent)


def _search(which: str) -> Callable[[Run, Path], object]:
    def search(run: Run, _scratch: Path) -> None:
        opened_run = Retrieval(run)
        opened_run.frames.names()
        index = int(opened_run.frame(which).indices[0])
        opened_run.search_item(index, which=which)

    return search


READERS: dict[str, Callable[[Run, Path], object]] = {
    "texts": _texts,
    "spec": lambda run, _: run.spec(),
    "curves": lambda run, _: json.dumps(run.metrics()[0]),
    "epochs": _each_epoch,
    "sample": lambda run, _: run.sample_indices(),
    "embeddings": lambda run, _: (run.embeddings("initial"), run.embeddings("final")),
    "lengths": lambda run, _: (run.is_normalized("initial"), run.is_normalized("final")),
    "evaluation": lambda run, _: verdict("RPML", run.evaluation()),
    "broken": lambda run, _: run.broken_result(),
    "kept": lambda run, _: run.kept_epoch(),
    "checkpoint": lambda run, _: (run.read_checkpoint(), run.kept_checkpoint()),
    "baselines": lambda run, _: baselines_of(run, catalog.load(run.spec().dataset)),
    "analyses": _each_analysis,
    "jobs": _jobs,
    "search": _search("final"),
    "search before": _search("initial"),
    "search epoch": _search("1"),
    "own image": lambda run, _: Retrieval(run).search_image(Image.new("RGB", (9, 9), "red")),
    "failures": lambda run, _: Retrieval(run).atlas(),
    "history": lambda run, _: Retrieval(run).history(),
    "table": lambda run, _: embeddings_file(Retrieval(run), "final"),
    "export": lambda run, scratch: export(run, scratch / "export"),
    "trash": _trash,
}


def open_page(random: np.random.Generator, scratch: Path) -> str | None:
    """Damage files of a finished run and open a page with it."""
    run, damaged = damaged_copy(random, scratch)
    page = str(random.choice(PAGES))
    os.environ["UDML_RUNS"] = str(run.folder.parent)

    def show() -> str:
        return "\n".join(f"{element.message}\n{element.stack_trace}" for element in opened(page, run=run.id).exception)

    problems = answer_of(show, scratch / "report")
    return f"page {page}, {damaged}: {problems}" if problems else None


PARTS = (Hostility("damage", read_damaged, batch=5, weight=2, limit=60, goal=308),
         Hostility("damaged-pages", open_page, weight=2, limit=240))
