"""Hostile names of data sets, classes, images and runs: through pages and exports, which also name no folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import streamlit as st
from PIL import Image
from streamlit.testing.v1 import AppTest

from experiments.hold_fast.attempt import Hostility
from experiments.hold_fast.forked import answer_of
from experiments.hold_fast.inputs import quiet
from tests.app.opening import opened
from tests.app.test_pages import SHOWN
from udml_core.base.errors import UserError
from udml_core.data import catalog
from udml_core.runs import Run, RunRequest, create_run
from udml_core.runs.notes import LONGEST_NAME, LONGEST_NOTE, Notes
from udml_core.work import jobs
from udml_core.work.exporting import export
from udml_core.work.workers import train as worker

HOSTILE = (
    "<script>alert(1)<\\script>", "<img src=x onerror=alert(1)>", "<style><b>bold", "&lt;b&gt;", "a\nb\r\nc", "\t",
    "\u202egnp.exe", "\u0627\u0644\u0639\u0631\u0628\u064a\u0629", "\u200b", "\u0007", "x" * 200, "\U0001f3f3" * 9,
    "e\u0301", "\u00e9", "..hidden", "...", " padded ", "-rf", "--help", "con", "#level=2", "100%", "%2e%2e%2f",
    "[link](javascript:alert(1))", "**bold**", "$x^2$", ":material_home:", ":red[red]", "`code`", "| a | b |", "=1+1",
    "'; DROP TABLE runs; --", 'a,"b";c', "{name}", "{0}", "%s", "null", "None", "~", "~root", "$HOME", "C:\\Windows",
    "nul", "\udcff", "1", "0", "-1", "1e309")
"""Names that a file can have, which excludes slashes."""
RAW = ("<script>alert(1)", "<img src=x", "<b>bold")


def try_names(random: np.random.Generator, scratch: Path) -> str | None:
    """Train on a folder of hostile names, open a page with its run, and export the run."""
    folder = scratch / "private-home" / name_for(random)
    for label in {name_for(random) for _ in range(5)}:
        for number in range(3):
            path = folder / label / f"{name_for(random)[:60]}{number}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            pixels = random.integers(0, 256, (8, 8), dtype=np.uint8)
            Image.fromarray(pixels).save(path.with_name(os.fsdecode(os.fsencode(path.name)[:200])), "PNG")
    settings = {"UDML_RUNS": str(scratch / "runs"), "UDML_CACHE": str(scratch / "cache")}
    with patch.dict(os.environ, settings):
        try:
            run = finished_run(folder, random)
        except UserError as error:  # such as a folder name that is not text
            return None if str(error) and "Traceback" not in str(error) else f"{folder.name!r}: {error!r}"
        if run.status().state != "done":
            return f"{folder.name!r}: {run.status().message}"
        page = str(random.choice(list(SHOWN)))

        def show() -> str | None:
            with recorded_downloads() as contents, quiet():
                return judged(opened(page, run=run.id, dataset=str(folder)), contents, page)

        return answer_of(show, scratch / "report") or exported(run, scratch / "out")


def name_for(random: np.random.Generator) -> str:
    """Return a hostile name that a file can have."""
    name = HOSTILE[int(random.integers(len(HOSTILE)))]
    return os.fsdecode(os.fsencode(name)[:200])


def finished_run(folder: Path, random: np.random.Generator) -> Run:
    """Return a finished run of frozen features with a hostile name, note and tags."""
    dataset = catalog.load(str(folder))
    request = {"dataset": dataset.name, "method": "frozen", "backbone": "pixels", "split": "all"}
    run = create_run(jobs.plan(RunRequest.make(request), dataset), Path(os.environ["UDML_RUNS"]))
    with quiet():
        worker.work(run)
    name, note, tag = (name_for(random).encode(errors="replace").decode() for _ in range(3))
    tags = tuple(filter(str.strip, (tag[:20],)))
    run.write_notes(Notes(name=name[:LONGEST_NAME], note=note[:LONGEST_NOTE], tags=tags))
    return run


@contextmanager
def recorded_downloads() -> Iterator[list[Any]]:
    """Record what the download buttons of a page would store: contents, or functions that make them."""
    made: list[Any] = []
    with patch.object(st, "download_button", lambda _label, content, *_, **__: made.append(content)):
        yield made


def judged(test: AppTest, contents: list[Any], page: str) -> str | None:
    """Return what is wrong with a page; None if nothing is."""
    if test.exception:
        return f"{page}: {test.exception[0].message} {test.exception[0].stack_trace[-3:]}"
    for kind in ("markdown", "html"):
        for element in test.get(kind):
            text = str(getattr(element.proto, "body", ""))
            if (kind == "html" or element.proto.allow_html) and any(raw in text for raw in RAW):
                return f"{page} shows a name as HTML: {text[:300]}"
    for content in (made() if callable(made) else made for made in contents):
        data = content.encode(errors="replace") if isinstance(content, str) else bytes(content)
        if b"private-home" in data:
            return f"{page}: a download names the folder"
        if data.lstrip()[:9].lower() == b"<!doctype" and any(raw.encode() in data for raw in RAW):
            return f"{page}: the HTML file has a name as HTML"
    return None


def exported(run: Run, folder: Path) -> str | None:
    """Export a run; return which file names the folder of its images, if one does."""
    files = export(run, folder)
    return next((f"the export's {path.name} names the folder" for path in files
                 if b"private-home" in path.read_bytes()), None)


PART = Hostility("names", try_names)
