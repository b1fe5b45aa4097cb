"""What blind judgments say of two runs, and whether they agree with the second opinion."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.running import worked
from tests.runs.test_judging_rows import TOTAL, answer, rows_of
from udml_core.base.errors import capitalized
from udml_core.data.given.judged_pairs import choose_meaning
from udml_core.exploration.race_conclusion import STAYS
from udml_core.numerics.judgments import Share
from udml_core.runs.search import Retrieval
from udml_core.runs.search.differing import Side, compare
from udml_core.runs.search.judged_runs import judged_comparisons, judged_verdict, judgments_words
from udml_core.runs.search.judging import MOST, Judging


def test_judgments_say_better_or_worse_only_if_the_interval_excludes_one_half() -> None:
    verdicts = [judged_verdict(Share(9, mean, low, high)) for mean, low, high in (
        (0.9, 0.51, 1.0), (0.1, 0.0, 0.49), (0.7, 0.5, 0.9), (0.5, 0.2, 0.8))]
    assert verdicts == ["better", "worse", "cannot tell", "cannot tell"]


def test_words_stay_blind_until_judgments_decide_and_then_name_the_agreement() -> None:
    comparison, names = rows_of("words of runs"), ("X", "Y")
    judging = Judging(comparison)
    assert judgments_words(comparison, names, "better") == ""
    answer(judging, np.ones(TOTAL))
    assert judgments_words(comparison, names, "better") == (
        "Your judgments of the first ten results, Y against X, do not decide yet (1 of 20 judged).")
    while not judging.share("me").is_decided:
        answer(judging, np.ones(TOTAL))
    words = [judgments_words(comparison, names, said) for said in ("better", "worse", "cannot tell", None)]  # type: ignore[arg-type]
    assert all("; that is too one-sided for chance (95 % certainty)." in of for of in words)
    assert words[0].endswith("They agree with the second opinion on whole groups.")
    assert words[1].endswith("They contradict the second opinion on whole groups.")
    assert words[2] == words[3]
    assert words[3].endswith("for Y; that is too one-sided for chance (95 % certainty).")
    ana = Judging(comparison, "Ana")
    while ana.count("Ana") < judging.count("me"):
        answer(ana, np.full(TOTAL, 0.5))
    assert judgments_words(comparison, names).startswith("Blind judgments by me and Ana of the first ten results")


def test_judgments_of_frozen_features_are_found_under_both_of_their_names(tmp_path: Path) -> None:
    frozen, trained = worked(tmp_path, method="frozen"), worked(tmp_path)
    sides = Side(Retrieval(frozen), "frozen"), Side(Retrieval(trained), "final")
    dataset = sides[0].retrieval.dataset
    assert list(judged_comparisons(frozen, trained, dataset)) == []
    for results in ("first", "ten", "group"):
        judging = Judging(compare(*sides, results=results))  # type: ignore[arg-type]
        question = judging.question()
        assert question is not None
        judging.answer(question, "left")
    pair = (frozen, "frozen"), (trained, "final")
    expected = [(pair, "test", results) for results in ("first", "ten", "group")]
    assert list(judged_comparisons(frozen, trained, dataset)) == expected
    again = worked(tmp_path, method="frozen")
    assert list(judged_comparisons(again, trained, dataset)) == expected, "the same features in another run"
    assert [(sides[::-1], *rest) for sides, *rest in judged_comparisons(trained, again, dataset)] == expected


def test_words_say_that_judgments_under_other_words_wait() -> None:
    comparison = rows_of("waiting words")
    answer(Judging(comparison), np.ones(TOTAL))
    choose_meaning(comparison.dataset, "one bird")  # the first words describe the judgments before them
    choose_meaning(comparison.dataset, "one species")
    assert judgments_words(comparison, ("X", "Y")) == (
        "The first ten results, Y against X: your judgments wait under Judge. Not counted under the words one species: "
        "1 judgment for one bird.")


def test_words_say_when_further_judgments_would_hardly_decide() -> None:
    comparison, names = rows_of("level words"), ("X", "Y")
    judging = Judging(comparison)
    for better in "AB" * 10:
        answer(judging, np.full(TOTAL, float(better == "B")))
    more = f"all {TOTAL} queries would not decide either" if TOTAL <= MOST else f"more than {MOST} would be needed"
    assert judgments_words(comparison, names) == (
        "Your judgments of the first ten results, Y against X: 20 cannot tell which is better; "
        f"{more}. You can stop, and keep X.")
    assert judgments_words(comparison, names, has_plain=True).endswith(f"{more}. You can stop. {STAYS}")


def test_a_sentence_begins_with_a_capital_letter_also_in_bold() -> None:
    assert [capitalized(words) for words in ("**the search** finds", "the search", "**", "")] == [
        "**The search** finds", "The search", "**", ""]
