"""The course in Python: files, the command line, and the answers of a class."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from udml_core.base.errors import UserError
from udml_core.cli.commands import app
from udml_core.results import lessons
from udml_core.results.lessons import (
    choice_orders,
    course,
    find_lesson,
    read_answers,
    read_lesson,
    record_answer,
    right_choices,
)

READERS = ["0123456789abcdef", "fedcba9876543210"]


def test_every_lesson_is_read_with_its_questions() -> None:
    assert find_lesson("epsilon") in course()
    assert find_lesson("../epsilon") is None
    for lesson in course():
        assert lesson.title
        assert lesson.claim.endswith(".")
        assert 1 <= lesson.minutes <= 10
        assert set(right_choices(lesson)) == {"before", "after"}


def test_no_place_of_the_answers_is_right_more_often_than_chance() -> None:
    places = [{name: order.index(right_choices(lesson)[name]) for name, order in choice_orders(lesson).items()}
              for lesson in course()]
    assert all(sorted(order) == [0, 1, 2] for lesson in course() for order in choice_orders(lesson).values())
    for place in range(3):
        assert sum(list(both.values()).count(place) for both in places) <= 0.4 * 2 * len(places)
        assert all([both[name] for both in places].count(place) <= 5 for name in ("before", "after"))
    assert sum(both["before"] == both["after"] for both in places) <= len(places) / 3


def test_a_lesson_without_its_first_fields_is_refused_with_their_names(tmp_path: Path) -> None:
    path = tmp_path / "thirteenth.js"
    path.write_text('const LESSON = {\n  id: "thirteenth",\n  number: 13,\n  title: Who,\n};\n')
    with pytest.raises(UserError, match=r"thirteenth\.js must begin with the fields number, minutes, title"):
        read_lesson(path)


def test_an_exported_page_cannot_be_left_by_its_data(monkeypatch: pytest.MonkeyPatch) -> None:
    lesson = course()[0]
    monkeypatch.setattr(lessons.Lesson, "content", lambda _self: {"name": "</script><script>alert(1)</script>"})
    assert b"</script><script>" not in lessons.lesson_file(lesson)


def test_the_command_writes_the_course(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["lessons", str(tmp_path / "new" / "course"), "--json"])
    files = json.loads(result.stdout)["files"]
    assert files == ["index.html", *(f"{lesson.id}.html" for lesson in course())]
    assert all((tmp_path / "new" / "course" / name).stat().st_size > 1000 for name in files)


def test_the_answers_of_one_reader_are_deleted(tmp_path: Path) -> None:
    for reader in ("0" * 16, "1" * 16):
        lessons.record_answer(tmp_path, "epsilon", "before", 0, reader)
    lessons.remove_reader(tmp_path, "1" * 16)
    lessons.remove_reader(tmp_path, "epsilon")
    lessons.remove_reader(tmp_path / "missing", "0" * 16)
    assert lessons.read_answers(tmp_path)["epsilon", "before"] == {0: 1}


def test_the_first_answer_of_every_reader_counts(tmp_path: Path) -> None:
    for reader, choices in zip(READERS, ((0, 1), (2,)), strict=True):
        for choice in choices:
            assert record_answer(tmp_path, "epsilon", "before", choice, reader)
    assert read_answers(tmp_path) == {("epsilon", "before"): {0: 1, 2: 1}}
    lessons.clear_answers(tmp_path)
    assert read_answers(tmp_path) == {}


@pytest.mark.parametrize(("lesson", "question", "choice", "reader"), [
    ("../x", "before", 0, READERS[0]), ("epsilon", "during", 0, READERS[0]), ("epsilon", "before", -1, READERS[0]),
    ("epsilon", "before", True, READERS[0]), ("epsilon", "before", "0", READERS[0]), ("epsilon", "before", 0, "x" * 16),
    ("epsilon", "before", 0, READERS[0] + "\n"), ("epsilon", "task", 0, READERS[0])])
def test_malformed_answers_are_not_recorded(tmp_path: Path, lesson: str, question: str, choice: int,
                                            reader: str) -> None:
    assert not record_answer(tmp_path, lesson, question, choice, reader)
    assert not (tmp_path / "lessons").exists()


def test_the_answers_survive_an_incomplete_line_and_stop_at_their_limit(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record_answer(tmp_path, "epsilon", "after", 1, READERS[0])
    path = tmp_path / "lessons" / "answers.jsonl"
    path.write_bytes(path.read_bytes() + b'\n[1]\nnull\n["epsilon", "aft\xff')
    record_answer(tmp_path, "epsilon", "after", 0, READERS[1])
    assert read_answers(tmp_path) == {("epsilon", "after"): {1: 1, 0: 1}}
    monkeypatch.setattr(lessons, "MOST_BYTES", 10)
    assert not record_answer(tmp_path, "epsilon", "after", 0, "a" * 16)


def test_links_of_students_are_counted_once_and_listed(tmp_path: Path) -> None:
    link = f"http://school/index.html#answers={READERS[0]}:epsilon.0.1,metric.-.2.1,nonsense.0.0"
    other = f"file:///c/index.html#answers={READERS[1]}:epsilon.1.-"
    assert lessons.record_links(tmp_path, f"Dear teacher,\n{link}\n{other}\n#answers=xyz:epsilon.0.0") == 5
    assert lessons.record_links(tmp_path, link.replace("epsilon.0.1", "epsilon.1.0")) == 4
    assert read_answers(tmp_path) == {("epsilon", "before"): {0: 1, 1: 1}, ("epsilon", "after"): {1: 1},
                                      ("metric", "after"): {2: 1}, ("metric", "task"): {1: 1}}
    assert lessons.answers_csv(tmp_path).splitlines() == [
        "reader,lesson,question,choice,correct,when,tried,outcome",
        f"{READERS[0]},epsilon,after,1,1,,,",
        f"{READERS[0]},epsilon,before,1,1,,,",
        f"{READERS[1]},epsilon,before,2,0,,,", f"{READERS[0]},metric,after,3,1,,,",
        f"{READERS[0]},metric,task,,1,,,"]


def test_attempts_at_tasks_stand_in_the_table_of_answers(tmp_path: Path) -> None:
    lessons.record_answer(tmp_path, "epsilon", "after", 1, READERS[0])
    assert lessons.counted_readers(tmp_path) == [READERS[0]]
    row = (READERS[0], "epsilon", False, "2026-01-02 03:04", "epsilon 0.3", "At ε = 0.3: try a larger ε.")
    assert lessons.answers_csv(tmp_path, [row]).splitlines()[-1] == (
        f"{READERS[0]},epsilon,attempt,,0,2026-01-02 03:04,epsilon 0.3,At ε = 0.3: try a larger ε.")


def test_the_course_takes_less_than_four_megabytes(tmp_path: Path) -> None:
    assert sum(path.stat().st_size for path in lessons.export_course(tmp_path)) < 4_000_000
