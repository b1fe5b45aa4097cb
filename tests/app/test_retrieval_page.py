"""The page Retrieval through Streamlit's AppTest, and the query as a value."""

from __future__ import annotations

import json
import re
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
import pytest
import streamlit
from PIL import Image
from sklearn.datasets import load_digits
from streamlit.testing.v1 import AppTest

from pages.parts.draw import downloads
from pages.parts.draw.downloads import image_files, zipped
from pages.parts.retrieval.own_images import OwnImage, Side, own_image
from pages.parts.retrieval.query import PageQuery
from pages.parts.retrieval.rankings import effect_words
from pages.parts.shell.interesting import MOST, MOST_TEST
from pages.views.retrieval import SAME
from tests.app.opening import as_file, opened, switched, texts
from tests.running import worked, write_digits
from udml_core.data import catalog
from udml_core.data.given.duplicate_decisions import decide
from udml_core.data.given.exclusions import exclude, undo
from udml_core.data.given.labels import assign, assigned_now
from udml_core.data.query_images import keep_query_image
from udml_core.exploration.assigned import assigned_measures
from udml_core.exploration.interesting import gains_and_losses_in_turn
from udml_core.numerics.explanations import Clusters
from udml_core.runs import Run, runs_folder
from udml_core.runs.search import Hit, Query, Retrieval, shared_neighbors

pytestmark = pytest.mark.usefixtures("own_places")


@pytest.fixture(scope="module")
def run(places: Path) -> Run:
    """A finished run of RPML on the digits."""
    return worked(places / "runs", fields={"dimension": 16, "epochs": 2})


def score(ranking: list[Hit]) -> str:
    return f"{sum(bool(hit.correct) for hit in ranking)} of {len(ranking)} hits"


def headers(test: AppTest) -> list[dict[str, Any]]:
    """Return what the page sends to its galleries."""
    contents = [element.proto.bytes for element in test.get("bidi_component")
                if element.proto.component_name == "udml_gallery"]
    return [json.loads(data[4 : 4 + int.from_bytes(data[:4], "little")]) for data in contents]


def tiles(test: AppTest, label: str) -> list[dict[str, Any]]:
    """Return the tiles of a gallery."""
    return next(list(header["tiles"]["list"]) for header in headers(test) if header["label"] == label)


def test_known_copies_are_shown_once_where_no_classes_are(tmp_path: Path) -> None:
    folder = write_digits(tmp_path / "photos", 40, by_class=False)
    plain = worked(runs_folder(), dataset=str(folder), method="frozen", backbone="pixels", split="all")
    retrieval = Retrieval(plain)
    first, second, third = (hit.index for hit in retrieval.search_item(7, 3))

    def shown(**more: str) -> list[int]:
        test = opened("retrieval", run=plain.id, add="7", **more)
        assert not test.exception
        texts_of.append(texts(test))
        return next([tile["id"] for tile in header["tiles"]["list"]] for header in headers(test)
                    if header["label"].startswith("The 20 nearest images"))

    texts_of: list[str] = []
    assert shown()[:3] == [first, second, third]
    assert "copies" not in texts_of[-1], "none is known"
    kept, copy = sorted((first, second))
    decide(retrieval.dataset, np.array([[kept, copy]]), same=True)
    assert copy not in shown()
    assert kept in shown()
    assert "1 copy is not shown: see Filters." in texts_of[-1]
    assert shown(copies="all")[:3] == [first, second, third]
    exclude(retrieval.dataset, np.array([kept]))
    assert copy in shown(), "the copy that is left is shown"
    undo(retrieval.dataset)


def test_without_a_query_an_interesting_one_is_shown_with_its_results(run: Run) -> None:
    test = opened("retrieval", run=run.id)
    assert not test.exception
    assert "add" not in test.query_params
    retrieval = Retrieval(run)
    strip = tiles(test, "Sample queries")
    changes = []
    for tile in strip:
        before, after = (sum(bool(hit.correct) for hit in retrieval.search_item(tile["id"], 10, which))
                         for which in ("frozen", "final"))
        assert tile["badge"] == f"{before} → {after}"
        changes.append(after - before)
    test_half, recorded = changes[:MOST_TEST], changes[MOST_TEST:]
    assert len(changes) == MOST
    for part in (test_half[1:], recorded[1:]):  # the first of each changes as images do on average
        assert gains_and_losses_in_turn(part) == list(range(len(part)))
    assert max(changes) > 0
    ids = [tile["id"] for tile in strip]
    assert set(ids[:MOST_TEST]) <= set(retrieval.split.test.tolist()), "training has not seen the first queries"
    assert set(ids[MOST_TEST:]) <= set(retrieval.split.train.tolist()), "images that the run's records contain"
    hits = retrieval.search_item(strip[0]["id"], 10)
    assert [tile["id"] for tile in tiles(test, "The 10 nearest images, after training")] == [hit.index for hit in hits]
    shown = texts(test)
    assert shown.count("hits among all 1,797 images") == 2
    assert "images searched" not in shown, "the headings name the images already"
    numbered = opened("retrieval", run=run.id, add=str(strip[0]["id"]), compare="final")
    first = tiles(numbered, "The 10 nearest images, after training")[0]
    assert (first["badge"], first["detail"]) == ("1", f"rank 1, distance {hits[0].shown:.3f}")


def test_badges_and_keys_are_explained_where_they_stand_and_the_verdict_comes_before_the_results(
        run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pages.views.retrieval.show_frames_verdict", lambda _frames: streamlit.markdown("The verdict"))
    test = opened("retrieval", run=run.id)
    said = [caption.value for caption in test.caption]
    assert "Hits of 10: raw pixels → after training" in said
    keys = {"query-previous": "P", "query-random": "X", "query-next": "N"}
    assert all(test.button(key=name).help.endswith(f" Key {letter}.") for name, letter in keys.items())
    headings = [text.value for text in test.markdown if text.value == "The verdict" or "hits among all" in text.value]
    assert len(headings) == 3
    assert headings[0] == "The verdict"


def test_ranks_alone_stand_below_the_images_and_the_similarity_in_the_tooltip(run: Run) -> None:
    for compare, measures in (("initial~final", ["distance"] * 2), ("frozen", ["cosine similarity"])):
        test = opened("retrieval", run=run.id, compare=compare)
        lists = [header["tiles"]["list"] for header in headers(test)
                 if header["label"].startswith("The 10 nearest")]
        assert [[tile["badge"] for tile in shown] for shown in lists] == [[str(rank) for rank in range(1, 11)]] * len(
            measures)
        for shown, measure in zip(lists, measures, strict=True):
            assert all(re.fullmatch(rf"rank {tile['badge']}, {measure} \d\.\d{{3}}", tile["detail"]) for tile in shown)
        assert texts(test).count("Below each image: its rank.") == 1


def test_filters_and_queries_are_undone_and_done_again_one_by_one(run: Run) -> None:
    test = opened("retrieval", run=run.id)
    first = tiles(test, "Sample queries")[1]["id"]
    assert test.button(key="retrieval-undo").disabled, "nothing has changed yet"
    test.slider(key="k").set_value(20).run()
    test.multiselect(key=f"classes-{run.spec().fingerprint[:8]}").set_value([3, 5]).run()
    test.button(key="query-next").click().run()
    assert (test.query_params["add"], test.query_params["classes"]) == (str(first), "3.5")
    for key, expected in (("undo", (None, "3.5", 20)), ("undo", (None, None, 20)), ("undo", (None, None, 10)),
                          ("redo", (None, None, 20)), ("redo", (None, "3.5", 20))):
        test.button(key=f"retrieval-{key}").click().run()
        assert (test.query_params.get("add"), test.query_params.get("classes"), test.slider(key="k").value) == expected
    test.slider(key="k").set_value(5).run()
    assert test.button(key="retrieval-redo").disabled, "a new change replaces what was undone"
    assert not test.exception


def test_buttons_show_the_next_the_previous_and_a_random_query(run: Run) -> None:
    test = opened("retrieval", run=run.id)
    strip = [str(tile["id"]) for tile in tiles(test, "Sample queries")]
    for button, expected in (("next", strip[1]), ("next", strip[2]), ("previous", strip[1]), ("previous", strip[0]),
                             ("previous", strip[-1])):
        test.button(key=f"query-{button}").click().run()
        assert test.query_params["add"] == expected
    shown = set()
    for _ in range(3):
        test.button(key="query-random").click().run()
        shown.add(int(test.query_params["add"]))
    assert len(shown) > 1
    assert shown <= set(Retrieval(run).split.test.tolist())


@pytest.mark.slow
def test_up_to_four_embeddings_stand_side_by_side_and_a_link_keeps_them(run: Run, places: Path) -> None:
    other = worked(places / "runs", fields={"dimension": 8, "epochs": 1})
    names = ["frozen", "1", "final", other.id]
    query = int(run.sample_indices()[5])
    test = opened("retrieval", run=run.id, add=str(query), compare="~".join(names))
    assert not test.exception
    retrieval = Retrieval(run)
    for label, hits in (("raw pixels", retrieval.search_item(query, 10, "frozen")),
                        ("Epoch 1", retrieval.search_item(query, 10, "1")),
                        ("after training", retrieval.search_item(query, 10)),
                        (test.multiselect(key=f"compare-{run.id}").format_func(other.id),
                         Retrieval(other).search_item(query, 10))):
        assert [tile["id"] for tile in tiles(test, f"The 10 nearest images, {label}")] == [hit.index for hit in hits]
    assert "images searched (fixed sample of the test half)" in texts(test)
    test.multiselect(key=f"compare-{run.id}").set_value(["initial", "2"]).run()
    assert test.query_params["compare"] == "initial~2"
    test.multiselect(key=f"compare-{run.id}").set_value(["frozen", "final"]).run()
    assert "compare" not in test.query_params


def test_a_search_shows_again_what_it_showed_unless_a_link_says_otherwise(run: Run) -> None:
    test = opened("retrieval", run=run.id, compare="initial~2")
    for linked, shown in (({}, ["initial", "2"]), ({"compare": "final"}, ["final"]), ({}, ["final"])):
        switched(test, "learn").query_params.pop("compare", None)
        test.query_params.update(linked)
        switched(test, "retrieval")
        assert test.multiselect(key=f"compare-{run.id}").value == shown


def test_an_embedding_that_cannot_be_searched_says_why_beside_the_others(run: Run) -> None:
    train = int(Retrieval(run).split.train[0])
    test = opened("retrieval", run=run.id, add=str(train), compare="final~1")
    assert not test.exception
    assert "has no embedding of epoch 1" in texts(test)
    assert "**After training** · " in texts(test)
    test = opened("retrieval", run=run.id, compare="final~1~initial")
    test.session_state["brought"] = (own("a"),)
    test.run()
    assert not test.exception
    assert "Your own images cannot be embedded as in epoch 1" in texts(test)
    assert tiles(test, "The 10 nearest images, after training")
    assert tiles(test, "The 10 nearest images, before training")


def test_a_link_shows_the_query_with_both_signs_and_its_hits(run: Run) -> None:
    test = opened("retrieval", run=run.id, add="3.13", subtract="8", k="20", gallery="test")
    assert not test.exception
    expected = Retrieval(run).search(Query((3, 13), (8,)), 20, "final", "test")
    assert f"After training** · {score(expected)} among 359 test images" in texts(test)
    assert "of 1,797 images searched (test half)" in texts(test)
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
    expected = retrieval.search(Query((3,)), 15, "final", "all", allowed)
    assert f"After training** · {score(expected)}" in texts(test)
    box = next(box for box in test.multiselect if box.label == "Only these classes")
    box.set_value([label, 3]).run()
    assert test.query_params["classes"] == f"{label}.3"
    expected = retrieval.search(Query((3,)), 15, "final", "all", allowed | (np.asarray(retrieval.dataset.labels) == 3))
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
    test = opened("retrieval", run=run.id, add=str(query), clusters=str(member), k="50", gallery="test")
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
    assert "No image passes the filters" in texts(test)


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
    assert shown["First result right"] == f"{100 * Retrieval(run).atlas('final').recall:.1f} %"
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


def test_the_kept_epoch_is_called_after_training(run: Run) -> None:
    last = run.kept_epoch()
    test = opened("retrieval", run=run.id, add=str(run.sample_indices()[0]), epochs="1")
    badges = [tile["badge"] for tile in tiles(test, "Nearest image by epoch")]
    assert badges == ["before", *(f"epoch {epoch}" for epoch in range(1, last)), "after"]
    embeddings = test.multiselect(key=f"compare-{run.id}").options
    assert f"Epoch {last}, after training" in embeddings
    assert f"Epoch {last - 1}" in embeddings


def refined_tiles(test: AppTest) -> list[int]:
    """Return the images of the embedding that is refined at once."""
    return next([tile["id"] for tile in header["tiles"]["list"]] for header in headers(test)
                if "nearest images, RPML, then " in header["label"])


def test_switches_refine_the_current_query_beside_the_other_embeddings(run: Run) -> None:
    retrieval = Retrieval(run)
    query = int(retrieval.split.test[7])
    test = opened("retrieval", run=run.id, add=str(query))
    assert not [label for header in headers(test) if "RPML, then" in (label := header["label"])]
    test.toggle(key="search-average").set_value(True).run()
    assert not test.exception
    assert test.query_params["recipe"] in ("average:alpha=3", ["average:alpha=3"])
    hits = retrieval.search_item(query, 10, "recipe:all:average:alpha=3")
    assert refined_tiles(test) == [hit.index for hit in hits]
    shown = texts(test)
    assert shown.count("hits among all 1,797 images") == 3, "the recipe refines what is searched"
    before = retrieval.search_item(query, 10, "final")
    assert effect_words(before, hits) in shown
    files = [button.label for button in test.get("download_button")]
    assert "Embeddings, without the steps that are on (Parquet)" in files
    test.toggle(key="search-diffuse").set_value(True).run()
    test.toggle(key="search-rerank").set_value(True).run()
    assert test.toggle(key="search-diffuse").value is False, "one re-ranking at a time"
    assert test.query_params["recipe"] in ("average:alpha=3+rerank", ["average:alpha=3+rerank"])
    tune = next(link for link in test.get("page_link") if link.label == "Change these steps")
    assert f"query={query}" in tune.proto.query_string
    for name in ("average", "rerank"):
        test.toggle(key=f"search-{name}").set_value(False).run()
    assert "recipe" not in test.query_params
    assert not [label for header in headers(test) if "RPML, then" in (label := header["label"])]


@pytest.mark.parametrize("recipe", ["nonsense", "rerank+whiten", "views", "average:k=9999"])
def test_a_nonsense_recipe_in_a_link_switches_nothing_on(run: Run, recipe: str) -> None:
    test = opened("retrieval", run=run.id, add="3", recipe=recipe)
    assert not test.exception
    assert not test.error
    assert not any(test.toggle(key=f"search-{name}").value for name in ("whiten", "average", "rerank", "diffuse"))


def test_an_own_image_is_refined_and_its_first_result_is_explained(run: Run) -> None:
    retrieval = Retrieval(run)
    index = int(retrieval.split.test[11])
    test = opened("retrieval", run=run.id, recipe="whiten+average")
    image = Image.fromarray(np.asarray(retrieval.dataset.images[index]))
    test.session_state["brought"] = (own_image(as_file(image, "*mine*.png"), "add"),)
    test.run()
    assert not test.exception
    assert index in refined_tiles(test)
    test.toggle(key="query-why").set_value(True).run()
    assert not test.exception
    shared = shared_neighbors(retrieval, Query((retrieval.embed(image),)), index, 20, gallery="all")
    assert f"share {len(shared)} images of the 20 nearest images of each" in texts(test)
    assert [tile["id"] for tile in tiles(test, "Nearest images of both")] == [of.image for of in shared[:12]]


def test_an_own_image_stays_the_query_after_a_reload_and_is_said_to_be_gone_later(run: Run) -> None:
    image = own_image(as_file(Image.new("RGB", (40, 40), "red"), "*my* bird.png"), "subtract")
    keep_query_image(image.source, image.digest)
    for link in ({}, {"view": SAME}):  # a reload begins a session
        test = opened("retrieval", run=run.id, add="3", own=f"-{image.digest}", **link)
        assert not test.exception
        assert test.query_params["own"] in (f"-{image.digest}", [f"-{image.digest}"])
    test = opened("retrieval", run=run.id, add="3", own=f"-{image.digest}")
    assert "\\*my\\* bird" in texts(test)
    assert [(of.name, of.side) for of in test.session_state["brought"]] == [("*my* bird.png", "subtract")]
    test.button(key=f"out-{image.digest}").click().run()
    assert "own" not in test.query_params
    for lost in ("f" * 40, "/etc/passwd", "-"):
        test = opened("retrieval", run=run.id, own=lost)
        assert not test.exception
        assert "1 own image of this link is not kept any more. Choose it again." in texts(test)
        assert tiles(test, "Sample queries")


def test_an_own_image_is_joined_by_no_remembered_image_and_replaced_by_a_link(run: Run) -> None:
    def brought() -> AppTest:
        test = opened("retrieval", run=run.id, add="3")
        image = own_image(as_file(Image.new("RGB", (40, 40), "red"), "mine.png"), "add")
        test.session_state["brought"] = (image,)
        test.query_params["add"] = ""
        return switched(test.run(), "data")

    back = brought()
    back.query_params.clear()
    back = switched(back, "retrieval")
    assert not back.exception
    assert "add" not in back.query_params, "the image of the query before, which other pages show"
    assert "Query: **mine.png**" in texts(back).replace("\\", "")
    linked = brought()
    linked.query_params.clear()
    linked.query_params["add"] = "5"
    linked = switched(linked, "retrieval")
    assert linked.session_state["brought"] == ()
    assert "mine.png" not in texts(linked)


def test_more_results_are_shown_below_those_that_are_there(run: Run) -> None:
    test = opened("retrieval", run=run.id, add="3")
    shown = [tile["id"] for tile in tiles(test, "The 10 nearest images, after training")]
    for count in (50, 100, 200):
        test.button(key="retrieval-more").click().run()
        assert not test.exception
        more = [tile["id"] for tile in tiles(test, f"The {count} nearest images, after training")]
        assert more[:len(shown)] == shown
        shown = more
    assert "retrieval-more" not in [button.key for button in test.button]
    assert test.slider(key="k").value == 200


def test_found_images_are_zipped_in_the_order_of_their_ranks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a.png", "b.png", "c.png"):
        Image.new("RGB", (8, 8), "red").save(tmp_path / name)
    dataset = catalog.load(str(tmp_path))
    files = image_files(dataset, [2, 0])
    with ZipFile(BytesIO(zipped(files))) as archive:
        assert archive.namelist() == ["001 c.png", "002 a.png"]
        assert archive.read("002 a.png") == (tmp_path / "a.png").read_bytes()
    monkeypatch.setattr(downloads, "LARGEST_ZIP", 100)
    assert not image_files(dataset, [2, 0]), "too large for one download"
    (tmp_path / "a.png").unlink()
    monkeypatch.undo()
    assert not image_files(dataset, [0]), "a file that is gone"
    assert not image_files(catalog.load("digits"), [3]), "images without files"


def test_an_own_image_that_nothing_resembles_is_said_above_the_results(run: Run) -> None:
    retrieval = Retrieval(run)
    test, words = opened("retrieval", run=run.id), "No image here resembles yours"
    for image, expected in ((Image.new("RGB", (40, 40), "red"), True),
                            (Image.fromarray(np.asarray(retrieval.dataset.images[5])), False)):
        test.session_state["brought"] = (own_image(as_file(image, "mine.png"), "add"),)
        test.run()
        assert not test.exception
        assert (words in " ".join(shown.value for shown in test.warning)) == expected
        assert ("This picture is among the images" in texts(test)) != expected
        assert tiles(test, "The 10 nearest images, after training")
    test.session_state["brought"] = (own_image(as_file(Image.new("RGB", (40, 40), "red"), "mine.png"), "add"),)
    test.query_params["add"] = "3"
    assert words not in " ".join(shown.value for shown in test.run().warning), "a mean of images is not an image"


def test_only_failures_fill_the_strip_and_the_first_becomes_the_query(run: Run) -> None:
    atlas = Retrieval(run).atlas("final")
    test = opened("retrieval", run=run.id, add="3")
    test.toggle(key="only-failures").set_value(True).run()
    assert not test.exception
    strip = tiles(test, "Sample queries")
    nearest = dict(zip(atlas.queries.tolist(), atlas.nearest_classes.tolist(), strict=True))
    missed = set(atlas.queries[atlas.misses].tolist())
    assert {tile["id"] for tile in strip} <= missed
    assert len(strip) == min(MOST, len(missed))
    names = Retrieval(run).dataset.class_names
    assert [tile["badge"] for tile in strip] == [f"→ {names[nearest[tile['id']]]}" for tile in strip]
    assert "Query: **" + Retrieval(run).dataset.caption(strip[0]["id"]) in texts(test)
    assert opened("retrieval", run=run.id, failures="1").toggle(key="only-failures").value
    test.toggle(key="only-failures").set_value(False).run()
    assert "failures" not in test.query_params
    assert not tiles(test, "Sample queries")[0]["badge"].startswith("→")


def test_a_text_finds_images_by_their_file_names(run: Run) -> None:
    test = opened("retrieval", run=run.id)
    test.text_input(key="query-text").input("digit 179").run()
    assert not test.exception
    found = [index for index, name in enumerate(Retrieval(run).dataset.names) if "digit 179" in name]
    assert [tile["id"] for tile in tiles(test, "Sample queries")] == found
    assert test.query_params["add"] in (str(found[0]), [str(found[0])])
    assert f"{len(found)} images found" in texts(test)
    test.text_input(key="query-text").input("*no* such").run()
    assert not test.exception
    assert "No file name contains" in texts(test)
    assert len(tiles(test, "Sample queries")) == MOST, "the samples stay"
    assert "\\*no\\*" in texts(test), "a text from outside is escaped"
    test.text_input(key="query-text").input(" ").run()
    assert test.query_params["add"] in (str(found[0]), [str(found[0])]), "an emptied box keeps the query"


@pytest.mark.parametrize(("before", "after", "words"), [
    ([(1, True), (2, False)], [(1, True), (2, False)], "The same images, as many hits as after training"),
    ([(1, True), (2, False)], [(1, True), (3, True)], "1 of 2 results are new, 1 more hit than after training"),
    ([(1, True), (2, True)], [(4, False), (3, False)], "2 of 2 results are new, 2 fewer hits than after training"),
    ([(1, None), (2, None)], [(2, None), (3, None)], "1 of 2 results are new")])
def test_the_effect_of_a_refinement_in_words(before: list[tuple[int, bool | None]],
                                             after: list[tuple[int, bool | None]], words: str) -> None:
    def hits(of: list[tuple[int, bool | None]]) -> list[Hit]:
        return [Hit(rank, index, 0.0, None, correct) for rank, (index, correct) in enumerate(of, 1)]

    assert effect_words(hits(before), hits(after)) == words


def test_images_without_classes_can_be_searched_but_have_no_failures(places: Path, tmp_path: Path) -> None:
    folder = write_digits(tmp_path / "flat", 60, by_class=False)
    unlabeled = worked(places / "runs", method="frozen", dataset=str(folder), split="all")
    test = opened("retrieval", run=unlabeled.id, add="3", epochs="1")
    assert not test.exception
    assert "**Plain search**" in texts(test)
    assert not [word for word in ("**After training**", "**Before training**", " hits", "R@1") if word in texts(test)]
    assert not [toggle for toggle in test.toggle if toggle.key == "only-failures"], "failures need classes"
    assert "Failures" not in next(control for control in test.segmented_control if control.label == "Part").options
    test = opened("retrieval", run=unlabeled.id, view="Failures")
    assert "has none. Name two images of each of two classes" in test.error[0].value


def test_named_images_have_failures_among_themselves(places: Path, tmp_path: Path) -> None:
    """Of 60 images without classes, 41 have a name, one alone in its class, and one named image is excluded."""
    folder = write_digits(tmp_path / "flat", 60, by_class=False)
    unlabeled = worked(places / "runs", method="frozen", dataset=str(folder), split="all")
    dataset, true = unlabeled.dataset(), load_digits().target
    for digit in range(10):
        assign(dataset, np.flatnonzero(true[:40] == digit).tolist(), f"digit *{digit}*")
    assign(dataset, [59], "alone")
    exclude(dataset, [0])
    retrieval = Retrieval(unlabeled)
    expected = assigned_measures(retrieval.frame("final").take(np.arange(60)), assigned_now(dataset))
    assert expected is not None
    test = opened("retrieval", run=unlabeled.id, add="3")
    assert "Failures" in next(control for control in test.segmented_control if control.label == "Part").options
    test = opened("retrieval", run=unlabeled.id, view="Failures")
    assert not test.exception
    assert "Failures among the 40 images that you named" in texts(test)
    assert "1 image without another image of the class is no query" in texts(test)
    shown = {metric.label: metric for metric in test.metric}
    assert shown["First result right"].value == f"{expected.measures['recall@1'].value:.1f} %"
    assert shown["Misses"].delta == "of 39 labeled images"
    table = next(table.value for table in test.dataframe if "Mistaken for" in table.value.columns)
    assert table["Queries"].sum() == int(shown["Misses"].value) > 0
    pair = table.iloc[0]
    queries = tiles(test, f"{pair['Class']} mistaken for {pair['Mistaken for']}: queries")
    assert {f"digit *{true[tile['id']]}*" for tile in queries} == {pair["Class"]}
    assert 0 not in [tile["id"] for tile in queries]
    labeled = retrieval.labeled()
    assert labeled is not None
    images = labeled.images[labeled.images != queries[0]["id"]]
    nearest = tiles(test, f"{pair['Class']} mistaken for {pair['Mistaken for']}: nearest images")[0]["id"]
    rows = retrieval.frame("final").take(images)
    first = images[np.argmin(((rows - retrieval.frame("final").take(np.array([queries[0]["id"]]))) ** 2).sum(axis=1))]
    assert nearest == first, "leave one out among the named images"


@pytest.mark.slow
def test_another_data_set_removes_images_and_classes_from_the_link(run: Run, places: Path, tmp_path: Path) -> None:
    folder = write_digits(tmp_path / "other", 60)
    other = worked(places / "runs", method="frozen", dataset=str(folder), split="seen")
    same = worked(places / "runs", method="frozen", split="seen")
    test = opened("retrieval", run=run.id, add="3", classes="2", k="20")
    test.selectbox(key="choose-run").set_value(same.id).run()
    assert test.query_params["add"] == "3"
    assert not test.exception
    test.selectbox(key="choose-run").set_value(other.id).run()
    assert not test.exception
    assert {"add", "classes"}.isdisjoint(test.query_params)
    assert test.query_params["k"] == "20"


def own(digest: str, side: Side = "add") -> OwnImage:
    image = Image.new("RGB", (8, 8))
    return OwnImage(digest, as_file(image, f"{digest}.png"), image, side)


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


def test_an_excluded_image_is_no_query_and_in_no_strip(run: Run) -> None:
    dataset = run.dataset()
    first = [tile["id"] for tile in tiles(opened("retrieval", run=run.id), "Sample queries")][:2]
    exclude(dataset, first)
    try:
        test = opened("retrieval", run=run.id, add=str(first[0]))
        assert not test.exception
        assert "excluded, so no query" in test.toast[0].value
        assert "add" not in test.query_params
        assert not set(first) & {tile["id"] for tile in tiles(test, "Sample queries")}
        test.text_input(key="query-text").set_value(dataset.names[first[0]]).run()
        assert "add" not in test.query_params
        assert "You excluded every image whose file name contains" in texts(test)
    finally:
        undo(dataset)
