"""The example method of the README: a reader who copies it gets a method that works."""

from __future__ import annotations

import re
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from tests.contract import test_inheritance as contract
from udml_core.base.declaration import describe
from udml_core.data.encoders import Encoder, choose_spec
from udml_core.data.training import TrainingData
from udml_core.methods import Method, Setting
from udml_core.methods.embedder import unit

README = Path(__file__).parents[2] / "README.md"


@pytest.fixture
def example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> type[Method]:
    """Import the example as the file that the README says it is; field texts are read from source files."""
    section = README.read_text(encoding="utf-8").partition("<summary>Add a method in three steps</summary>")[2]
    block = re.search(r"^ *```python\n(.*?)^ *```$", section, re.DOTALL | re.MULTILINE)
    assert block is not None
    path = tmp_path / "truncated.py"
    path.write_text(dedent(block[1]), encoding="utf-8")
    spec = spec_from_file_location("truncated", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "truncated", module)
    spec.loader.exec_module(module)
    method: type[Method] = module.Truncated
    return method


def test_the_example_keeps_the_first_dimensions_of_digits(example: type[Method]) -> None:
    features = load_digits().data[:20].astype(np.float32)
    encoder = Encoder(choose_spec("pixels", 8, gray=True))
    data = TrainingData(torch.from_numpy(features))
    setting = Setting(0, torch.device("cpu"), encoder)
    method = example.make({"dimension": 40})
    epoch, = method.fit(data, setting)
    expected = unit(torch.from_numpy(features)[:, :40]).numpy()
    np.testing.assert_allclose(epoch.embedder.embed_features(features), expected, atol=1e-6)
    assert (epoch.number, int(epoch.state["epoch"]), method.epochs_planned) == (1, 1, 1)
    assert list(method.fit(data, setting, epoch.state)) == []


def test_the_example_describes_itself_as_every_method_does(example: type[Method]) -> None:
    contract.test_a_newcomer_can_read_the_summary(example)
    assert [(field.name, field.default, field.text) for field in describe(example)] == [
        ("dimension", 64, "Width of the embedding.")]
