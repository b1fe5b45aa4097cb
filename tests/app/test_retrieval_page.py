"""The page Retrieval through Streamlit's AppTest, and the query as a value."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from pages.parts.retrieval.own_images import OwnImage, Side
from pages.parts.retrieval.query import PageQuery
from tests.app.opening import opened, texts
from tests.running import worked, write_digits
from udml_core.explanations import Clusters
from udml_core.retrieval import Hit, Query, Retrieval
from udml_core.runs import Run

pytestmark = pytest.mark.usefixtures("own_places")


@pytest.fixture(scope="module")
def run(places: Path) -> Run:
    """A finished run of RPML on the digits."""
    return worked(places / "runs", fields={"dimension": 16, "epochs": 2})


def score(ranking: list[Hit]) -> str:
    return f"{sum(bool(hit.correct) for hit in ranking)} of {len(ranking)} hits"


def test_a_link_shows_the_query_with_both_signs_and_its_hits(run: Run) -> None:
    test = opened("retrieval", run=run.id, add="3.13", subtract="8", k="20", gallery="all")
    assert not test.exception
    expected = Retrieval(run).search(Query((3, 13), (8,)), 20, "final", "all")
    assert f"After training** · {score(expected)}" in texts(test)
    signs = [text.value[:5] for text in test.markdown if text.value.startswith(("**+**", "**−**"))]
    assert signs == ["**+**", "**+**", "**−**"]


def test_each_image_of_the_query_can_change_sides_and_be_removed(run: Run) -> None:
    test = opened("retrieval", run=run.id, add="3.13")
    test.button(key="turn-13").click().run()
    assert test.query_params["add"] == "3"
    assert test.query_params["subtract"] == "13"
    test.button(key="out-3").click().run()
    assert "add" not in test.query_params
    assert "only subtracted images" in texts(test)
    assert not test.exception


def test_classes_filter_the_hits_and_stay_in_the_link(run: Run) -> None:
    retrieval = Retrieval(run)
    label = 8
    allowed = np.asarray(retrieval.dataset.labels) == label
    test = opened("retrieval", run=run.id, add="3", k="15", classes=str(label))
    expected = retrieval.search(Query((3,)), 15, "final", "test", allowed)
    assert f"After training** · {score(expected)}" in texts(test)
    box = next(box for box in test.multiselect if box.label == "Only these classes")
    box.set_value([label, 3]).run()
    assert test.query_params["classes"] == f"{label}.3"
    expected = retrieval.search(Query((3,)), 15, "final", "test", allowed | (np.asarray(retrieval.dataset.labels) == 3))
    assert f"After training** · {score(expected)}" in texts(test)


def test_a_cluster_filters_all_images_and_a_link_names_it_by_any_member(run: Run) -> None:
    retrieval = Retrieval(run)
    train = retrieval.split.train
    clusters = next(record for record in run.explanations(1) if isinstance(record, Clusters))
    labels = np.asarray(clusters.labels)
    largest = int(np.bincount(labels).argmax())
    allowed = np.zeros(len(retrieval.dataset), dtype=bool)
    allowed[train[labels == largest]] = True
    member = int(train[labels == largest][-1])
    query = int(np.flatnonzero(~allowed)[0])
    test = opened("retrieval", run=run.id, add=str(query), clusters=str(member), k="50")
    expected = retrieval.search(Query((query,)), 50, "final", "all", allowed)
    assert f"After training** · {score(expected)}" in texts(test)
    assert "Clusters contain training images only" in texts(test)
    assert test.query_params["clusters"] == str(train[clusters.modes[largest]])
    assert not test.exception


def test_filters_without_a_common_image_show_a_message(run: Run) -> None:
    retrieval = Retrieval(run)
    clusters = next(record for record in run.explanations(1) if isinstance(record, Clusters))
    members = retrieval.split.train[np.asarray(clusters.labels) == clusters.labels[0]]
    absent = next(label for label in range(10) if label not in np.asarray(retrieval.dataset.labels)[members])
    test = opened("retrieval", run=run.id, add="3", classes=str(absent), clusters=str(retrieval.split.train[0]))
    assert not test.exception
    assert "passes both filters" in texts(test)


def test_an_image_on_both_sides_of_a_link_is_added(run: Run) -> None:
    test = opened("retrieval", run=run.id, add="3", subtract="3.8")
    assert not test.exception
    assert f"After training** · {score(Retrieval(run).search(Query((3,), (8,))))}" in texts(test)


def test_a_link_opens_a_confused_pair(run: Run) -> None:
    atlas = Retrieval(run).atlas("initial")
    pair = atlas.pairs[-1]
    test = opened("retrieval", run=run.id, view="Failures", misses="initial", pair=f"{pair.own}.{pair.other}")
    assert not test.exception
    assert f"{pair.own} mistaken for {pair.other}" in texts(test)
    shown = {metric.label: metric.value for metric in test.metric}
    assert shown["Recall@1"] == f"{100 * Retrieval(run).atlas('final').recall:.1f} %"
    table = next(table.value for table in test.dataframe if "Mistaken for" in table.value.columns)
    assert table["Queries"].tolist() == [pair.count for pair in atlas.pairs]
    box = test.selectbox(key="failures-pair")
    assert box.value == f"{pair.own}.{pair.other}"
    first = atlas.pairs[0]
    box.set_value(f"{first.own}.{first.other}").run()
    assert test.query_params["pair"] == f"{first.own}.{first.other}"
    assert f"{first.own} mistaken for {first.other}" in texts(test)


@pytest.mark.parametrize("view", ["Failures", "nonsense"])
def test_a_nonsense_link_still_shows_the_query(run: Run, view: str) -> None:
    test = opened("retrieval", run=run.id, add="3", subtract="9" * 5000, k="900", classes="99.-1", clusters="77777.a",
                  gallery="nowhere", epochs="maybe", view=view, pair="1.1", misses="never")
    assert not test.exception
    assert not test.error
    assert ("After training" if view == "nonsense" else "mistaken for") in texts(test)


def test_the_number_of_hits_is_read_from_the_link(run: Run) -> None:
    test = opened("retrieval", run=run.id, add="3", k="20", epochs="1")
    assert test.slider(key="k").value == 20
    assert " of 20 hits" in texts(test)
    assert test.toggle(key="query-epochs").value


def test_images_without_classes_can_be_searched_but_have_no_failures(places: Path, tmp_path: Path) -> None:
    folder = write_digits(tmp_path / "flat", 60, by_class=False)
    unlabeled = worked(places / "runs", method="frozen", dataset=str(folder), split="all")
    test = opened("retrieval", run=unlabeled.id, add="3", epochs="1")
    assert not test.exception
    assert "**After training**" in texts(test)
    assert "hits" not in texts(test)
    test = opened("retrieval", run=unlabeled.id, view="Failures")
    assert "has no classes" in test.error[0].value


def test_another_data_set_removes_images_and_classes_from_the_link(run: Run, places: Path, tmp_path: Path) -> None:
    folder = write_digits(tmp_path / "other", 60)
    other = worked(places / "runs", method="frozen", dataset=str(folder), split="seen")
    same = worked(places / "runs", method="frozen", split="seen")
    test = opened("retrieval", run=run.id, add="3", classes="2", k="20")
    box = next(box for box in test.selectbox if box.label == "Run")
    box.set_value(same.id).run()
    assert test.query_params["add"] == "3"
    assert not test.exception
    next(box for box in test.selectbox if box.label == "Run").set_value(other.id).run()
    assert not test.exception
    assert {"add", "classes"}.isdisjoint(test.query_params)
    assert test.query_params["k"] == "20"


def own(digest: str, side: Side = "add") -> OwnImage:
    return OwnImage(digest, f"{digest}.png", Image.new("RGB", (8, 8)), side)


def test_a_query_changes_by_adding_moving_and_removing_images() -> None:
    query = PageQuery((1, 2), (3,), (own("a"),))
    assert query.with_image(9, "alone") == PageQuery((9,))
    assert query.with_image(3, "add") == PageQuery((1, 2, 3), (), (own("a"),))
    assert query.with_image(1, "subtract") == PageQuery((2,), (3, 1), (own("a"),))
    assert query.moved("a", "subtract").images("subtract") == (3, own("a", "subtract"))
    assert query.moved(2, "subtract") == query.with_image(2, "subtract")
    assert query.without(2).without("a") == PageQuery((1,), (3,))
    assert query.with_own([own("b"), own("b")], "alone") == PageQuery(own=(own("b"),))
    assert len(query.with_own([own("a"), own("b")], "add")) == 5


def test_a_query_of_one_added_image_is_single() -> None:
    queries = (PageQuery((1, 2), (3,)), PageQuery((4,)), PageQuery((4,), (5,)), PageQuery(own=(own("a"),)))
    assert [query.single for query in queries] == [None, 4, None, None]
