"""The conclusion of race and judgments: what to use, how sure that is, and what is next, in every case."""

from __future__ import annotations

from itertools import product
from typing import get_args

import pytest

from tests.exploration.test_race import comparison, judged, race_of
from udml_core.exploration.race import Duel, Outcome, Race, Setup
from udml_core.exploration.race_advice import best_otherwise, both_aims_words
from udml_core.exploration.race_conclusion import SAYS, Conclusion, Judgments, Stance, conclude, subject_of
from udml_core.exploration.race_measured import Comparison, Count
from udml_core.exploration.race_words import decider_words
from udml_core.exploration.search_names import named_search, other_search, plain_name, recipe_once, steps_sentence

WON, CLOSE, LUCKY, LOST = (race_of(judged("Whitening", gain / 1000, 0.001)) for gain in (9, 3.4, 2.9, -2))
RACES = {"won": WON, "close": CLOSE, "lucky": LUCKY, "lost": LOST, "empty": race_of()}
LEFT = "about 10 to 20 more judgments could decide."


def judgments(stance: Stance) -> Judgments:
    """Return judgments that say something."""
    if stance == "none":
        return Judgments()
    return Judgments(stance, 14, score="3 of 14 for A, 1 for B, 10 equal", left=LEFT if stance == "open" else "")


def of(race: Race, stance: Stance, is_ready: bool = False) -> Conclusion:
    return conclude(race, judgments(stance), is_ready=is_ready)


@pytest.mark.parametrize(("name", "stance", "is_ready"), [*product(RACES, get_args(Stance), (False, True))])
def test_judgments_that_say_something_decide_and_the_race_decides_before(name: str, stance: Stance,
                                                                         is_ready: bool) -> None:
    race = RACES[name]
    said, candidate = of(race, stance, is_ready), subject_of(race)[1]
    decides = stance not in ("none", "open") and candidate is not None
    assert said.is_judged == decides
    wanted = (stance == "better" if decides else race.best is not None)
    assert (said.use is not None) == wanted
    assert said.use in (None, candidate)
    assert said.headline.startswith(("Best search", "Better search")) == wanted
    assert not decides or "your 14 judgments" in said.headline
    assert said.is_overruled == (decides and stance != "better" and race.best is not None)
    assert (said.verdict is None) != decides
    assert SAYS[said.basis] == said.verdict
    assert (said.action in ("use", "name")) <= wanted
    assert (said.action == "search") <= (not wanted)
    assert len(set(said.sentences)) == len(said.sentences), "nothing is said twice"


def test_a_conclusion_names_the_judgments_and_puts_the_race_second() -> None:
    level = of(WON, "level")
    assert level.headline == "Either search will do: your 14 judgments cannot tell which is better."
    assert level.sure == "How sure: 3 of 14 for A, 1 for B, 10 equal."
    assert level.beside == "The judges of the race prefer the refined search (whitening)."
    assert (level.next_step, level.action) == ("Search with either; the plain search is simpler.", "search")
    for race, verb in ((WON, "confirmed"), (LUCKY, "preferred")):
        assert of(race, "better").headline == (
            f"Better search, {verb} by your 14 judgments: the refined search (whitening).")
    assert of(WON, "worse").headline == "Keep the plain search: your 14 judgments prefer it."
    several = Judgments("worse", 1, "Ann and Bob", "", "X finds the better image in 60 to 90 %")
    assert conclude(WON, several).headline == "Keep the plain search: 1 judgment by Ann and Bob prefers it."


def test_a_training_whose_gain_nobody_could_see_is_not_advised_for_first_results() -> None:
    """Judges alone prefer it, the benchmark knows no such gain, and its differences are too few for judgments."""
    plm = judged("PLM", 0.02, 0.001, "plm", changed=0.13)
    measured = plm.against_start
    assert measured is not None
    for better, worse, is_seen in ((0.07, 0.06, False), (0.12, 0.01, True)):
        first = measured.first.model_copy(update={"count": Count(
            changed=0.13, better=better, worse=worse, low=better - 0.001, high=better + 0.001)})
        against = measured.model_copy(update={"first": first})
        race = race_of(plm.model_copy(update={"against_best": against, "against_start": against})).model_copy(
            update={"images": 1500})
        said = of(race, "none")
        assert race.best is not None
        assert (said.use is not None) == is_seen
        assert of(race, "better").use is not None, "eyes have the last word"
        assert conclude(race, is_done=False).use is not None, "a race in progress says what is better so far"
        assert of(race.model_copy(update={"serves": "groups"}), "none").headline != said.headline
        if not is_seen:
            assert said.headline == (
                "Keep the plain search: what the trained search (PLM) changes is too little to be seen.")
            assert said.beside == ("The judges of the race prefer it, but the benchmark knows no training without "
                                   "labels that finds more right first images.")
            assert (said.action, said.is_overruled, said.is_judged) == ("search", True, False)


def test_what_is_next_follows_from_how_sure_the_conclusion_is() -> None:
    assert of(WON, "none").action == "use"
    assert of(WON, "none", is_ready=True).action == "name"
    for is_ready in (False, True):
        close = of(CLOSE, "none", is_ready)
        assert (close.action, close.sure.partition(":")[0]) == ("judge", "Slightly better, a close call")
    assert of(WON, "open").next_step == (
        f"Your 14 judgments do not decide yet (3 of 14 for A, 1 for B, 10 equal): {LEFT}")
    assert of(WON, "open", is_ready=True).action == "judge"
    assert of(WON, "better").action == "use"
    assert of(LUCKY, "none").next_step.startswith("Keep the plain search; to decide it, judge the largest gain")
    assert of(RACES["empty"], "none").action == "again"
    stopped = conclude(RACES["empty"], is_done=False)
    assert (stopped.action, stopped.headline) == ("", "No candidate is judged yet.")
    assert stopped.next_step == "Continue the race.", "the page's button stands above"


def test_judgments_that_lean_against_the_advice_keep_the_plain_search_until_they_decide() -> None:
    score = "8 of 31 for the plain search, 4 for the refined search (whitening), 19 equal"
    against = Judgments("open", 31, score=score, left=LEFT, is_behind=True)
    said = conclude(WON, against)
    assert (said.use, said.basis, said.is_judged, said.verdict) == (None, "doubted", False, None)
    assert said.headline == "Keep the plain search until you have decided: your 31 judgments lean to it."
    assert score in said.sure
    assert said.beside == "The judges of the race prefer the refined search (whitening): you can use it nevertheless."
    assert (said.next_step, said.action) == (f"Your 31 judgments do not decide yet: {LEFT}", "judge")
    assert said.is_overruled
    assert conclude(LUCKY, against).basis == "race", "nothing was advised"


def counted(race: Race, better: float, worse: float) -> Race:
    """Return a race on 1,500 images of which the only candidate's first results get better and worse in shares."""
    of = race.outcomes[0].against_start
    assert of is not None
    changes = {"changed": better + worse, "better": better, "worse": worse}
    outcome = race.outcomes[0].model_copy(update={"against_start": Comparison(
        **{name: getattr(of, name) for name in ("first", "groups", "judges")} | changes)})
    return race.model_copy(update={"outcomes": (outcome,), "images": 1500})


def test_judging_is_the_next_step_only_where_a_user_can_finish_it() -> None:
    """About 20 judgments show that 4 of 5 changed results are better, and hundreds that 19 against 16 are."""
    clear, even = counted(CLOSE, 0.12, 0.03), counted(CLOSE, 0.19, 0.16)
    assert of(clear, "none").next_step == "Confirm it by about 20 blind judgments before you use it."
    assert of(clear, "none").action == "judge"
    assert of(even, "none").next_step == (
        "Search with it if you like: it changes too little to be judged by eye.")
    assert of(even, "none").action == "use"
    assert "eyes" in " ".join(of(clear, "none").sentences)
    assert "with your eyes" not in " ".join(of(even, "none").sentences), "where eyes see too little"
    doubtful = counted(LUCKY, 0.12, 0.03), counted(LUCKY, 0.19, 0.16)
    assert [of(race, "none").next_step for race in doubtful] == [
        "Keep the plain search; to decide it, judge the largest gain yourself (about 20 judgments): the refined "
        "search (whitening).",
        "Keep the plain search: the refined search (whitening) changes too little to be judged by eye."]


def test_a_judge_that_decides_alone_is_named() -> None:
    race = WON.model_copy(update={"titles": {"net": "The net"}})
    shares = {share: decider_words(race.model_copy(update={"weights": {"net": share, "pixels": 1 - share}}))
              for share in (0.83, 0.74, 0.1)}
    assert shares == {0.83: "One judge decides: The net, a network that took no part.", 0.74: "",
                      0.1: "One judge decides: the raw pixels."}
    assert decider_words(race.model_copy(update={"weights": {"net": 1.0}})) == "", "there is no other"


def test_the_other_aim_is_answered_of_the_search_to_use_else_of_the_best_in_it() -> None:
    def race(*groups: tuple[str, float]) -> Race:
        return race_of(*(judged(name, 0.009, 0.001).model_copy(update={
            "against_start": comparison("better", "better" if gain > 0 else "worse", abs(gain)),
            "setup": Setup(backbone="net", recipe=name)}) for name, gain in groups))

    both = race(("whiten", 0.02), ("views+whiten", 0.05), ("reduce", -0.09))
    assert best_otherwise(both) == both.outcomes[1]
    assert both_aims_words(both, both.outcomes[0]) == "Whole groups (by looks, not by species or class): better."
    assert both_aims_words(both, both.outcomes[2]) == "Whole groups (by looks, not by species or class): worse."
    assert both_aims_words(both, None) == (
        "If you look at whole groups (by looks, not by species or class), use the refined search (several "
        "views of each image, then whitening), which is better there.")
    assert both_aims_words(race(("rerank", -0.09)), None) == ""


NAMES = {("", "frozen", "net"): "the plain search", ("whiten+average:k=10,alpha=3", "frozen", "net"): "the refined "
          "search",
         ("", "plm", "net"): "the trained search", ("whiten", "plm", "other"): "the trained search",
         ("whiten", "frozen", "other"): "the search with another network",
         ("", "frozen", "net+other"): "the search with two networks"}


@pytest.mark.parametrize(("recipe", "method", "backbone"), NAMES)
def test_each_kind_of_search_has_one_plain_name(recipe: str, method: str, backbone: str) -> None:
    setup = Setup(backbone=backbone, method=method, recipe=recipe)
    name = NAMES[recipe, method, backbone]
    assert plain_name(setup, WON.start) == name
    named = named_search(WON, setup)
    assert named.partition(" (")[0] == name
    assert ("(" in named) == (setup != WON.start)
    assert not any(sign.isdigit() for sign in named), "numbers of neighbors stand in the details"


def test_a_second_search_of_the_same_kind_is_another_one_and_says_in_which_number_it_differs() -> None:
    few, many, trained = (Setup(backbone="net", method=method, recipe=recipe) for method, recipe in (
        ("frozen", "average:k=4,alpha=3"), ("frozen", "average:k=10,alpha=3"), ("plm", "")))
    assert other_search(WON, few, trained) == "the refined search (averaging)"
    assert other_search(WON, few, many) == "another refined search (averaging with 4 neighbors)"
    assert other_search(WON, few, few) == named_search(WON, few)
    assert steps_sentence(WON, few) == "Steps of the refined search: averaging with 4 neighbors."
    assert steps_sentence(WON, trained) == ""


def test_a_recipe_stands_once_behind_the_first_mention_of_its_search() -> None:
    named, other = "the refined search (whitening)", "another refined search (averaging)"
    said = [f"Best: {named}.", f"T{named[1:]} beats {other}.", "Use the refined search."]
    assert recipe_once(said, named) == [said[0], f"The refined search beats {other}.", said[2]]
    assert recipe_once(said[2:], named) == ["Use the refined search (whitening)."]
    assert recipe_once(said, "the plain search") == said
    level = of(WON, "level")
    assert " ".join(level.sentences).count("(whitening)") == 1
    assert level.after(f"Use {named}.") == "Use the refined search."


def test_no_judge_decides_where_judgments_do() -> None:
    weighed = WON.model_copy(update={"weights": {"net": 0.9, "pixels": 0.1}, "titles": {"net": "The net"}})
    decides = "One judge decides: The net, a network that took no part."
    assert decides in conclude(weighed).sentences
    confirmed = conclude(weighed, Judgments("better", 12, "", "12 for it", "it is better"))
    assert confirmed.basis == "confirmed"
    assert decides not in confirmed.sentences


def test_the_other_aim_is_answered_as_the_race_answers_for_it() -> None:
    """Not by the largest gain there, where a simpler search does as well."""
    def candidate(recipe: str, gain: float) -> Outcome:
        return judged(recipe, 0.0, 0.001).model_copy(update={
            "against_start": comparison("cannot tell", "better", gain), "setup": Setup(backbone="net", recipe=recipe)})

    race = race_of(candidate("whiten", 0.04), candidate("whiten+average", 0.05))
    level = comparison("cannot tell", "cannot tell", 0.01)
    race = race.model_copy(update={"duels": (Duel(simpler=race.outcomes[0].setup, largest=race.outcomes[1].setup,
                                                  comparison=level),)})
    assert race.best is None
    assert best_otherwise(race) == race.serving("groups").best == race.outcomes[0]
    assert "use the refined search (whitening), which is better there" in both_aims_words(race, None)
