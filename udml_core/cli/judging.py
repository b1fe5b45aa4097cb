"""The command of blind judgments."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from udml_core.base.errors import UserError, quoted
from udml_core.base.files import read_regular
from udml_core.base.paths import existing_path
from udml_core.cli.options import Json, Root, named_run
from udml_core.cli.output import print_answer, write_file

if TYPE_CHECKING:
    from udml_core.runs.search.differing import Side
    from udml_core.runs.search.judging import Choice, Judging, Question

EmbeddingName = Annotated[str, typer.Argument(show_default=False, help=(
    "RUN or RUN:FRAME; a frame is frozen, initial, final (the default) or the id of a refinement."))]
EQUAL: Mapping[str, Choice] = {"e": "equal", "b": "both right", "w": "both wrong", "n": "unsure"}
OF_ROWS: Mapping[str, Choice] = {"1": "left", "2": "right", **EQUAL}
CHOICES: dict[str, Mapping[str, Choice]] = {"first": {"l": "left", "r": "right", **EQUAL}, "ten": OF_ROWS,
                                            "group": OF_ROWS}
OTHER_KEYS = "b both right, w both wrong, n not sure, e equal, u undo, q quit"
ROWS = f"1 row 1, 2 row 2, {OTHER_KEYS}"
KEYS = {"first": f"l left, r right, {OTHER_KEYS}", "ten": ROWS, "group": ROWS}


def judge(a: EmbeddingName, b: EmbeddingName,
          name: Annotated[str, typer.Option(metavar="NAME", help="The person who judges.")] = "me",
          ask: Annotated[bool, typer.Option("--ask", help="Judge here: answer l (left), r (right), b (both right), w "
                                                          "(both wrong), n (not sure), e (equal), u (undo) or q "
                                                          "(quit); of rows 1 or 2.")] = False,
          results: Annotated[Literal["first", "ten", "group"], typer.Option(help=(
              "Judge the first result of a query, its first ten results as rows, or rows of up to four images that are "
              "drawn from the results in which the groups differ."))] = "first",
          gallery: Annotated[Literal["test", "all"], typer.Option(help="Search the test half or all images.")] = "test",
          export: Annotated[Path | None, typer.Option("--export", metavar="FILE", help=(
              "Write the judgments of all people to this file, as a table if its name ends in .csv, else as JSON."))
              ] = None,
          file: Annotated[Path | None, typer.Option("--import", metavar="FILE", help=(
              "Add the judgments in this JSON file of another person."))] = None,
          root: Root = None, as_json: Json = False) -> None:
    """Compare two embeddings of the same images by blind judgments, without labels.

    A judgment says which of two images is more similar to a query: the nearest image in A or in B, without their
    names; or which of two rows, of results in A or in B, holds more images of the same kind. The queries
    are a random sample of all queries for which these results differ, and the interval holds whenever you stop. Known
    copies of a query, as an audit finds them, are left out of both.
    """
    from udml_core.runs.search import judgment_files as files
    from udml_core.runs.search.differing import compare
    from udml_core.runs.search.judged_runs import has_plain
    from udml_core.runs.search.judging import Judging
    from udml_core.runs.search.judging_words import advice_words
    from udml_core.work.jobs.raced import group_size_of

    first = _open_side(a, root)
    second = _open_side(b, root, first)
    judging = Judging(compare(first, second, gallery, results, group_size_of(first.retrieval.run)), name)
    if file is not None:
        try:
            added = files.read_judgments(read_regular(file, files.MOST_BYTES), str(file), judging)
        except OSError as error:
            raise UserError(f"The judgments {file} could not be read: {error}. {files.EXPECTED}") from error
        typer.echo(added.words, err=True)
    if ask:
        _ask(judging)
    if export is not None:
        content = (files.write_table if export.suffix == ".csv" else files.write_judgments)(judging)
        write_file(export, content, "--export")
    advice = advice_words(judging, first=f"A ({judging.comparison.names[0]})", has_plain=has_plain((first, second)))
    print_answer(_summary(judging, advice), as_json, lambda: _lines(judging, advice))


def _open_side(text: str, root: Path | None, like: Side | None = None) -> Side:
    """Open an embedding by its name on the command line.

    Args:
        text: RUN or RUN:FRAME.
        root: The folder of runs.
        like: An embedding whose data set is loaded already.

    Raises:
        UserError: There is no such run, or it does not have the embedding.
    """
    from udml_core.runs.search import Retrieval
    from udml_core.runs.search.differing import SEPARATOR, Side

    name, separator, frame = text.rpartition(SEPARATOR)
    if not separator or existing_path(text):
        name, frame = text, "final"
    run = named_run(name, root)
    retrieval = like.retrieval if like is not None and like.retrieval.run == run else Retrieval(run)
    retrieval.frame(frame)  # rejects an unknown name
    return Side(retrieval, frame)


def _ask(judging: Judging) -> None:
    """Ask about queries until the input ends or the person quits."""
    from udml_core.runs.search.judging_words import advice_words

    choices, keys = CHOICES[judging.comparison.results], KEYS[judging.comparison.results]
    while (question := judging.question()) is not None:
        _show(judging, question)
        match (line := sys.stdin.readline()).strip().lower()[:1]:
            case key if key in choices and key:
                judging.answer(question, choices[key])
                said = advice_words(judging, True)
                typer.echo(f"{judging.count(judging.judge)} judged. {said}", err=True)
            case "u":
                undone = judging.undo()
                typer.echo("Undone." if undone else "There is nothing to undo.", err=True)
            case "q":
                return
            case _ if not line:  # the input has ended
                return
            case _:
                typer.echo(f"Answer with a key: {keys}; got {quoted(line.strip())}.", err=True)


def _show(judging: Judging, question: Question) -> None:
    """Print where the images of a question are."""
    from udml_core.data.text_tiles import image_path
    from udml_core.runs.search.judging_words import QUESTIONS

    dataset, results = judging.comparison.dataset, judging.comparison.results
    typer.echo(f"\n{QUESTIONS[results]} {KEYS[results]}", err=True)
    words = ("left", "right") if results == "first" else ("row 1", "row 2")
    for word, images in (("query", (question.query,)), (words[0], question.left), (words[1], question.right)):
        for image in images:
            typer.echo(f"{word:6} {image_path(dataset, image)}", err=True)


def _summary(judging: Judging, advice: str) -> dict[str, Any]:
    from udml_core.runs.search.judgment_files import describe

    return {**describe(judging), "judge": judging.judge, "advice": advice}


def _lines(judging: Judging, advice: str) -> list[str]:
    """Return the state in lines: the embeddings, each person's result, and the result of all."""
    from udml_core.runs.search.judging_words import (
        agreement_words,
        copies_words,
        differing_words,
        result_words,
        waiting_words,
    )

    comparison, people = judging.comparison, judging.people()
    lines = [f"{letter}: {name}" for letter, name in zip("AB", comparison.names, strict=True)]
    lines.append(f"{differing_words(comparison)}, gallery: {comparison.gallery}")
    lines += filter(None, [copies_words(comparison).rstrip()])
    if len(people) > 1:
        lines += [f"{person}: {_result(judging, person)}" for person in people]
        lines += [agreement_words(judging), "Queries that all have judged:"]
    if waiting := judging.elsewhere():
        lines.append(waiting_words(waiting, judging.meaning))
    result = _result(judging, people[0]) if len(people) == 1 else result_words(judging.shared_share(), comparison)
    return [*lines, f"{result}.", advice]


def _result(judging: Judging, person: str) -> str:
    """Return the result of one judge, the counts first."""
    from udml_core.runs.search.judging_words import result_words, score_words

    return result_words(judging.share(person), judging.comparison, score=score_words(judging, person))
