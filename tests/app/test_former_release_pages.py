"""A folder of images that version 0.3.0 trained, labeled and cleaned, on the pages: Runs, Search and Label open it."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from tests.app.opening import opened, texts
from udml_core.data.encoders import Encoder, choose_spec
from udml_core.data.features import features_of
from udml_core.data.given.exclusions import excluded_names
from udml_core.data.given.labels import assigned_labels
from udml_core.runs import Run, list_runs

WRITTEN = Path(__file__).parents[1] / "runs" / "folder_of_0.3.0"
"""Images, a run with a map, labels, exclusions and features. The run's spec has PHOTOS in place of the folder."""


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    shutil.copytree(WRITTEN, tmp_path, dirs_exist_ok=True)
    monkeypatch.setenv("UDML_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))
    (run,) = list_runs(tmp_path / "runs")
    path = run.folder / "spec.json"
    path.write_text(path.read_text(encoding="utf-8").replace("PHOTOS", str(tmp_path / "photos")), encoding="utf-8")
    return run


def test_what_the_former_release_kept_of_a_folder_is_read(run: Run, tmp_path: Path) -> None:
    dataset = run.dataset()
    assert run.spec().version == "0.3.0"
    assert run.spec().fingerprint == dataset.fingerprint
    assert assigned_labels(dataset) == {f"class 0/{number:02d}.png": "mine" for number in range(0, 12, 2)} | {
        "class 1/08.png": "other", "class 1/09.png": "other"}
    assert excluded_names(dataset) == ("class 0/05.png", "class 1/05.png")
    (stored,) = (tmp_path / "cache" / "features" / dataset.fingerprint[:24]).glob("pixels-*.npy")
    written = stored.stat().st_mtime_ns
    features = features_of(dataset, Encoder(choose_spec("pixels", dataset.native_size, dataset.gray)))
    np.testing.assert_array_equal(np.asarray(features), np.load(stored))
    assert stored.stat().st_mtime_ns == written, "the features were computed again"


@pytest.mark.parametrize(("page", "words"), [
    ("runs", "RPML"), ("retrieval", "Query: **class"), ("labels", "mine"), ("explore", "class 0"),
    ("data", "photos")])
def test_a_page_opens_a_folder_of_the_former_release(page: str, words: str, run: Run) -> None:
    test = opened(page, run=run.id, dataset=run.spec().dataset)
    assert not test.exception
    shown = texts(test) + "\n".join(str(element.proto) for element in test.get("html")) + "\n".join(
        f"{box.label} {box.options}" for box in test.selectbox)
    assert re.search(rf"\b{re.escape(words)}", shown)
    assert not [error.value for error in test.error]
