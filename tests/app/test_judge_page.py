"""The part Judge of the page Compare through AppTest: answers, undo, resuming, hidden names, and wrong links."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from pages.parts.compare.judge_pictures import _picture
from tests.app.opening import opened, texts
from tests.running import worked, write_digits
from tests.runs.test_asked import store_facts
from udml_core.base.errors import UserError
from udml_core.base.paths import dataset_cache
from udml_core.data.given.judged_pairs import choose_meaning
from udml_core.data.given.log import log_path_of
from udml_core.data.image_facts import FILE
from udml_core.runs import Run
from udml_core.runs.analyses import plan_analysis
from udml_core.runs.search import Retrieval
from udml_core.runs.search.differing import Side, compare
from udml_core.runs.search.judging import Choice, Judging
from udml_core.runs.search.judgment_files import write_judgments
from udml_core.runs.used import used_search
from udml_core.work.workers.analyse import keep

pytestmark = pytest.mark.usefixtures("own_places")
QUESTION = "#### Which image shows the same kind of thing as the query?"


@pytest.fixture(scope="module")
def run(places: Path) -> Run:
    """The only run in the folder."""
    return worked(places / "runs")


@pytest.fixture(autouse=True)
def no_judgments(run: Run) -> None:
    """Begin without judgments."""
    log_path_of(run.dataset(), "judgments").unlink(missing_ok=True)


def judged(run: Run, judge: str = "me", frames: tuple[str, str] = ("initial", "final")) -> Judging:
    """Return the stored session of a judge."""
    retrieval = Retrieval(run)
    return Judging(compare(Side(retrieval, frames[0]), Side(retrieval, frames[1])), judge)


def open_judge(run: Run, frames: tuple[str, str] = ("initial", "final"), **query: str) -> AppTest:
    test = opened("compare", part="Judge", a=f"{run.id}:{frames[0]}", b=f"{run.id}:{frames[1]}", **query)
    assert not test.exception
    return test


def press(test: AppTest, key: str) -> AppTest:
    test.button(key=key).click().run()
    assert not test.exception
    return test


def shown_images(test: AppTest) -> list[str]:
    """Return the data of the three pictures."""
    return [image.proto.imgs[0].url for image in test.get("image")]


def test_images_with_findings_of_quality_are_no_questions(run: Run) -> None:
    path = dataset_cache(run.dataset().fingerprint) / FILE
    assert "left out of the questions" not in texts(open_judge(run)), "without an audit"
    before = judged(run).comparison
    store_facts(run.dataset(), before.differing[:1])
    try:
        test = open_judge(run)
        assert "1 image that the audit lists under Quality (blurry or plain, for example) is left out" in texts(test)
        # A query that finds such an image is no question either.
        rest = zip(before.differing[1:].tolist(), before.candidates[1:].tolist(), strict=True)
        first = next(query for query, found in rest if before.differing[0] not in found)
        assert judged(run).question_at(0).query == first
        pairs = opened("retrieval", run=run.id, view='Where does "the same" end?')
        assert not pairs.exception
        assert "1 image that the audit lists under Quality (blurry or plain, for example) is left out" in texts(pairs)
    finally:
        path.unlink()


def test_answers_are_stored_undone_and_resumed(run: Run) -> None:
    test = open_judge(run)
    first = shown_images(test)
    assert len(first) == 3
    press(test, "judge-left-0")
    assert "Saved: the left image shows the same kind." in texts(test)
    second = shown_images(test)
    assert second != first
    keys = {button.label: button.proto.shortcut for button in test.button if button.proto.shortcut}
    assert keys == {"Left": "left", "Equal": "down", "Not sure": "n", "Right": "right", "Both are right": "b",
                    "Both are wrong": "w", "Undo": "u"}
    press(test, "judge-equal-1")
    assert "Saved: equal." in texts(test)
    question = judged(run).question_at(0)
    better = judged(run).judgments("me")[0].better
    assert better == run.dataset().names[question.left[0]]
    assert judged(run).values("me")[1] == 0.5
    assert shown_images(press(test, "judge-undo")) == second
    assert judged(run).count("me") == 1
    assert shown_images(open_judge(run)) == second, "a reload resumes"
    assert shown_images(open_judge(run, ("final", "initial"))) == second, "also with the embeddings exchanged"
    assert shown_images(open_judge(run, judge="Ana"))[1] == first[1], "another person begins at the first query"
    assert "**Not decided yet.** 1 of 20 judged, 0 of them equal." in texts(test).replace("\xa0", " ")
    assert "finds the better image" not in texts(test), "a range would tell which answers fall together"


def test_names_are_hidden_until_they_are_revealed_and_while_judging_goes_on(run: Run) -> None:
    test = open_judge(run)
    assert test.button(key="judge-reveal").disabled
    while (question := judged(run).question()) and question.position < 9:
        is_second_left = question.left == judged(run).comparison.options(question.position)[1]
        press(test, f"judge-{'left' if is_second_left else 'right'}-{question.position}")
    assert "Chance is ruled out with 95\xa0% certainty" in test.success[0].value
    everything = texts(test) + "".join(image.proto.imgs[0].alt for image in test.get("image"))
    for number in judged(run).comparison.differing[:10].tolist():
        assert run.dataset().names[number] not in everything
    assert "digit" not in everything
    assert "B (After training)" not in everything
    press(test, "judge-reveal")
    shown = texts(test).replace("\xa0", " ")
    assert "**B (After training) finds the better image more often. You can stop.**" in shown
    assert "How sure: 9 of 9 for B (After training); that is too one-sided for chance (95 % certainty)." in shown
    bar = next(of.proto.body for of in test.get("html") if "judge-range" in of.proto.body)
    (said,) = re.findall(r"finds the better image in ((?:more than \d+ and up|\d+) to \d+|\d+) %", shown)
    label = f"Share of B, an equal answer counted as half: {said} %"
    assert f'aria-label="{label}' in bar, "the numbers and the direction of the sentence"
    assert "B is always better" in bar
    assert QUESTION not in shown
    assert "**B (After training) better**: 9" in shown
    use = test.button(key="judge-use")
    assert (use.label, use.proto.type) == ("Search with it", "primary")
    press(test, "judge-hide")
    assert QUESTION in texts(test)
    press(test, "judge-left-9")
    assert "B (After training)" not in texts(test)


def test_rows_of_ten_are_judged_by_a_link_apart_from_first_results(run: Run) -> None:
    test = open_judge(run, results="ten")
    assert "#### Which of the two holds more images of the same kind as the query?" in texts(test)
    assert "among the first ten; only what differs is shown." in texts(test)
    keys = {test.button(key=f"judge-{choice}-0-ten").label: test.button(key=f"judge-{choice}-0-ten").proto.shortcut
            for choice in ("left", "equal", "unsure", "right")}
    assert keys == {"Left": "left", "Equal": "down", "Not sure": "n", "Right": "right"}
    shown = next(of.proto.body for of in test.get("html") if "judge-sets" in of.proto.body)
    assert ".png" not in shown
    assert "digit" not in shown
    press(press(test, "judge-left-0-ten"), "judge-equal-1-ten")
    assert "Saved: equal." in texts(test)
    retrieval = Retrieval(run)
    sides = Side(retrieval, "initial"), Side(retrieval, "final")
    assert Judging(compare(*sides, results="ten")).count("me") == 2
    assert judged(run).count("me") == 0
    press(test, "judge-undo")
    press(test, "judge-reveal")
    titles = [text.split("**: ")[0] for text in texts(test).splitlines() if " better**: " in text]
    assert titles == ["**A (Before training) better", "**B (After training) better", "**Neither better"]
    test.button_group(key="judge-results").set_value("first").run()
    assert QUESTION in texts(test)


def test_a_search_beside_the_plain_search_has_its_plain_name_in_the_result(run: Run) -> None:
    session = judged(run, frames=("frozen", "final"))
    question = session.question()
    assert question is not None
    session.answer(question, "left")
    shown = texts(press(open_judge(run, ("frozen", "final")), "judge-reveal"))
    assert "1 of 1 for A (the plain search)" in shown or "1 of 1 for B (the trained search)" in shown


def test_the_bar_counts_for_the_embedding_that_the_sentence_names(run: Run) -> None:
    session = judged(run)
    for at in range(3):
        question = session.question()
        assert question is not None
        session.answer(question, "right" if session.comparison.is_swapped("me", at) else "left")
    test = press(open_judge(run), "judge-reveal")
    shown = texts(test).replace("\xa0", " ")
    bar = next(of.proto.body for of in test.get("html") if "judge-range" in of.proto.body)
    (said,) = re.findall(r"; with an equal answer as half, the share of A \(Before training\) is (\d+ to \d+) %", shown)
    assert f'aria-label="Share of A, an equal answer counted as half: {said} %' in bar
    assert re.search("<span>0 %: B is always better</span>.*<span>100 %: A is always better</span>", bar)
    low, high = (float(of) for of in said.split(" to "))
    left, width = (float(of) for of in re.findall(r'class="band[^"]*" style="left:([\d.]+)%;width:([\d.]+)%"', bar)[0])
    assert (left, left + width) == (pytest.approx(low, abs=1), pytest.approx(high, abs=1)), "at the places of the text"


def test_two_people_are_combined_where_both_have_judged(run: Run) -> None:
    for judge, choice, count in (("Ana", "left", 4), ("Ben", "equal", 2)):
        session = judged(run, judge)
        for _ in range(count):
            question = session.question()
            assert question is not None
            session.answer(question, choice)  # type: ignore[arg-type]
    agreed = "Ben and Ana agree on 0 of 2 queries that both judged."
    test = open_judge(run, judge="Ben")
    assert agreed in texts(test), "before the names are revealed"
    press(test, "judge-reveal")
    assert "2 people judged the same 2 queries. After 2 judgments" in texts(test)
    assert agreed in texts(test)
    [table] = test.dataframe
    assert table.value["Judge"].tolist() == ["Ben", "Ana"]
    assert table.value["Judgments"].tolist() == [2, 4]


def test_a_single_run_is_judged_before_and_after(run: Run) -> None:
    test = opened("compare", part="Judge")
    assert not test.exception
    assert QUESTION in texts(test)
    assert test.query_params["b"] in (f"{run.id}:final", [f"{run.id}:final"])
    assert test.button_group(key="compare-part").options == ["Where they differ", "Judge"]


def test_no_part_of_a_judged_pair_of_one_run_is_a_dead_end(run: Run) -> None:
    test = open_judge(run)
    test.button_group(key="compare-part").set_value("Where they differ").run()
    assert not test.exception
    shown = texts(test)
    assert "**A** Before training · **B** After training." in shown
    assert "12 shown come last under Judge" in shown
    (link,) = (link.proto for link in test.get("page_link") if link.label == "Search in both side by side")
    assert "compare=initial~final" in link.query_string.replace("%7E", "~")
    parts = test.button_group(key="compare-part").options
    assert parts == ["Where they differ", "Judge"], "the other parts need two runs"
    test.button_group(key="compare-part").set_value("Judge").run()
    assert QUESTION in texts(test)
    assert test.query_params["part"] in ("Judge", ["Judge"]), "a reload shows the same"


@pytest.mark.parametrize(("query", "message"), [
    ({"a": "gone:final", "b": "gone:frozen"}, "other embeddings are compared"),
    ({"a": "RUN:final", "b": "RUN:final"}, "nothing to judge"),
    ({"a": "RUN:refine-000000000000", "b": "RUN:77"}, "nothing to judge"),
    ({"a": "RUN:initial", "b": "RUN:final", "judge": "x" * 500}, "Which image"),
    ({"a": "RUN:initial", "b": "RUN:final", "gallery": "nonsense"}, "Which image")], ids=lambda value: str(value)[:20])
def test_wrong_links_and_equal_embeddings_are_explained(query: dict[str, str], message: str, run: Run) -> None:
    test = opened("compare", part="Judge", **{name: value.replace("RUN", run.id) for name, value in query.items()})
    assert not test.exception
    assert message in texts(test)


def test_a_refinement_is_confirmed_by_a_link_and_without_labels(run: Run, places: Path) -> None:
    folder = write_digits(places / "unlabeled", 80, by_class=False)
    plain = worked(places / "plain" / "runs", dataset=str(folder), split="all", fields={"dimension": 8, "epochs": 1,
                                                                                       "steps": 1, "n_neighbors": 8})
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UDML_RUNS", str(places / "plain" / "runs"))
        refined = keep(plain, plan_analysis(kind="refine", recipe="whiten:k=4"), lambda _share, _step: None)
        link = next(link.proto for link in opened("refine", run=plain.id, recipe="whiten:k=4").get("page_link")
                    if link.proto.label == "Judge them blind")
        assert f"{refined.id}" in link.query_string
        searched = opened("retrieval", run=plain.id, compare=f"frozen~2~{refined.id}", add="3").get("page_link")
        assert any("frozen" in link.proto.query_string for link in searched
                   if link.proto.label == "Judge them blind")
        test = open_judge(plain, ("final", refined.id))
        assert QUESTION in texts(test)
        press(press(test, "judge-right-0"), "judge-reveal")
        assert "RPML, then whitening" in texts(test)
        answers = judged(plain, frames=("frozen", "final"))
        choices: tuple[Choice, ...] = ("left", "both right")
        for choice in choices:
            question = answers.question()
            assert question is not None
            answers.answer(question, choice)
        start = worked(places / "plain" / "runs", dataset=str(folder), split="all", method="frozen")
        again = opened("compare", part="Judge", a=f"{start.id}:final", b=f"{plain.id}:final")
        assert again.button(key="judge-right-2"), "the frozen features of another run are the same search"
        press(again, "judge-right-2")
        assert judged(plain, frames=("frozen", "final")).count("me") == 3
        other = opened("compare", part="Judge", a=f"{start.id}:final", b=f"{plain.id}:{refined.id}")
        assert other.button(key="judge-right-0"), "another search has judgments of its own"


def prefer(judging: Judging, side: int, count: int) -> None:
    """Judge queries in favor of A, 0, or B, 1."""
    for _ in range(count):
        question = judging.question()
        assert question is not None
        is_second_left = question.left == judging.comparison.options(question.position)[1]
        judging.answer(question, "left" if is_second_left == bool(side) else "right")


@pytest.mark.parametrize(("side", "label"), [(0, "Use the plain search"), (1, "Search with it")])
def test_the_search_that_judgments_prefer_is_used_at_one_click(side: int, label: str, places: Path,
                                                               monkeypatch: pytest.MonkeyPatch) -> None:
    root = places / "won" / "runs"
    start = worked(root, method="frozen", split="all")
    trained = worked(root, method="pca", split="all", fields={"dimension": 2})
    monkeypatch.setenv("UDML_RUNS", str(root))
    log_path_of(start.dataset(), "judgments").unlink(missing_ok=True)
    judging = Judging(compare(Side(Retrieval(start), "final"), Side(Retrieval(trained), "final")))
    prefer(judging, side, 12)
    test = opened("compare", part="Judge", a=f"{start.id}:final", b=f"{trained.id}:final")
    assert [each.label for each in press(test, "judge-reveal").button if each.proto.type == "primary"] == [label]
    press(test, "judge-use")
    assert test.session_state["page"] == "retrieval"
    assert used_search([start, trained]) == ((start, trained)[side], "final")


def test_an_embedding_with_which_no_search_begins_is_not_offered(run: Run) -> None:
    prefer(judged(run), 0, 9)
    test = press(open_judge(run), "judge-reveal")
    assert "judge-use" not in [each.key for each in test.button]
    assert test.button(key="judge-hide").proto.type == "primary"


def test_an_image_that_cannot_be_read_does_not_stop_the_session(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> str:
        raise UserError("The image 1.png could not be read.")

    monkeypatch.setattr("pages.parts.compare.judge_pictures.sharp", fail)
    _picture.clear()
    test = open_judge(run)
    assert {error.value for error in test.error} == {"The image 1.png could not be read."}
    press(test, "judge-unsure-0")
    assert judged(run).values("me") == [0.5]


def test_another_persons_file_is_imported_and_a_wrong_file_explained(run: Run) -> None:
    session = judged(run, "Ana")
    question = session.question()
    assert question is not None
    session.answer(question, "equal")
    written = write_judgments(session)
    log_path_of(run.dataset(), "judgments").unlink()
    test = open_judge(run)
    test.file_uploader(key="judge-file").upload("ana.json", written, "application/json").run()
    press(test, "judge-add")
    assert "Imported 1 judgment by Ana." in texts(test)
    assert judged(run).values("Ana") == [0.5]
    test.file_uploader(key="judge-file").upload("bad.json", b"{}", "application/json").run()
    press(test, "judge-add")
    assert "bad.json has the format None" in test.error[0].value


def test_answers_under_other_words_wait_until_they_are_counted_here_too(run: Run) -> None:
    press(press(open_judge(run), "judge-left-0"), "judge-both-wrong-1")
    try:
        choose_meaning(run.dataset(), "one number")
        assert judged(run).count("me") == 2, "the first words describe the judgments before them"
        choose_meaning(run.dataset(), "one digit")
        test = open_judge(run)
        assert "The same kind: one digit." in texts(test)
        assert "Not counted under the words one digit: 2 judgments for one number." in texts(test)
        assert judged(run).count("me") == 0
        press(test, "judge-keep")
        assert "Not counted under" not in texts(test)
        assert judged(run).count("me") == 2
    finally:
        choose_meaning(run.dataset(), "")


def test_the_question_stands_while_the_queries_are_compared(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise UserError("still comparing")

    monkeypatch.setattr("pages.parts.compare.judging.compare_contest", interrupt)
    shown = texts(open_judge(run))
    assert QUESTION in shown
