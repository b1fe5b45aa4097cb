"""The pages Runs and Compare through AppTest."""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from pathlib import Path
from typing import Any, get_args

import pytest
from streamlit.testing.v1 import AppTest

from pages.parts.compare.choosing import compared_by_default
from pages.parts.compare.queries import count_words, disputed_queries
from pages.parts.compare.seed_means import COLUMNS, MORE, measure_table, table_html
from pages.parts.compare.settings import setting_text
from pages.parts.curves.run_curves import common_baselines, shown_rows
from pages.parts.draw.figures import line_style
from pages.parts.draw.palette import AFTER, LEVEL, points
from pages.parts.draw.tables import evaluation_table
from pages.parts.runs import details
from pages.parts.runs.baseline_bar import BAR_WIDTH, bar_svg, baseline_bars
from pages.parts.runs.leaderboard import BAR, BEST, STATE, leaderboard
from pages.parts.runs.trash import loss_words
from pages.parts.shell.run_status import run_titles, title_of
from pages.parts.shell.setting_words import setting_title, setting_words, with_titles
from tests.app.opening import opened, switched, texts
from tests.exploration.test_comparison import atlas
from tests.running import spec, worked
from udml_core.base.errors import byte_words
from udml_core.data.splits import Select
from udml_core.runs import Run, create_run, list_runs
from udml_core.runs.analyses import create_analysis, plan_analysis
from udml_core.runs.notes import Notes
from udml_core.runs.trash import deleted_runs
from udml_core.runs.verdict import standing
from udml_core.work import jobs
from udml_core.work.jobs.estimate import evaluation_kind

pytestmark = pytest.mark.usefixtures("own_runs")


def tables(test: AppTest) -> list[Any]:
    return [table.value for table in test.dataframe]


def address_value(test: AppTest, parameter: str) -> str:
    """Return a parameter of the address, which AppTest lists after it was changed."""
    value = test.query_params[parameter]
    return value if isinstance(value, str) else value[0]


def table_of_runs(test: AppTest) -> Any:
    """Return the leaderboard as the browser receives it."""
    return next(table for table in test.dataframe if "Run" in table.value.columns)


def ticked(test: AppTest) -> list[str]:
    """Return the titles of the ticked rows."""
    table = table_of_runs(test)
    rows = json.loads(table.proto.selection_default)["selection"]["rows"]
    return [table.value["Run"].iloc[row] for row in rows]


def with_values(run: Run, final: float, frozen: float = 33.2, pca: float = 33.0) -> Run:
    """Replace a run's MAP@R."""
    evaluation = run.evaluation()
    assert evaluation is not None
    for name, value in (("final", final), ("frozen", frozen), ("centered pca", pca)):
        evaluation[name]["map@r"] = value
    run.write_evaluation(evaluation)
    return run


def test_the_leaderboard_looks_at_each_run_a_fixed_number_of_times(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = create_run(spec(), root)
    for number in range(39):
        shutil.copytree(first.folder, root / f"20200101-000000-rpml-{number:06x}")
    runs, stat, looks = list_runs(root), os.stat, 0

    def count(*arguments: Any, **options: Any) -> os.stat_result:
        nonlocal looks
        looks += 1
        return stat(*arguments, **options)

    counts = []
    monkeypatch.setattr("os.stat", count)
    for listed in (runs[:10], runs):
        before = looks
        assert len(leaderboard(listed)) == len(listed)
        counts.append(looks - before)
    assert 0 < counts[1] <= 4 * counts[0]


def test_the_leaderboard_opens_no_images_of_runs_that_no_race_judged(
        pair: list[Run], monkeypatch: pytest.MonkeyPatch) -> None:
    opened_sets = list[str]()
    monkeypatch.setattr("pages.parts.shell.race_verdict.dataset_at_hand", opened_sets.append)
    leaderboard(pair)
    assert opened_sets == [], "opening 70,000 images takes seconds"


def test_the_leaderboard_marks_the_winner_and_shows_the_differences(pair: list[Run]) -> None:
    rows = leaderboard([with_values(pair[0], 31.24), with_values(pair[1], 35.06)])
    assert rows[BEST].tolist() == ["", "★"]
    assert rows["MAP@R"].tolist() == [31.24, 35.06]
    assert rows["MAP@R − baseline"].tolist() == [-2.0, 1.9], "differences of the shown values to the better baseline"
    assert rows["Labels"].tolist() == ["none", "none"]
    assert rows[BAR].str.startswith("data:image/svg+xml;base64,").all()
    assert not {STATE, "Tags"} & set(rows), "columns without any value"
    test = opened("runs", run=pair[0].id)
    shown = list(table_of_runs(test).proto.column_order)
    assert shown[:4] == ["Run", "MAP@R", "R@1", BAR], "each column has a heading, and figures hide behind the bar"
    assert not {BEST, "MAP@R − baseline", "R@1 − baseline"} & set(shown)
    displayed = table_of_runs(test).proto.arrow_data.styler.display_values
    assert "★ 35.1 %".encode() in displayed
    assert displayed.count("★".encode()) == 2, "beside the highest measure, and in the hidden column"
    (bars,) = (html.proto.body for html in test.get("html") if 'class="result-bars"' in html.proto.body)
    assert "<b>Whole group found · MAP@R</b> level with raw pixels and PCA</div>" in bars
    assert re.findall(r"<span>(.*?)</span><b>(.*?)\N{NO-BREAK SPACE}%</b>", bars)[:2] == [
        ("RPML", "31.2"), ("raw pixels", "33.2")]
    assert "None" not in texts(test)


def test_bars_lie_on_the_side_of_their_sign_on_one_scale_for_all_runs() -> None:
    def rectangles(svg: str) -> list[tuple[float, float]]:
        found = re.findall(r'<rect x="([\d.]+)" y="\d+" width="([\d.]+)"', svg)
        return [(float(x), float(width)) for x, width in found]

    middle = BAR_WIDTH / 2
    (above, long), (below, short) = rectangles(bar_svg((10.0, -5.0), (1, -1), 10.0))
    assert above == middle
    assert below + short == pytest.approx(middle, abs=0.1)
    assert long == pytest.approx(2 * short, abs=0.2)
    assert rectangles(bar_svg((0.0, None), (0, 0), 10.0)) == []
    bars = baseline_bars([(20.0, -20.0), (None, None), (2.0, None)], [(1, -1), (0, 0), (1, 0)])
    assert bars[1] is None
    assert bars[0] is not None
    assert bars[2] is not None
    assert bars[2] != baseline_bars([(2.0, None)], [(1, 0)])[0], "another scale"
    svg = bar_svg((10.0, -5.0), (1, 0), 10.0)
    assert re.findall('<rect .*? fill="(.*?)"', svg) == [AFTER, LEVEL], "a difference within chance is gray"


def test_two_runs_are_compared_in_place_and_lead_to_the_whole_comparison(pair: list[Run]) -> None:
    for number, run in enumerate(pair):
        with_values(run, 31.0 + 2 * number).write_notes(Notes.make(f"Run {number}"))
    test = opened("runs", run=pair[1].id, **{"with": pair[0].id})
    assert not test.exception
    said = ("finds most of the whole group", "Runs that differ only in the seed share a row")
    assert any(words in texts(test) for words in said)
    assert [tab.label for tab in test.tabs] == ["Curves", "Neighbors", "Settings that differ", "Each run"]
    test.button(key="runs-compare").click().run()
    assert test.session_state["page"] == "compare"
    assert address_value(test, "runs") == f"{pair[1].id}.{pair[0].id}"


def test_the_details_of_a_run_are_tabs_of_which_only_the_open_one_is_drawn(pair: list[Run]) -> None:
    test = opened("runs", run=pair[0].id)
    assert [tab.label for tab in test.tabs] == ["Overview", "Curves", "Neighbors", "Settings", "Notes & files"]
    assert not test.get("plotly_chart")
    assert not test.code
    assert [button.label for button in test.button if button.proto.type == "primary"] == ["Search with this run"]
    test.button(key=f"search-{pair[0].id}").click().run()
    assert test.session_state["page"] == "retrieval"
    assert address_value(test, "run") == pair[0].id


def test_a_sampled_evaluation_offers_to_ask_all_test_images(
        pair: list[Run], monkeypatch: pytest.MonkeyPatch) -> None:
    run, requests = pair[0], []
    evaluation = run.evaluation()
    assert "Ask all test images" not in [button.label for button in opened("runs", run=run.id).button]
    evaluation["final"] |= {"queries": 50, "images": 359, "recall@1 margin": 6.2}
    run.write_evaluation(evaluation)
    monkeypatch.setattr(details, "measured_speed", {evaluation_kind(run.spec()): 20.0}.get)
    monkeypatch.setattr(jobs, "analyse", lambda of, spec: requests.append((of.id, spec.kind)))
    test = opened("runs", run=run.id)
    assert "A sample of 50 of 359 is asked, so first result right is known to ± 6.2 points." in texts(test)
    button = next(button for button in test.button if button.label == "Ask all test images")
    assert button.help.endswith("It takes about 2 min.")
    button.click().run()
    assert requests == [(run.id, "exact")]


def test_the_labels_of_the_baselines_lie_beside_the_curves(pair: list[Run]) -> None:
    charts = [json.loads(chart.proto.spec)["layout"]
              for chart in opened("runs", run=pair[0].id, section="curves").get("plotly_chart")]
    labels = [label for chart in charts for label in chart.get("annotations", ())]
    assert {label["text"].split("<br>")[0] for label in labels} == {"Frozen", "PCA"}
    assert all((label["xref"], label["x"], label["xanchor"]) == ("paper", 1, "left") for label in labels)
    assert all(chart["margin"]["r"] >= 50 for chart in charts if chart.get("annotations"))


def test_the_comparison_stays_when_a_run_starts(pair: list[Run], root: Path) -> None:
    for number, run in enumerate(pair):
        run.write_notes(Notes.make(f"Run {number}"))
    test = opened("runs", run=pair[1].id)
    assert ticked(test) == ["Run 1"]
    key = table_of_runs(test).key
    planned = spec(seed=5)
    newer = create_run(planned.model_copy(update={"created": planned.created + 3600}), root)
    newer.write_status(newer.stored_status().model_copy(update={"state": "stopped"}))
    newer.write_notes(Notes.make("Newer"))
    test.run()
    assert table_of_runs(test).value["Run"].tolist() == ["Newer", "Run 0", "Run 1"]
    assert ticked(test) == ["Run 1"]
    assert table_of_runs(test).key != key, "ticks of other rows would be taken over"
    assert address_value(test, "run") == pair[1].id


def test_two_runs_in_the_link_are_ticked_in_their_order(pair: list[Run]) -> None:
    test = opened("runs", run=pair[1].id, **{"with": pair[0].id})
    assert not test.exception
    assert address_value(test, "run") == pair[1].id
    assert address_value(test, "with") == pair[0].id


def test_a_name_a_note_and_tags_are_saved_and_shown(pair: list[Run]) -> None:
    test = opened("runs", run=pair[0].id, section="files")
    test.text_input(key=f"name-{pair[0].id}").input("My *best* run")
    test.text_area(key=f"note-{pair[0].id}").input("Collapsed late")
    next(button for button in test.button if button.label == "Save").click().run()
    assert not test.exception
    assert pair[0].notes() == Notes(name="My *best* run", note="Collapsed late")
    assert table_of_runs(test).value["Run"].iloc[0] == "My *best* run"
    assert "My \\*best\\* run" in texts(test), "Markdown in a name is shown as it is written"
    pair[0].write_notes(Notes.make("Named", tags=("birds",)))
    test = opened("runs", run=pair[0].id)
    test.multiselect(key="runs-tags").select("birds").run()
    assert table_of_runs(test).value["Run"].tolist() == ["Named"]


def test_a_run_is_linked_to_the_example_on_its_test_images(
        pair: list[Run], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UDML_EXAMPLES", "1")
    example = jobs.examples_on(pair[0].spec().fingerprint, pair[0].folder.parent)[0]
    links = {link.proto.label: link.proto.query_string for link in opened("runs", run=pair[0].id).get("page_link")}
    assert links["Compare with the example"] == f"tool=compare&runs={pair[0].id}.{example.id}"
    repeated = Run(shutil.copytree(example.folder, pair[0].folder.parent / "20250101-000000-rpml-0000aa"))
    links = {link.proto.label: link.proto.query_string for link in opened("runs", run=repeated.id).get("page_link")}
    best = max(jobs.examples_on(repeated.spec().fingerprint, repeated.folder.parent),
               key=lambda run: (run.evaluation() or {})["final"]["map@r"])
    assert links["Compare with the example"] == f"tool=compare&runs={repeated.id}.{best.id}", "it repeats an example"
    assert best.spec().method != example.spec().method


def test_a_run_is_shown_and_can_be_deleted_without_its_data_set(pair: list[Run]) -> None:
    spec = json.loads((pair[0].folder / "spec.json").read_text())
    (pair[0].folder / "spec.json").write_text(json.dumps(spec | {"dataset": "/nowhere", "fingerprint": "gone"}))
    test = opened("runs", run=pair[0].id, section="files")
    assert not test.exception
    assert any(button.key == f"delete-{pair[0].id}" for button in test.button), [error.value for error in test.error]


def test_damaged_notes_are_ignored_with_a_warning(pair: list[Run]) -> None:
    (pair[0].folder / "notes.json").write_text("{")
    test = opened("runs", run=pair[0].id)
    assert not test.exception
    assert "could not be read" in test.warning[0].value


def test_a_run_is_deleted_and_the_deletion_undone(pair: list[Run], root: Path) -> None:
    test = opened("runs", run=pair[0].id, section="files")
    assert "2 epochs" in texts(test), "the menu names what is lost"
    test.button(key=f"delete-{pair[0].id}").click().run()
    assert not test.exception
    assert list_runs(root) == [pair[1]]
    assert "Deleted" in texts(test)
    test.button(key="undo-delete").click().run()
    assert set(list_runs(root)) == set(pair)
    assert address_value(test, "run") == pair[0].id
    assert "undo-delete" not in [button.key for button in test.button]


def test_the_last_run_can_be_restored_from_the_trash_and_the_trash_emptied(pair: list[Run], root: Path) -> None:
    test = opened("runs", run=pair[0].id, section="files")
    for _ in range(2):
        next(button for button in test.button if button.label == "Move to trash").click().run()
    assert "No runs yet" in texts(test)
    test.button(key=f"restore-{pair[1].id}").click().run()
    assert list_runs(root) == [pair[1]]
    test.button(key="empty-trash").click().run()
    assert not test.exception
    assert deleted_runs(root) == []


def test_the_command_and_the_duplicate_lead_to_an_equal_run(pair: list[Run]) -> None:
    test = opened("runs", run=pair[0].id, section="settings")
    codes = [code.value for code in test.code]
    assert any(code.startswith("python -m udml_core train --dataset digits --method rpml") for code in codes)
    links = [element.proto for element in test.get("page_link")]
    assert any(f"like={pair[0].id}" in str(link) for link in links)
    measured, planned = jobs.memory_by_part(pair[0].status())["evaluation"][::-1]
    assert measured is not None
    assert planned is not None
    words = texts(test)
    assert "Memory, measured (and planned): features " in words
    assert f" · evaluation {byte_words(measured)} ({byte_words(planned)})" in words
    took = pair[0].status().seconds["evaluation"]
    assert re.search(rf"Time: .*evaluation {took:.1f} s" if took >= 0.1 else "Time: ", words)


def test_waiting_runs_are_lines_that_can_be_moved(root: Path) -> None:
    runs = [create_run(spec(seed=seed), root) for seed in range(3)]
    running = create_run(spec(seed=9), root)
    running.write_status(running.stored_status().model_copy(update={"state": "running", "epochs": 4}))
    lock = running.lock().acquire()
    test = opened("runs")
    assert not test.exception
    first = next(text.value for text in test.markdown if "seed" in text.value)
    assert "seed 9" in first, "the running run comes first"
    before = jobs.waiting_runs(root)
    test.button(key=f"queue-Start earlier-{before[2].id}").click().run()
    assert jobs.waiting_runs(root) == [before[0], before[2], before[1]]
    test.button(key=f"queue-Start later-{before[0].id}").click().run()
    assert jobs.waiting_runs(root) == [before[2], before[0], before[1]]
    test.button(key=f"queue-stop-{before[1].id}").click().run()
    assert before[1].status().state == "stopped"
    assert len(jobs.waiting_runs(root)) == len(runs) - 1
    lock.lock.release()


def queue_page() -> None:
    """Follow the queue as the page Runs does: `known` are the states that its leaderboard shows."""
    import streamlit as st

    from pages.parts.runs.queue import follow_queue, live_states
    from udml_core.runs import list_runs, runs_folder

    st.session_state["runs of the page"] = st.session_state.get("runs of the page", 0) + 1
    known = st.session_state.pop("known", None)
    follow_queue(live_states(list_runs(runs_folder())) if known is None else known)


@pytest.mark.parametrize(("known", "count"), [("running", 1), ("waiting", 2)])
def test_the_page_runs_again_when_a_waiting_run_starts(root: Path, known: str, count: int) -> None:
    run = create_run(spec(), root)
    run.write_status(run.stored_status().model_copy(update={"state": "running"}))
    with run.lock().acquire():
        test = AppTest.from_function(queue_page)
        test.session_state["known"] = {run: known}
        test.run()
    assert not test.exception
    assert test.session_state["runs of the page"] == count


def test_a_phone_shows_the_names_and_the_measures_first(pair: list[Run]) -> None:
    pair[0].write_notes(Notes.make("The run with the long name of thirty-nine"))
    table = table_of_runs(opened("runs", run=pair[0].id))
    assert table.value.columns[:3].tolist() == ["Run", "MAP@R", "R@1"]
    columns = json.loads(table.proto.columns)
    assert sum(columns[name]["width"] for name in ("Run", "MAP@R", "R@1")) <= 390 - 2 * 16 - 33, "beside the ticks"


def test_every_run_of_a_long_queue_can_be_moved_to_the_front_and_canceled(root: Path) -> None:
    first = create_run(spec(method="pca", fields={"dimension": 8}), root)
    for number in range(24):
        shutil.copytree(first.folder, root / f"{first.id}-{number:02}")
    test = opened("runs")
    before = jobs.waiting_runs(root)
    test.number_input(key="queue-page").set_value(2).run()
    test.button(key=f"queue-Start next-{before[24].id}").click().run()
    assert jobs.waiting_runs(root) == [before[24], *before[:24]]
    test.button(key=f"queue-stop-{before[23].id}").click().run()
    assert not test.exception
    assert before[23].status().state == "stopped"


@pytest.mark.slow
def test_two_hundred_waiting_runs_are_canceled_at_once(root: Path) -> None:
    first = create_run(spec(method="pca", fields={"dimension": 8}), root)
    for number in range(199):
        shutil.copytree(first.folder, root / f"{first.id}-{number:03}")
    test = opened("runs")
    began = time.monotonic()
    test.button(key="queue-cancel-all").click().run()
    assert not test.exception
    assert {run.status().state for run in own_runs_of(root)} == {"stopped"}
    assert time.monotonic() - began < 60, time.monotonic() - began  # the library takes 3 s on a busy machine
    assert "queue-cancel-all" not in {button.key for button in test.button}


def own_runs_of(root: Path) -> list[Run]:
    """Return the runs of a folder without the examples."""
    return [run for run in list_runs(root) if not run.is_example]


def test_waiting_analyses_are_listed_and_can_be_canceled(pair: list[Run]) -> None:
    analysis = create_analysis(pair[0], plan_analysis(kind="graph", n_neighbors=9))
    analysis.queue({})
    test = opened("runs", run=pair[0].id)
    assert analysis.id in texts(test)
    test.button(key=f"queue-{pair[0].id}-stop-{analysis.id}").click().run()
    assert not test.exception
    assert analysis.status().state == "stopped"
    assert analysis.id not in [line.value for line in test.markdown]


def test_sizes_and_losses_in_words(pair: list[Run]) -> None:
    assert [byte_words(size) for size in (0, 999, 1000, 12_340_000, 5e15)] == [
        "0 bytes", "999 bytes", "1.0 kB", "12.3 MB", "5000.0 TB"]
    assert loss_words(pair[0]).startswith("2 epochs, ")


@pytest.mark.slow
def test_curves_are_percent_and_have_lines_to_beat(pair: list[Run], root: Path) -> None:
    assert shown_rows([{"epoch": 1, "sample map@r": 0.855, "loss": 0.3}]) == [
        {"epoch": 1, "sample map@r": 85.5, "loss": 0.3}]
    assert set(common_baselines(pair)) == {"frozen", "centered pca"}
    narrow = worked(root, fields={"dimension": 4, "epochs": 2, "steps": 3})
    assert set(common_baselines([pair[0], narrow])) == {"frozen"}, "PCA of another width"
    other = worked(root, split="zero-shot")
    assert common_baselines([pair[0], other]) == {}


def test_equal_titles_get_the_end_of_the_id(pair: list[Run]) -> None:
    assert len(set(run_titles(pair).values())) == 2
    pair[0].write_notes(Notes.make("Best"))
    assert run_titles(pair)[pair[0].id] == "Best"


def test_measures_are_percent_with_one_decimal_and_never_none() -> None:
    table = evaluation_table({"": {"final": {"recall@1": 85.5321, "map@r": None, "images": 1797.0},
                                   "frozen": {"recall@1": 84.0, "effective rank": 12.345}}})
    assert table.loc["R@1"].tolist() == ["85.5 %", "84.0 %"]
    assert table.loc["Images searched"].tolist() == ["1,797", "–"]
    assert table.loc["Effective rank"].tolist() == ["–", "12.3"]


def test_seeds_are_averaged_with_their_spread(pair: list[Run], root: Path) -> None:
    with_values(pair[0], 30.0)
    with_values(pair[1], 34.0)
    other = with_values(worked(root, fields={"dimension": 8, "epochs": 2, "steps": 3}), 31.0)
    rows = measure_table([*pair, other])
    assert rows["Seeds"].tolist() == [2, 1]
    assert rows["MAP@R after"].tolist() == ["32.0 ± 2.8 %", "31.0 %"]
    assert rows["MAP@R against frozen"].tolist() == ["−1.2 points", "−2.2 points"]
    assert rows[""].tolist() == ["★", "★"], "31.0 is within one standard deviation of the best"
    with_values(other, 29.0)
    assert measure_table([*pair, other])[""].tolist() == ["★", ""]
    assert "seed" not in rows["Run"].iloc[0]


def test_the_table_of_compare_heads_its_columns_and_has_the_color_of_each_run(pair: list[Run]) -> None:
    pair[0].write_notes(Notes.make("A <b> & a long name of thirty-nine letters"))
    for run, value in zip(pair, (31.0, 35.0), strict=True):
        with_values(run, value)
    other = Run(shutil.copytree(pair[0].folder, pair[0].folder.with_name("20250101-000000-rpml-0000aa")))
    runs = [pair[1], pair[0], other]
    shown = table_html(measure_table(runs), [[0, 1], [2]], (*COLUMNS, *MORE))
    headings = ["after", "against frozen", "against PCA", "before", "change", "against best"]
    assert re.findall(r"<th scope='col'>(.*?)</th>", shown) == headings * 2
    assert re.findall(r"colspan='6'>(.*?)</th>", shown) == ["Whole group found · MAP@R", "First result right · R@1"]
    assert "A &lt;b&gt; &amp; a" in shown
    colors = [line_style(number)["color"] for number in range(3)]
    assert re.findall("solid (#......)|dashed (#......)|dotted (#......)", shown) == [
        (colors[0], "", ""), ("", colors[1], ""), ("", "", colors[2])]


def test_the_table_of_compare_has_the_distance_to_the_best_run(pair: list[Run], root: Path) -> None:
    other = with_values(worked(root, fields={"dimension": 8, "epochs": 2, "steps": 3}), 31.0)
    with_values(pair[0], 34.24)
    rows = measure_table([pair[0], other])
    assert rows["MAP@R against best"].tolist() == ["0.0 points", "−3.2 points"]
    before = standing(pair[0].evaluation()).before
    assert before is not None
    assert rows["MAP@R change"].iloc[0] == points(round(34.24, 1) - round(before, 1))


def test_a_repetition_with_the_same_seed_is_a_row_of_its_own_and_called_equal(pair: list[Run], root: Path) -> None:
    repeated = Run(shutil.copytree(pair[0].folder, root / "20250101-000000-rpml-0000aa"))
    rows = measure_table([pair[0], repeated])
    assert rows["Seeds"].tolist() == [1, 1]
    assert "±" not in " ".join(rows["MAP@R after"])
    assert rows["Run"].nunique() == 2
    assert rows["Run"].tolist() == list(run_titles([pair[0], repeated]).values()), "named as in the curves"
    equal = [info.value for info in opened("compare", runs=f"{pair[0].id}.{repeated.id}").info]
    assert len(equal) == 1
    assert equal[0].startswith("**RPML on Digits · ")
    assert f" · seed {pair[0].spec().seed}**" in equal[0]
    assert "have equal settings, also the seed" in equal[0]
    assert not opened("compare", runs=f"{pair[0].id}.{pair[1].id}").info, "another seed is no repetition"


def test_compare_starts_with_the_run_in_the_sidebar_and_follows_it(pair: list[Run], root: Path) -> None:
    repeated = Run(shutil.copytree(pair[1].folder, root / "20250101-000000-rpml-0000aa"))
    alone = worked(root, split="zero-shot")
    test = opened("runs", run=pair[1].id)
    test.query_params.clear()
    switched(test, "compare")
    box = test.multiselect(key="compare-runs")
    assert box.value == [pair[1].id, pair[0].id], "the run itself, and a run that differs from it"
    assert box.value != [pair[1].id, repeated.id]
    test.sidebar.selectbox(key="choose-run").set_value(repeated.id).run()
    assert test.multiselect(key="compare-runs").value == [repeated.id, pair[0].id]
    assert not test.info
    test.sidebar.selectbox(key="choose-run").set_value(alone.id).run()
    assert test.multiselect(key="compare-runs").value == [pair[0].id, pair[1].id]
    assert "is the only finished run on its test images" in test.info[0].value
    test.multiselect(key="compare-runs").set_value([alone.id, pair[0].id]).run()
    assert test.multiselect(key="compare-runs").value == [alone.id, pair[0].id], "the user's choice stays"


def test_names_show_symbols_and_titles_of_settings(root: Path) -> None:
    free = {"learning_rate": 0.01, "orthogonal": False}
    runs: list[Run] = []
    while len({run.id[:15] for run in runs}) != 1:  # their names have the time unless they start in the same second
        runs = [create_run(spec(method="ssdml", labels_per_class=count, fields=free), root / str(time.time_ns()))
                for count in (4, 9)]
    assert title_of(runs[0].spec()) == "SSDML on Digits (learning rate 0.01, orthonormal projection off)"
    assert list(run_titles(runs).values()) == ["SSDML on D… labels per class 4",
                                               "SSDML on D… labels per class 9"]
    steep = create_run(spec(fields={"alpha": 15.0, "epsilon": 0.7, "dimension": 4}), root)
    assert title_of(steep.spec(), with_dataset=False) == "RPML (α 15°, ε 0.7, dimension 4)"
    assert setting_words("not_known", 1.5, "rpml") == "not known 1.5"
    assert [setting_words("select", kept, "rpml") for kept in get_args(Select)] == [
        "last epoch kept", "epoch kept by held-out images", "epoch kept by held-out images (R@1)",
        "epoch kept by held-out classes", "epoch kept by judges"]
    assert setting_title("candidates", "plm") == "Neighbor candidates · k"


@pytest.mark.parametrize(("message", "shown"), [
    ("labels_per_class must be between 1 and 9, got 12.", "Labels per class must be between 1 and 9, got 12."),
    ("PLM.proxy_rate must be above 0.", "Learning rate factor of the proxies must be above 0."),
    ("30 images and n_neighbors=50. Lower the field 'n_neighbors'.",
     "30 images and neighbors 50. Lower the field 'Neighbors'."),
    ("No images in photos/learning_rate/2 or learning_rate.png.",
     "No images in photos/learning_rate/2 or learning_rate.png.")])
def test_messages_name_settings_by_their_titles(message: str, shown: str) -> None:
    assert with_titles(message) == shown


def test_titles_name_only_what_differs_among_runs_of_a_method(root: Path) -> None:
    long = {"dimension": 4, "epsilon": 0.7, "steps": 3}
    requests: list[dict[str, Any]] = [{"fields": long}, {"fields": long | {"alpha": 15.0}},
                                      {"method": "pca", "fields": {"dimension": 4}}]
    runs = [create_run(spec(**request), root) for request in requests]
    assert list(run_titles(runs).values()) == ["RPML on Digits, α 45°", "RPML on Digits, α 15°", "PCA on Digits"]
    runs.append(create_run(spec(fields=long, seed=3), root))
    assert list(run_titles(runs).values()) == ["RPML on Digits, α 45°, seed 0", "RPML on Digits, α 15°, seed 0",
                                               "PCA on Digits", "RPML on Digits, α 45°, seed 3"]


def test_disputed_queries_come_first() -> None:
    atlases = [atlas([2, 4, 6], [True, True, False]), atlas([2, 4, 6], [True, False, False])]
    assert disputed_queries(atlases, 2).tolist() == [4, 2]


def test_disputed_queries_begin_with_the_hits_of_the_run_that_is_named_first() -> None:
    atlases = [atlas([2, 4, 6, 8], [False, True, False, False]), atlas([2, 4, 6, 8], [True, False, True, False])]
    assert "**2 of 4 queries only with second**" in count_words(["first", "second"], atlases)
    assert disputed_queries(atlases, 3).tolist() == [2, 6, 4], "hits of the second run alone"


@pytest.mark.parametrize("part", ["Curves", "Same query", "Who wins?", "Where they differ", "Maps", "Settings",
                                  "nonsense"])
def test_every_part_of_compare_opens_from_a_link(part: str, pair: list[Run]) -> None:
    test = opened("compare", runs=f"{pair[1].id}.{pair[0].id}", part=part)
    assert not test.exception
    assert not test.warning
    assert test.multiselect(key="compare-runs").value == [pair[1].id, pair[0].id]
    assert not test.error
    if part == "Settings":
        settings = next(table for table in tables(test) if "Setting" in table)
        assert settings["Setting"].tolist() == ["Seed"]
        test.toggle(key="compare-equal").set_value(True).run()
        settings = next(table for table in tables(test) if "Setting" in table)
        assert settings[""].tolist() == ["≠"] + [""] * (len(settings) - 1)


def test_compare_says_when_runs_search_different_images(pair: list[Run], root: Path) -> None:
    other = worked(root, split="zero-shot")
    test = opened("compare", runs=f"{pair[0].id}.{other.id}", part="Same query")
    assert "different test images" in test.warning[0].value
    assert "same data set" in test.info[0].value
    assert not test.exception


def test_compare_starts_with_the_newest_two_on_the_same_images_and_survives_a_removed_run(
        pair: list[Run], root: Path) -> None:
    worked(root, split="zero-shot")
    test = opened("compare")
    assert set(test.multiselect(key="compare-runs").value) == {run.id for run in pair}
    shutil.rmtree(pair[0].folder)
    test = opened("compare", runs=f"{pair[0].id}.{pair[1].id}")
    assert "was removed" in test.warning[0].value
    assert not test.exception


def test_frozen_features_are_compared_with_a_training_and_a_training_with_them(root: Path) -> None:
    trained, twin, frozen, other = runs = [
        create_run(spec(method=method, split="all", seed=seed), root)
        for method, seed in (("rpml", 1), ("rpml", 2), ("frozen", 1), ("frozen", 2))]
    for own, expected in ((frozen, [frozen, trained]), (trained, [frozen, trained]), (twin, [frozen, twin])):
        assert compared_by_default(runs, own) == [run.id for run in expected]
    assert compared_by_default([frozen, other], other) == [other.id, frozen.id], "there is no training"


def test_a_missing_setting_is_a_dash() -> None:
    assert [setting_text(value) for value in (None, 0, "x")] == ["–", "0", "x"]
