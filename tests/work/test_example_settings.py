"""What a run takes from an example: every method can be planned with it, and other test images are noticed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from udml_core.data import catalog
from udml_core.data.dataset import Dataset
from udml_core.methods import METHODS, find_method
from udml_core.runs import ExclusionList, RunRequest, Spec, example_runs
from udml_core.work import jobs


@pytest.fixture(autouse=True)
def examples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UDML_EXAMPLES", "1")


def planned(dataset: Dataset, method: str, root: Path, **options: Any) -> Spec:
    example = jobs.find_example(dataset, root, method)
    assert example is not None
    settings = jobs.example_settings(example, find_method(method))
    return jobs.plan(settings.fill(RunRequest.make({"dataset": dataset.name, "method": method} | options)), dataset)


@pytest.mark.parametrize("method", [method.card.name for method in METHODS])
def test_every_method_starts_from_the_features_of_the_example_on_its_test_images(method: str, tmp_path: Path) -> None:
    digits = catalog.load("digits")
    examples = jobs.examples_on(digits.fingerprint, tmp_path)
    example = next((run for run in examples if run.spec().method == method), examples[0])
    spec = planned(digits, method, tmp_path)
    assert spec.encoder == example.spec().encoder
    assert jobs.shares_test_images(spec, example, digits)


def test_the_settings_of_an_example_repeat_it(tmp_path: Path) -> None:
    same = {"created", "version", "versions"}
    for run in example_runs():
        spec = run.spec()
        repeated = planned(catalog.load(spec.dataset), spec.method, tmp_path)
        assert repeated.model_dump(exclude=same) == spec.model_dump(exclude=same), run.id


def test_another_split_and_excluded_images_change_the_test_images(tmp_path: Path) -> None:
    digits = catalog.load("digits")
    example = jobs.examples_on(digits.fingerprint, tmp_path)[0]
    spec = planned(digits, "rpml", tmp_path)
    test = spec.halves(digits).test
    excluded = spec.model_copy(update={"excluded": ExclusionList.of([digits.names[test[0]]])})
    assert not jobs.shares_test_images(excluded, example, digits)
    assert not jobs.shares_test_images(planned(digits, "rpml", tmp_path, split="zero-shot"), example, digits)


def test_changed_images_have_no_example(tmp_path: Path) -> None:
    digits = catalog.load("digits")
    assert jobs.find_example(digits, tmp_path) is not None
    assert jobs.find_example(replace(digits, fingerprint="changed"), tmp_path) is None
