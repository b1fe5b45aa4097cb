"""The pages with a run on a table of embeddings without images."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image
from pyarrow import parquet
from sklearn.datasets import load_digits
from streamlit.testing.v1 import AppTest

from pages.parts.maps.coloring import colorings
from pages.parts.maps.frame import load_map
from tests.app.opening import opened, texts
from tests.app.test_map_page import the_map
from tests.cli.test_cli import answer, call
from tests.running import spec, worked
from tests.tiers import fast_first
from udml_core.base.errors import UserError
from udml_core.cli import analysing
from udml_core.data import catalog
from udml_core.data.encoders import Encoder, choose_spec
from udml_core.data.features import features_of
from udml_core.methods import METHODS, find_method
from udml_core.runs import Run, RunRequest, Spec, create_run
from udml_core.runs.analyses import DEFAULT_RECIPE, AnalysisSpec, list_analyses, plan_analysis
from udml_core.runs.analyses.kinds.pca import PCA
from udml_core.runs.command import command_of
from udml_core.runs.search import Retrieval
from udml_core.work import jobs
from udml_core.work.exporting import export
from udml_core.work.workers import analyse as analyse_worker
from udml_core.work.workers import train as worker

PAGES = ("home", "data", "labels", "train", "runs", "compare", "explore", "clusters", "neighborhoods",
         "instances", "triplets", "affinity", "pairs", "retrieval", "refine")
pytestmark = pytest.mark.usefixtures("own_places")


@pytest.fixture(scope="module")
def table(places: Path) -> Path:
    """The pixels of the digits as vectors, with their classes."""
    dataset = catalog.load("digits")
    encoder = Encoder(choose_spec("pixels", dataset.native_size, dataset.gray))
    path = places / "digits.parquet"
    digits = load_digits()
    parquet.write_table(pa.table({"name": dataset.names, "label": digits.target, "ink": digits.images.sum(axis=(1, 2)),
                                  "embedding": list(np.asarray(features_of(dataset, encoder)))}), path)
    return path


def planned(table: Path, method: str = "rpml", **options: object) -> Spec:
    fields = {"dimension": 16, "epochs": 2, "steps": 3} if method == "rpml" else {}
    request = {"dataset": str(table), "method": method, "fields": fields, "split": "seen"} | options
    return jobs.plan(RunRequest.make(request), catalog.load(str(table)))


@pytest.fixture(scope="module")
def run(table: Path, places: Path) -> Run:
    """A finished run on the table, with a map, a grid and a refinement."""
    run = create_run(planned(table), places / "runs")
    worker.work(run)
    assert run.status().state == "done", run.status().message
    layout = analyse_worker.keep(run, AnalysisSpec(kind="pca", frames=("final",)), lambda _share, _step: None)
    analyse_worker.keep(run, AnalysisSpec(kind="grid", source=layout.id, frame="final"), lambda _share, _step: None)
    analyse_worker.keep(run, plan_analysis(kind="refine", recipe="whiten+average"), lambda _share, _step: None)
    return run


@pytest.fixture(scope="module")
def digits_run(places: Path) -> Run:
    """A finished run on the images of the digits, with a map."""
    run = worked(places / "runs")
    analyse_worker.keep(run, AnalysisSpec(kind="pca", frames=("final",)), lambda _share, _step: None)
    return run


@pytest.mark.slow
def test_the_evaluation_equals_that_of_the_same_vectors_from_pixels(run: Run, digits_run: Run) -> None:
    """Vectors in a mapped file have another alignment in memory, which can change the last digit of a product."""
    evaluation, expected = run.evaluation(), digits_run.evaluation()
    assert evaluation is not None
    assert expected is not None
    assert evaluation.keys() == expected.keys()
    for name, measures in expected.items():
        assert evaluation[name] == pytest.approx(measures, rel=1e-6), name
    np.testing.assert_allclose(run.embeddings("final"), digits_run.embeddings("final"), atol=1e-6)


@pytest.mark.parametrize("page", fast_first(PAGES, 4))
def test_a_page_opens_with_a_run_on_embeddings(page: str, run: Run, digits_run: Run) -> None:
    test = opened(page, run=run.id, dataset=run.spec().dataset, fields="dimension:16")
    assert not test.exception
    assert not [error.value for error in test.error]
    assert page != "instances" or "lacks what this page shows" in texts(test)


def test_a_map_is_colored_by_a_column_of_the_table(run: Run) -> None:
    test = opened("explore", run=run.id, color="column: ink")
    box = test.selectbox(key="explore-color")
    assert (box.value, "column: label" in box.options) == ("column: ink", False)
    shown = load_map(run, list_analyses(run, PCA)[0].id, 0)
    color = colorings(shown)["column: ink"]()
    np.testing.assert_array_equal(color.values, load_digits().images.sum(axis=(1, 2))[shown.projection.indices])
    assert color.names == ()


def test_a_column_filters_the_map_and_the_search(run: Run) -> None:
    ink = load_digits().images.sum(axis=(1, 2))
    few = int(((ink >= 300) & (ink <= 350)).sum())
    for page in ("explore", "retrieval"):
        test = opened(page, run=run.id, map=list_analyses(run, PCA)[0].id)
        next(box for box in test.selectbox if box.label == "Column").select("ink").run()
        next(slider for slider in test.slider if slider.label == "Values").set_range(300.0, 350.0).run()
        assert not test.exception
        if page == "explore":
            assert the_map(test)["count"] == few
        else:
            assert re.search(rf"\b({few - 1:,}|{few:,}) of 1,797 images searched .*filtered", texts(test))


def popovers(test: AppTest) -> set[str]:
    return {block.proto.popover.label for block in test.get("popover")}


def test_pages_offer_nothing_that_needs_images(run: Run, digits_run: Run) -> None:
    for page, label in (("neighborhoods", "Own image"), ("explore", "Place new images")):
        for shown, is_offered in ((digits_run, True), (run, False)):
            test = opened(page, run=shown.id, map=list_analyses(shown, PCA)[0].id)
            assert (label in popovers(test)) == is_offered
    steps, all_steps = ({toggle.label for toggle in opened("refine", run=shown.id).toggle}
                        for shown in (run, digits_run))
    assert all_steps - steps == {"Several views of each image"}


def test_the_page_train_has_no_options_of_images_for_a_table(run: Run) -> None:
    test = opened("train", dataset=run.spec().dataset, backbone="squeezenet", size="64", fields="dimension:16")
    assert {"Network", "Backbone", "Pooling"}.isdisjoint(box.label for box in test.selectbox)
    assert "Start training" in [button.label for button in test.button]
    assert not {"backbone", "size"} & set(test.query_params)


def test_the_page_data_opens_a_table_with_chosen_columns(table: Path) -> None:
    path = table.with_name("chosen.parquet")
    shutil.copyfile(table, path)
    test = opened("data", **{"import": "1"})
    test.text_input(key="import-path").set_value(str(path)).run()
    test.selectbox(key=f"import-label-{path}").select("").run()
    next(button for button in test.button if button.label == "Open").click().run()
    assert not test.exception
    assert test.query_params["dataset"] == f"{path}#label="
    assert "1,797 images" in texts(test)
    assert "64 numbers for each image" in texts(test)
    catalog.forget(path)


@pytest.mark.parametrize(("method", "options", "message"), [
    ("plm", {}, "PLM learns from random views of images, and digits.parquet is a table"),
    ("distill", {}, "learns from random views of images"),
    ("triplet", {"fields": {"trains": "all"}}, "With trains='all' .* trains an encoder of images"),
    ("rpml", {"backbone": "pixels"}, "the option 'backbone' does not apply; got 'pixels'"),
    ("rpml", {"size": 64}, "the option 'size' does not apply; got 64"),
    ("rpml", {"preset": "paper"}, "The papers' settings are for images"),
])
def test_planning_refuses_what_needs_images(method: str, options: dict[str, object], message: str, table: Path
                                            ) -> None:
    with pytest.raises(UserError, match=message):
        planned(table, method, **options)


def test_srpml_trains_its_projection_on_a_table(table: Path, tmp_path: Path) -> None:
    run = create_run(planned(table, "srpml", fields={"dimension": 8, "epochs": 1}), tmp_path / "runs")
    assert worker.work(run).state == "done"
    assert run.embeddings("final").shape == (1797, 8)


def test_negative_vectors_are_refused_in_planning_unless_they_are_split(tmp_path: Path) -> None:
    path = tmp_path / "signed.npz"
    vectors = np.random.default_rng(0).normal(size=(40, 6)).astype(np.float32)
    np.savez(path, embeddings=vectors, labels=np.arange(40) % 2)
    with pytest.raises(UserError, match=r"need features of at least 0.*set the field 'negative' to 'split'"):
        planned(path, "nml", fields={"dimension": 4})
    planned(path, "nml", fields={"dimension": 4, "negative": "split"})


def test_the_commands_list_a_table_and_refine_it_without_views(
        run: Run, table: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    rows = answer(capsys, monkeypatch, "datasets", "--remember", str(table))["datasets"]
    assert rows[-1]["name"] == str(table)
    received: list[AnalysisSpec] = []
    monkeypatch.setattr(analysing, "_compute_analysis", lambda _run, spec, *_: received.append(spec))
    for words in ((), ("--recipe", "average:k=5")):
        call(capsys, monkeypatch, "refine", str(run.folder), *words)
    assert [spec.recipe for spec in received] == [DEFAULT_RECIPE.removeprefix("views+"), "average:k=5"]


def test_images_have_no_backbone_of_tables() -> None:
    with pytest.raises(UserError, match="Digits has images"):
        spec(backbone="table")


def test_queries_views_and_placed_images_are_refused(run: Run) -> None:
    image = Image.new("RGB", (20, 20))
    with pytest.raises(UserError, match="The embedding of an image needs a backbone that reads images"):
        Retrieval(run).search_image(image)
    with pytest.raises(UserError, match=r"The step 'views' of a refinement needs .* Leave the step out"):
        jobs.analyse(run, plan_analysis(kind="refine", recipe="views+whiten"))
    layout = list_analyses(run, PCA)[0]
    with pytest.raises(UserError, match="Placing new images on a map needs"):
        jobs.place_images(run, layout, "final", [("a.png", b"")])


def test_rows_are_searched_and_exported_and_an_export_opens_as_a_table(run: Run, tmp_path: Path) -> None:
    retrieval = Retrieval(run)
    hits = retrieval.search_item(3, 5)
    assert sum(bool(hit.correct) for hit in hits) >= 4
    export(run, tmp_path / "out")
    again = catalog.load(str(tmp_path / "out" / "embeddings.parquet"))
    np.testing.assert_array_equal(again.vectors, run.embeddings("final"))
    assert again.names == retrieval.dataset.names
    assert again.class_names == retrieval.dataset.class_names


def test_the_command_of_a_run_on_embeddings_starts_an_equal_run(run: Run) -> None:
    options = command_of(run.spec())
    assert "--size" not in options
    assert planned(Path(run.spec().dataset), backbone=run.spec().backbone).encoder == run.spec().encoder


@pytest.mark.parametrize("method", [method.card.name for method in METHODS if method.make({}).learns_from_vectors])
def test_every_method_on_features_accepts_a_table(method: str, table: Path) -> None:
    fields = {"dimension": 16} if "dimension" in find_method(method).model_fields else {}
    assert planned(table, method, fields=fields).encoder.width == 64
