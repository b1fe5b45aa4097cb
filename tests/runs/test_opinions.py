"""The verdict without labels in words, and how it is compared with measures from labels."""

from __future__ import annotations

import re
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.running import spec, worked
from udml_core.data.encoders import Encoder, choose_spec
from udml_core.data.features import features_of, features_path
from udml_core.exploration.race_figures import counts_words
from udml_core.numerics.second_opinion import Interval, Opinion
from udml_core.runs import Run, create_run
from udml_core.runs.analyses import analysis_at, create_analysis, plan_analysis
from udml_core.runs.analyses.kinds.opinion import Opinions, SecondOpinion, Verdicts
from udml_core.runs.analyses.kinds.refine import Refinement
from udml_core.runs.opinions import (
    OF_REFINEMENTS,
    OF_RUN,
    TRUST,
    adds_nothing,
    agreement,
    agreement_words,
    judge_weights,
    newest_opinion,
    obstacle,
    opinion_at,
    opinion_lines,
    opinion_of,
    opinion_words,
    start_words,
)
from udml_core.runs.recipe_choice import recipe_choice
from udml_core.runs.search_opinion import run_against_run
from udml_core.work import jobs
from udml_core.work.jobs import verdicts
from udml_core.work.jobs.follow_ups import planned
from udml_core.work.jobs.verdicts import said_lines
from udml_core.work.workers import analyse as worker

BETTER, WORSE, UNCLEAR = Interval(0.2, 0.3, 0.01), Interval(0.3, 0.2, 0.01), Interval(0.2, 0.21, 0.02)


def opinions(**judges: Opinion) -> Opinions:
    weights = {name: 1.0 - 0.1 * number for number, name in enumerate(judges)}
    return Opinions("frozen", {"final": judges}, weights, 30)


def keep_opinion(run: Run, first: Interval, groups: Interval, request: Any = OF_RUN, name: str = "final") -> None:
    """Store a finished second opinion of one judge."""
    values = np.array([[[[of.before, of.after, of.error] for of in (first, groups)]]])
    create_analysis(run, request, state="done", result={
        "compared": np.array([name]), "encoders": np.array(["squeezenet"]), "weights": np.array([0.5]),
        "group": np.array(30), "values": values})


DAMAGED = (b"", b"garbage", b"PK\x03\x04 cut")


def damage(run: Run, content: bytes, request: Any = OF_RUN) -> None:
    """Replace the file of a second opinion; an empty content cuts it in half."""
    path = analysis_at(run, request).folder / "result.npz"
    path.write_bytes(content or path.read_bytes()[:path.stat().st_size // 2])


@pytest.mark.parametrize("content", DAMAGED)
def test_a_damaged_second_opinion_counts_as_missing_and_is_computed_again_on_request(
        tmp_path: Path, content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    run, again = worked(tmp_path), list[str]()
    monkeypatch.setattr("udml_core.work.jobs.launch.start_again", lambda analysis: again.append(analysis.id))
    monkeypatch.setattr("udml_core.runs.analyses.AnalysisKind.check_run", lambda *_: None)
    for request, name in ((OF_RUN, "final"), (OF_REFINEMENTS, "whiten")):
        keep_opinion(run, BETTER, BETTER, request, name)
        jobs.analyse(run, request)
        assert again == [], "nothing is computed that is there"
        damage(run, content, request)
        assert opinion_of(run, request) is None
    assert opinion_lines(run) == said_lines(run) == []
    assert recipe_choice(run).opinions is None
    assert judge_weights([run], ["squeezenet"]) == {"squeezenet": 1.0}
    jobs.analyse(run, OF_RUN)
    assert again == [OF_RUN.id]


def test_what_further_judges_say_counts_once_they_have_judged(tmp_path: Path) -> None:
    run = worked(tmp_path)
    keep_opinion(run, WORSE, UNCLEAR)
    keep_opinion(run, BETTER, BETTER, OF_REFINEMENTS, "whiten")
    assert opinion_at(run).spec() == OF_RUN
    assert said_lines(run)[0].startswith("First result: worse. Whole group: no clear difference.")
    further = plan_analysis(SecondOpinion, judges=("timm:resnet18",))
    time.sleep(0.01)
    analysis = create_analysis(run, further)
    assert opinion_at(run).spec() == OF_RUN, "until they have judged"
    analysis.remove()
    keep_opinion(run, BETTER, BETTER, further)
    assert opinion_at(run).spec() == further
    assert newest_opinion(run) == opinion_of(run, further)
    assert said_lines(run)[0].startswith("First result: better. Whole group: better.")
    assert opinion_of(run) is not None, "sweeps compare runs by the same judges"


@pytest.mark.parametrize(("said", "agreed"), [("better", "The labels agree."), ("worse", TRUST)])
def test_labels_stand_beside_what_a_race_says_of_a_run(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: Any, agreed: str) -> None:
    run = worked(tmp_path)
    keep_opinion(run, UNCLEAR, UNCLEAR)
    raced = SimpleNamespace(is_raced=True, note="", verdicts=Verdicts("cannot tell", said))
    monkeypatch.setattr(verdicts, "said_of_run", lambda *_: raced)
    monkeypatch.setattr(verdicts, "race_words_of", lambda *_: "In the race.")
    first = said_lines(run)[0]
    assert first.startswith("In the race. ")
    assert first.endswith(agreed), "the run finds more of a group"


def test_the_sentence_states_both_verdicts_and_the_judges() -> None:
    assert opinion_words(opinions(squeezenet=Opinion(BETTER, UNCLEAR))) == (
        "First result: better. Whole group: no clear difference. Compared with the plain search, without labels, by "
        "SqueezeNet 1.1, which took no part in this run.")
    both = opinions(squeezenet=Opinion(WORSE, BETTER), pixels=Opinion(WORSE, BETTER))
    assert opinion_words(both, reference="the embedding after training") == (
        "First result: worse. Whole group: better. Compared with the embedding after training, without labels, by "
        "SqueezeNet 1.1 (counts for 53 %), which took no part in this run, and the raw pixels (count for 47 %), "
        "which differ as soon as an object moves.")


def test_the_sentence_names_no_judge_that_hardly_counts() -> None:
    judges = {name: Opinion(BETTER, BETTER) for name in ("pixels", "squeezenet")}
    said = [opinion_words(Opinions("frozen", {"final": judges}, {"squeezenet": 0.5, "pixels": weight}, 30))
            for weight in (0.05, 0.06, 0.0)]
    assert ["raw pixels" in words for words in said] == [False, True, False]
    alone = Opinions("frozen", {"final": {"pixels": Opinion(BETTER, BETTER)}}, {"pixels": 0.0}, 30)
    assert opinion_words(alone).endswith("by the raw pixels, which differ as soon as an object moves.")


@pytest.mark.parametrize(("verdict", "difference", "expected"), [
    ("better", 1.0, "agree"), ("better", -1.0, "disagree"), ("worse", -1.0, "agree"), ("worse", 1.0, "disagree"),
    ("cannot tell", 1.0, "undecided"), ("better", 0.0, "undecided")])
def test_verdicts_agree_with_labels_if_the_signs_are_equal(verdict: Any, difference: float, expected: str) -> None:
    evaluation = {"frozen": {"recall@1": 50.0, "map@r": 30.0}, "final": {"recall@1": 50.0 + difference, "map@r": 29.0}}
    assert agreement(Verdicts(verdict, "better"), evaluation) == {"recall@1": expected, "map@r": "disagree"}
    assert agreement(Verdicts(verdict, "better"), {"final": {"effective rank": 3.0}}) == {}


def test_a_run_has_the_verdict_of_its_finished_second_opinion(tmp_path: Path) -> None:
    run = worked(tmp_path)
    assert opinion_of(run) is None
    assert recipe_choice(run).opinions is None
    keep_opinion(run, BETTER, WORSE)
    assert opinion_of(run).verdicts("final") == ("better", "worse")  # type: ignore[union-attr]
    keep_opinion(run, UNCLEAR, BETTER, OF_REFINEMENTS, "whiten")
    assert recipe_choice(run).recipe == "whiten"


def test_no_refinement_is_preferred_that_makes_the_first_result_worse(tmp_path: Path) -> None:
    run = worked(tmp_path)
    keep_opinion(run, WORSE, BETTER, OF_REFINEMENTS, "whiten+average:k=5")
    assert recipe_choice(run).recipe == ""


def test_second_opinions_follow_a_run_between_its_maps(tmp_path: Path) -> None:
    run = worked(tmp_path)
    assert [spec.kind for spec in planned(run)] == ["opinion", "umap", "grid", "opinion", "tsne"]
    assert planned(run)[::3] == (OF_RUN, OF_REFINEMENTS), "whether training helped comes first"


@pytest.mark.parametrize(("verdicts", "recall", "precision", "words"), [
    (("better", "better"), 1.0, 2.0, "The labels agree."),
    (("better", "better"), -1.2, 2.0, f"The labels say otherwise: R@1 falls by 1.2 points. {TRUST}"),
    (("worse", "worse"), 1.0, 0.4, "The labels say otherwise: R@1 rises by 1.0 point and MAP@R rises by 0.4 points. "
     f"{TRUST}"),
    (("better", "better"), 0.0, 2.0, "The labels agree on MAP@R."),
    (("cannot tell", "better"), -3.0, 2.0, "The labels agree."),
    (("cannot tell", "cannot tell"), 1.0, 2.0, "")])
def test_a_sentence_says_whether_labels_agree(verdicts: Any, recall: float, precision: float, words: str) -> None:
    evaluation = {"frozen": {"recall@1": 50.0, "map@r": 30.0},
                  "final": {"recall@1": 50.0 + recall, "map@r": 30.0 + precision}}
    assert agreement_words(Verdicts(*verdicts), evaluation) == words
    assert agreement_words(Verdicts(*verdicts), {"final": {"effective rank": 3.0}}) == ""


def test_the_lines_of_a_second_opinion_name_each_judge_with_its_interval(tmp_path: Path) -> None:
    run = worked(tmp_path)
    assert opinion_lines(run) == []
    keep_opinion(run, BETTER, WORSE)
    words, first, groups = opinion_lines(run)
    assert words.startswith("First result: better. Whole group: worse. Compared with the plain search")
    assert first == "First result, SqueezeNet 1.1 (weight 0.50): +0.1000, 95 % interval +0.0804 to +0.1196"
    assert groups.startswith("Whole group, SqueezeNet 1.1 (weight 0.50): -0.1000")


def test_two_runs_are_compared_by_the_judges_of_both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The judge sees the one embedding in its own features, and noise in the other."""
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))
    run, other = worked(tmp_path), worked(tmp_path, seed=1)
    dataset = run.dataset()
    assert run_against_run(run, other, dataset) is None, "no second opinions"
    for of in (run, other):
        keep_opinion(of, BETTER, BETTER)
    assert run_against_run(run, other, dataset) is None, "no stored features"
    features = np.random.default_rng(0).normal(size=(len(dataset), 12)).astype(np.float32)
    path = features_path(dataset, choose_spec("squeezenet", dataset.native_size, dataset.gray))
    path.parent.mkdir(parents=True, exist_ok=True)
    np.save(path, features)
    run.write_embeddings("final", features[:, :10])
    opinions, reverse = run_against_run(run, other, dataset), run_against_run(other, run, dataset)
    assert opinions is not None
    assert reverse is not None
    assert opinions.verdicts("final") == ("better", "better")
    assert reverse.verdicts("final") == ("worse", "worse")
    of, reversed_of = (pair.counts["final"]["squeezenet"][0] for pair in (opinions, reverse))
    assert of.share == reversed_of.share > 0.5
    assert of.low > 0.5 > reversed_of.high
    counted, reverse_counted = (counts_words(pair.measured("final")[0]) for pair in (opinions, reverse))
    better, worse = re.findall(r"\d+", counted)[1:]
    assert int(better) > int(worse)
    assert re.findall(r"\d+", reverse_counted)[1:] == [worse, better]
    itself = run_against_run(run, run, dataset)
    assert itself is not None
    assert [counts_words(measured) for measured in itself.measured("final")] == ["", ""], "nothing differs"


def test_the_steps_of_both_searches_are_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Averaging is compared in both orders, and with itself; that judges undervalue it depends on both recipes."""
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))
    run, other = worked(tmp_path), worked(tmp_path, seed=1)
    dataset = run.dataset()
    path = features_path(dataset, choose_spec("squeezenet", dataset.native_size, dataset.gray))
    path.parent.mkdir(parents=True, exist_ok=True)
    np.save(path, np.random.default_rng(0).normal(size=(len(dataset), 12)).astype(np.float32))
    own, frame = (worker.keep(of, plan_analysis(Refinement, recipe="average:k=4"), lambda _share, _step: None).id
                  for of in (run, other))
    plain = run_against_run(run, other, dataset)
    forward, backward = run_against_run(run, other, dataset, own=own), run_against_run(other, run, dataset, own)
    both = run_against_run(run, other, dataset, frame, own)
    assert plain is not None
    assert forward is not None
    assert backward is not None
    assert both is not None
    assert [of.measured("final")[0].untold for of in (plain, forward, backward, both)] == [
        (), ("worse",), ("better",), ()], "judges undervalue only averaging that the other search lacks"
    gains = [of.measured("final")[1].difference for of in (plain, forward, backward)]
    assert gains[1] == pytest.approx(-gains[2]), "the same two searches in the other order"
    assert gains[0] != pytest.approx(gains[1])


def test_no_twin_of_an_encoder_or_of_an_embedding_compares_two_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch
                                                                    ) -> None:
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))
    run, other = worked(tmp_path), worked(tmp_path, method="frozen", split=spec().split, fields={})
    dataset = run.dataset()
    own = np.asarray(features_of(dataset, Encoder(run.spec().encoder)))
    path = features_path(dataset, choose_spec("squeezenet", dataset.native_size, dataset.gray))
    path.parent.mkdir(parents=True, exist_ok=True)
    draw = np.random.default_rng(0)
    np.save(path, draw.normal(size=(len(dataset), 12)).astype(np.float32))
    for judged, compared in ((run, other), (other, run)):
        found = run_against_run(judged, compared, dataset)
        assert found is not None
        assert found.judges == ("squeezenet",)
    np.save(path, 3 * own @ np.linalg.qr(draw.normal(size=(own.shape[1],) * 2))[0].astype(np.float32))
    assert run_against_run(run, other, dataset) is None, "the encoder of both, under another name"
    np.save(path, np.asarray(run.embeddings("final")))
    assert run_against_run(run, other, dataset) is run_against_run(other, run, dataset) is None, "the embedding of one"


def test_what_cannot_have_a_second_opinion_says_why(tmp_path: Path) -> None:
    assert obstacle(worked(tmp_path)) == ""
    assert "this run's own embedding" in obstacle(worked(tmp_path, method="frozen"))


def test_a_gain_that_was_there_before_the_first_epoch_is_not_said_to_come_from_training(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = create_run(spec(), tmp_path)
    rows = [{"epoch": 0, "second opinion": 0.013}, {"epoch": 1, "second opinion": 0.010}, {"epoch": 2}]
    monkeypatch.setattr(Run, "metrics", lambda _run: (rows, []))
    nothing, whole = "No gain by training: to a judge, the start", "made the whole gain in whole groups."
    for kept, start, words in ((1, 0.013, nothing), (1, 0.010, nothing), (1, -0.001, whole), (1, 0.0004, whole),
                               (1, 0.004, "made about 60 % of the gain in whole groups. The rest was there before."),
                               (0, 0.013, nothing), (2, 0.013, "")):
        rows[0]["second opinion"] = start
        monkeypatch.setattr(Run, "kept_epoch", lambda _run, kept=kept: kept)
        assert words in start_words(run)
        assert bool(start_words(run)) == bool(words)
        assert adds_nothing(run) == (words == nothing)
