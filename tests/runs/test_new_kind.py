"""A new kind of analysis is one file: it is planned, computed and found without any other edit."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.running import worked
from udml_core.runs import Run

ROOT = Path(__file__).resolve().parents[2]
KIND = '''
"""The mean similarity of each image to the images nearest to it."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from udml_core.base.arrays import Array
from udml_core.runs.analyses.kind import Arrays, Material, OfOneFrame


class Density(OfOneFrame):
    """How dense the embedding is around each image."""

    name = "density"
    title = "Density"
    noun = "density"
    text = "density measures how near the nearest images are"
    arrays: ClassVar = {"indices": "int m", "similarity": "float m"}
    settings = "{nearest} nearest"
    differences: ClassVar = {"nearest": "{} nearest"}

    nearest: Annotated[int, Field(ge=1, le=100)] = 10
    """Images that are compared."""

    def compute(self, material: Material) -> Arrays:
        """Average the largest similarities."""
        indices = material.indices(self.scope)
        rows = material.vectors(self.frames[0], indices)
        similarities = np.sort(rows @ rows.T, axis=1)[:, -self.nearest - 1:-1]
        return {"indices": indices, "similarity": similarities.mean(axis=1)}

    def result(self, arrays: Arrays) -> Array:
        """Return the similarities."""
        return arrays["similarity"]
'''
USE = """
import json, sys
from pathlib import Path
from pages.parts.shell.analyses import short_title, title_of_analysis
from udml_core.base.declaration import describe
from udml_core.cli.output import summarize_result
from udml_core.runs import Run
from udml_core.runs.analyses import AnalysisSpec, create_analysis, list_analyses, plan_analysis
from udml_core.work.workers import analyse
run = Run(Path(sys.argv[1]))
spec = plan_analysis(kind="density", nearest=5)
state = analyse.work(create_analysis(run, spec)).state
(found,) = list_analyses(run, spec.declared)
print(json.dumps({
    "options": [field.name for field in describe(AnalysisSpec)], "state": state, "mean": float(found.result().mean()),
    "title": title_of_analysis(spec), "short": short_title(spec), "asked": summarize_result(found)["asked"],
    "stored": json.loads((found.folder / "spec.json").read_text()), "map": plan_analysis(kind="pca").stored()}))
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A copy of the source with one more file."""
    for folder in ("udml_core", "pages"):
        shutil.copytree(ROOT / folder, tmp_path / "source" / folder)
    (tmp_path / "source" / "assets").symlink_to(ROOT / "assets")
    kinds = tmp_path / "source" / "udml_core" / "runs" / "analyses" / "kinds"
    (kinds / "density.py").write_text(KIND, encoding="utf-8")
    return tmp_path / "source"


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return worked(tmp_path / "runs")


@pytest.mark.slow
def test_one_file_adds_a_kind_of_analysis(source: Path, run: Run) -> None:
    done = subprocess.run([sys.executable, "-c", USE, str(run.folder)], cwd=source, capture_output=True, text=True,
                          check=False, env=os.environ | {"PYTHONPATH": str(source)})
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert seen["options"][-1] == "nearest"  # the command line and the forms generate their options from this list
    assert seen["state"] == "done"
    rows = np.asarray(run.embeddings("final"))
    assert seen["mean"] == pytest.approx(np.sort(rows @ rows.T, axis=1)[:, -6:-1].mean(), abs=1e-5)
    assert seen["title"] == "Density · all images · after training · 5 nearest"
    assert seen["short"] == "Density · 5 nearest"
    assert seen["asked"] == {"scope": "all", "frames": ["final"], "nearest": 5}
    assert seen["stored"]["nearest"] == 5
    assert "nearest" not in json.loads(seen["map"])  # the stored format of other kinds stays
