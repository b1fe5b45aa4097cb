"""The commands of galleries: `udml index build`, `info`, `search`, `add` and `remove`."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import typer

from udml_core.base.arrays import Array
from udml_core.base.errors import UserError, counted, quoted
from udml_core.cli.options import Json
from udml_core.cli.output import print_answer, print_progress
from udml_core.runs.tasks import SHARE_TO_GO_BY

if TYPE_CHECKING:
    from udml_core.numerics.galleries import StoredGallery

index = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False,
                    help="Search large galleries of vectors: build an index in a folder, search it, add and remove.")
Folder = Annotated[Path, typer.Argument(metavar="DIR", help="The gallery's folder.")]
Vectors = Annotated[Path, typer.Argument(metavar="FILE", help="Vectors: .npy, .npz, .parquet or .safetensors.")]
IdsFile = Annotated[Path | None, typer.Option("--ids", metavar="FILE", help="Ids of the vectors: a .npy of integers.")]


@index.command()
def build(file: Vectors, folder: Folder, ids: IdsFile = None,
          kind: Annotated[Literal["flat", "ivf", "ivf-pq"] | None, typer.Option(show_default=False, help=(
              "flat compares all vectors; ivf compares some lists of vectors; ivf-pq compares codes, then the best "
              "candidates. Default: flat up to 200,000 vectors, ivf up to 2 GiB, ivf-pq beyond."))] = None,
          as_json: Json = False) -> None:
    """Build a gallery and measure its recall; repeat the command to continue after an interrupt.

    Ids are row numbers unless --ids is given.
    """
    from udml_core.numerics.galleries import build_gallery

    _print_gallery(build_gallery(_read_vectors(file), folder, timed_progress(), _read_ids(ids), kind), as_json)


@index.command()
def info(folder: Folder, as_json: Json = False) -> None:
    """Print the kind, the size and the measured recall of a gallery."""
    from udml_core.numerics.galleries import StoredGallery

    _print_gallery(StoredGallery.open(folder), as_json)


@index.command()
def search(folder: Folder, file: Vectors,
           k: Annotated[int, typer.Option("-k", min=1, max=10_000, help="Number of results of each query.")] = 10,
           probes: Annotated[int | None, typer.Option(min=1, show_default=False, help=(
               "Number of lists to visit. Default: the number of the measured recall."))] = None,
           as_json: Json = False) -> None:
    """Find the nearest vectors of each query in a file, with their Euclidean distances."""
    from udml_core.numerics.galleries import StoredGallery

    squared, ids = StoredGallery.open(folder).search(_read_vectors(file), k, probes=probes)
    distances = np.sqrt(squared)
    rows = [{"query": number, "ids": found.tolist(), "distances": far.tolist()}
            for number, (found, far) in enumerate(zip(ids, distances, strict=True))]
    print_answer({"results": rows}, as_json, lambda: [
        f"{row['query']:6}  " + "  ".join(f"#{name} {far:.4f}" for name, far in zip(row["ids"], row["distances"],
                                                                                    strict=True)) for row in rows])


@index.command()
def add(folder: Folder, file: Vectors, ids: IdsFile = None, as_json: Json = False) -> None:
    """Add the vectors of a file without a new build; their ids follow the largest id unless --ids is given."""
    from udml_core.numerics.galleries import StoredGallery, add_vectors

    gallery, vectors, chosen = StoredGallery.open(folder), _read_vectors(file), _read_ids(ids)
    if chosen is None:
        chosen = np.arange(len(vectors)) + int(gallery.all_ids.max()) + 1
    _print_gallery(add_vectors(folder, chosen, vectors, timed_progress()), as_json)


@index.command()
def remove(folder: Folder,
           names: Annotated[list[int] | None, typer.Argument(metavar="[ID]...", help="Ids to remove.")] = None,
           ids: IdsFile = None, as_json: Json = False) -> None:
    """Remove vectors by id without a new build."""
    from udml_core.numerics.galleries import remove_vectors

    listed = _read_ids(ids)
    chosen = np.concatenate([np.array(names or [], np.int64), np.zeros(0, np.int64) if listed is None else listed])
    if not len(chosen):
        raise UserError("Name the ids to remove, or give a file with --ids.")
    _print_gallery(remove_vectors(folder, chosen, timed_progress()), as_json)


def timed_progress() -> Callable[[float, str], None]:
    """Return a reporter that prints on stderr at every 10 %, with the time that is left of the step."""
    report, begun = print_progress(), dict[str, float]()

    def report_with_time(share: float, step: str) -> None:
        seconds = time.monotonic() - begun.setdefault(step, time.monotonic())
        left = f", about {seconds / share * (1 - share):.0f} s left" if SHARE_TO_GO_BY <= share < 1 else ""
        report(share, step, left)

    return report_with_time


def _print_gallery(gallery: StoredGallery, as_json: bool) -> None:
    """Print what a gallery is and how well it finds."""
    from udml_core.numerics.galleries import rebuild_advice

    manifest, advice = gallery.manifest, rebuild_advice(gallery)
    recall = manifest.recall
    answer: dict[str, Any] = {
        "folder": str(gallery.folder), "kind": manifest.kind, "vectors": len(gallery),
        "dimension": manifest.dimension, "removed": manifest.removed_rows, "shards": len(manifest.shards),
        "lists": manifest.lists, "probes": manifest.probes, "code_bytes": manifest.codes,
        "candidates": manifest.candidates, "recall@10": recall.recall if recall else None,
        "queries": recall.queries if recall else 0, "imbalance": gallery.imbalance,
        "bytes": sum(path.stat().st_size for path in gallery.folder.rglob("*") if path.is_file()),
        "seconds": manifest.seconds, "advice": advice}

    def lines() -> list[str]:
        text = [f"{counted(len(gallery), 'vector')} of {counted(manifest.dimension, 'dimension')}, "
                f"{manifest.removed_rows:,} removed, {answer['bytes'] / 1e6:,.1f} MB, built in "
                f"{manifest.seconds:.0f} s"]
        if manifest.kind == "flat":
            return [*text, "flat: every search compares all vectors, so its recall is 1"]
        codes = f", codes of {manifest.codes} bytes, {manifest.candidates} candidates per neighbor" * (
            manifest.kind == "ivf-pq")
        measured = f"recall@10 {recall.recall:.3f} of exact, on {recall.queries:,} queries" if recall else ""
        return [*text, f"{manifest.kind}: {manifest.probes:,} of {manifest.lists:,} lists a search{codes}", measured,
                *([advice] if advice else [])]

    print_answer(answer, as_json, lines)


def _read_vectors(path: Path) -> Array:
    """Read the vectors of a file; an .npy is memory-mapped.

    Raises:
        UserError: The file is missing, or does not hold vectors.
    """
    from udml_core.base.files import read_array
    from udml_core.data.sources.vector_files import ENDINGS, open_vectors

    if not path.is_file():
        raise UserError(f"The file {path} does not exist.")
    if path.suffix.lower() == ".npy":
        return read_array(path, mapped=True)
    if path.suffix.lower() not in ENDINGS:
        raise UserError(f"{path} must end in one of {', '.join(ENDINGS)}; got {quoted(path.suffix)}.")
    return np.concatenate(list(open_vectors(path).blocks()))


def _read_ids(path: Path | None) -> Array | None:
    """Read ids.

    Raises:
        UserError: The file is missing, or does not hold one integer a vector.
    """
    from udml_core.base.files import read_array

    if path is None:
        return None
    ids = read_array(path)
    if ids.ndim != 1 or ids.dtype.kind not in "iu":
        raise UserError(f"{path} must hold ids as a list of integers; got {ids.dtype} {ids.shape}.")
    return ids
