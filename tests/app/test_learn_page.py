"""The page Learn through Streamlit's AppTest."""

from __future__ import annotations

import io
import json
import secrets
import zipfile
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from tests.app.opening import ROOT, opened, switched, texts
from tests.running import worked
from udml_core.results.lesson_tasks import TASKS
from udml_core.results.lesson_texts import translated
from udml_core.results.lessons import course, course_archive, read_answers, record_answer
from udml_core.runs import Run, runs_folder
from udml_core.runs.task_evidence import STARTED_FILE, note_task

pytestmark = pytest.mark.usefixtures("own_places")


@pytest.fixture(autouse=True)
def _own_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UDML_RUNS", str(tmp_path / "runs"))


@pytest.fixture
def reader() -> str:
    """A reader of this test alone, because the tests share a folder of runs."""
    return secrets.token_hex(8)


def tried(reader: str, lesson: str, **fields: float) -> Run:
    """Train a run that the reader started from the task of a lesson."""
    task = TASKS[lesson]
    run = worked(runs_folder(), **{**task.options, "fields": {**task.fields, **fields}})
    note_task(run, lesson, reader)
    return run


def read_by(reader: str, page: str, **query: str) -> AppTest:
    """Open a page in a reader's browser, who predicted in every lesson."""
    test = AppTest.from_file(str(ROOT / "app.py"), default_timeout=240)
    test.query_params.update(query)
    test.session_state["course_reader"] = reader
    test.session_state["course_predicted"] = frozenset(lesson.id for lesson in course())
    return switched(test, page)


def test_the_path_counts_the_answers_of_a_class() -> None:
    assert "No answers yet" in texts(opened("learn"))
    for reader, choice in (("0" * 16, 0), ("1" * 16, 0), ("2" * 16, 1)):
        record_answer(runs_folder(), "epsilon", "before", choice, reader)
    page = opened("learn")
    row = next(row for row in page.dataframe[0].value.to_dict("records") if row["lesson"] == "ε merges and shatters")
    assert (row["answers before"], row["correct before %"], row["answers after"]) == (3, 66.7, 0)
    page.text_area[0].set_value(f"https://school/#answers={'3' * 16}:epsilon.0.1")
    next(button for button in page.button if button.label == "Add answers").click().run()
    assert "2 answers added" in page.success[0].value
    row = next(row for row in page.dataframe[0].value.to_dict("records") if row["lesson"] == "ε merges and shatters")
    assert (row["answers before"], row["answers after"]) == (4, 1)
    next(button for button in page.button if button.label == "Delete the answers").click().run()
    assert read_answers(runs_folder()) == {}
    assert "No answers yet" in texts(page)


@pytest.mark.parametrize("lesson", [lesson.id for lesson in course()])
def test_a_link_opens_a_lesson(lesson: str) -> None:
    page = opened("learn", lesson=lesson, epsilon="0.5", present="1")
    assert not page.exception
    assert page.title[0].value == next(known.title for known in course() if known.id == lesson)
    told = [translated(text, "en") for text in TASKS[lesson].texts] + [
        "No run that you started from this task has finished yet", "Open the task in Lab"]
    links = [link.proto.label for link in page.get("page_link")]
    assert not [words for words in told if words in texts(page) or words in links]  # it could answer the question
    assert "The task appears after your prediction." in texts(page)
    page.session_state["course_predicted"] = frozenset({lesson})
    page.run()
    links = [link.proto.label for link in page.get("page_link")]
    assert not [words for words in told if words not in texts(page) and words not in links]
    assert "The task appears after your prediction." not in texts(page)


def test_a_task_says_what_the_newest_run_shows_until_a_run_solves_it(reader: str) -> None:
    tried(reader, "epsilon")
    page = read_by(reader, "learn", lesson="epsilon")
    assert "ε merges too much, try a larger ε" in page.info[0].value
    tried(reader, "epsilon", epsilon=0.7)
    page.run()
    assert page.success[0].value.startswith("At ε = 0.7 ")
    assert page.success[0].value.endswith(": solved.")
    log = page.dataframe[0].value
    assert ["0.7" in tried for tried in log["what you tried"]] == [True, False]  # newest first
    assert log["what came out"][0].endswith(": solved.")
    assert "try a larger ε" in log["what came out"][1]
    other = read_by("f" * 16, "learn", lesson="epsilon")
    assert not other.success
    assert "No run that you started from this task has finished yet" in texts(other)


def test_a_run_that_is_started_in_lab_belongs_to_the_task_in_its_address(
        reader: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("udml_core.work.jobs.launch.launch", lambda *_: None)
    before = {*runs_folder().glob("*/spec.json")}
    for name, lesson in ((reader, "epsilon"), (reader, ""), ("", "epsilon")):
        page = read_by(name, "train", **TASKS["epsilon"].query, **({"task": lesson} if lesson else {}))
        next(button for button in page.button if button.label == "Start training").click().run()
    started = {*runs_folder().glob("*/spec.json")} - before
    files = [json.loads(file.read_text()) for spec in started if (file := spec.with_name(STARTED_FILE)).exists()]
    assert files == [{"lesson": "epsilon", "reader": reader}]
    assert len(started) == 3


def test_the_course_is_downloaded_with_links_to_this_app_where_others_reach_it() -> None:
    page = opened("learn")
    assert any(button.label == "Download the course" for button in page.get("download_button"))
    with zipfile.ZipFile(io.BytesIO(course_archive("http://school:9000"))) as archive:
        names = set(archive.namelist())
        content = archive.read("lessons/epsilon.html").decode()
    assert names == {"lessons/index.html", *(f"lessons/{lesson.id}.html" for lesson in course())}
    assert '"app": "http://school:9000"' in content
    assert "localhost:8501" not in content


def test_the_task_and_its_answer_follow_the_language_of_the_course(reader: str) -> None:
    task = TASKS["epsilon"]
    page = opened("learn", lesson="epsilon", language="de")
    assert translated("The task appears after your prediction.", "de") in texts(page)
    assert translated(task.text, "de") in texts(read_by(reader, "learn", lesson="epsilon", language="de"))
    tried(reader, "epsilon")
    page = read_by(reader, "learn", lesson="epsilon", language="de")
    assert page.info[0].value.startswith("Bei ε = 0,5 decken")
    assert page.subheader[0].value == translated("Try it with a real run", "de")


def test_lab_shows_the_task_and_what_the_runs_say(reader: str) -> None:
    task = TASKS["triplets"]
    tried(reader, "triplets", alpha=60.0)
    page = read_by(reader, "lab", **task.query, task="triplets")
    words = translated(task.text, "en")  # with a space before % that does not break
    assert words != task.text
    assert words in texts(page)
    assert "violate their bound in the last epoch at α = 60°" in texts(page)
    assert words not in texts(opened("lab", **task.query))
    assert not opened("lab", task="thirteenth").exception


def test_the_task_on_triplets_explains_its_words_and_leaves_only_the_angle_to_change(
        reader: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("udml_core.work.jobs.launch.launch", lambda *_: None)
    task = TASKS["triplets"]
    before = {*runs_folder().glob("*/spec.json")}
    page = read_by(reader, "train", **task.query, task="triplets")
    for term in ("Triplet: an anchor A, a positive P", "α: the largest half angle at N", "Violated: the half angle"):
        assert term in texts(page)
    next(button for button in page.button if button.label == "Start training").click().run()
    (started,) = {*runs_folder().glob("*/spec.json")} - before
    spec = json.loads(started.read_text())
    assert {name: spec[name] for name in ("dataset", "method")} == {"dataset": "digits", "method": "rpml"}
    assert {name: spec["fields"][name] for name in ("alpha", "dimension", "mining")} == {
        "alpha": 45.0, "dimension": 8, "mining": "random"}
    german = texts(read_by(reader, "learn", lesson="triplets", language="de"))
    assert "Triplet: ein Anker A" in german


def test_a_link_to_a_missing_lesson_opens_the_path() -> None:
    page = opened("learn", lesson="thirteenth")
    assert not page.exception
    assert page.title[0].value == "Learn"


@pytest.mark.parametrize(("language", "title", "teachers", "mark"), [
    ("de", "Lernen", "Für Lehrende", "(englisch)"), ("es", "Aprender", "Para docentes", "(en inglés)")])
def test_the_page_speaks_the_language_of_the_course(language: str, title: str, teachers: str, mark: str) -> None:
    page = opened("learn", language=language)
    assert page.title[0].value == title
    assert [box.label for box in page.expander] == [teachers]
    assert {translated(name, language) for name in ("Download the course", "Add answers")} <= {
        button.label for button in (*page.button, *page.get("download_button"))}
    assert translated("Class summary", language) in texts(page)
    record_answer(runs_folder(), "epsilon", "before", 0, secrets.token_hex(8))
    table = opened("learn", language=language).dataframe[0].value
    assert next(iter(table)) == translated("lesson", language)
    assert not [name for name in table if name.startswith(("answers ", "correct ", "solved "))]
    lesson = read_by(secrets.token_hex(8), "learn", language=language, lesson="epsilon")
    assert [link.proto.label for link in lesson.get("page_link") if link.proto.label.endswith(mark)]
