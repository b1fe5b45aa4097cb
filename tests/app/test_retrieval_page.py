"""The page Retrieval through Streamlit's AppTest: what a link shows, filters, failures; the query as a value."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from pages.parts.retrieval.query import Asked, Brought
from tests.app.opening import opened, texts
from tests.running import worked, write_digits
from udml_core.explanations import Clusters
from udml_core.retrieval import Query, Retrieval
from udml_core.runs import Run

pytestmark = pytest.mark.usefixtures("own_places")


@pytest.fixture(scope="module")
def run(places: Path) -> Run:
    return worked(places / "runs", fields={"dimension": 16, "epochs": 2})


def hits(found: list) -> str:
    return f"{sum(hit.correct for hit in found)} of {len(found)} hits"


def test_a_link_shows_the_query_with_both_signs_and_its_hits(run: Run) -> None:
    test = opened("retrieval", run=run.id, add="3.13", subtract="8", k="20", gallery="all")
    assert not test.exception
    expected = Retrieval(run).search(Query((3, 13), (8,)), 20, "final", "all")
    assert f"After training** · {hits(expected)}" in texts(test)
    strip = [one.value for one in test.markdown if one.value.startswith(("**+**", "**−**"))]
    assert [one[:5] for one in strip] == ["**+**", "**+**", "**−**"]


def test_each_image_of_the_query_can_change_sides_and_be_taken_out(run: Run) -> None:
    test = opened("retrieval", run=run.id, add="3.13")
    test.button(key="turn-13").click().run()
    assert test.query_params["add"] == "3"
    assert test.query_params["subtract"] == "13"
    test.button(key="out-3").click().run()
    assert "add" not in test.query_params
    assert "nothing to subtract from yet" in texts(test)
    assert not test.exception


def test_classes_filter_what_is_found_and_stay_in_the_link(run: Run) -> None:
    retrieval = Retrieval(run)
    label = 8
    allowed = np.asarray(retrieval.dataset.labels) == label
    test = opened("retrieval", run=run.id, add="3", k="15", classes=str(label))
    expected = retrieval.search(Query((3,)), 15, "final", "test", allowed)
    assert f"After training** · {hits(expected)}" in texts(test)
    box = next(one for one in test.multiselect if one.label == "Only these classes")
    box.set_value([label, 3]).run()
    assert test.query_params["classes"] == f"{label}.3"
    expected = retrieval.search(Query((3,)), 15, "final", "test", allowed | (np.asarray(retrieval.dataset.labels) == 3))
    assert f"After training** · {hits(expected)}" in texts(test)


def test_a_cluster_filters_all_images_and_is_found_again_by_one_of_its_own(run: Run) -> None:
    retrieval = Retrieval(run)
    train = retrieval.split.train
    clusters = next(one for one in run.explanations(1) if isinstance(one, Clusters))
    labels = np.asarray(clusters.labels)
    largest = int(np.bincount(labels).argmax())
    allowed = np.zeros(len(retrieval.dataset), dtype=bool)
    allowed[train[labels == largest]] = True
    member = int(train[labels == largest][-1])
    asked = int(np.flatnonzero(~allowed)[0])
    test = opened("retrieval", run=run.id, add=str(asked), clusters=str(member), k="50")
    expected = retrieval.search(Query((asked,)), 50, "final", "all", allowed)
    assert f"After training** · {hits(expected)}" in texts(test)
    assert "Clusters group training images only" in texts(test)
    assert test.query_params["clusters"] == str(train[clusters.modes[largest]])
    assert not test.exception


def test_filters_that_leave_nothing_say_so(run: Run) -> None:
    retrieval = Retrieval(run)
    clusters = next(one for one in run.explanations(1) if isinstance(one, Clusters))
    inside = retrieval.split.train[np.asarray(clusters.labels) == clusters.labels[0]]
    absent = next(label for label in range(10) if label not in np.asarray(retrieval.dataset.labels)[inside])
    test = opened("retrieval", run=run.id, add="3", classes=str(absent), clusters=str(retrieval.split.train[0]))
    assert not test.exception
    assert "No image passes both filters" in texts(test)


def test_an_image_on_both_sides_of_a_link_is_added(run: Run) -> None:
    test = opened("retrieval", run=run.id, add="3", subtract="3.8")
    assert not test.exception
    assert f"After training** · {hits(Retrieval(run).search(Query((3,), (8,))))}" in texts(test)


def test_the_failures_of_a_link_are_those_of_the_pair(run: Run) -> None:
    atlas = Retrieval(run).atlas("initial")
    pair = atlas.pairs[-1]
    test = opened("retrieval", run=run.id, view="Failures", misses="initial", pair=f"{pair.own}.{pair.other}")
    assert not test.exception
    assert f"{pair.own} taken for {pair.other}" in texts(test)
    shown = {one.label: one.value for one in test.metric}
    assert shown["Recall@1"] == f"{100 * Retrieval(run).atlas('final').recall:.1f} %"
    table = next(one.value for one in test.dataframe if "Taken for" in one.value.columns)
    assert table["Queries"].tolist() == [one.count for one in atlas.pairs]
    box = test.selectbox(key="failures-pair")
    assert box.value == f"{pair.own}.{pair.other}"
    first = atlas.pairs[0]
    box.set_value(f"{first.own}.{first.other}").run()
    assert test.query_params["pair"] == f"{first.own}.{first.other}"
    assert f"{first.own} taken for {first.other}" in texts(test)


@pytest.mark.parametrize("query", [{"k": "x"}, {"k": "900"}, {"classes": "99.-1"}, {"clusters": "77777.a"},
                                   {"view": "Failures", "pair": "1.1"}, {"view": "nonsense"}, {"gallery": "nowhere"},
                                   {"view": "Failures", "misses": "never"}, {"subtract": "9" * 5000}])
def test_nonsense_in_a_link_is_survived(run: Run, query: dict[str, str]) -> None:
    test = opened("retrieval", run=run.id, **({"add": "3"} | query))
    assert not test.exception
    assert not test.error


def test_without_classes_there_are_no_failures_but_a_search(places: Path, tmp_path: Path) -> None:
    folder = write_digits(tmp_path / "flat", 60, by_class=False)
    unlabeled = worked(places / "runs", method="frozen", dataset=str(folder), split="all")
    test = opened("retrieval", run=unlabeled.id, add="3", epochs="1")
    assert not test.exception
    assert "**After training**" in texts(test)
    assert "hits" not in texts(test)
    test = opened("retrieval", run=unlabeled.id, view="Failures")
    assert "has no classes" in test.error[0].value


def test_a_change_of_data_set_forgets_images_and_classes(run: Run, places: Path, tmp_path: Path) -> None:
    folder = write_digits(tmp_path / "other", 60)
    other = worked(places / "runs", method="frozen", dataset=str(folder), split="seen")
    same = worked(places / "runs", method="frozen", split="seen")
    test = opened("retrieval", run=run.id, add="3", classes="2", k="20")
    box = next(one for one in test.selectbox if one.label == "Run")
    box.set_value(same.id).run()
    assert test.query_params["add"] == "3"
    assert not test.exception
    next(one for one in test.selectbox if one.label == "Run").set_value(other.id).run()
    assert not test.exception
    assert {"add", "classes"}.isdisjoint(test.query_params)
    assert test.query_params["k"] == "20"


def brought(digest: str, side: str = "add") -> Brought:
    return Brought(digest, f"{digest}.png", Image.new("RGB", (8, 8)), side)  # type: ignore[arg-type]


def test_the_query_as_a_value() -> None:
    query = Asked((1, 2), (3,), (brought("a"),))
    assert query.with_image(9, "alone") == Asked((9,))
    assert query.with_image(3, "add") == Asked((1, 2, 3), (), (brought("a"),))
    assert query.with_image(1, "subtract") == Asked((2,), (3, 1), (brought("a"),))
    assert query.turned("a", "subtract").parts("subtract") == (3, brought("a", "subtract"))
    assert query.turned(2, "subtract") == query.with_image(2, "subtract")
    assert query.without(2).without("a") == Asked((1,), (3,))
    assert query.with_files([brought("b"), brought("b")], "alone") == Asked(brought=(brought("b"),))
    assert len(query.with_files([brought("a"), brought("b")], "add")) == 5
    assert (query.alone, Asked((4,)).alone, Asked((4,), (5,)).alone, Asked(brought=(brought("a"),)).alone) == (
        None, 4, None, None)
