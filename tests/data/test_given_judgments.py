"""The log of blind judgments: answers, undo, several people and comparisons, and damaged lines."""

from __future__ import annotations

import numpy as np
import pytest

from udml_core.base.errors import UserError
from udml_core.data.dataset import ArrayImages, Dataset
from udml_core.data.given.judgments import Judgment, JudgmentLog, judge_name
from udml_core.data.given.log import log_path_of


@pytest.fixture
def log(request: pytest.FixtureRequest) -> JudgmentLog:
    """The empty log of a comparison."""
    images = ArrayImages(np.zeros((6, 2, 2), np.uint8))
    dataset = Dataset("set", "Set", images, None, (), request.node.name, 2, True, tuple("abcdef"))
    return JudgmentLog(dataset, "x y test")


def judgment(query: str, better: str | None = "b", judge: str = "Ana") -> Judgment:
    return Judgment(judge, query, ("b", "c"), better)


def test_answers_are_read_as_they_were_stored(log: JudgmentLog) -> None:
    stored = [judgment("a"), judgment("d", None), judgment("e", "c"), judgment("a", "c", "Ben")]
    for each in stored:
        log.add(each)
    assert log.read() == stored
    assert JudgmentLog(log.dataset, "x z test").read() == []


def test_the_last_answer_about_a_query_counts_and_is_the_newest(log: JudgmentLog) -> None:
    for each in (judgment("a"), judgment("d"), judgment("a", None)):
        log.add(each)
    assert log.read() == [judgment("d"), judgment("a", None)]


def test_undo_reverts_the_answer_of_its_judge_about_its_query_alone(log: JudgmentLog) -> None:
    for each in (judgment("a"), judgment("d"), judgment("a", judge="Ben")):
        log.add(each)
    JudgmentLog(log.dataset, "x z test").revert("Ana", "a")
    assert len(log.read()) == 3
    log.revert("Ana", "a")
    log.revert("Ana", "a")
    assert log.read() == [judgment("d"), judgment("a", judge="Ben")]
    log.add(judgment("a", "c"))
    assert log.read()[-1] == judgment("a", "c")


def test_a_cut_line_and_foreign_lines_cost_nothing_else(log: JudgmentLog) -> None:
    log.add(judgment("a"))
    log.add(judgment("d"))
    path = log_path_of(log.dataset, "judgments")
    content = path.read_bytes()
    path.write_bytes(content[:-20])  # the writer was killed
    assert log.read() == [judgment("a")]
    log.add(judgment("e"))
    assert log.read() == [judgment("a"), judgment("e")]
    with path.open("ab") as file:
        for line in (b"\xff\xfe", b"[]", b'{"comparison": "x y test", "judge": 3, "query": "f"}',
                     b'{"comparison": "x y test", "judge": "Ana", "query": "f", "images": ["b"], "better": "b"}',
                     b'{"comparison": "x y test", "judge": "Ana", "query": "f", "images": ["b", "c"]}',
                     b'{"comparison": "x y test", "judge": "Ana", "query": "f", "images": ["b", "c"], "better": "d"}',
                     b'{"comparison": "x y test", "judge": "Ana", "undo": ["a"]}'):
            file.write(line + b"\n")
    assert log.read() == [judgment("a"), judgment("e")]


def test_names_of_judges_are_cleaned_and_bounded() -> None:
    assert judge_name("  Ana   Lee ") == "Ana Lee"
    assert judge_name(" ") == "me"
    with pytest.raises(UserError, match="at most 60 letters, got 61"):
        judge_name("x" * 61)
