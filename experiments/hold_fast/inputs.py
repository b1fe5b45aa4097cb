"""Bad input: images, tables, specs, options, links and commands. Each gives a result or one clear message."""

from __future__ import annotations

import io
import logging
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from PIL import Image

from experiments.hold_fast.attempt import Hostility
from experiments.hold_fast.bad_images import bad_image
from experiments.hold_fast.forked import answer_of
from experiments.hold_fast.junk import junk, junk_table, mutated
from experiments.hold_fast.small_runs import METHODS, digits_folder, undisturbed
from pages.parts.maps.columns import column_color
from tests.app.opening import opened, texts
from tests.app.test_pages import NONSENSE, SHOWN
from udml_core.base.errors import UserError
from udml_core.cli import commands as cli
from udml_core.data import catalog
from udml_core.data.dataset import Dataset, read_user_image
from udml_core.data.given.own_columns import parse_columns
from udml_core.data.given.pair_sets import parse_pairs
from udml_core.data.thumbnails import make_thumbnail
from udml_core.methods import METHODS as ALL_METHODS
from udml_core.runs import RunRequest, list_runs
from udml_core.work import jobs

LONGEST_MESSAGE = 3000
COMMANDS = ("train", "query", "evaluate", "analyse", "refine", "analyses", "export", "datasets", "resume", "stop",
            "continue", "examples", "runs", "methods", "nonsense", "")
OPTIONS = ("--dataset", "--method", "--set", "--backbone", "--size", "--split", "--seed", "--device", "--labels",
           "--labels-per-class", "--pairs", "--pairs-file", "--preset", "--kind", "--frames", "--recipe", "--scope",
           "--source", "-k", "--embedding", "--gallery", "--levels", "--runs", "--json", "--no-wait", "--select",
           "--given-pairs", "--precision", "--compile", "--nonsense")


def try_image(random: np.random.Generator, scratch: Path) -> str | None:
    """Read an image as a query and as a file of a data set."""
    name, content = bad_image(random)
    for number in range(2):
        Image.new("RGB", (16, 16), (99 * number, 0, 0)).save(scratch / f"good-{number}.png")
    (scratch / name).write_bytes(content)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for source in (io.BytesIO(content), scratch / name):
            if broken := checked(lambda source=source: read_user_image(source, name)):
                return f"{name}: {broken}"
        dataset = catalog.load(str(scratch))
        if len(dataset) + len(dataset.skipped) != 3:
            return f"{name} is neither an image nor skipped"
        for index in range(len(dataset)):
            if broken := checked(lambda index=index: make_thumbnail(dataset.images[index], 64)):
                return f"{name} was not skipped: {broken}"
    return None


def try_table(random: np.random.Generator, scratch: Path) -> str | None:
    """Read a table of pairs, or of columns to color a map by."""
    dataset = _digits()
    content = junk_table(random, dataset.names)
    (scratch / "pairs.csv").write_bytes(content)

    def color() -> None:
        for name, values in parse_columns(content, "table.csv", dataset).items():
            column_color(name, values, np.arange(len(dataset)))

    broken = checked(lambda: parse_pairs(content, "pairs.csv", dataset)) or checked(color)
    return f"{content[:300]!r}: {broken}" if broken else None


def try_spec(random: np.random.Generator, scratch: Path) -> str | None:
    """List and open a run whose spec, status or notes were changed."""
    whole = undisturbed("pca")
    folder = scratch / whole.id
    folder.mkdir()
    name = str(random.choice(["spec.json", "status.json", "notes.json"]))
    for file in ("spec.json", "status.json", "evaluation.json"):
        (folder / file).write_bytes((whole.folder / file).read_bytes())
    source = folder / name
    text = mutated(random, source.read_text() if source.exists() else '{"name": "a", "note": "b", "tags": ["c"]}')
    source.write_text(text, errors="surrogatepass")
    for run in list_runs(scratch):
        if broken := checked(run.status) or checked(run.notes):
            return f"{name} {text[:300]}: {broken}"
    for words in (["runs"], ["evaluate", whole.id], ["analyses", whole.id]):
        if broken := call([*words, "--runs", str(scratch)]):
            return f"{name} {text[:300]}: {broken}"
    return None


def try_options(random: np.random.Generator, _scratch: Path) -> str | None:
    """Plan a run with random options and hyper-parameters."""
    method = ALL_METHODS[int(random.integers(len(ALL_METHODS)))]
    request: dict[str, Any] = {"dataset": str(digits_folder()), "method": method.card.name, "backbone": "pixels"}
    fields = random.choice([*method.model_fields, "nonsense"], int(random.integers(0, 3)))
    # Values of the expected type reach the checks of planning.
    request["fields"] = {str(name): int(random.integers(0, 300)) if random.random() < 0.7 else junk(random)
                         for name in fields}
    for name in random.choice(list(RunRequest.model_fields), int(random.integers(0, 2))):
        request[str(name)] = junk(random)
    broken = checked(lambda: jobs.plan(RunRequest.make(request), _digits()))
    return f"{request}: {broken}" if broken else None


def try_address(random: np.random.Generator, scratch: Path) -> str | None:
    """Open a page with random parameters in its address."""
    page = str(random.choice(list(SHOWN)))
    names = random.choice(list(NONSENSE), int(random.integers(1, 8)))
    query: dict[str, str | list[str]] = {
        str(name): [NONSENSE[str(name)] if random.random() < 0.3 else _in_address(junk(random)) for _ in range(
            int(random.choice([1, 1, 2, 5])))] for name in names}  # a parameter that is repeated
    if random.random() < 0.7:
        query["run"] = undisturbed(str(random.choice(list(METHODS)))).id
    runs = str(undisturbed("pca").folder.parent)

    def show() -> str | None:
        with quiet(), patch.dict(os.environ, {"UDML_RUNS": runs}):
            test = opened(page, **query)
        if test.exception:
            return f"{page} {query}: {test.exception[0].message}\n{test.exception[0].stack_trace[-3:]}"
        return f"{page} {query}: a traceback in a text" if "Traceback" in texts(test) else None

    return answer_of(show, scratch / "report")


def _in_address(value: object) -> str:
    """Return a value as an address can hold it, which is encoded in UTF-8."""
    return str(value)[:3000].encode(errors="replace").decode()


def try_command(random: np.random.Generator, scratch: Path) -> str | None:
    """Call the command line with random words."""
    run = undisturbed("pca")
    os.mkfifo(scratch / "pipe")
    (scratch / "file.csv").write_bytes(junk_table(random, _digits().names))
    values = ["digits", "fashion-mini", "pca", "rpml", run.id, run.id[:4], str(run.folder), str(scratch), "/dev/zero",
              str(scratch / "pipe"), str(scratch / "file.csv"), "/", "", "umap", "final", "17", "whiten", "dimension=2"]
    words = [str(random.choice(COMMANDS))]
    for _ in range(int(random.integers(0, 6))):
        if random.random() < 0.5:
            words.append(str(random.choice(OPTIONS)))
        words.append(str(random.choice(values)) if random.random() < 0.7 else str(junk(random))[:3000])
    if words[0] == "export":
        words = [words[0], words[1] if len(words) > 1 else run.id, str(scratch / "out")]
    broken = call([word.replace("\0", "") for word in words] + ["--runs", str(run.folder.parent)][: 2 * (
        "--runs" not in words and words[0] not in ("datasets", "methods"))])
    return f"{words}: {broken}" if broken else None


def call(words: list[str]) -> str | None:
    """Call the command line in this process; nothing is started. Return what broke."""
    out, err = io.StringIO(), io.StringIO()
    code: Any = None
    with _nothing_starts(), patch.object(sys, "argv", ["udml", *words]), redirect_stdout(out), redirect_stderr(err):
        try:
            cli.main()
        except SystemExit as ended:
            code = ended.code
    message = err.getvalue().strip()
    if code not in (0, None) and not message:
        return f"it ended with {code} and no message"
    return "it printed a traceback" if "Traceback" in message + out.getvalue() else None


@contextmanager
def _nothing_starts() -> Iterator[None]:
    """Queue tasks without starting a process, and wait for none."""
    with quiet(), patch("udml_core.work.jobs.launch.launch"), patch("udml_core.work.jobs.launch.ensure_dispatcher"), \
            patch("udml_core.work.jobs.launch.start_maps"), patch("udml_core.cli.commands.follow_run"), \
            patch("udml_core.cli.analysing.follow_analysis"):
        yield


@contextmanager
def quiet() -> Iterator[None]:
    """Log nothing; Streamlit would warn of every call outside of its server."""
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)


def checked(act: Callable[[], object]) -> str | None:
    """Return what is wrong with the message of a `UserError`; None without one. Other errors pass."""
    with suppress(RecursionError):
        try:
            act()
        except UserError as error:
            text = str(error)
            if not text.strip() or len(text) > LONGEST_MESSAGE or "Traceback" in text:
                return f"the message is {text[:400]!r} with {len(text)} letters"
    return None


def _digits() -> Dataset:
    return catalog.load(str(digits_folder()))


PARTS = (Hostility("images", try_image, batch=20, goal=300), Hostility("tables", try_table, batch=20, goal=300),
         Hostility("specs", try_spec, batch=5, goal=150), Hostility("options", try_options, batch=20, goal=300),
         Hostility("addresses", try_address, goal=50), Hostility("commands", try_command, batch=5, goal=200))
