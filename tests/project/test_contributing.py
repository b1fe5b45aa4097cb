"""The examples of CONTRIBUTING.md work in a copy of the project, added by its commands and changes alone."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from tests.project.documents import ROOT, blocks
from udml_core.base.declaration import describe
from udml_core.data.encoders import Encoder, choose_spec
from udml_core.data.training_data import TrainingData
from udml_core.methods.base import Setting
from udml_core.methods.embedder import unit

GUIDE = blocks((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
COPIES = [line.split()[1:] for block in GUIDE for line in block.code.splitlines() if line.startswith("cp ")]


def change(text: str, diff: str) -> str:
    """Return a text after changes: lines after "-" are removed, lines after "+" are added, others stay."""
    for part in diff.split("@@\n"):
        lines = [(line[0], line[1:]) for line in part.splitlines()]
        before, after = ("\n".join(line for mark, line in lines if mark in kept) for kept in (" -", " +"))
        assert text.count(before) == 1, before
        text = text.replace(before, after)
    return text


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of library, pages, assets and contract tests with every example of the guide."""
    folder = tmp_path_factory.mktemp("clone")
    for name in ("udml_core", "pages", "docs"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("app.py", "pyproject.toml", "tests/__init__.py", "tests/conftest.py", "tests/tiers.py",
                 "tests/slow.txt", "tests/app/opening.py"):
        (folder / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    shutil.copytree(ROOT / "tests" / "contract", folder / "tests" / "contract")
    (folder / "assets").mkdir()
    for path in (ROOT / "assets").iterdir():
        (folder / "assets" / path.name).symlink_to(path)
    (folder / "assets" / "lessons").unlink()
    shutil.copytree(ROOT / "assets" / "lessons", folder / "assets" / "lessons")
    for source, destination in COPIES:
        assert not (folder / destination).exists()
        shutil.copy(folder / source, folder / destination)
    path = folder
    for block in GUIDE:
        if block.language == "diff":
            named = re.findall(r"Name it in `([\w./]+)`", block.before)
            path = folder / named[-1]
            path.write_text(change(path.read_text(encoding="utf-8"), block.code), encoding="utf-8")
    return folder


def python(clone: Path, *words: str) -> str:
    """Return what a command of Python prints in the copy."""
    own = {"PYTHONPATH": f"{clone}{os.pathsep}{ROOT}", "UDML_RUNS": str(clone / "runs")}
    done = subprocess.run([sys.executable, *words], cwd=clone, text=True, capture_output=True, env=os.environ | own)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def udml(clone: Path, *words: str) -> dict[str, Any]:
    """Return the JSON object that a command of `udml` prints in the copy."""
    answer: dict[str, Any] = json.loads(python(clone, "-m", "udml_core", *words, "--json"))
    return answer


@pytest.fixture(scope="module")
def run(clone: Path) -> str:
    """A run of the method on the data set."""
    answer = udml(clone, "train", "--dataset", "stripes", "--backbone", "pixels", "--method", "truncated", "--set",
                  "dimension=40")
    assert answer["state"] == "done"
    return str(answer["run"])


def test_every_example_is_copied() -> None:
    examples = [path for path in (ROOT / "docs" / "skeletons").iterdir() if path.is_file()]
    assert sorted(source for source, _ in COPIES) == sorted(str(path.relative_to(ROOT)) for path in examples)


@pytest.mark.slow
def test_the_method_keeps_the_contract_of_every_method(clone: Path) -> None:
    printed = python(clone, "-m", "pytest", "-p", "no:xdist", "tests/contract/test_methods.py",
                     "tests/contract/test_inheritance.py", "-k", "truncated")
    assert re.search(r"^\d+ passed", printed, re.MULTILINE), printed


def test_the_method_keeps_the_first_dimensions_of_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = spec_from_file_location("truncated", ROOT / "docs" / "skeletons" / "method.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "truncated", module)  # field texts are read from source files
    spec.loader.exec_module(module)
    features = load_digits().data[:20].astype(np.float32)
    method = module.Truncated.make({"dimension": 40})
    data = TrainingData(torch.from_numpy(features))
    setting = Setting(0, torch.device("cpu"), Encoder(choose_spec("pixels", 8, gray=True)))
    epoch, = method.fit(data, setting)
    expected = unit(torch.from_numpy(features)[:, :40]).numpy()
    np.testing.assert_allclose(epoch.embedder.embed_features(features), expected, atol=1e-6)
    assert (epoch.number, int(epoch.state["epoch"]), method.epochs_planned) == (1, 1, 1)
    assert list(method.fit(data, setting, epoch.state)) == []
    assert [(field.name, field.default, field.text) for field in describe(module.Truncated)] == [
        ("dimension", 64, "Width of the embedding.")]


@pytest.mark.slow
def test_the_method_trains_on_the_data_set(clone: Path, run: str) -> None:
    embeddings = np.load(clone / "runs" / run / "embeddings.npy")
    assert embeddings.shape == (200, 40)
    np.testing.assert_allclose(np.linalg.norm(embeddings, axis=1), 1, rtol=1e-5)


@pytest.mark.slow
def test_the_data_set_is_listed(clone: Path) -> None:
    row = next(row for row in udml(clone, "datasets")["datasets"] if row["name"] == "stripes")
    assert (row["available"], row["images"], row["classes"]) == (True, 200, 4)


@pytest.mark.slow
def test_the_analysis_counts_neighbors(clone: Path, run: str) -> None:
    answer = udml(clone, "analyse", run, "--kind", "hubs", "--counted", "5")
    assert answer["state"] == "done"
    counts = np.load(clone / "runs" / run / "analyses" / answer["analysis"] / "result.npz")["counts"]
    assert (len(counts), counts.sum()) == (200, 200 * 5)


@pytest.mark.slow
def test_the_page_shows_a_run(clone: Path, run: str) -> None:
    code = ("from tests.app.opening import opened\n"
            f"page = opened('counts', run={run!r})\n"
            "assert not page.exception and not page.error, page\n"
            "print(page.title[0].value, len(page.get('plotly_chart')))")
    assert python(clone, "-c", code).split() == ["Explore", "1"]


@pytest.mark.slow
def test_the_course_has_the_lesson(clone: Path) -> None:
    assert udml(clone, "lessons", "course")["files"][-1] == "nearest.html"
    code = ("from udml_core.results.lessons import find_lesson, right_choices\n"
            "print(right_choices(find_lesson('nearest')))")
    assert python(clone, "-c", code).strip() == "{'before': 1, 'after': 0}"
