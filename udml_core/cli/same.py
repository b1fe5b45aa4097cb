"""The command `udml same`: where "the same" ends in an embedding, and judging pairs in the terminal."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from udml_core.base.errors import UserError, quoted
from udml_core.cli.options import Json, Root, RunName, named_run
from udml_core.cli.output import print_answer

if TYPE_CHECKING:
    from udml_core.data.dataset import Dataset
    from udml_core.runs.search import Retrieval
    from udml_core.runs.search.same import SamePairs

ANSWERS = {"s": True, "same": True, "d": False, "different": False, "k": None, "skip": None}
KEYS = "s same, d different, k skip, u undo, q quit"


def same(name: RunName,
         frame: Annotated[str, typer.Option(help="The embedding: final, initial, frozen, or the id of a refinement.")
                          ] = "final",
         precision: Annotated[float | None, typer.Option(show_default=False, help=(
             "Share of the results above the threshold that must show the same thing, 0.55 to 0.99. It is kept for the "
             "app, searches and exports. Default: the last choice, or 0.95."))] = None,
         ask: Annotated[bool, typer.Option("--ask", help="Judge pairs first: an answer a line on stdin.")] = False,
         file: Annotated[Path | None, typer.Option("--export", metavar="FILE", help=(
             "Write the judged pairs as CSV: columns first, second, same."))] = None,
         root: Root = None, as_json: Json = False) -> None:
    """Show where "the same" ends in an embedding: the similarity above which two images show the same thing.

    The threshold is estimated from pairs that you judge here or in the app, page Search. Labels are not used.
    """
    from udml_core.data.given.judged_pairs import judged_pairs, want_precision
    from udml_core.data.given.pair_sets import write_pairs
    from udml_core.runs.search import Retrieval
    from udml_core.runs.search.same import open_same_pairs

    opened = Retrieval(named_run(name, root))
    opened.frame(frame)  # rejects an unknown name before a precision is stored
    if precision is not None:
        want_precision(opened.dataset, precision)
    if ask:
        _ask(opened, frame)
    judged = open_same_pairs(opened, frame)
    if file is not None:
        _write(file, write_pairs(judged_pairs(opened.dataset).read(), opened.dataset))
    print_answer(_summary(opened, frame, judged), as_json, lambda: [judged.sentence])


def _ask(opened: Retrieval, frame: str) -> None:
    """Ask about pairs on stderr and read the answers from stdin, until the user quits or the input ends."""
    from udml_core.data.given.judged_pairs import judged_pairs
    from udml_core.runs.search.same import open_same_pairs

    log = judged_pairs(opened.dataset)
    while (judged := open_same_pairs(opened, frame)) and (pair := judged.next()) is not None:
        first, second = (_place(opened.dataset, image) for image in pair)
        typer.echo(f"{judged.sentence}\nDo these show the same thing? {KEYS}\n  {first}\n  {second}", err=True)
        match sys.stdin.readline().lower():
            case "" | "q\n" | "quit\n" | "q":
                return
            case line if (word := line.strip()) in ANSWERS:
                log.add(*pair, ANSWERS[word], judged.name)
            case line if line.strip() in ("u", "undo"):
                typer.echo("There is nothing to undo." if log.undo() is None else "Undone.", err=True)
            case line:
                typer.echo(f"The answer must be one of {KEYS}; got {quoted(line.strip())}.", err=True)


def _place(dataset: Dataset, image: int) -> str:
    """Return the file of an image; its number and name if it has none."""
    from udml_core.data.dataset import FileImages

    images, name = dataset.images, dataset.names[image]
    return str(images.source(image)) if isinstance(images, FileImages) else f"#{image} {name}"


def _summary(opened: Retrieval, frame: str, judged: SamePairs) -> dict[str, Any]:
    known, threshold = judged.estimate, judged.threshold
    return {"run": opened.run.id, "embedding": frame, "target": judged.target, "judged": known.judged,
            "population": int(judged.plan.sizes.sum()), "needed": known.needed, "unreachable": known.is_unreachable,
            "threshold": None if threshold is None else threshold.describe(), "sentence": judged.sentence}


def _write(path: Path, content: bytes) -> None:
    from udml_core.base.files import replace_bytes

    try:
        replace_bytes(path, content)
    except OSError as error:
        raise UserError(f"{path} could not be written: {error.strerror or error}. Choose another file with "
                        "--export.") from error
