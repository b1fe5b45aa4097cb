"""Processor time of pages that show 70,000 images, beside the same pages with 1,797.

A page draws a few hundred images, so its time must hardly grow with the images behind them.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from statistics import median

import numpy as np
import pytest

from pages.parts.data import computed
from pages.parts.draw.served import SERVED
from pages.parts.shell.selection import Selection
from tests.app.opening import opened
from tests.running import spec
from udml_core.data.dataset import Dataset
from udml_core.data.given.labels import assign, assigned_labels
from udml_core.runs import Run, create_run, runs_folder
from udml_core.runs.analyses import plan_analysis
from udml_core.work.workers import analyse, train

SMALL, LARGE = "digits", os.environ.get("UDML_LARGE", "fashion-mnist")
FINDINGS = ("exact", "near", "border", "quality", "outliers")
SECTIONS, LABELS = ("groups", "next", "proposals", "labels", "folders"), 10
"""Sections of Label, and the number of labels of each class."""
AT_ONCE = 1_000
"""Images that are named in one decision."""
MOST, MOST_RATIO = 0.25, 4.0
"""Processor seconds of a page at 70,000 images, and their largest multiple of the time at 1,797."""

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(3600)]


def page_seconds(page: str, **query: str) -> float:
    """Return the median processor time of showing a page again; the first times fill caches."""
    test = opened(page, **query)
    assert not test.exception
    assert not test.error
    times = []
    for _ in range(7):
        start = time.process_time()
        test.run()
        times.append(time.process_time() - start)
    return median(times[2:])


def decision_seconds(run: Run, images: Dataset) -> float:
    """Return the processor time of naming many images of a class at once, until the page shows what follows."""
    chosen = np.flatnonzero(images.labels == 0)
    chosen = np.append(chosen, np.setdiff1d(np.arange(len(images)), chosen))[LABELS:LABELS + AT_ONCE]
    test = opened("labels", run=run.id, section="groups")
    before = test.session_state["selection"]
    test.session_state["selection"] = Selection(images.fingerprint, np.sort(chosen), before.revision + 1)
    test.run()
    test.button(key="labels-class-1").click()
    start = time.process_time()
    test.run()
    asked = [button for button in test.button if button.key == "labels-nevertheless"]
    for button in asked:  # some look unlike the class
        button.click().run()
    seconds = time.process_time() - start
    assert not test.exception
    assert len(assigned_labels(images)) >= AT_ONCE
    return seconds


def test_pages_at_70_000_images_take_a_quarter_of_a_second(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(computed, "DEFAULT_BACKBONE", "pixels")
    monkeypatch.setattr(SERVED, "is_open", True)  # else sheets of thumbnails travel in messages, which no server does
    times: dict[str, list[float]] = {}
    for name in (SMALL, LARGE):
        run = create_run(spec("frozen", name, "all"), runs_folder())
        assert train.work(run, analyse=False).state == "done"
        for kind in ("audit", "pca", "groups"):
            analyse.keep(run, plan_analysis(kind=kind), lambda _share, _step: None)
        for finding in FINDINGS:
            times.setdefault(finding, []).append(page_seconds("data", dataset=name, view="audit", finding=finding))
        times.setdefault("explore", []).append(page_seconds("explore", run=run.id))
        images = run.dataset()
        for label, title in enumerate(images.class_names):
            assign(images, np.flatnonzero(images.labels == label)[:LABELS].tolist(), title)
        for section in SECTIONS:
            times.setdefault(f"label, {section}", []).append(page_seconds("labels", run=run.id, section=section))
        times.setdefault(f"label, {AT_ONCE:,} images in one decision", []).append(decision_seconds(run, images))
    for name, (small, large) in times.items():
        print(f"\n{name}: {small:.3f} s with {SMALL}, {large:.3f} s with {LARGE}, ratio {large / small:.1f}")
    assert all(large < max(MOST, MOST_RATIO * small) for small, large in times.values())
