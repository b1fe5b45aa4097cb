"""The documents: short enough to read, with links, paths, commands and figures that are right."""

from __future__ import annotations

import importlib
import inspect
import json
import re
import shlex
import subprocess
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from sklearn.datasets import load_digits
from sklearn.preprocessing import StandardScaler
from typer.exceptions import TyperException

from experiments import make_site, method_tables
from experiments.make_site import MODULES
from experiments.side_by_side import WEIGHTS, as_table
from tests.project.documents import BLOCK, DOCUMENTS, ROOT, SHORT, anchors, blocks, links, spans
from tests.running import worked, write_clothes
from udml_core.base.declaration import Options
from udml_core.cli import commands, curating
from udml_core.cli.options import takes_options
from udml_core.data.given.exclusions import excluded_images, excluded_names
from udml_core.methods import METHODS, find_method
from udml_core.results import records
from udml_core.runs.examples import example_runs

every_document = pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
FLOORS = (ROOT, ROOT / "udml_core", ROOT / "pages", ROOT / "pages" / "parts", ROOT / "pages" / "views")
"""Folders from which a document may name a path."""
PATH = re.compile(r"[\w.*{},-]*(?:/[\w.*-]*)*")
SUFFIXES = (".py", ".md", ".toml", ".js", ".sh", ".conf", ".css", ".html", ".yaml", ".txt")
PLACEHOLDER = re.compile(r"[A-Z]{3,}\b(?<!\bREADME)(?<!\bCHANGELOG)(?<!\bCONTRIBUTING)(?<!\bARCHITECTURE)")
OUTSIDE = {"./runs", ".streamlit/secrets.toml", "photos/", ".engines", "logs"}
"""Paths that the user has, not the project."""
CLI = typer.main.get_command(commands.app)


@cache
def tracked() -> frozenset[str]:
    """Return the paths of the project's files."""
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT,
                            capture_output=True, text=True, check=True)
    return frozenset(name for name in listed.stdout.splitlines() if (ROOT / name).exists())


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", SHORT)
def test_a_document_that_everyone_reads_is_short(name: str) -> None:
    assert len(read(ROOT / name).splitlines()) <= 120


@every_document
def test_every_link_leads_to_a_file_and_a_heading(path: Path) -> None:
    for target in links(read(path)):
        if not target.startswith(("http://", "https://")):
            name, _, anchor = target.partition("#")
            file = (path.parent / name).resolve() if name else path
            assert file.exists(), target
            assert not anchor or anchor in anchors(read(file)), target


def is_path(span: str) -> bool:
    """Return whether a span of code names a file or folder of the project."""
    is_written_so = PATH.fullmatch(span) and ("/" in span or span.endswith(SUFFIXES))
    return bool(is_written_so) and not PLACEHOLDER.search(span) and span not in OUTSIDE and span.strip(".") != "/"


def exists(name: str, document: Path) -> bool:
    """Return whether a path, a pattern or the bare name of a file belongs to the project."""
    if "/" not in name:
        return any(known == name or known.endswith(f"/{name}") for known in tracked())
    return any(next(folder.glob(name.rstrip("/")), None) for folder in (document.parent, *FLOORS))


@every_document
def test_every_path_in_backticks_exists(path: Path) -> None:
    missing = [span for span in spans(read(path)) if is_path(span) and not exists(span, path)]
    assert not missing


@pytest.mark.parametrize(("span", "expected"), [
    ("udml_core/base/arrays.py", True), ("methods/rpml.py", True), ("pages/no_such_page.py", False),
    ("serve.py", True), ("no_such_file.py", False), ("tests/project/test_*.py", True)])
def test_the_check_of_paths_finds_a_missing_path(span: str, expected: bool) -> None:
    assert is_path(span)
    assert exists(span, ROOT / "README.md") == expected


def test_every_document_named_in_the_code_exists() -> None:
    named = {(name, match) for name in tracked() if name.endswith((".py", ".conf", ".sh", ".js", ".toml", "Makefile"))
             for match in re.findall(r"\bdocs/[\w./-]+\.md\b", read(ROOT / name))}
    assert ("serve.py", "docs/sharing.md") in named
    assert not [pair for pair in named if not (ROOT / pair[1]).exists()]


# Commands


def parse_only(command: Any, options: type[Options], context: typer.Context, without: tuple[str, ...] = ()) -> None:
    """Parse the words after a command that generates its options, and do not call it."""
    app = typer.Typer()
    app.command()(takes_options(options, without)(command))
    typer.main.get_command(app).make_context(str(context.info_name), list(context.args))


def parse(words: list[str], command: Any = CLI) -> None:
    """Parse the words of a command of `udml` as the program does, and do nothing.

    Raises:
        TyperException: An option or a value does not exist, or is missing.
    """
    words = [word for word in words if word not in ("…", "--help")]
    while words and hasattr(command, "commands"):
        name, *words = words
        assert name in command.commands, name
        command = command.commands[name]
    if hasattr(command, "commands"):
        return  # the program, or a group of commands
    context = command.make_context(command.name, list(words))
    if context.ignore_unknown_options:
        command.invoke(context)
    settings = [following for word, following in pairwise(words) if word == "--set"]
    if settings:
        fields = find_method(words[words.index("--method") + 1]).model_fields
        assert {setting.partition("=")[0] for setting in settings} <= set(fields)


def commands_of(path: Path) -> Iterator[str]:
    """Yield the commands in a document: lines of its blocks for a shell, and spans of code."""
    text = read(path)
    for block in blocks(text):
        if block.language in ("", "sh", "bash"):
            yield from block.code.splitlines()
    yield from spans(text)


@every_document
def test_every_command_can_be_called(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (commands, curating):
        monkeypatch.setattr(module, "call_with_options", parse_only)
    targets = re.findall(r"^([\w-]+):", read(ROOT / "Makefile"), re.MULTILINE)
    for line in commands_of(path):
        match shlex.split(line, comments=True) if re.match(r"(udml|make|python|\.venv/bin/python) ", line) else []:
            case ["udml", *words]:
                try:
                    parse(words)
                except TyperException as error:
                    # A sentence may leave out what a command needs.
                    if line not in spans(read(path)) or type(error).__name__ != "MissingParameter":
                        raise
            case ["make", *words]:
                assert {word for word in words if "=" not in word} <= set(targets), line
            case ["python" | ".venv/bin/python", "-m", "udml_core", *words]:
                parse(words)
            case ["python" | ".venv/bin/python", "-m", module, *words]:
                assert find_spec(module), line
                paths = [word.partition("::")[0] for word in words if "/" in word and not PLACEHOLDER.search(word)]
                assert all(exists(name, path) for name in paths), line


@pytest.mark.parametrize("line", ["udml no-such-command", "udml train --dataset digits --no-such-option 1",
                                  "udml query RUN 17 --no-such-option", "udml train --dataset digits --method rpml "
                                  "--set no_such_field=1"])
def test_the_check_of_commands_finds_a_mistake(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (commands, curating):
        monkeypatch.setattr(module, "call_with_options", parse_only)
    with pytest.raises((TyperException, AssertionError)):
        parse(shlex.split(line)[1:])


# Contents


def test_the_tables_of_methods_are_the_cards() -> None:
    for path, text in method_tables.documents(METHODS).items():
        assert read(path) == text, "python -m experiments.method_tables writes it"
        assert all(f"`{method.card.name}` " in text for method in METHODS)


def test_documents_count_the_example_runs_as_they_come_with_the_app() -> None:
    count = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight")[len(example_runs())]
    words = re.compile(r"(\w+)\s+(?:example|finished)\s+runs\s+(?:come|and)")
    counts = {path.name: {word.lower() for word in words.findall(read(path))} for path in DOCUMENTS}
    found = {name: counted for name, counted in counts.items() if counted}
    assert found == {"README.md": {count}, "install.md": {count}, "tasks.md": {count}}
    titles = {find_method(run.spec().method).card.title for run in example_runs()}
    listed = re.search(r"example runs come with the app.*?emoji", read(ROOT / "docs" / "tasks.md"), re.DOTALL)
    assert listed
    assert [title for title in titles if title not in " ".join(listed[0].split())] == []


def test_code_of_own_data_fits_beside_both_columns_of_the_site() -> None:
    code = [line for block in blocks(read(ROOT / "docs" / "bring-your-data.md")) for line in block.code.splitlines()]
    assert [line for line in code if len(line) > 76] == []


def test_guides_for_users_name_no_file_of_the_tests() -> None:
    guides = [ROOT / "README.md", *(ROOT / "docs" / f"{name}.md" for name in re.findall(
        r"docs/([\w-]+)\.md", read(ROOT / "mkdocs.yml").partition("- Project:")[0]))]
    assert [path.name for path in guides if "tests/" in read(path)] == []


def test_every_method_can_be_imported_by_its_line() -> None:
    (block,) = [block for block in blocks(read(ROOT / "docs" / "methods.md")) if "from udml_core" in block.code]
    names: dict[str, Any] = {}
    exec(block.code, names)
    assert [line.partition("  # ")[2] for line in block.code.splitlines()] == [method.card.name for method in METHODS]
    assert {names[method.__name__] for method in METHODS} == set(METHODS)


def test_examples_in_docstrings_stay_code_on_the_page_of_the_library() -> None:
    """A docstring whose only further lines are indented loses this indentation, and becomes prose."""
    for name in MODULES:
        code = inspect.getdoc(importlib.import_module(f"udml_core.{name}")) or ""
        assert not re.search(r"^from [\w.]+ import |^import [\w.]+$", BLOCK.sub("", code), re.MULTILINE), name


def test_the_search_of_the_site_finds_parts_of_names() -> None:
    separator = re.search(r"separator: '(.*)'", read(ROOT / "mkdocs.yml"))
    assert separator
    for text, words in (("`POST /api/search`", ["POST", "api", "search"]), ("#label=species", ["label", "species"]),
                        ("udml export --license", ["udml", "export", "license"]),
                        ("save_to_disk", ["save", "to", "disk"])):
        assert [word for word in re.split(separator[1], text) if word] == words


def test_guides_come_before_the_library_in_the_search_of_the_site(tmp_path: Path,
                                                                  monkeypatch: pytest.MonkeyPatch) -> None:
    listed = re.search(r"filters: \[(.*)\]", read(ROOT / "mkdocs.yml"))
    assert listed
    hidden = [pattern[1:] for pattern in re.findall(r"'([^']*)'", listed[1])]
    assert [name for name in ("NEEDS_HEIC", "EXPORTED", "_name", "Dataset", "PCA2", "find_run")
            if not any(re.search(pattern, name) for pattern in hidden)] == ["Dataset", "find_run"]
    monkeypatch.setattr(make_site, "SOURCE", tmp_path / "source")
    make_site.main()
    heads = {name: (tmp_path / "source" / name).read_text(encoding="utf-8").split("---")[1].strip()
             for name in ("api.md", "CHANGELOG.md")}
    assert heads == {"api.md": "search:\n  boost: 0.0010", "CHANGELOG.md": "search:\n  boost: 0.0001"}
    assert (tmp_path / "source/docs/data-sets.md").read_text(encoding="utf-8").startswith("# Data sets")


def test_the_examples_in_python_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code, searching, curating = (block.code for block in blocks(read(ROOT / "docs" / "command-line.md"))
                       if block.language == "python")
    X, y = load_digits(return_X_y=True)
    X, y = X[:200].astype(np.float32), y[:200]
    rows = X / np.linalg.norm(X, axis=1, keepdims=True)
    names: dict[str, Any] = {"unit_features": rows, "gallery": rows, "X": X, "y": y}
    exec(code.replace("dimension=32", "dimension=8"), names)
    assert len(names["finer"].labels) == len(rows)
    names["X"] = StandardScaler().fit_transform(X)  # with values below 0, as pipelines often have
    exec(searching.replace("dimension=32", "dimension=8, epochs=1").replace("[8, 32]", "[4, 8]"), names)
    assert len(names["search"].cv_results_["params"]) == 8
    assert names["search"].best_score_ > 0.5
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))
    folder = write_clothes(tmp_path / "clothes", "a" * 40, copies={30: 2, 31: 2})
    run = worked(tmp_path / "runs", method="frozen", dataset=str(folder))
    names = {"RUN": run.id, "runs": tmp_path / "runs", "target": tmp_path / "sorted"}
    exec(curating, names)
    assert len(excluded_names(run.dataset())) == 2, "two of three copies"
    assert not {*names["sample"].tolist()} & {*names["problems"].duplicates[0].tolist()[1:]}
    largest = np.setdiff1d(names["grouping"].indices[names["groups"] == 0], excluded_images(run.dataset()))
    assert len(list((tmp_path / "sorted" / "heron").iterdir())) == len(largest) > 1
    assert [path.name for path in names["lists"]][:2] == ["metadata.csv", "images.parquet"]


def dataset_rows(record: str, title: str) -> dict[str, Any]:
    """Return the rows of the data set of a record whose title ends so."""
    datasets = json.loads(read(records.FOLDER / f"{record}.json"))["datasets"]
    return next(dataset["rows"] for name, dataset in datasets.items() if name.endswith(title))


def figures(row: dict[str, Any]) -> list[float]:
    """Return R@1 and MAP@R of a row."""
    return [value[0] if isinstance(value, list) else value for value in (row["recall@1"], row["map@r"])]


def test_the_figures_of_encoders_side_by_side_are_those_of_the_record() -> None:
    record = json.loads(read(records.FOLDER / "side-by-side.json"))
    results, changes = (read(path) for path in (ROOT / "docs" / "results.md", ROOT / "CHANGELOG.md"))
    assert as_table(record) in results
    birds, emoji, clothes = (next(of["rows"] for title, of in record["datasets"].items() if title.startswith(name))
                             for name in ("Birds", "Emoji", "Fashion"))
    alone, both, last = "EfficientNet-Lite0, whitened", "Both, whitened together", "Both, not whitened, step whiten"

    chosen, pixels = "Both, each whitened, chosen weight", "Both and raw pixels, whitened together"

    def of(rows: dict[str, Any], row: str) -> tuple[str, str]:
        return f"{rows[row]['recall@1']:.1f}", f"{rows[row]['map@r']:.1f}"

    def loss(rows: dict[str, Any], row: str) -> float:
        """Return how far a row's MAP@R is below that of the best of the four weights."""
        best = max(rows[f"Both, each whitened, weight {weight:g}"]["map@r"] for weight in WEIGHTS)
        return float(best - rows[row]["map@r"])

    said = " ".join(f"{results} {changes}".split())
    for words in (
            f"R@1 rises from {of(birds, alone)[0]} (EfficientNet-Lite0, whitened) to {of(birds, both)[0]} and MAP@R "
            f"from {of(birds, alone)[1]} to {of(birds, both)[1]}",
            "reach R@1 {} and MAP@R {} on birds".format(*of(birds, f"{last}, views")),
            "EfficientNet-Lite0 has {} and {};".format(*of(birds, f"{alone}, views")),
            "chosen on the training classes) reach {} and {}".format(*of(birds, f"{last}, six views")),
            f"within {max(loss(rows, both) for rows in (birds, emoji, clothes)):.1f} points",
            f"loses up to {max(loss(rows, chosen) for rows in (birds, emoji, clothes)):.1f}",
            f"on clothes (MAP@R {of(clothes, both)[1]} to {of(clothes, pixels)[1]})",
            f"on birds ({of(birds, both)[1]} to {of(birds, pixels)[1]})"):
        assert words in said, words
    for rows in (birds, emoji, clothes):
        assert all(rows[both][measure] > max(rows[row][measure] for row in (alone, "SqueezeNet, whitened"))
                   for measure in ("recall@1", "map@r"))
    crops = {name: row["recall@1"][0] + row["map@r"][0] for title, of_crops in record["datasets"].items()
             if "crops on the training classes" in title for name, row in of_crops["rows"].items()}
    assert max(crops, key=crops.__getitem__) == "Crops of 100%, 85%, 70%"


def test_the_figures_of_refinement_are_those_of_the_records() -> None:
    text = " ".join(read(ROOT / "docs" / "results.md").split())

    def stated(pattern: str) -> list[float]:
        match = re.search(pattern.replace("#", r"(\d+\.\d)"), text)
        assert match, pattern
        return [float(value) for value in match.groups()]

    def close(values: list[float], expected: list[float]) -> bool:
        return values == pytest.approx(expected, abs=0.0501)

    inside, before = "gallery seen, with the queries in it", "no step has seen the test images"

    def reranked(name: str) -> list[float]:
        rows = dataset_rows(f"refinement-{name}", inside)
        return figures(next(row for recipe, row in rows.items() if recipe.startswith("rerank")))

    def frozen(name: str) -> list[float]:
        return figures(dataset_rows(f"refinement-{name}", before)["Frozen features"])

    birds = dataset_rows("refinement-birds100-112", before)
    assert close(stated("reach R@1 # and MAP@R # with views and whitening"),
                 figures(birds["Flip and zoom, whitening"]))
    assert close(stated("and # and # with k-reciprocal re-ranking"), reranked("birds100-112"))
    for name, words in (("birds100-224", "MAP@R rises from # to # at 224 pixels"),
                        ("cifar10", "from # to # on CIFAR-10"), ("fashion-mini", "from # to # on clothes")):
        assert close(stated(words), [frozen(name)[1], reranked(name)[1]])
    assert close(stated("where R@1 falls from # to #"), [frozen("fashion-mini")[0], reranked("fashion-mini")[0]])
    low = json.loads(read(records.FOLDER / "digits-low-dimension.json"))["rows"]["RPML, 4 dimensions, α = 15°"]
    start, end, pca = (figures(low["summary"][name]) for name in ("initial", "final", "centered pca"))
    assert close(stated("from R@1 # to # and from MAP@R # to #;"), [start[0], end[0], start[1], end[1]])
    assert close(stated("by the same distance, has # and #"), pca)
