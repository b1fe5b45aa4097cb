"""The page Refine, and the search in refined embeddings, through Streamlit's AppTest."""

from __future__ import annotations

import json
import shutil
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import streamlit as st
from PIL import Image
from streamlit.proto.Metric_pb2 import Metric as MetricProto
from streamlit.testing.v1 import AppTest

from pages.parts.refine.cards import with_step
from pages.parts.refine.live import load_live
from pages.parts.refine.query import moved, positions
from pages.parts.refine.recipe_effect import is_colorless
from pages.parts.retrieval.own_images import own_image
from pages.parts.shell.interesting import interesting_queries
from pages.parts.shell.run_status import escaped
from tests.app.opening import as_file, opened, switched, texts
from tests.running import worked, write_digits
from tests.runs.test_opinions import BETTER, UNCLEAR, WORSE, keep_opinion
from udml_core.base.files import replace_array
from udml_core.data.encoders import choose_spec
from udml_core.data.features import features_path
from udml_core.data.splits import make_split
from udml_core.exploration.race_figures import NO_VERDICT
from udml_core.exploration.refining import count_hits
from udml_core.numerics.measures import measure_of
from udml_core.numerics.neighbors import nearest
from udml_core.numerics.refinement import Recipe, Refiner, make_step
from udml_core.numerics.refinement.ranking_measures import retrieval_measures
from udml_core.numerics.second_opinion import Judge
from udml_core.results.records import FOLDER
from udml_core.runs import Run
from udml_core.runs.analyses import analysis_at, create_analysis, plan_analysis
from udml_core.runs.analyses.kinds.refine import Refinement
from udml_core.runs.opinions import OF_REFINEMENTS
from udml_core.runs.recipe_choice import request_on
from udml_core.work.jobs import launch
from udml_core.work.workers.analyse import keep

pytestmark = pytest.mark.usefixtures("own_places")
APPLIED = "average:k=6"
RIGHT, WHOLE = (measure_of(key).plain for key in ("recall@1", "map@r"))


@pytest.fixture(scope="module")
def run(places: Path) -> Run:
    """A finished run on the digits with a refinement of its test half."""
    finished = worked(places / "runs")
    keep(finished, plan_analysis(kind="refine", recipe=APPLIED), lambda _share, _step: None)
    return finished


@pytest.fixture(scope="module")
def plain_run(places: Path) -> Run:
    """A finished run without a refinement."""
    return worked(places / "runs", fields={"dimension": 16, "epochs": 1})


def components(test: AppTest, kind: str) -> list[dict[str, Any]]:
    """Return the headers of all components of a kind."""
    headers = []
    for element in test.get("bidi_component"):
        if element.proto.component_name == f"udml_{kind}":
            if element.proto.json:
                headers.append(json.loads(element.proto.json))
            else:
                data = element.proto.bytes
                headers.append(json.loads(data[4 : 4 + int.from_bytes(data[:4], "little")]))
    return headers


def tiles(test: AppTest, label: str) -> list[dict[str, Any]]:
    """Return the tiles of a gallery."""
    return next(header["tiles"]["list"] for header in components(test, "gallery") if header["label"].startswith(label))


def metric(test: AppTest, label: str) -> str:
    return next(metric.value for metric in test.metric if metric.label == label)


def test_the_ranking_before_is_by_distance_as_on_the_page_retrieval(run: Run) -> None:
    test_half = make_split(run.dataset(), "seen").test
    rows = np.asarray(run.embeddings("final"))[test_half].astype(float)
    query = next(row for row in range(len(rows)) if list(nearest_rows(rows, row)) != list(
        nearest_rows(rows / np.linalg.norm(rows, axis=1, keepdims=True), row)))
    test = opened("refine", run=run.id, query=str(test_half[query]))
    assert [tile["id"] for tile in tiles(test, "The 24 nearest images, before")] == test_half[
        nearest_rows(rows, query)].tolist()
    assert "Before refinement: nearest by Euclidean distance, as on the page Search." in texts(
        opened("refine", run=run.id, section="protocol"))


def test_a_current_image_of_the_training_half_is_represented_by_the_nearest_test_image(run: Run) -> None:
    split, points = make_split(run.dataset(), "seen"), run.embeddings("final")
    image = int(split.train[5])
    nearest = int(split.test[((points[split.test] - points[image]) ** 2).sum(axis=1).argmin()])
    shown = texts(opened("refine", run=run.id, query=str(image)))
    assert f"**Query: {run.dataset().caption(nearest)}**" in shown
    assert f"{run.dataset().caption(image)}, is not in the test half" in shown
    assert "is not in the test half" not in texts(opened("refine", run=run.id, query=str(nearest)))


def test_the_first_query_is_the_image_that_other_pages_show(run: Run) -> None:
    shared = interesting_queries(run)[0][0]
    test = switched(opened("explore", run=run.id), "refine")
    linked = opened("refine", run=run.id, query=str(shared))
    (query,) = (line for line in texts(linked).splitlines() if line.startswith("**Query: "))
    assert query in texts(test)
    sample = tiles(test, "Queries")[0]["id"]
    assert query not in texts(opened("refine", run=run.id, query=str(sample))), "not the page's own first sample"


def test_on_a_first_visit_the_query_changes_as_the_recipe_does_on_average_and_stays(run: Run) -> None:
    test = opened("refine", run=run.id, recipe="whiten+average:k=20,times=2,alpha=0")
    (query,) = (line for line in texts(test).splitlines() if line.startswith("**Query: "))
    live = load_live(run, recipe := Recipe.parse("whiten+average:k=20,times=2,alpha=0"))
    before, after = count_hits(live.gallery.refine(recipe), live.labels)
    change = float((after - before).mean())
    captions = [run.dataset().caption(int(live.images[row])) for row in live.gallery.before.queries]
    own = next(place for place, caption in enumerate(captions) if f"**Query: {escaped(caption)}**" in query)
    assert (after - before)[own] * change > 0, "it shows what the recipe does, no exception"
    assert abs((after - before)[own]) <= max(1.0, abs(change)), "it flatters no recipe"
    test.query_params["recipe"] = "diffuse"
    assert query in texts(test.run()), "another recipe is compared on the same query"


def nearest_rows(rows: np.ndarray, query: int) -> np.ndarray:
    """Return the 24 other rows nearest to a row by distance."""
    squared = ((rows - rows[query]) ** 2).sum(axis=1)
    return np.delete(np.argsort(squared), np.flatnonzero(np.argsort(squared) == query))[:24]


def test_distillation_is_offered_with_the_runs_data_and_its_record(plain_run: Run) -> None:
    test = opened("refine", run=plain_run.id, section="distill")
    assert not test.exception
    assert "a new image is found as if these steps were applied to it" in texts(test)
    links = {link.proto.label: link.proto for link in test.get("page_link")}
    assert "dataset=digits&method=distill" in links["Train it on Digits"].query_string
    assert links["What was measured"].query_string == "record=birds100-last"
    assert (FOLDER / "birds100-last.json").exists()


def test_a_strong_recipe_improves_the_first_query(plain_run: Run, run: Run) -> None:
    test = opened("refine", run=plain_run.id, recipe="whiten+average:k=20,times=2,alpha=3")
    assert not test.exception
    hits = [sum(tile["mark"] == "hit" for tile in tiles(test, f"The 24 nearest images, {word}"))
            for word in ("before", "after")]
    assert hits[1] > hits[0]
    protocol = texts(opened("refine", run=plain_run.id, recipe="whiten+average:k=20", section="protocol"))
    assert "The searched images themselves take part" in protocol
    assert "whitening: the training half" in protocol
    assert "Queries from outside the gallery" in protocol
    expanded = opened("refine", run=plain_run.id, recipe="average:k=5+expand:k=5", section="protocol")
    assert "Queries from outside the gallery" not in texts(expanded)
    assert "Why did this image rise from rank" in texts(test)


@pytest.mark.parametrize("recipe", ["average:k=7,times=2", "whiten:k=4+average:k=3,alpha=2+rerank:k1=9,weight=0.1",
                                    "reduce:dimension=8+expand:k=4", "diffuse:k=9", ""])
def test_a_link_shows_the_figures_of_its_recipe(recipe: str, run: Run) -> None:
    test = opened("refine", run=run.id, recipe=recipe, query="1500")
    assert not test.exception
    if not recipe:
        assert "**Search without refinement**" in texts(test)
        assert "After refinement" not in texts(test), "two equal pictures"
    dataset = run.dataset()
    split = make_split(dataset, run.spec().split)
    labels = np.asarray(dataset.labels)[split.test]
    if not recipe:
        before = retrieval_measures(nearest(run.embeddings("final")[split.test], int(np.bincount(labels).max()))[1],
                                    labels, labels, True)
        assert float(metric(test, RIGHT).split()[0]) == pytest.approx(before["recall@1"], abs=0.1)
        assert not test.metric[0].delta, "without steps nothing changes"
        assert len(tiles(test, "The 24 nearest images, search without")) == 24
        return
    exact = Refiner(recipe).fit(run.embeddings("final")[split.test], training=run.embeddings("final")[split.train])
    ranking = exact.neighbors(int(np.bincount(labels).max())).indices
    expected = retrieval_measures(ranking, labels, labels, True)
    # Neighbors are searched among candidates only, so live figures are close but not equal.
    assert float(metric(test, RIGHT).split()[0]) == pytest.approx(expected["recall@1"], abs=1)
    assert float(metric(test, WHOLE).split()[0]) == pytest.approx(expected["map@r"], abs=2)


def test_a_fall_of_recall_is_said_in_words(run: Run) -> None:
    test = opened("refine", run=run.id, recipe="average:k=60,times=4")
    assert any("The first result is right less often, by " in warning.value for warning in test.warning)
    assert not opened("refine", run=run.id, recipe="average:k=0").warning


def test_sliders_have_the_declared_ranges_and_the_link_s_values(run: Run) -> None:
    test = opened("refine", run=run.id, recipe="average:k=33,times=2,alpha=1.5+rerank:k1=15,k2=3,weight=0.45")
    sliders = {slider["label"]: slider for slider in components(test, "slider")}
    for label, low, high, value in (("Neighbors · k", 0, 60, 33), ("Repetitions", 1, 4, 2),
                                    ("Weight exponent · α", 0, 8, 1.5), ("Shared neighbors · k₁", 1, 80, 15),
                                    ("Local expansion · k₂", 1, 30, 3), ("Original distance · λ", 0, 1, 0.45)):
        assert (sliders[label]["low"], sliders[label]["high"], sliders[label]["value"]) == (low, high, value)


def chosen_steps(test: AppTest) -> set[str]:
    """Return the names of the steps that are on."""
    return {toggle.key.removeprefix("refine-on-") for toggle in test.toggle
            if str(toggle.key).startswith("refine-on-") and toggle.value}


def test_a_run_without_a_second_opinion_opens_with_whitening_and_keeps_it(plain_run: Run) -> None:
    test = opened("refine", run=plain_run.id)
    assert chosen_steps(test) == {"whiten"}
    assert "This run is not judged yet." in texts(test)
    assert test.button(key="refine-opinion").label == "Judge without labels"
    keep_opinion(plain_run, UNCLEAR, BETTER, OF_REFINEMENTS, "average:k=5")
    try:
        test.run()
        assert chosen_steps(test) == {"whiten"}, "the second opinion does not change what the user looks at"
        said = "better whole groups"
        assert f"**Recommended: averaging with 5 neighbors** (no clear difference in first results, {said})." in texts(
            test)
        test.button(key="refine-preferred").click().run()
        assert test.query_params["recipe"] == "average:k=5"
        assert "**Recommended: averaging with 5 neighbors**. Chosen by SqueezeNet 1.1, without labels" in texts(test)
        assert texts(test).count(said) == 1, "the verdict on the recipe in view stands once, beside its measures"
        assert chosen_steps(opened("refine", run=plain_run.id)) == {"average"}
        assert not test.exception
    finally:
        shutil.rmtree(analysis_at(plain_run, OF_REFINEMENTS).folder)


def test_a_second_opinion_that_failed_can_be_tried_again(plain_run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    analysis, resumed = create_analysis(plain_run, OF_REFINEMENTS), []
    try:
        analysis.write_status(analysis.stored_status().__class__(state="failed", message="No weights"))
        monkeypatch.setattr(launch, "start_again", lambda task: resumed.append(task.id))
        opened("refine", run=plain_run.id).button(key="refine-opinion-again").click().run()
        assert resumed == [analysis.id]
    finally:
        shutil.rmtree(analysis.folder)


def test_a_narrow_run_without_a_second_opinion_opens_without_steps(places: Path) -> None:
    narrow = worked(places / "runs", fields={"dimension": 4, "epochs": 1})
    test = opened("refine", run=narrow.id)
    assert chosen_steps(test) == set()
    assert "even whitening can harm an embedding that has fewer than 16 dimensions" in texts(test)
    assert test.button(key="refine-opinion").label == "Judge without labels"


def test_no_step_is_on_if_no_refinement_is_better(plain_run: Run) -> None:
    keep_opinion(plain_run, WORSE, BETTER, OF_REFINEMENTS, "whiten")
    try:
        test = opened("refine", run=plain_run.id)
        assert chosen_steps(test) == set()
        assert "**Judges recommend no refinement**" in texts(test)
        test.toggle(key="refine-on-whiten").set_value(True).run()
        assert test.query_params["recipe"] == "whiten"
        assert "Worse first results, better whole groups" in texts(test)
        test.button(key="refine-preferred").click().run()
        assert chosen_steps(test) == set()
        assert "recipe" not in test.query_params
    finally:
        shutil.rmtree(analysis_at(plain_run, OF_REFINEMENTS).folder)


def test_a_stored_verdict_stands_beside_the_labels_and_says_whether_they_agree(
        run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UDML_CACHE", str(tmp_path))  # without stored features no recipe is judged live
    recipe = "reduce:dimension=3"
    keep_opinion(run, WORSE, WORSE, request_on(recipe), recipe)
    test = opened("refine", run=run.id, recipe=recipe)
    assert "**Worse first results, worse whole groups**, judged without labels." in texts(test)
    assert "by SqueezeNet 1.1 on all searched images and the first 30 results of a query" in texts(test)
    falls = float(test.metric[0].delta.split()[0].replace("−", "-")) < 0
    rises = float(test.metric[1].delta.split()[0].replace("−", "-")) > 0
    assert falls
    assert [(value.label, value.help.split(".")[0]) for value in test.metric[:2]] == [(RIGHT, "R@1"), (WHOLE, "MAP@R")]
    red, gray = MetricProto.MetricColor.RED, MetricProto.MetricColor.GRAY
    assert [value.proto.color for value in test.metric[:2]] == [red, gray if rises else red], "never against the words"
    assert ("First result: the labels agree. Whole group: the labels disagree." in texts(test)) == rises
    assert ("The labels agree with both." in texts(test)) != rises
    assert "First result:" not in texts(opened("refine", run=run.id, recipe="average:k=40"))


@pytest.mark.parametrize(("change", "said", "colorless"), [
    (2.7, "better", False), (2.7, "worse", True), (2.7, "no clear difference", True), (2.7, "", False),
    (2.7, "no verdict", False), (-2.7, "worse", False), (-2.7, "better", True), (0.5, "better", True),
    (-0.54, "", True), (0.6, "better", False)])
def test_a_change_has_no_color_against_the_judges_words(change: float, said: str, colorless: bool) -> None:
    assert is_colorless(measure_of("map@r"), change, said) is colorless


def test_no_page_calls_averages_worse_because_judges_undervalue_them(
        run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UDML_CACHE", str(tmp_path))
    recipe = "average:k=41,times=3"
    keep_opinion(run, WORSE, BETTER, request_on(recipe), recipe)
    test = opened("refine", run=run.id, recipe=recipe)
    assert "First result: no verdict · Whole group: better" in texts(test)
    assert NO_VERDICT in texts(test), "with the judges' figures"
    assert NO_VERDICT not in texts(opened("refine", run=run.id, recipe="reduce:dimension=3"))


def test_stored_features_judge_every_recipe_at_once(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    test = opened("refine", run=run.id, recipe="average:k=39")
    assert "This recipe is not judged yet." in texts(test) or "This run is not judged yet." in texts(test)
    monkeypatch.setenv("UDML_CACHE", str(tmp_path))
    dataset = run.dataset()
    path = features_path(dataset, choose_spec("squeezenet", dataset.native_size, dataset.gray))
    path.parent.mkdir(parents=True)
    noise = np.random.default_rng(0).normal(size=(len(dataset), 12))
    replace_array(path, (np.eye(10)[dataset.labels] @ np.eye(10, 12) * 3 + noise).astype(np.float32))
    monkeypatch.setattr("pages.parts.refine.verdict.PATIENCE", 60)
    test = opened("refine", run=run.id, recipe="reduce:dimension=2")
    assert not test.exception
    assert "**Worse first results, " in texts(test)
    assert "by SqueezeNet 1.1 in a live estimate on " in texts(test)
    assert "First result" not in texts(opened("refine", run=run.id, recipe=""))


def test_the_page_does_not_wait_for_the_judges(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UDML_CACHE", str(tmp_path))
    dataset = run.dataset()
    path = features_path(dataset, choose_spec("squeezenet", dataset.native_size, dataset.gray))
    path.parent.mkdir(parents=True)
    replace_array(path, np.random.default_rng(0).normal(size=(len(dataset), 12)).astype(np.float32))
    ready = threading.Event()

    class SlowJudge(Judge):
        @classmethod
        def of(cls, *arguments: Any) -> Judge:
            ready.wait(60)
            return Judge.of(*arguments)

    st.cache_resource.clear()
    monkeypatch.setattr("pages.parts.refine.verdict.Judge", SlowJudge)
    try:
        test = opened("refine", run=run.id, recipe="average:k=38")
        assert not test.exception
        assert "Preparing the judges" in texts(test)
        assert metric(test, RIGHT)
    finally:
        ready.set()
    monkeypatch.setattr("pages.parts.refine.verdict.PATIENCE", 60)
    assert "live estimate on " in texts(test.run())
    st.cache_resource.clear()


def test_switching_a_step_keeps_its_values_and_the_order(run: Run) -> None:
    test = opened("refine", run=run.id, recipe="whiten:k=9+rerank")
    test.toggle(key="refine-on-whiten").set_value(False).run()
    assert test.query_params["recipe"] == "rerank"
    test.toggle(key="refine-on-average").set_value(True).run()
    assert test.query_params["recipe"] == "average:alpha=3+rerank"
    test.toggle(key="refine-on-whiten").set_value(True).run()
    assert test.query_params["recipe"] == "whiten:k=9+average:alpha=3+rerank"
    test.button(key="refine-up-average").click().run()
    assert test.query_params["recipe"] == "average:alpha=3+whiten:k=9+rerank"
    test.toggle(key="refine-on-diffuse").set_value(True).run()
    assert test.query_params["recipe"] == "average:alpha=3+whiten:k=9+diffuse"
    assert not test.toggle(key="refine-on-rerank").value
    assert not test.exception


def test_views_count_once_their_features_are_stored(run: Run) -> None:
    recipe = "views:zoom=0.61+average:k=5"  # a zoom of this test alone: features are stored for all tests of a process
    test = opened("refine", run=run.id, recipe=recipe)
    assert "The figures below leave out the views" in texts(test)
    assert metric(test, WHOLE) == metric(opened("refine", run=run.id, recipe="average:k=5"), WHOLE)
    result = keep(run, plan_analysis(kind="refine", recipe=recipe), lambda _share, _step: None).result_of(Refinement)
    test = opened("refine", run=run.id, recipe=recipe)
    assert "leave out the views" not in texts(test)
    assert float(metric(test, WHOLE).split()[0]) == pytest.approx(result.measures["map@r"][1], abs=2)


def test_votes_of_the_image_in_the_link_are_shown(run: Run) -> None:
    test = opened("refine", run=run.id, recipe="average:k=5", query="1500", image="1600")
    assert "by the mean of **6** images" in texts(test)
    assert len(tiles(test, "Images that decided")) == 6
    alone = texts(opened("refine", run=run.id, recipe="whiten", query="1500"))
    assert "This rank rests on how similar the query and this image are" in alone


@pytest.mark.parametrize("query", [{"recipe": "whitten"}, {"recipe": "average+average"}, {"recipe": "average:k=900"}])
def test_a_wrong_recipe_in_a_link_is_replaced_and_explained(query: dict[str, str], run: Run) -> None:
    test = opened("refine", run=run.id, **query)
    assert not test.exception
    assert "The link's recipe cannot be shown" in texts(test)
    assert test.toggle(key="refine-on-whiten").value


def test_nonsense_images_in_a_link_are_ignored(run: Run) -> None:
    test = opened("refine", run=run.id, query="nan", image="99999999")
    assert not test.exception
    assert "Why did this image" in texts(test)


def test_a_finished_refinement_shows_exact_figures_and_the_commands(run: Run) -> None:
    test = opened("refine", run=run.id, recipe=APPLIED)
    result = analysis_at(run, plan_analysis(kind="refine", recipe=APPLIED)).result_of(Refinement)
    before, after = result.measures["map@r"]
    assert f"{WHOLE} {before:.1f} % → **{after:.1f} %**" in texts(test)
    assert metric(test, WHOLE) == f"{after:.1f} %", "one value of one measure: the exact one"
    assert not [button for button in test.button if button.label == "Apply to all images"]
    code = "\n".join(block.value for block in test.code)
    assert f"udml refine {run.id} --recipe '{APPLIED}'" in code
    assert f'Refiner("{APPLIED}").fit(gallery, training=training)' in code


def test_an_exact_fall_of_recall_is_a_warning(run: Run) -> None:
    recipe = "average:k=60,times=4"
    result = keep(run, plan_analysis(kind="refine", recipe=recipe), lambda _share, _step: None).result_of(Refinement)
    before, after = result.measures["recall@1"]
    assert after < before - 0.1
    test = opened("refine", run=run.id, recipe=recipe)
    assert not [box for box in test.success if "Applied to all" in box.value]
    (warning,) = [box.value for box in test.warning if "Applied to all" in box.value]
    assert f"The first result is right less often, by {round(before, 1) - round(after, 1):.1f} points" in warning
    rising = opened("refine", run=run.id, recipe=APPLIED)
    values = analysis_at(run, plan_analysis(kind="refine", recipe=APPLIED)).result_of(Refinement).measures["recall@1"]
    assert bool(rising.success) == (round(values[1], 1) > round(values[0], 1))


def test_images_without_classes_have_label_free_measures_only(places: Path, tmp_path_factory: pytest.TempPathFactory,
                                                              ) -> None:
    folder = write_digits(tmp_path_factory.mktemp("unlabeled") / "digits", 60, by_class=False)
    unlabeled = worked(places / "runs", dataset=str(folder), split="all", method="frozen")
    for recipe in ("", "whiten+average:k=4", "views+diffuse:k=5", "rerank:k1=6", "expand:k=3"):
        test = opened("refine", run=unlabeled.id, recipe=recipe)
        assert not test.exception
        assert not test.error
        assert not {RIGHT, WHOLE} & {metric.label for metric in test.metric}
        assert ("Neighbors kept" in {metric.label for metric in test.metric}) == bool(recipe)
        assert not {"Reciprocity", "Hubness"} & {metric.label for metric in test.metric}, "they are no verdict"
        shown = tiles(test, f"The 24 nearest images, {'after' if recipe else 'search without'}")
        assert {tile["mark"] for tile in shown} == {""}
    keep_opinion(unlabeled, UNCLEAR, BETTER, OF_REFINEMENTS, "whiten")
    test = opened("refine", run=unlabeled.id)
    assert [value.label for value in test.metric] == ["First result", "Whole group", "Neighbors kept"]
    assert (metric(test, "First result"), metric(test, "Whole group")) == ("no clear difference", "better")
    assert "- SqueezeNet 1.1: **better**, 0.200 → 0.300, change +0.100, 95 % interval +0.080 to +0.120" in texts(test)
    assert "Judged without labels by SqueezeNet 1.1 on all searched images" in texts(test)
    protocol = texts(opened("refine", run=unlabeled.id, recipe="whiten", section="protocol"))
    assert "whitening: the searched images without their labels" in protocol
    assert "Reciprocity" not in protocol, "it does not follow the quality of a search"


def test_without_a_run_the_page_says_what_to_do(places: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("UDML_RUNS", str(tmp_path / "none"))
    assert "There is no finished run yet" in texts(opened("refine"))


def test_retrieval_shows_the_stored_ranking_of_a_test_image(run: Run) -> None:
    analysis = analysis_at(run, plan_analysis(kind="refine", recipe=APPLIED))
    result = analysis.result_of(Refinement)
    query = int(result.indices[40])
    test = opened("retrieval", run=run.id, add=str(query), refined=analysis.id)
    assert not test.exception
    assert test.multiselect(key=f"compare-{run.id}").value == ["final", analysis.id]
    assert [tile["id"] for tile in tiles(test, "The 10 nearest images, RPML, then")] == \
        result.indices[result.neighbors[40, :10]].tolist()
    test.multiselect(key=f"compare-{run.id}").set_value(["frozen", "final"]).run()
    assert {"refined", "compare"}.isdisjoint(test.query_params)
    assert "**Raw pixels**" in texts(test)


def test_an_own_image_is_expanded_and_finds_its_copy(run: Run) -> None:
    analysis = analysis_at(run, plan_analysis(kind="refine", recipe=APPLIED))
    index = int(analysis.result_of(Refinement).indices[7])
    test = opened("retrieval", run=run.id, refined=analysis.id)
    image = Image.fromarray(np.asarray(run.dataset().images[index]))
    test.session_state["brought"] = (own_image(as_file(image, "mine.png"), "add"),)
    test.run()
    assert not test.exception
    assert "expanded by its nearest test images" in texts(test)
    assert index in [tile["id"] for tile in tiles(test, "The 10 nearest images, RPML, then")]


def test_a_refinement_can_be_chosen_for_a_new_map(run: Run) -> None:
    test = opened("explore", run=run.id)
    test.selectbox(key="new-frames").set_value(f"after training and refined by {APPLIED}").run()
    assert test.selectbox(key="new-scope").options == ["test half"]
    analysis = analysis_at(run, plan_analysis(kind="refine", recipe=APPLIED))
    keep(run, plan_analysis(kind="pca", scope="test", frames=("final", analysis.id)), lambda _share, _step: None)
    test = opened("explore", run=run.id)
    assert not test.exception
    assert "PCA · test half · after training and refined" in test.selectbox(key=f"explore-map-{run.id}").options


def test_without_a_refinement_retrieval_links_to_the_page(plain_run: Run) -> None:
    test = opened("retrieval", run=plain_run.id)
    assert any(link.label == "Refine without labels" for link in test.get("page_link"))
    assert not [toggle for toggle in test.toggle if toggle.label == "Refined"]


def test_a_step_comes_to_its_usual_place_and_replaces_its_kind() -> None:
    recipe = Recipe.parse("reduce+whiten+rerank")
    assert str(with_step(recipe, make_step("views", {}))) == "views+reduce+whiten+rerank"
    assert str(with_step(recipe, make_step("expand", {}))) == "reduce+whiten+expand+rerank"
    assert str(with_step(recipe, make_step("diffuse", {}))) == "reduce+whiten+diffuse"
    assert str(with_step(recipe, make_step("average", {}))) == "average+reduce+whiten+rerank"


def test_ranks_and_arrows() -> None:
    assert positions(np.array([3, 0]), 5).tolist() == [2, 5, 5, 1, 5]
    assert (moved(1200, 100), moved(2, 5), moved(3, 3)) == (" ↑1,100", " ↓3", "")
