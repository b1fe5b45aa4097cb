"""Files of blind judgments: a table for a spreadsheet, and a JSON file that another person can import."""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from udml_core.base import bounded
from udml_core.base.errors import UserError, counted, quoted
from udml_core.base.files import parse_json
from udml_core.base.spreadsheets import write_rows
from udml_core.data.given.judgments import Judgment, judge_name
from udml_core.numerics.judgments import Share
from udml_core.runs.search.judging import Judging
from udml_core.runs.search.judging_words import WHAT, result_words

FORMAT = "udml judgments 1"
COLUMNS = ("judge", "number", "query", "image of A", "image of B", "better")
MOST_BYTES = 32_000_000
EXPECTED = "Expected a JSON file that `udml judge --export` or the view Compare wrote."
ABOUT = ("a", "b", "gallery", "results")
"""Fields that say what a file is about."""
MOST_NAMESAKES = 100


@dataclass(frozen=True)
class Imported:
    """What an imported file added.

    Attributes:
        judges: The judges with new judgments, by their names here.
        added: Number of new judgments.
        known: Number of judgments that were stored already.
        ignored: Number of judgments about queries or images that this comparison does not have.
    """

    judges: tuple[str, ...]
    added: int
    known: int
    ignored: int

    @property
    def words(self) -> str:
        """What was added, in a sentence."""
        by = f" by {', '.join(self.judges)}" if self.judges else ""
        known = f", {self.known:,} known already" if self.known else ""
        ignored = f", {self.ignored:,} about other images ignored" if self.ignored else ""
        return f"Imported {counted(self.added, 'judgment')}{by}{known}{ignored}."


def write_table(judging: Judging) -> bytes:
    """Write all judgments as CSV: the judge, the query, both images by name, and which is better.

    That is A, B, both right, both wrong, unsure, or equal where no reason is stored.

    Rows of images are the names that only A or only B finds, each row as a JSON list.
    """
    table = io.StringIO()
    rows: list[Sequence[object]] = [COLUMNS]
    comparison = judging.comparison
    for judgment in _all(judging):
        position = comparison.positions[judgment.query]
        images = [comparison.shown(images) for images in comparison.options(position)]
        better = (judgment.equal or "equal") if judgment.better is None else "AB"[images.index(judgment.better)]
        cells = [image if isinstance(image, str) else json.dumps(image, ensure_ascii=False) for image in images]
        rows.append([judgment.judge, position + 1, judgment.query, *cells, better])
    write_rows(table, rows)
    return table.getvalue().encode()


def write_judgments(judging: Judging) -> bytes:
    """Write all judgments as the JSON file that `read_judgments` reads, with the results for a reader."""
    return json.dumps({"format": FORMAT, **describe(judging), "judgments": [
        judgment.row() for judgment in _all(judging)]}, indent=1, ensure_ascii=False).encode()


def describe(judging: Judging) -> dict[str, Any]:
    """Return the comparison and the results as JSON fields."""
    comparison, shared = judging.comparison, judging.shared_share()
    return {"a": comparison.names[0], "b": comparison.names[1], "gallery": comparison.gallery,
            "results": comparison.results, "meaning": judging.meaning, "dataset": comparison.dataset.name,
            "fingerprint": comparison.dataset.fingerprint,
            "images": comparison.images, "queries": comparison.queries, "differing": len(comparison.differing),
            "people": {judge: _fields(judging.share(judge)) for judge in judging.people()},
            "result": _fields(shared), "sentence": result_words(shared, comparison)}


def _fields(share: Share) -> dict[str, Any]:
    return {"judgments": share.count, "mean": share.mean, "low": share.low, "high": share.high,
            "decided": share.is_decided}


def _all(judging: Judging) -> Iterator[Judgment]:
    for judge in judging.judges():
        yield from judging.judgments(judge)


def read_judgments(content: bytes, name: str, judging: Judging) -> Imported:
    """Store the judgments of a file in the session's log.

    Judgments that are stored already are not repeated. If a judge of the file answered a query differently from a judge
    of the same name here, they are two people, and the file's judge gets a number, such as `me (2)`.

    Args:
        content: The content of the file.
        name: The name of the file in messages.
        judging: A session of the same comparison.

    Raises:
        UserError: The content is not such a file, or is about another comparison, or the log cannot be written.
    """
    by_judge: dict[str, list[Judgment]] = {}
    for judgment in _parse(content, name, judging):
        by_judge.setdefault(judge_name(judgment.judge), []).append(judgment)
    judges, counts = [], Counter[str]()
    for judge, judgments in by_judge.items():
        own_name, stored = _name_here(judge, judgments, judging)
        outcomes = ["known" if judgment.query in stored else
                    "added" if judging.add(replace(judgment, judge=own_name)) else "ignored" for judgment in judgments]
        counts.update(outcomes)
        judges += [own_name] if "added" in outcomes else []
    if not counts["added"] + counts["known"]:
        raise UserError(f"None of the {counts['ignored']} judgments in {name} is about a differing query of this "
                        "comparison: its embeddings have other nearest images here. Compare the runs that the "
                        "judgments are about.")
    return Imported(tuple(judges), counts["added"], counts["known"], counts["ignored"])


def _parse(content: bytes, name: str, judging: Judging) -> list[Judgment]:
    """Return the judgments of a file.

    Raises:
        UserError: The content is not such a file, or is about another comparison.
    """
    if len(content) > MOST_BYTES:
        raise UserError(f"{name} has {len(content):,} bytes, and at most {MOST_BYTES:,} are read. {EXPECTED}")
    about, judgments = bounded.call(name, _written, content, name)
    comparison = judging.comparison
    results = about.get("results", "first")  # files of earlier versions are about the first result
    if results != comparison.results:
        known = {str(name): words for name, words in WHAT.items()}.get(results, quoted(results))
        raise UserError(f"{name} judges {known}. Here {WHAT[comparison.results]} are "
                        "judged. Choose what the file judges.")
    a, b, gallery = (about.get(key, "") for key in ABOUT[:3])
    if {a, b} != set(comparison.names) or gallery != comparison.gallery:
        raise UserError(f"{name} is about {quoted(a)} and {quoted(b)}, gallery {quoted(gallery)}. Here "
                        f"{comparison.names[0]} and {comparison.names[1]} are compared, gallery "
                        f"'{comparison.gallery}'. Choose the embeddings of the file.")
    if not judgments:
        raise UserError(f"{name} has no judgments. {EXPECTED}")
    return judgments


def _written(content: bytes, name: str) -> tuple[dict[str, str], list[Judgment]]:
    """Return what a file is about, the fields in `ABOUT`, and its judgments.

    Raises:
        UserError: The content is not such a file.
    """
    try:
        written = parse_json(content)
    except ValueError as error:
        raise UserError(f"{name} could not be read: {error}. {EXPECTED}") from error
    if not isinstance(written, dict) or written.get("format") != FORMAT or not isinstance(
            written.get("judgments"), list):
        shown = written.get("format") if isinstance(written, dict) else type(written).__name__
        raise UserError(f"{name} has the format {quoted(shown)}. {EXPECTED}")
    rows = [Judgment.parse(row) for row in written["judgments"] if isinstance(row, dict)]
    return {key: str(written[key]) for key in ABOUT if key in written}, [row for row in rows if row is not None]


def _name_here(judge: str, judgments: list[Judgment], judging: Judging) -> tuple[str, set[str]]:
    """Return the name of a file's judge here, and the queries that are stored under it.

    Raises:
        UserError: Too many judges have the same name.
    """
    for number in range(1, MOST_NAMESAKES):
        name = judge if number == 1 else f"{judge} ({number})"
        stored = {own.query: own.better for own in judging.judgments(name)}
        if all(stored.get(judgment.query, judgment.better) == judgment.better for judgment in judgments):
            return name, set(stored)
    raise UserError(f"{MOST_NAMESAKES} judges are named {quoted(judge)}. Give the judge of the file another name.")
