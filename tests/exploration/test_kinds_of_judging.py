"""The three kinds of judging in words: what each answers, what is done so far, and what is next."""

from __future__ import annotations

import pytest

from tests.exploration.test_race import judged, race_of
from udml_core.exploration.kinds_of_judging import judging_lines
from udml_core.exploration.race_conclusion import UNJUDGED, Judgments

RACE = race_of(judged("Whitening", 0.02, 0.002))


@pytest.mark.parametrize(("judgments", "so_far", "then"), [
    (UNJUDGED, "So far: none.", "Next: judge 20; they decide if one search is far better."),
    (Judgments("open", 3, score="2 of 3 for A, 1 for B", left="judge 17 more."),
     "So far: 3 judgments (2 of 3 for A, 1 for B).", "Next: judge 17 more."),
    (Judgments("worse", 1, judges="Ann"), "So far: 1 judgment by Ann.",
     "Next: nothing, your judgments have said what they can.")])
def test_blind_judgments_are_counted_and_say_what_is_next(judgments: Judgments, so_far: str, then: str) -> None:
    words = judging_lines(RACE, judgments, 0)["blind"]
    assert so_far in words
    assert words.endswith(then)


def test_judges_and_pairs_are_counted_too() -> None:
    own = judging_lines(RACE, UNJUDGED, 0, "Whole group: your 13 judgments agree.")["blind"]
    assert "So far: none. Of your search: Whole group: your 13 judgments agree. Next: judge 20" in own
    lines = judging_lines(RACE.model_copy(update={"images": 1500}), UNJUDGED, 1)
    assert "So far: 1 judge compared 1 search with the plain search on 1,500 images." in lines["race"]
    assert "So far: 1 pair. Next: go on" in lines["same"]
    assert "So far: 0 pairs. Next: begin" in judging_lines(RACE, UNJUDGED, 0)["same"]
