"""Printing: results on stdout, progress and messages on stderr."""

from __future__ import annotations

import json
import re
import shlex
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from udml_core.base.errors import UserError, byte_words, counted
from udml_core.base.files import jsonable, replace_bytes
from udml_core.base.paths import runs_folder
from udml_core.base.started import program_words
from udml_core.runs.analyses import Analysis
from udml_core.runs.analyses.kinds.opinion import QUESTIONS
from udml_core.runs.tasks import LIVE_STATES

if TYPE_CHECKING:
    from udml_core.data.sources.located import Located
    from udml_core.runs import Run

SHOWN_CLASSES = 8
POLL_SECONDS = 0.2
LOGGED = re.compile(r"\d{4}-\d\d-\d\d ")
"""How a line of progress in a log begins."""


def print_answer(value: Any, as_json: bool, lines: Callable[[], list[str]]) -> None:
    """Print one JSON object, or lines of text."""
    if as_json:
        typer.echo(json.dumps(jsonable(value)))
    else:
        for line in lines():
            typer.echo(line)


def write_file(path: Path, content: bytes, option: str = "--out") -> None:
    """Write a file that an option names.

    Raises:
        UserError: It cannot be written.
    """
    try:
        replace_bytes(path, content)
    except OSError as error:
        raise UserError(f"{path} could not be written: {error.strerror or error}. Choose another file with "
                        f"{option}.") from error


def print_levels(folder: Located, as_json: bool) -> None:
    """Print the classes at each level of a folder's subfolders, or the numbers of an official layout.

    Raises:
        UserError: The folder does not exist or has no images.
    """
    folder.check()
    rows = [{"level": level.level, "sizes": dict(level.sizes), "loose": level.loose, "classes": level.has_classes}
            for level in folder.levels()]
    print_answer({"levels": rows}, as_json, lambda: [
        f"level {level.level}: {len(level.sizes)} subfolders "
        f"({', '.join(list(level.sizes)[:SHOWN_CLASSES])}{', …' if len(level.sizes) > SHOWN_CLASSES else ''})"
        + (f", {level.loose} images above it" if level.loose else "") for level in folder.levels()]
        or [folder.describe()])


def read_words(report: dict[str, Any]) -> str:
    """Say what an audit has read, such as `30 images, 3 classes from label; other columns: site`."""
    choices = report["class_columns"]
    column = f" from `{report['classes_column']}`" if report["classes_column"] else ""
    classes = counted(report["classes"], "class") if report["classes"] else "no classes"
    named = [f"{name} ({choices[name]['values']:,} values)" if name in choices else name for name in report["columns"]]
    columns = f"; other columns: {', '.join(named)}" if named else ""
    columns += f": use {shlex.quote(next(iter(choices.values()))['dataset'])}" if choices else ""
    columns += "".join(f"; {counted(row['classes'], 'class')} at the level {row['level']} of folders: use "
                       f"{shlex.quote(row['dataset'])}" for row in report["other_levels"])
    halves = f"; halves given: {report['halves']}" if report["halves"] else ""
    return (f"{counted(report['images'], 'image')}, {classes}{column}{halves}{columns}"
            + (f"; {report['skipped']}" if report["skipped"] else ""))


def audit_lines(report: dict[str, Any]) -> list[str]:
    """Return the findings of an audit as lines of text: their numbers, each with the first examples."""
    from udml_core.data.dataset import NEEDS_HEIC
    from udml_core.exploration.quality import CHECKS

    def listed(names: list[str], most: int) -> str:
        more = f" and {len(names) - most:,} more" if len(names) > most else ""
        return f": {', '.join(names[:most])}{more}" if names else ""

    def grouped(groups: list[list[str]], words: str) -> str:
        more = f"; and {counted(len(groups) - 1, 'more group')}" if len(groups) > 1 else ""
        return f"{counted(len(groups), 'group')} of {words}{listed(groups[0], SHOWN_CLASSES) if groups else ''}{more}"

    exact, near, classes = (report[name] for name in ("exact_duplicates", "near_duplicates", "small_classes"))
    apart, skipped = report["outliers"], report["broken_files"]
    unread = [row for row in skipped if row["reason"].startswith(NEEDS_HEIC)]
    broken = [row for row in skipped if row not in unread and row["kind"] == "unreadable"]
    return [
        read_words(report),
        *([f"{counted(len(unread), 'file')} not read, because {unread[0]['reason']}"] if unread else []),
        counted(len(broken), "broken file") + listed([f"{row['file']} ({row['reason']})" for row in broken], 1),
        grouped(exact, "exact duplicates"),
        grouped(near, "near-duplicates"),
        *([f"{counted(len(report['border']), 'pair')} at the border, for you to decide on the page Data, or here with "
           f"--same or --different: {' and '.join(report['border'][0])}"] if report.get("border") else []),
        *(f"{CHECKS[check].title.lower()}: {counted(len(images), 'image')}{listed(images, 1)}"
          for check, images in report.get("quality", {}).items() if images),
        counted(len(apart), "outlier") + listed([row["image"] for row in apart], 1) if report["features"] else
        "outliers: not computed",
        counted(len(classes), "small class") + listed(list(classes), SHOWN_CLASSES),
        *(grouped(groups, f"duplicates in both halves of the split {name}")
          for name, groups in report["leakage"].items()),
        counted(len(report["excluded"]), "image") + " excluded before"]


def new_lines(news: dict[str, Any]) -> list[str]:
    """Return what is new in a folder as lines of text, a line for each file."""
    if not news["changes"]:
        return ["Nothing has changed in this folder."]
    lines = [news["changes"][:1].upper() + news["changes"][1:]]
    lines += [f"{row['file']}: broken ({row['reason']})" for row in news["broken_files"]]
    renamed = news["renamed"]
    if renamed:
        lines.append(f"{counted(len(renamed), 'file')} {'has' if len(renamed) == 1 else 'have'} another name now, and "
                     "labels and exclusions follow")
    lines += [f"{name}: renamed or moved to {now}" for name, now in renamed.items()]
    lines += [f"{name}: removed" for name in news["removed"]]
    changed, listed = set(news["changed"]), {row["image"] for row in news["images"]}
    lines += [f"{row['image']}: {'changed, ' if row['image'] in changed else ''}{row['words'] or 'nothing found'}"
              for row in news["images"]]
    lines += [f"{name}: excluded" for name in (*news["new"], *news["changed"]) if name not in listed]
    return [*lines, news["run"]] if news.get("run") else lines


def exit_with(message: str, code: int = 2) -> NoReturn:
    """Print a message on stderr and end the process."""
    typer.echo(message, err=True)
    sys.exit(code)


def print_progress() -> Callable[..., None]:
    """Return a reporter that prints on stderr at every 10 %."""
    last: dict[str, int] = {}

    def report(share: float, phase: str, more: str = "") -> None:
        tenth = int(share * 10)
        if last.get(phase, -1) < tenth < 10:
            typer.echo(f"{phase}: {10 * tenth} %{more}", err=True)
        last[phase] = tenth

    return report


def summarize_run(run: Run, ahead: int | None = None) -> dict[str, Any]:
    """Summarize a run for `--json`.

    Args:
        run: The run.
        ahead: Number of runs ahead in the queue, if it is known.
    """
    from udml_core.numerics.evaluation import headline_measures
    from udml_core.runs.opinions import newest_opinion
    from udml_core.work.jobs import engine_of, memory_by_part, queue_position
    from udml_core.work.jobs.verdicts import said_of_run

    spec, status, result = run.spec(), run.status(), run.evaluation()
    if ahead is None:
        ahead = queue_position(run, run.folder.parent) if status.state == "waiting" else 0
    verdicts = None
    with suppress(UserError):  # a damaged file of the second opinion
        said = said_of_run(run, newest_opinion(run)) if status.state == "done" else None
        verdicts = None if said is None else said.verdicts
    return {"run": run.id, "folder": str(run.folder), "state": status.state, "message": status.message,
            "epoch": status.epoch, "epochs": status.epochs, "phase": status.phase, "ahead": ahead,
            "engine": engine_of(run), "method": spec.method, "dataset": spec.dataset, "fields": spec.fields,
            "seed": spec.seed, "excluded": {"count": spec.excluded.count, "digest": spec.excluded.digest},
            "example": run.is_example, "memory": {part: {"planned": planned, "measured": measured}
                                                  for part, (planned, measured) in memory_by_part(status).items()},
            "seconds": status.seconds,
            "second opinion": verdicts and dict(zip(QUESTIONS, verdicts, strict=True)),
            "evaluation": {name: headline_measures(row) for name, row in result.items()} if result else None}


def print_run(run: Run, as_json: bool, must_be_done: bool = False) -> None:
    """Print a run's summary.

    If the run must be done but is not, end the process with exit code 1.
    """
    summary = summarize_run(run)
    print_answer(summary, as_json, lambda: [f"{summary['run']}  {summary['state']}  epoch {summary['epoch']}/"
                                            f"{summary['epochs']}  {summary['message']}".rstrip(),
                                            *memory_lines(summary["memory"])])
    if must_be_done and summary["state"] != "done":
        exit_with(ending_words(run, summary), 1)


def memory_lines(parts: Mapping[str, Mapping[str, float | None]]) -> list[str]:
    """Return a line with the largest memory of each finished part of a run beside what was planned; none without."""
    measured = [f"{part} {byte_words(of['measured'])}" + (f" ({byte_words(of['planned'])})" if of["planned"] else "")
                for part, of in parts.items() if of["measured"]]
    return [f"  memory, measured (and planned): {', '.join(measured)}"] if measured else []


def ending_words(run: Run, summary: dict[str, Any]) -> str:
    """Return why a run is not done; of a run that broke off, also its last error, its log and how to resume it."""
    message = summary["message"] or f"The run ended as {summary['state']}."
    if summary["state"] not in ("failed", "interrupted"):
        return message
    trace = (run.error() or run.log_tail()).strip().splitlines()
    is_error = trace and trace[-1] not in message and not LOGGED.match(trace[-1])  # a killed worker leaves progress
    error = [f"Error: {trace[-1]}"] if is_error else []
    folder = [] if run.root == runs_folder() else ["--runs", str(run.root)]
    command = shlex.join([*program_words(), "resume", run.id, *folder])
    return "\n".join([message, *error, f"Log: {run.log_path}", f"To resume: {command}"])


def summarize_analysis(analysis: Analysis) -> dict[str, Any]:
    """Summarize an analysis for `--json`."""
    spec, status = analysis.spec(), analysis.status()
    return {"analysis": analysis.id, "folder": str(analysis.folder), "kind": spec.kind, "state": status.state,
            "phase": status.phase, "message": status.message,
            "asked": spec.build_kind().model_dump()}


def summarize_result(analysis: Analysis) -> dict[str, Any]:
    """Summarize an analysis for `--json`, with what its kind finds if it is done."""
    summary = summarize_analysis(analysis)
    return summary | (analysis.spec().build_kind().findings(analysis.result) if summary["state"] == "done" else {})


def analysis_line(summary: dict[str, Any]) -> str:
    """Return an analysis's summary as a line of text."""
    request = ", ".join(f"{name} {', '.join(map(str, value)) if isinstance(value, tuple) else value}"
                        for name, value in summary["asked"].items() if name != "content")
    return f"{summary['analysis']}  {summary['state']:11} {request}  {summary['message']}".rstrip()


def follow_run(run: Run) -> None:
    """Print a run's progress on stderr until it ends. An interrupt stops the run."""
    from udml_core.data.dataset import step_name
    from udml_core.work import jobs

    printed, offset = "", 0
    try:
        while True:
            status = run.status()
            rows, offset = run.metrics(offset)
            for row in rows:
                curves = ", ".join(f"{name} {value:.4g}" for name, value in row.items()
                                   if name != "epoch" and isinstance(value, int | float))
                typer.echo(f"epoch {row['epoch']}: {curves}", err=True)
            phase = step_name(status.phase)
            if status.state == "waiting":
                phase = f"waiting, {jobs.place_in_queue(run)}"
            if phase != printed:
                typer.echo(phase, err=True)
                printed = phase
            if status.state not in LIVE_STATES:
                return
            time.sleep(POLL_SECONDS)
    except KeyboardInterrupt:
        typer.echo("stopping the run; its finished epochs stay", err=True)
        jobs.stop(run)


def follow_analysis(analysis: Analysis) -> None:
    """Print an analysis's progress on stderr until it ends. An interrupt stops it."""
    from udml_core.work import jobs

    report = print_progress()
    try:
        while (status := analysis.status()).state in LIVE_STATES:
            if status.state == "running":
                left = status.seconds_left
                report(status.share, status.phase, "" if left is None else f", about {left:.0f} s left")
            time.sleep(POLL_SECONDS)
    except KeyboardInterrupt:
        typer.echo("stopping the analysis", err=True)
        jobs.stop(analysis)
