"""A step of a task says how long it still takes, or else how long it has run."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from pages.parts.shell import times
from pages.parts.shell.awaited import line_of
from pages.parts.shell.times import time_words
from tests.app.opening import opened
from tests.running import spec, worked, write_digits
from udml_core.runs import create_run, runs_folder
from udml_core.runs.analyses import create_analysis, plan_analysis
from udml_core.runs.analyses.kinds.advice import Advice
from udml_core.runs.opinions import OF_RUN
from udml_core.runs.tasks import Status

NOW = 1_000.0


def running(phase: str, share: float = 0.0) -> Status:
    """Return the status of a task whose step has run for 20 seconds."""
    now = time.time()
    return Status(state="running", phase=phase, phase_started=now - 20, share=share, heartbeat=now)


@pytest.mark.parametrize(("status", "words"), [
    (Status(state="running", phase_started=980.0, heartbeat=NOW, share=0.5), "about 20 s left"),
    (Status(state="running", phase_started=980.0), "20 s so far"), (Status(state="running", phase_started=999.0), ""),
    (Status(state="waiting", phase_started=980.0), ""), (Status(state="running"), "")])
def test_a_step_says_how_long_it_takes_or_has_taken(status: Status, words: str, monkeypatch: pytest.MonkeyPatch
                                                    ) -> None:
    monkeypatch.setattr(times.time, "time", lambda: NOW)
    assert time_words(status) == words


def test_lab_shows_a_time_while_judges_compute_features_and_compare() -> None:
    run = worked(runs_folder(), method="pca", fields={"dimension": 4}, split="all")
    run.write_evaluation({"final": {"images": 9.0}})
    analysis = create_analysis(run, OF_RUN)
    with analysis.lock().acquire():
        for status, words in ((running("judge A: features · 9 images per second", 0.5), r"features, about 20 s left"),
                              (running("judge A: comparing all images"), r"comparing all images, \d+ s so far")):
            analysis.write_status(status)
            test = opened("train", dataset="digits", method="pca", live=run.id)
            assert not test.exception
            said = " ".join(element.proto.text for element in test.get("progress")).replace("\\", "")
            assert re.search(f"Judging without labels: judge A: {words}", said)


def test_the_preparation_of_images_names_a_step_of_unknown_length_and_says_how_long_it_has_taken(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))
    folder = write_digits(tmp_path / "photos", 40, by_class=False)
    run = create_run(spec(method="frozen", dataset=str(folder), split="all"), runs_folder())
    words = line_of(run, running("loading the network"))
    assert re.fullmatch(r"Step 2 of 4, computing the features: loading the network, \d+ s so far", words)


def test_a_race_lies_over_no_page_because_the_sidebar_follows_it() -> None:
    run = worked(runs_folder(), method="frozen", split="all")
    race, umap = create_analysis(run, plan_analysis(Advice)), create_analysis(run, plan_analysis("umap"))
    for analysis in (race, umap):
        analysis.write_status(running("comparing"))
    with race.lock().acquire(), umap.lock().acquire():
        test = opened("explore", run=run.id)
        assert not test.exception
        shown = [element.proto.body for element in test.main.get("html") if "<progress" in element.proto.body]
        assert len(shown) == 1
        assert re.search(r"UMAP: comparing 0 %, \d+ s so far", shown[0])
