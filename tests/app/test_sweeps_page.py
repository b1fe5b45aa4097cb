"""The page Sweeps, and several values on the page Train, through Streamlit's AppTest."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import plotly.graph_objects as go
import pytest
from streamlit.testing.v1 import AppTest

from pages.parts.sweeps import charts, empty, maps
from tests.app.opening import opened, texts
from tests.runs.test_opinions import BETTER, UNCLEAR, WORSE, keep_opinion
from tests.work.sweeps.test_outcome import finished, group, run_of
from udml_core.runs import list_runs, runs_folder
from udml_core.runs.analyses import create_analysis
from udml_core.runs.opinions import OF_RUN
from udml_core.work import sweeps
from udml_core.work.jobs import launch

LINK = {"dataset": "digits", "method": "rpml", "backbone": "pixels", "split": "seen", "fields": "dimension:16,steps:3"}


@pytest.fixture(autouse=True)
def _idle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start no dispatcher, so that all runs wait."""
    monkeypatch.setattr(launch, "ensure_dispatcher", lambda *_: None)


def measured() -> sweeps.Sweep:
    """Return a sweep of three angles and two widths with two seeds; the test half prefers 45°, validation 30°."""
    sweep = group(runs_folder(), 2, fields={"dimension": [8, 16]})
    for position, member in enumerate(sweep.members()):
        alpha, width = member.request.fields["alpha"], member.request.fields["dimension"]
        validation = {15.0: 0.4, 30.0: 0.6, 45.0: 0.5}[alpha] + 0.01 * member.request.seed + 0.002 * width
        finished(run_of(sweep, position), validation, alpha)
    return sweep


def button(test: AppTest, label: str) -> Any:
    return next(button for button in test.button if button.label == label)


def test_without_sweeps_the_page_shows_a_recorded_one_and_starts_a_small_one() -> None:
    test = opened("sweeps")
    assert not test.exception
    assert "Try several values" in texts(test)
    content = next(code.value for code in test.code)
    assert sweeps.count_runs(sweeps.parse_sweep(content, "x")) == 18
    (start,) = (one for one in test.button if one.proto.type == "primary")
    assert start.label == "Try α = 15°, 30° and 45° on the digits"
    start.click().run()
    assert not test.exception
    (sweep,) = sweeps.list_sweeps(runs_folder())
    assert [member.request.fields["alpha"] for member in sweep.members()] == [15, 30, 45]
    assert len(list_runs(runs_folder())) == 3


def test_the_recorded_sweep_is_the_record() -> None:
    curves = empty.recorded()
    assert list(curves) == ["Birds", "Fashion-MNIST", "Digits"]
    assert [alpha for alpha, _ in curves["Birds"]] == [5, 15, 25, 35, 45]
    assert curves["Birds"][0][1] == pytest.approx(-23.54, abs=0.01)


def test_a_finished_sweep_shows_its_best_on_validation_and_every_combination(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: dict[str, tuple[go.Figure, str]] = {}

    def keep(figure: go.Figure, key: str, alt: str) -> None:
        drawn[key] = figure, alt

    monkeypatch.setattr(charts, "draw", keep)
    measured()
    test = opened("sweeps")
    assert not test.exception
    (best,) = test.success
    assert best.value.startswith("**Best: RPML with dimension 16, α 30°** · Validation MAP@R: 63.7 ± 0.7 %, mean of 2")
    assert "On the test half its MAP@R is 30.0 ± 0.0 %; the test half has no influence" in texts(test)
    assert "12 runs: 12 finished" in texts(test)
    assert list(drawn) == ["sweep-over-Dimension · l", "sweep-over-Largest half angle · α in °", "sweep-parallel"]
    angle, alt = drawn["sweep-over-Largest half angle · α in °"]
    assert alt.startswith("Validation MAP@R over Largest half angle · α in °; means: 15 42.9, 30 62.9, 45 52.9")
    assert list(angle.data[0].error_y.array) == pytest.approx([0.7071] * 6, abs=1e-3)
    parallel = drawn["sweep-parallel"][0].data[0]
    assert [dimension.label for dimension in parallel.dimensions] == [
        "Dimension", "α", "Validation MAP@R"]
    assert [len(dimension["values"]) for dimension in parallel.dimensions] == [6, 6, 6]
    table = test.dataframe[0].value
    assert table["Validation MAP@R"].tolist()[:2] == ["63.7 ± 0.7 %", "62.1 ± 0.7 %"]
    assert table[""].tolist() == ["★", "", "", "", "", ""]
    assert not [one for one in test.button if one.label in ("Stop all", "Resume all")]


def judged(labeled: bool) -> sweeps.Sweep:
    """Return a finished sweep of three angles, of which judges prefer 30° and found nothing on 45°."""
    sweep = group(runs_folder())
    for position, (opinion, mapr) in enumerate([(WORSE, 10.0), (BETTER, 0.5), (None, 30.0)]):
        run = run_of(sweep, position)
        finished(run, None, mapr)
        if not labeled:
            run.write_evaluation({"final": {"images": 40}, "frozen": {"images": 40}})
        if opinion is not None:
            keep_opinion(run, UNCLEAR, opinion)
    return sweep


def test_without_labels_a_sweep_shows_its_verdicts_and_is_chosen_by_them() -> None:
    judged(labeled=False)
    test = opened("sweeps")
    assert not test.exception
    assert test.success[0].value.startswith(
        "**Best so far: RPML with α 30°** · Whole group, judged after training: 0.100, one seed.")
    table = test.dataframe[0].value
    assert "MAP@R, test half" not in table.columns
    assert table[["First result", "Whole group"]].to_numpy().tolist() == [
        ["no clear difference", "better"], ["no clear difference", "worse"], ["not judged yet"] * 2]
    assert table[""].tolist() == ["★", "", ""]
    assert table["Whole group, judged after training"].tolist() == ["0.100", "−0.100", "–"]
    assert "One run is not judged yet." in texts(test)
    assert "Effective rank" in opened("sweeps", by="effective rank").dataframe[0].value.columns


def test_all_runs_of_a_sweep_are_judged_at_a_click(monkeypatch: pytest.MonkeyPatch) -> None:
    sweep, asked = judged(labeled=False), []
    monkeypatch.setattr("udml_core.work.jobs.analyse", lambda run, spec: asked.append((run.id, spec)))
    button(opened("sweeps"), "Judge all runs without labels").click().run()
    assert asked == [(run_of(sweep, 2).id, OF_RUN)]
    create_analysis(run_of(sweep, 2), OF_RUN)
    assert "The judges are at work" in texts(opened("sweeps"))


def test_with_labels_a_sweep_shows_both_and_their_agreement() -> None:
    judged(labeled=True)
    table = opened("sweeps", by="effective rank").dataframe[0].value
    by_angle = table.set_index(next(column for column in table.columns if "α" in column))
    assert by_angle["Labels and judges"].to_dict() == {"15": "differ", "30": "differ", "45": "–"}
    assert by_angle["MAP@R, test half"].to_dict() == {"15": "10.0 %", "30": "0.5 %", "45": "30.0 %"}
    assert by_angle["Whole group"].to_dict() == {"15": "worse", "30": "better", "45": "not judged yet"}


def test_another_measure_and_a_link() -> None:
    sweep = measured()
    test = opened("sweeps", sweep=sweep.id, by="effective rank")
    assert test.success[0].value.startswith("**Best: RPML with dimension 8, α 15°** · Effective rank: 2.0 ± 0.0, ")
    assert "The finished runs have not measured this: R@1 among the assigned labels" in texts(
        opened("sweeps", by="given recall@1"))
    assert not opened("sweeps", sweep="../../etc", by="sample map@r", data="x").exception


def test_a_sweep_is_stopped_resumed_and_forgotten_as_a_whole() -> None:
    sweep = group(runs_folder())
    for run in list_runs(runs_folder()):
        run.queue({})
    test = opened("sweeps")
    assert "The best combination appears when the first run has finished." in texts(test)
    test = button(test, "Stop all").click().run()
    assert sweeps.progress_of(sweep.members()).counts == {"stopped": 3}
    assert "3 runs: 3 stopped" in texts(test)
    test = button(test, "Resume all").click().run()
    assert sweeps.progress_of(sweep.members()).counts == {"waiting": 3}
    assert not test.exception
    test = button(test, "Forget the group").click().run()
    assert "A **sweep** trains one run" in texts(test)
    assert len(list_runs(runs_folder())) == 3


def test_several_values_on_train_start_a_sweep() -> None:
    test = opened("train", **LINK)
    test = test.multiselect(key="several-rpml").set_value(["alpha", "weight", "pooling"]).run()
    test = test.text_input(key="several-rpml-alpha").set_value("15, 30,45.5").run()
    test = test.multiselect(key="several-rpml-pooling").set_value(["mean"]).run()
    test = test.number_input(key="several-seeds").set_value(2).run()
    assert not test.error
    button(test, "Start 12 runs").click().run()
    (sweep,) = sweeps.list_sweeps(runs_folder())
    members = sweep.members()
    assert sweep.spec.name == "RPML on digits: Largest half angle, Triplet weight, Pooling"
    assert len(members) == len(list_runs(runs_folder())) == 12
    assert {member.request.fields["alpha"] for member in members} == {15, 30, 45.5}
    assert {member.request.fields["steps"] for member in members} == {3}
    specs = [run.spec() for run in list_runs(runs_folder())]
    assert {(spec.select, spec.split, spec.backbone, spec.encoder.pooling) for spec in specs} == {
        ("validation", "seen", "pixels", "mean")}
    assert {spec.seed for spec in specs} == {0, 1}


def test_the_first_number_of_the_form_varies_at_once_by_three_values() -> None:
    test = opened("train", **LINK)
    assert test.multiselect(key="several-rpml").value == ["alpha"]
    assert test.text_input(key="several-rpml-alpha").value == "22, 45, 67"
    assert button(test, "Start 3 runs")


@pytest.mark.parametrize(("text", "words"), [("15, many", "got 'many'"), ("95, 30", "got 95"), ("true", "got 'true'")])
def test_a_value_that_is_not_allowed_is_named(text: str, words: str) -> None:
    test = opened("train", **LINK)
    test = test.multiselect(key="several-rpml").set_value(["alpha"]).run()
    test = test.text_input(key="several-rpml-alpha").set_value(text).run()
    starts = [one for one in test.button if one.label.startswith("Start 2")]
    test = starts[0].click().run() if starts else test
    assert words in test.error[0].value
    assert list_runs(runs_folder()) == []


def test_points_of_one_value_do_not_cover_each_other() -> None:
    places = charts.side_by_side([0, 1, 0, 0])
    assert len(set(places)) == 4
    assert [round(place) for place in places] == [0, 1, 0, 0]
    assert places[1] == 1.0


def test_a_map_says_its_epoch_while_it_trains_and_its_distance_to_pca_at_the_end() -> None:
    evaluation = {"final": {"map@r": 60.44}, "frozen": {"map@r": 50.0}, "centered pca": {"map@r": 61.0}}
    run: Any = SimpleNamespace(folder=Path("missing"), evaluation=lambda: evaluation,
                               metrics=lambda: ([{"epoch": 0}, {"epoch": 1, "sample map@r": 0.5}], 0))
    assert maps.measure_line(run, 0, False) == "Epoch 0"
    assert maps.measure_line(run, 1, False) == "Epoch 1 · whole group found **50.0 %**"
    assert maps.measure_line(run, 1, True) == "Whole group found **60.4 %**, 0.6 points below PCA of the same width"


def test_two_quick_clicks_on_the_data_set_of_a_sweep_both_count() -> None:
    def page() -> None:
        from types import SimpleNamespace

        from pages.views.sweeps import choose_dataset
        choose_dataset([SimpleNamespace(dataset=name) for name in ("digits", "emoji", "fashion-mini")])

    test = AppTest.from_function(page, default_timeout=60).run()
    for name in ("emoji", "fashion-mini"):
        test.segmented_control[0].set_value(name)
        test.query_params.clear()  # what the browser knows at the click
        test.run()
        assert (test.segmented_control[0].value, test.query_params["data"]) == (name, name)
    test.query_params.clear()
    assert test.run().segmented_control[0].value == "digits", "Back restores the choice"
