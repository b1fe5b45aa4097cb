"""Starting, stopping and resuming a sweep as a whole, without repeating runs."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.running import spec, wait_for
from udml_core.base.errors import UserError
from udml_core.data import catalog
from udml_core.data.given.exclusions import exclude
from udml_core.runs import Run, create_run, list_runs
from udml_core.runs.tasks import LIVE_STATES, Status
from udml_core.work import jobs, sweeps
from udml_core.work.jobs import launch, wants
from udml_core.work.sweeps import control
from udml_core.work.sweeps.group import FOLDER
from udml_core.work.sweeps.prepare import fit_budget
from udml_core.work.workers import train as worker

PIXELS = {"backbone": "pixels", "split": "seen"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "runs"


@pytest.fixture
def idle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start no dispatcher, so that all runs wait."""
    monkeypatch.setattr(launch, "ensure_dispatcher", lambda *_: None)


def widths(*values: int, **content: Any) -> sweeps.SweepSpec:
    """Describe a sweep of PCA's width on digits."""
    return sweeps.make_sweep({"data": "digits", "methods": {"pca": {"dimension": list(values)}}, "options": PIXELS}
                             | content, content.get("name", "widths"))


def ended(run: Run, state: Any = "done", seconds: float = 10.0) -> None:
    run.write_status(Status(state=state, started=4e9, finished=4e9 + seconds))


@pytest.mark.slow
def test_a_sweep_runs_stops_and_resumes_as_a_whole(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = sweeps.start_sweep(widths(4, 8), root)
    assert (begun.created, begun.reused) == (2, 0)
    runs = list_runs(root)
    first = next(member.run for member in begun.sweep.members())
    assert first is not None
    wait_for(first, "running", "done")
    stopped = sweeps.stop_sweep(begun.sweep)
    assert stopped in (1, 2)
    assert sweeps.progress_of(begun.sweep.members()).counts.get("stopped") == stopped
    assert not any(run.is_alive() for run in runs)
    monkeypatch.setattr(launch, "ensure_dispatcher", lambda *_: None)
    assert sweeps.resume_sweep(begun.sweep).resumed == stopped
    for run in runs:
        worker.work(run, analyse=False)
    assert sweeps.progress_of(begun.sweep.members()).counts == {"done": 2}
    found = sweeps.combinations(begun.sweep.members(), ["dimension"], "validation map@r")
    assert {one.values["dimension"] for one in found if one.score} == {4, 8}
    assert sweeps.best_combinations(found)["digits"].values["dimension"] == 8
    assert not wants(first, "maps"), "maps of all runs would take longer than the runs"


@pytest.mark.usefixtures("idle")
def test_runs_that_exist_are_not_repeated(root: Path) -> None:
    existing = create_run(spec(method="pca", fields={"dimension": 8}, select="validation"), root)
    ended(existing)
    begun = sweeps.start_sweep(widths(4, 8), root)
    assert (begun.created, begun.reused) == (1, 1)
    assert [member.run for member in begun.sweep.members()][1] == existing
    again = sweeps.start_sweep(widths(4, 8), root)
    assert (again.sweep, again.created, again.reused) == (begun.sweep, 0, 2)
    wider = sweeps.start_sweep(widths(8, 4, 16, name="other"), root)
    assert (wider.created, wider.reused) == (1, 2)
    assert len(list_runs(root)) == 3
    assert {sweep.spec.name for sweep in sweeps.list_sweeps(root)} == {"widths", "other"}


@pytest.mark.usefixtures("idle")
@pytest.mark.parametrize("change", [{"seed": 1}, {"split": "all", "select": "last"}, {"fields": {"dimension": 9}},
                                    {"select": "last"}, {"dataset": "emoji"}])
def test_a_run_of_another_setting_is_not_taken(change: dict[str, Any], root: Path) -> None:
    ended(create_run(spec(**{"method": "pca", "fields": {"dimension": 8}, "select": "validation"} | change), root))
    assert sweeps.start_sweep(widths(8), root).created == 1


@pytest.mark.usefixtures("idle")
def test_of_equal_runs_the_finished_one_belongs_to_the_group(root: Path) -> None:
    runs = [create_run(spec(method="pca", fields={"dimension": 8}, select="validation"), root) for _ in range(3)]
    oldest = min(runs, key=lambda run: run.id)
    for run in runs:
        ended(run, "done" if run == oldest else "stopped")
    (member,) = sweeps.start_sweep(widths(8), root).sweep.members()
    assert member.run == oldest


@pytest.mark.usefixtures("idle")
def test_an_interrupted_start_is_completed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    submit, calls = jobs.submit, []

    def killed(*arguments: Any, **options: Any) -> Run:
        calls.append(arguments)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return submit(*arguments, **options)

    monkeypatch.setattr(jobs, "submit", killed)
    with pytest.raises(KeyboardInterrupt):
        sweeps.start_sweep(widths(4, 8, 12, 16), root)
    (sweep,) = sweeps.list_sweeps(root)
    assert sweeps.progress_of(sweep.members()).counts == {"waiting": 2, "missing": 2}
    assert sweeps.resume_sweep(sweep).created == 2
    shutil.rmtree(list_runs(root)[0].folder)
    assert sweeps.resume_sweep(sweep).created == 1, "a deleted run is created again"
    assert sweeps.progress_of(sweep.members()).counts == {"waiting": 4}


@pytest.mark.usefixtures("idle")
def test_failed_runs_are_tried_again_only_if_asked(root: Path) -> None:
    sweep = sweeps.start_sweep(widths(4, 8), root).sweep
    for member, state in zip(sweep.members(), ("failed", "stopped"), strict=True):
        assert member.run is not None
        ended(member.run, state)
    assert sweeps.resume_sweep(sweep).resumed == 1
    assert sweeps.progress_of(sweep.members()).counts == {"failed": 1, "waiting": 1}
    assert sweeps.resume_sweep(sweep, failed=True).resumed == 1


@pytest.mark.usefixtures("idle")
def test_the_budget_limits_the_runs_that_are_created(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every run is expected to take a minute."""
    monkeypatch.setattr(control, "seconds_of_runs", lambda specs, _: [60.0] * len(specs))
    with pytest.raises(UserError, match=r"fits into the budget of 0.5 minutes"):
        sweeps.start_sweep(widths(4, 8, 12, 16, budget=0.5), root)
    assert sweeps.list_sweeps(root) == []
    begun = sweeps.start_sweep(widths(4, 8, 12, 16, budget=2), root)
    assert (begun.created, begun.left_out) == (2, 2)
    assert sweeps.resume_sweep(begun.sweep).created == 0, "the waiting runs need the whole budget"
    run = begun.sweep.members()[0].run
    assert run is not None
    ended(run, seconds=1.0)
    assert sweeps.resume_sweep(begun.sweep, budget=2.5).created == 1, "a second and a minute are spent"
    assert sweeps.resume_sweep(begun.sweep, budget=3.5).left_out == 0
    assert begun.sweep.spec.budget == 3.5


def test_runs_that_fit_into_a_time() -> None:
    assert fit_budget([5, 5, 5], 12) == [0, 1]
    assert fit_budget([5, 9, 4], 10) == [0, 2], "a long run is passed over"
    assert fit_budget([5], 4.9) == []


@pytest.mark.usefixtures("idle")
def test_impossible_combinations_refuse_the_sweep_or_are_skipped(root: Path) -> None:
    with pytest.raises(UserError, match=r"pca on digits with dimension=999999: .*invalid: skip"):
        sweeps.start_sweep(widths(8, 999999), root)
    assert list_runs(root) == []
    assert not (root / FOLDER).exists()
    begun = sweeps.start_sweep(widths(8, 999999, invalid="skip"), root)
    assert (begun.created, begun.skipped, len(begun.sweep.members())) == (1, 1, 1)
    with pytest.raises(UserError, match="No combination of the sweep is possible"):
        sweeps.start_sweep(widths(999999, invalid="skip"), root)


@pytest.mark.usefixtures("idle")
def test_a_sweep_of_changed_data_is_not_completed(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))
    sweep = sweeps.start_sweep(widths(4, 8), root).sweep
    shutil.rmtree(list_runs(root)[0].folder)
    dataset = catalog.load("digits")
    exclude(dataset, [3])
    with pytest.raises(UserError, match="have changed since it was planned"):
        sweeps.resume_sweep(sweep)
    assert len(list_runs(root)) == 1


@pytest.mark.usefixtures("idle")
def test_damaged_and_odd_files_of_groups_are_left_out(root: Path) -> None:
    sweep = sweeps.start_sweep(widths(4), root).sweep
    text = sweep.path.read_text()
    for name, content in (("cut", text[:60]), ("other", "[]"), ("more", text.replace('"dimension"', '"epochs"')),
                          ("fewer", text.replace('"keys": [', '"keys": ["x", '))):
        (root / FOLDER / f"{name}.json").write_text(content)
    (root / FOLDER / "folder.json").mkdir()
    names = [found.id for found in sweeps.list_sweeps(root)]
    assert "widths" in names
    assert not {"cut", "other", "fewer", "folder"} & set(names)
    assert sweeps.find_sweep("widths", root) == sweep
    with pytest.raises(UserError, match="No sweep 'nothing'"):
        sweeps.find_sweep("nothing", root)


@pytest.mark.usefixtures("idle")
def test_names_become_files_inside_the_folder(root: Path) -> None:
    names = ("../up", "..", "/etc/passwd", "ä", "ö", "a b", "A/b", "x" * 80)
    paths = {sweeps.sweep_at(name, root).path for name in names}
    assert len(paths) == 8
    assert {path.parent for path in paths} == {root / FOLDER}
    assert all(path.name not in (".json", "..json") for path in paths)


@pytest.mark.usefixtures("idle")
def test_progress_and_time_left(root: Path) -> None:
    sweep = sweeps.start_sweep(widths(4, 8, 12), root).sweep
    runs = [member.run for member in sweep.members()]
    before = sweeps.progress_of(sweep.members())
    assert (before.share, before.seconds_left, before.state) == (0.0, None, "waiting")
    assert runs[0] is not None
    ended(runs[0], seconds=30)
    after = sweeps.progress_of(sweep.members())
    assert after.share == pytest.approx(1 / 3)
    assert after.seconds_left == pytest.approx(60)
    assert sweeps.stop_sweep(sweep) == 2
    stopped = sweeps.progress_of(sweep.members())
    assert (stopped.state, stopped.seconds_left, stopped.live) == ("stopped", None, 0)
    assert not any(member.state in LIVE_STATES for member in sweep.members())
    sweeps.forget_sweep(sweep)
    assert sweeps.list_sweeps(root) == []
    assert len(list_runs(root)) == 3
