"""The speed of an encoder is measured on a few images before its first pass, and the estimates use it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.running import spec
from udml_core.data import catalog
from udml_core.data.dataset import ArrayImages, Dataset
from udml_core.data.encoders import Encoder
from udml_core.data.features import features_of
from udml_core.data.speed import measured_speed
from udml_core.runs import create_run
from udml_core.work.jobs.estimate import encoding_kind, feature_seconds
from udml_core.work.workers import calibration, candidates, material
from udml_core.work.workers.calibration import calibrate


class Clock:
    """A clock that goes on when an image is read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
        self.now, self.reads, read = 0.0, list[int](), ArrayImages.__getitem__

        def slow(images: ArrayImages, index: int) -> Any:
            self.now += seconds
            self.reads.append(index)
            return read(images, index)

        monkeypatch.setattr(ArrayImages, "__getitem__", slow)
        monkeypatch.setattr(calibration.time, "monotonic", lambda: self.now)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))


def test_twenty_images_measure_an_encoder_once(monkeypatch: pytest.MonkeyPatch) -> None:
    dataset, planned = catalog.load("digits"), spec(backbone="cnn", method="frozen")
    guessed = feature_seconds(dataset, planned.encoder, planned.device)
    clock = Clock(monkeypatch, 0.5)
    calibrate(dataset, planned.encoder, planned.device)
    assert (len(clock.reads), len(set(clock.reads))) == (21, 21), "one image prepares the engine"
    assert measured_speed(encoding_kind(planned)) == pytest.approx(0.5)
    assert feature_seconds(dataset, planned.encoder, planned.device) == pytest.approx(0.5 * len(dataset)) != guessed
    calibrate(dataset, planned.encoder, planned.device)
    assert len(clock.reads) == 21


def test_nothing_is_measured_for_few_images_or_where_the_features_are_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    planned = spec(backbone="cnn", method="frozen")
    few = Dataset("few", "Few", ArrayImages(np.zeros((100, 8, 8), np.uint8)), None, (), "c" * 64, 8, True,
                  tuple(map(str, range(100))))
    calibrate(few, planned.encoder, planned.device)
    dataset = catalog.load("digits")
    features_of(dataset, Encoder(planned.encoder))
    clock = Clock(monkeypatch, 0.5)
    calibrate(dataset, planned.encoder, planned.device)
    assert not clock.reads
    assert measured_speed(encoding_kind(planned)) is None


def test_a_run_and_a_race_measure_before_the_first_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, dataset = create_run(spec(backbone="cnn", method="frozen"), tmp_path / "runs"), catalog.load("digits")
    clock, seen = Clock(monkeypatch, 0.25), list[float | None]()

    def compute(*arguments: Any) -> Any:
        seen.append(measured_speed(encoding_kind(run.spec())))
        return features_of(*arguments)

    monkeypatch.setattr(material, "features_of", compute)
    material.load(run, lambda *_: None)
    assert seen == [pytest.approx(0.25)], "known before the features are computed"
    clock.reads.clear()
    seconds, is_measured = candidates.feature_time(run, dataset, "pixels", None)
    assert (seconds, is_measured) == (pytest.approx(0.25 * len(dataset)), True)
    assert len(clock.reads) == 21
