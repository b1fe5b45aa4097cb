"""The second opinion of a run: the judges' differences, who may judge, and what it never reads."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import timm
import torch

from tests.numerics.test_second_opinion import noisy, world
from tests.running import worked, write_digits
from udml_core.base.arrays import misfit
from udml_core.base.errors import UserError
from udml_core.data.encoders import Encoder, choose_spec
from udml_core.data.features import features_of
from udml_core.data.speed import measured_speed
from udml_core.numerics.neighbors import nearest
from udml_core.numerics.refinement import Refiner
from udml_core.numerics.refinement.linear import unit_rows
from udml_core.numerics.second_opinion import Interval, Judge, Opinion, judge_rankings, second_opinion
from udml_core.runs import Run
from udml_core.runs.analyses import analysis_at, plan_analysis
from udml_core.runs.analyses.kinds.opinion import JUDGES, Opinions, SecondOpinion
from udml_core.runs.analyses.kinds.refine import Refinement
from udml_core.work.workers import analyse


class WithoutLabels:
    """A run of which only the vectors are known: reading its data set fails."""

    backbone = "squeezenet"

    def __init__(self, vectors: dict[str, np.ndarray], judges: dict[str, np.ndarray]) -> None:
        self._vectors, self._judges = vectors, judges

    def report(self, _share: float, _step: str) -> None: ...

    def indices(self, _scope: str) -> np.ndarray:
        return np.arange(len(self._vectors["frozen"]))

    def vectors(self, frame: str, indices: np.ndarray) -> np.ndarray:
        return self._vectors[frame][indices]

    def training_indices(self) -> np.ndarray:
        return np.zeros(0, np.int64)

    def part_features(self) -> list[np.ndarray]:
        return []

    def judge_features(self, backbone: str) -> np.ndarray:
        return self._judges[backbone]

    def judge_views(self, backbone: str, indices: np.ndarray) -> np.ndarray:
        """Return views that differ little, but for the judge `unsteady`, which sees something else each time."""
        size = 20.0 if backbone == "cnn-unsteady" else 0.1
        return noisy(self._judges[backbone][indices], size, seed=1)


def opinions_of(kind: SecondOpinion, material: Any) -> Opinions:
    return kind.result(kind.compute(material))


def embeddings(seed: int = 0) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Return the embeddings of a run that training improves, and the features of a judge."""
    own, judged_by = world(seed)
    return {"frozen": noisy(own, 1.0), "initial": noisy(own, 2.0), "final": own}, judged_by


def test_judges_that_agree_decide_on_each_embedding_without_labels() -> None:
    vectors, features = embeddings()
    other = features + 0.1 * np.random.default_rng(3).normal(size=features.shape)
    kind = SecondOpinion(frames=("frozen", "initial", "final"), judges=("efficientnet-lite0", "pixels"))
    opinions = opinions_of(kind, WithoutLabels(vectors, {"efficientnet-lite0": features, "pixels": other}))
    assert opinions.verdicts("initial") == ("worse", "worse")
    assert opinions.verdicts("final") == ("better", "better")
    assert opinions.preferred() == "final"
    assert 10 <= opinions.group <= len(features) // 4


def test_each_step_of_a_second_opinion_is_named_and_timed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UDML_CACHE", str(tmp_path))
    vectors, features = embeddings()
    material, told = WithoutLabels(vectors, {"efficientnet-lite0": features}), list[tuple[float, str]]()
    monkeypatch.setattr(material, "report", lambda *at: told.append(at))
    SecondOpinion(frames=("frozen", "initial", "final"), judges=("efficientnet-lite0",)).compute(material)
    steps = list(dict.fromkeys(step for _, step in told))
    assert steps == ["judge EfficientNet-Lite0: comparing all images", "comparing the results"]
    assert [share for share, step in told if step == steps[1]] == [0.0, 0.5]
    assert measured_speed("judge efficientnet-lite0") is not None, "which gives the next opinion its time"


def test_a_steady_judge_that_sees_nothing_keeps_the_others_from_deciding_and_an_unsteady_one_does_not() -> None:
    vectors, features = embeddings()
    blind = np.random.default_rng(4).normal(size=features.shape)
    for name, verdict in (("cnn-steady", "cannot tell"), ("cnn-unsteady", "better")):
        kind = SecondOpinion(judges=("efficientnet-lite0", name))
        opinions = opinions_of(kind, WithoutLabels(vectors, {"efficientnet-lite0": features, name: blind}))
        assert opinions.verdicts("final").first == verdict, opinions.weights


def test_the_preferred_embedding_makes_no_first_result_worse() -> None:
    better, worse = Interval(0.1, 0.2, 0.01), Interval(0.2, 0.1, 0.01)
    most = Interval(0.1, 0.5, 0.01)
    opinions = Opinions("final", {"risky": {"cnn": Opinion(worse, most)}, "safe": {"cnn": Opinion(better, better)},
                                  "idle": {"cnn": Opinion(better, worse)}}, {"cnn": 1.0}, 20)
    assert opinions.preferred() == "safe"
    assert Opinions("final", {"risky": {"cnn": Opinion(worse, most)}}, {"cnn": 1.0}, 20).preferred() is None
    unclear = Interval(0.2, 0.21, 0.02)
    warned = {"cnn": Opinion(worse, most), "pixels": Opinion(unclear, most)}
    one_warns = Opinions("final", {"risky": warned}, {"cnn": 0.5, "pixels": 0.5}, 20)
    assert one_warns.verdicts("risky").first == "cannot tell"
    assert one_warns.preferred() is None
    for difference, name in ((-0.011, None), (-0.009, "shaky"), (0.01, "shaky")):
        shaky = {"cnn": Opinion(Interval(0.2, 0.2 + difference, 0.01), most)}
        assert Opinions("final", {"shaky": shaky}, {"cnn": 1.0}, 20).preferred() == name


def test_a_count_of_queries_is_stored_and_stops_a_verdict_that_it_contradicts() -> None:
    vectors, features = embeddings()
    kind = SecondOpinion(judges=("efficientnet-lite0",))
    arrays = dict(kind.compute(WithoutLabels(vectors, {"efficientnet-lite0": features})))
    opinions = kind.result(arrays)
    first, groups = (measured.count for measured in opinions.measured("final"))
    assert first is not None
    assert groups is not None
    assert first.leans == groups.leans == 1
    assert misfit(arrays, kind.shapes(arrays)) is None
    assert arrays["counts"].shape == (1, 1, 2, 4)
    arrays["counts"][0, 0, 1] = 1.0, 0.3, 0.2, 0.4
    assert kind.result(arrays).verdicts("final") == ("better", "cannot tell")
    del arrays["counts"]
    assert misfit(arrays, kind.shapes(arrays)) is None, "an earlier version stored no counts"
    assert kind.result(arrays).verdicts("final") == ("better", "better")
    assert kind.result(arrays).measured("final")[0].count is None


def test_recipes_refine_the_first_frame() -> None:
    vectors, features = embeddings()
    kind = SecondOpinion(frames=("frozen",), recipes=("whiten", "reduce:dimension=2"), judges=("efficientnet-lite0",))
    opinions = opinions_of(kind, WithoutLabels(vectors, {"efficientnet-lite0": features}))
    refined = Refiner("reduce:dimension=2").fit(vectors["frozen"]).neighbors(opinions.group).indices
    before = nearest(vectors["frozen"], opinions.group)[1]
    judge = Judge.of(features)
    expected = judge_rankings(judge, np.arange(len(features)), before, refined)
    assert opinions.opinions["reduce:dimension=2"]["efficientnet-lite0"] == expected
    assert opinions.verdicts("reduce:dimension=2") == ("worse", "worse")


def test_a_judge_with_the_features_that_training_began_with_is_refused() -> None:
    vectors, _ = embeddings()
    with pytest.raises(UserError, match="took no part"):
        opinions_of(SecondOpinion(judges=("copy",)), WithoutLabels(vectors, {"copy": vectors["frozen"]}))


def test_a_judge_that_is_the_judged_embedding_is_refused() -> None:
    vectors, _ = embeddings()
    assert set(SecondOpinion().frames) == {"frozen", "final"}
    rotation = np.linalg.qr(np.random.default_rng(0).normal(size=(vectors["final"].shape[1],) * 2))[0]
    for features in (vectors["final"], 3 * vectors["final"] @ rotation.astype(np.float32)):
        with pytest.raises(UserError, match="took no part"):
            opinions_of(SecondOpinion(judges=("own.npy",)), WithoutLabels(vectors, {"own.npy": features}))


def test_a_twin_is_left_out_with_its_reason_while_another_judge_decides() -> None:
    vectors, features = embeddings()
    material = WithoutLabels(vectors, {"efficientnet-lite0": features, "twin": 2 * vectors["frozen"]})
    opinions = opinions_of(SecondOpinion(judges=("efficientnet-lite0", "twin")), material)
    assert opinions.judges == ("efficientnet-lite0",)
    assert opinions == dataclasses.replace(opinions_of(SecondOpinion(judges=("efficientnet-lite0",)), material),
                                           left_out=opinions.left_out)
    assert [reason.partition(".")[0] for reason in opinions.left_out] == [
        "The judge twin has the features that it would judge"]
    kind = SecondOpinion()
    assert kind.lines(kind.findings(lambda: opinions))[0] == f"Left out: {opinions.left_out[0]}"
    material = WithoutLabels(vectors, {"pixels": features, "twin": 2 * vectors["frozen"]})
    with pytest.raises(UserError, match=r"Cannot tell: no judge is left\. The judge twin .*pip install timm"):
        opinions_of(SecondOpinion(judges=("pixels", "twin")), material)


@pytest.mark.slow
def test_poisoned_labels_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = worked(tmp_path, method="pca", fields={"dimension": 8}, split="all")
    dataset = run.dataset()
    rng = np.random.default_rng(0)
    judged_by = unit_rows(rng.normal(size=(len(dataset), 12)) + run.embeddings("final")[:, :1])
    monkeypatch.setattr(analyse.StoredMaterial, "judge_features", lambda *_: judged_by)
    monkeypatch.setattr(analyse.StoredMaterial, "judge_views", lambda _self, _name, images: judged_by[images])
    opinions = []
    for labels in (dataset.labels, rng.permutation(np.asarray(dataset.labels)), None):
        monkeypatch.setattr(Run, "dataset", lambda *_, labels=labels: dataclasses.replace(dataset, labels=labels))
        spec = plan_analysis(SecondOpinion, judges=("efficientnet-lite0",))
        opinions.append(analyse.keep(run, spec, lambda _share, _step: None).result())
        analysis_at(run, spec).remove()
    assert opinions[0] == opinions[1] == opinions[2]
    assert opinions[0].opinions["final"]["efficientnet-lite0"].groups.difference != 0


@pytest.mark.slow
def test_a_run_is_judged_by_each_encoder_but_its_own(tmp_path: Path) -> None:
    run = worked(tmp_path)
    spec = plan_analysis(SecondOpinion, judges=("efficientnet-lite0", "pixels"))
    opinions: Any = analyse.keep(run, spec, lambda _share, _step: None).result()
    dataset, test = run.dataset(), run.spec().halves(run.dataset()).test
    features = features_of(dataset, Encoder(choose_spec("efficientnet-lite0", dataset.native_size, dataset.gray)))
    frozen = features_of(dataset, Encoder(run.spec().encoder))
    expected = second_opinion(Judge.of(features[test]), unit_rows(frozen[test]), run.embeddings("final")[test],
                              opinions.group)
    assert opinions.opinions["final"]["efficientnet-lite0"] == expected
    assert set(opinions.weights) == {"efficientnet-lite0"}
    assert opinions.reference == "frozen"


@pytest.mark.slow
def test_a_refinement_is_judged_by_its_own_ranking(tmp_path: Path) -> None:
    run = worked(tmp_path)
    refined: Any = analyse.keep(run, plan_analysis(Refinement, recipe="rerank"), lambda _share, _step: None)
    spec = plan_analysis(SecondOpinion, judges=("efficientnet-lite0",), frames=("final", refined.id),
                         recipes=("rerank",))
    opinions: Any = analyse.keep(run, spec, lambda _share, _step: None).result()
    dataset, ranking = run.dataset(), refined.result_of(Refinement)
    assert opinions.opinions[refined.id] == opinions.opinions["rerank"]
    features = features_of(dataset, Encoder(choose_spec("efficientnet-lite0", dataset.native_size, dataset.gray)))
    depth = opinions.group
    expected = judge_rankings(Judge.of(features[ranking.indices]), np.arange(len(ranking.indices)),
                              ranking.before[:, :depth], ranking.neighbors[:, :depth])
    assert opinions.opinions[refined.id]["efficientnet-lite0"] == expected


@pytest.mark.slow
def test_the_command_line_prints_differences_with_their_intervals(tmp_path: Path) -> None:
    run = worked(tmp_path)
    spec = plan_analysis(SecondOpinion, judges=("efficientnet-lite0",))
    analyse.keep(run, spec, lambda _share, _step: None)
    opinions: Any = analysis_at(run, spec).result()
    kind = spec.build_kind()
    found = kind.findings(lambda: opinions)
    of = opinions.opinions["final"]["efficientnet-lite0"].groups
    assert found["opinions"]["final"]["efficientnet-lite0"]["whole group"] == {
        "difference": of.difference, "low": of.low, "high": of.high}
    assert found["verdicts"]["final"] == {"first result": opinions.verdicts("final").first,
                                          "whole group": opinions.verdicts("final").groups}
    assert kind.lines(found)[1] == f"final against frozen, whole group: {opinions.verdicts('final').groups}"
    weight = opinions.weights["efficientnet-lite0"]
    interval = f"{of.difference:+.4f}, 95 % interval {of.low:+.4f} to {of.high:+.4f}"
    assert kind.lines(found)[3] == f"  efficientnet-lite0 (weight {weight:.2f}), whole group: {interval}"


@pytest.mark.parametrize("judges", [("pixels",), (), ("efficientnet-lite0", "squeznet")])
def test_a_run_without_an_independent_judge_is_refused(tmp_path: Path, judges: tuple[str, ...]) -> None:
    run: Run = worked(tmp_path)
    took_part = "pixels took part in this run.* --judges efficientnet-lite0`"
    with pytest.raises(UserError, match=rf"{took_part}|at least 1|got 'squeznet'"):
        plan_analysis(SecondOpinion, judges=judges).build_kind().check_run(run)


def test_one_embedding_is_not_compared_with_itself() -> None:
    with pytest.raises(UserError, match="name at least two frames, got final"):
        plan_analysis(SecondOpinion, frames=("final",))


def test_pixels_do_not_judge_alone() -> None:
    spec = SimpleNamespace(encoder=choose_spec("squeezenet", 8, gray=True), backbone="squeezenet")
    run: Any = SimpleNamespace(spec=lambda: spec)
    with pytest.raises(UserError, match=r"pixels cannot judge alone.*--judges pixels,efficientnet-lite0`"):
        SecondOpinion(judges=("pixels", "squeezenet")).check_run(run)
    SecondOpinion(judges=("pixels", "efficientnet-lite0")).check_run(run)


@pytest.mark.parametrize(("judges", "message"), [
    (JUDGES, r"efficientnet-lite0 and squeezenet took part in this run, and pixels cannot judge alone.*Name a further"),
    (("squeezenet",), r"efficientnet-lite0\+squeezenet:0.7 took part .*Name a further encoder or a table"),
    (("squeezenet+cnn",), "A judge is a single encoder")])
def test_no_encoder_judges_a_combination_that_it_is_a_part_of(judges: tuple[str, ...], message: str) -> None:
    spec = SimpleNamespace(encoder=choose_spec("efficientnet-lite0+squeezenet:0.7", 40, gray=False),
                           backbone="efficientnet-lite0+squeezenet:0.7")
    run: Any = SimpleNamespace(spec=lambda: spec)
    with pytest.raises(UserError, match=message):
        SecondOpinion(judges=judges).check_run(run)
    spec.backbone = "pixels+squeezenet"
    SecondOpinion().check_run(run)
    assert SecondOpinion().independent(spec.backbone) == ("efficientnet-lite0",)


def test_a_model_of_timm_judges_by_the_features_of_the_library(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The library downloads the weights on first use; here they are random."""
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))
    torch.manual_seed(0)
    state = timm.create_model("test_vit").state_dict()
    monkeypatch.setattr("timm.models._builder.load_state_dict_from_hf", lambda *_arguments, **_options: dict(state))
    images = str(write_digits(tmp_path / "images", 120))
    run = worked(tmp_path / "runs", method="pca", dataset=images, fields={"dimension": 2}, split="all")
    spec = plan_analysis(SecondOpinion, judges=("timm:test_vit", "pixels"))
    spec.build_kind().check_run(run)
    opinions: Any = analyse.keep(run, spec, lambda _share, _step: None).result()
    assert set(opinions.weights) == {"timm:test_vit"}, "pixels are the run's own encoder"
    assert 0 < opinions.weights["timm:test_vit"] <= 1, "it saw other views of the images"
    dataset = run.dataset()
    encoder = Encoder(choose_spec("timm:test_vit", dataset.native_size, dataset.gray))
    library: Any = timm.create_model("test_vit", dynamic_img_size=True).eval()
    library.load_state_dict(state)
    mean, deviation = (torch.tensor(library.pretrained_cfg[part]).view(1, 3, 1, 1) for part in ("mean", "std"))
    pixels = torch.from_numpy(np.stack([encoder.prepare(dataset.images[index]) for index in range(len(dataset))]))
    with torch.no_grad():
        features = library.forward_head(library.forward_features((pixels / 255 - mean) / deviation), pre_logits=True)
    expected = second_opinion(Judge.of(features.numpy()), unit_rows(features_of(dataset, Encoder(run.spec().encoder))),
                              run.embeddings("final"), opinions.group)
    own = opinions.opinions["final"]["timm:test_vit"]
    for of, library_says in ((own.first_results, expected.first_results), (own.groups, expected.groups)):
        for name in ("before", "after", "error"):
            assert getattr(of, name) == pytest.approx(getattr(library_says, name), abs=1e-4)
        assert abs(of.difference) > 0.01, "there is a difference to reproduce"
    judged = worked(tmp_path / "runs", method="frozen", dataset=images, split="all", backbone="timm:test_vit")
    with pytest.raises(UserError, match="timm:test_vit took part in this run and cannot judge it"):
        plan_analysis(SecondOpinion, judges=("timm:test_vit",)).build_kind().check_run(judged)


def test_a_table_of_vectors_judges_the_images_in_their_order(tmp_path: Path) -> None:
    run = worked(tmp_path)
    vectors = np.random.default_rng(0).normal(size=(len(run.dataset()), 6)).astype(np.float32)
    np.save(tmp_path / "vectors.npy", vectors)
    np.save(tmp_path / "short.npy", vectors[1:])
    spec = plan_analysis(SecondOpinion, judges=(str(tmp_path / "vectors.npy"),))
    spec.build_kind().check_run(run)
    opinions: Any = analyse.keep(run, spec, lambda _share, _step: None).result()
    (judge, weight), = opinions.weights.items()
    assert (judge, weight) == (spec.judges[0], 1.0)
    dataset, test = run.dataset(), run.spec().halves(run.dataset()).test
    frozen = unit_rows(features_of(dataset, Encoder(run.spec().encoder))[test])
    assert opinions.opinions["final"][judge] == second_opinion(Judge.of(vectors[test]), frozen,
                                                               run.embeddings("final")[test], opinions.group)
    with pytest.raises(UserError, match=r"A judge must have a vector for each image; .*short.npy has"):
        analyse.compute(run, plan_analysis(SecondOpinion, judges=(str(tmp_path / "short.npy"),)),
                        lambda _share, _step: None)
