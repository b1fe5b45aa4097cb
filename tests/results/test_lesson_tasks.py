"""The tasks of the course: their texts, their addresses and their commands."""

from __future__ import annotations

import shlex

import pytest

from udml_core.methods import find_method
from udml_core.results.lesson_tasks import TASKS
from udml_core.results.lesson_texts import said, translated
from udml_core.results.lessons import course, lesson_file
from udml_core.runs import RunRequest
from udml_core.work import jobs

LESSONS = [lesson.id for lesson in course()]


def test_every_lesson_has_a_task_of_at_most_thirty_words() -> None:
    assert list(TASKS) == LESSONS
    assert max(len(task.text.split()) for task in TASKS.values()) <= 30


@pytest.mark.parametrize("lesson", LESSONS)
def test_the_address_and_the_command_of_a_task_start_the_same_run(lesson: str) -> None:
    task = TASKS[lesson]
    fields = jobs.read_fields(task.query.get(jobs.FIELDS, ""), find_method(task.options["method"]))
    assert fields == dict(task.fields)
    options = jobs.read_options(task.query)
    assert {name: str(value) for name, value in options.items() if name not in ("dataset", "method", "preset")} == {
        name: value for name, value in task.options.items() if name not in ("dataset", "method")}
    words = shlex.split(task.command.splitlines()[0])
    given = dict(zip(words[2::2], words[3::2], strict=True))
    assert words[:2] == ["udml", "train"]
    assert {f"--{name.replace('_', '-')}": value for name, value in task.options.items()}.items() <= given.items()
    assert [word.split("=")[0] for word in words if "=" in word] == list(task.fields)
    RunRequest.make(options | {"dataset": task.options["dataset"], "method": task.options["method"],
                               "fields": fields})


def test_an_exported_lesson_has_the_task_and_its_command() -> None:
    for lesson in course():
        content = lesson_file(lesson).decode()
        assert TASKS[lesson.id].text in content
        assert TASKS[lesson.id].command.splitlines()[0] in content


@pytest.mark.parametrize(("value", "german"), [
    ("8.1", "8,1"), ("+12.5", "+12,5"), ("α = 30.5°", "α = 30,5°"),
    ("45.0\N{NO-BREAK SPACE}%", "45,0\N{NO-BREAK SPACE}%"),
    ("[+1.2; −3.4], [0.5; 1.0]", "[+1,2; −3,4], [0,5; 1,0]"), ("average:k=5,alpha=0.5", "average:k=5,alpha=0.5"),
    ("E*0.5+S", "E*0.5+S"), ("1.5e-05", "1.5e-05"), ("v1.1", "v1.1"), ("20", "20")])
def test_a_result_has_decimal_commas_where_the_language_has(value: str, german: str) -> None:
    fact = said("At learning rate {rate} the loss goes from {first} to {last}, and the effective rank from {start} to "
                "{end}", rate=value, first="1", last="2", start="3", end="4")
    assert f" {german} " in fact.words("de")
    assert f" {value} " in fact.words("en")


def test_a_number_and_its_percent_sign_stay_on_one_line() -> None:
    for language in ("en", "de", "es"):
        for task in TASKS.values():
            assert " %" not in translated(task.text, language)
