"""The page Neighborhoods through Streamlit's AppTest."""

from __future__ import annotations

import base64
import json
import re
import shutil
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image
from streamlit.testing.v1 import AppTest

from pages.parts.neighborhoods.center import MOST_CANDIDATES, OWN_IMAGE
from pages.parts.neighborhoods.pair import explain_similarity, split_drawing
from pages.parts.retrieval.own_images import own_image
from tests.app.opening import as_file, opened, texts
from tests.app.test_retrieval_page import tiles
from tests.running import worked
from udml_core.base.arrays import Array
from udml_core.base.declaration import describe_field
from udml_core.exploration import neighborhoods as views
from udml_core.methods.plm import PLM
from udml_core.numerics.explanations import Proxies
from udml_core.runs import Run

pytestmark = pytest.mark.usefixtures("own_places")


@pytest.fixture(scope="module")
def run(places: Path) -> Run:
    """A finished run of PLM with proxies."""
    return worked(places / "runs", method="plm", fields={"dimension": 16, "epochs": 2, "proxies": 12, "views": 2})


@pytest.fixture(scope="module")
def ablation(places: Path) -> Run:
    """A finished run of PLM without admission and with binary similarities."""
    return worked(places / "runs", method="plm", fields={
        "dimension": 8, "epochs": 1, "proxies": 0, "views": 2, "admission": False, "similarity": "binary",
        "candidates": 12, "n_beta": 1.5})


@pytest.fixture(scope="module")
def origin_run(places: Path) -> Run:
    """A finished run of PLM with linear neighborhoods through the origin."""
    return worked(places / "runs", method="plm", fields={
        "dimension": 8, "epochs": 1, "proxies": 0, "views": 2, "through": "origin"})


@pytest.fixture(scope="module")
def rpml_run(places: Path) -> Run:
    """A finished run of RPML, which has no proxies and none of PLM's fields."""
    return worked(places / "runs")


def similarity_shown(text: str) -> float:
    match = re.search(r"s = (\d\.\d+)", text)
    assert match, text
    return float(match[1])


@pytest.mark.parametrize(("picked", "second", "n_alpha"), [(3, 40, 4.0), (1000, 12, 1.5)])
def test_a_link_shows_the_similarity_of_its_two_images(picked: int, second: int, n_alpha: float,
                                                               run: Run) -> None:
    test = opened("neighborhoods", run=run.id, picked=str(picked), second=str(second), n_alpha=str(n_alpha))
    assert not test.exception
    around = views.surroundings(run.embeddings("final"), np.array([picked, second]), 20)
    geometry = views.Geometry(n_alpha=n_alpha)
    expected = views.pair(around.centers, around.neighborhoods(geometry).basis, geometry).similarity
    assert similarity_shown(texts(test)) == pytest.approx(expected, abs=6e-4)


def test_the_flat_is_first_seen_from_the_side_and_in_space_on_demand(run: Run) -> None:
    test = opened("neighborhoods", run=run.id, picked="3")

    def chart() -> dict[str, Any]:
        return next(chart for chart in (json.loads(chart.proto.spec) for chart in test.get("plotly_chart"))
                    if any(trace.get("name") == "first image" for trace in chart["data"]))

    def values(array: Any) -> Array:
        """Return an array that Plotly packed."""
        return np.frombuffer(base64.b64decode(array["bdata"]), array["dtype"]) if "bdata" in array else np.array(array)

    side = chart()
    around = views.surroundings(run.embeddings("final"), np.array([3]), 20)
    geometry = views.Geometry()
    inside, across = views.coordinates(around, around.neighborhoods(geometry))
    drawn = {(round(x, 5), round(y, 5)) for trace in side["data"] if trace.get("name") in ("member", "rejected")
             for x, y in zip(values(trace["x"]), values(trace["y"]), strict=True)}
    assert {trace["type"] for trace in side["data"]} == {"scatter"}
    assert drawn == {(round(x, 5), round(y, 5)) for x, y in zip(np.linalg.norm(inside, axis=1), across, strict=True)}
    test.segmented_control(key="neighborhood-axes").set_value("height").run()
    assert "scatter3d" in {trace["type"] for trace in chart()["data"]}


def test_the_similarity_before_training_differs(run: Run) -> None:
    query = {"run": run.id, "picked": "3", "second": "40"}
    before, after = (texts(opened("neighborhoods", **query | {"embedding": which})) for which in ("initial", "final"))
    assert similarity_shown(before) != similarity_shown(after)


def test_a_flat_has_at_most_as_many_dimensions_as_candidates(run: Run) -> None:
    test = opened("neighborhoods", run=run.id, candidates="3", flat="8")
    assert not test.exception
    assert "m = 3 is used" in texts(test)


def test_the_strip_shows_the_members_first_and_dims_the_rejected_candidates(run: Run) -> None:
    test = opened("neighborhoods", run=run.id)
    strip, members, rejected = (tiles(test, label) for label in (
        "Members, then rejected candidates", "Members", "Rejected"))
    assert members
    assert rejected
    assert [tile["id"] for tile in strip] == [tile["id"] for tile in [*members, *rejected]]
    ranks = [int(tile["badge"]) for tile in strip]
    assert sorted(ranks) == list(range(1, len(strip) + 1))
    assert ranks[:len(members)] == sorted(ranks[:len(members)])


def test_without_admission_all_candidates_are_members(run: Run) -> None:
    assert "Members: 10" not in texts(opened("neighborhoods", run=run.id))
    assert "Members: 10" in texts(opened("neighborhoods", run=run.id, admission="no"))


@pytest.mark.slow
def test_neighborhoods_pass_through_what_the_run_used_until_the_other_reading_is_chosen(origin_run: Run) -> None:
    query = {"run": origin_run.id, "picked": "3", "second": "40"}
    around = views.surroundings(origin_run.embeddings("final"), np.array([3, 40]), 20)
    for geometry, words, chosen in (
            (views.Geometry(through="origin"), "the image and its 2 nearest images need no test", {}),
            (views.Geometry(), "the 3 nearest images are members without a test", {"through": "point"})):
        members = opened("neighborhoods", **query | chosen | {"section": "members"})
        hoods = around.neighborhoods(geometry)
        assert words in texts(members)
        assert f"Members: {hoods.members[0].sum()}" in texts(members)
        test = opened("neighborhoods", **query | chosen)
        assert not test.exception
        assert similarity_shown(texts(test)) == pytest.approx(
            views.pair(around.centers, hoods.basis, geometry).similarity, abs=6e-4)
    assert test.segmented_control(key="geometry-through").value == "point"


def test_the_members_say_which_images_and_embedding_they_come_from(run: Run, rpml_run: Run) -> None:
    def captions(of: Run) -> str:
        return " ".join(caption.value for caption in opened("neighborhoods", run=of.id, section="members").caption)

    everywhere, trained = "test images among them, in the embedding chosen above.", "Training took them from batches"
    assert everywhere in captions(run)
    assert f"{everywhere} {trained}" in captions(run)
    assert everywhere in captions(rpml_run)
    assert trained not in captions(rpml_run), "a training without neighborhoods"
    assert trained not in " ".join(caption.value for caption in opened(
        "neighborhoods", run=run.id, section="pair").caption), "it stands beside the members"


def test_a_run_of_an_ablation_opens_with_its_own_geometry(ablation: Run) -> None:
    text = texts(opened("neighborhoods", run=ablation.id))
    assert "Members: 12" in text
    assert "similarities of 0 and 1" in text


def test_the_second_image_does_not_change_with_the_sliders(run: Run) -> None:
    def pair(**query: str) -> str:
        shown = texts(opened("neighborhoods", run=run.id, section="pair", **query))
        return re.search(r"second \*\*(.*?)\*\*", shown)[1]  # type: ignore[index]

    assert pair() == pair(threshold="0.1") == pair(candidates="20")


def slider_data(test: AppTest) -> dict[str, dict[str, Any]]:
    """Return the data of the live sliders by label."""
    data = [json.loads(element.proto.json) for element in test.get("bidi_component")
            if element.proto.component_name == "udml_slider"]
    return {slider["label"].split(":")[0]: slider for slider in data}


def test_the_sliders_have_the_declared_ranges_and_the_run_s_values(ablation: Run) -> None:
    sliders = slider_data(opened("neighborhoods", run=ablation.id))
    for name, value in (("candidates", 12), ("flat", 3), ("threshold", 0.9), ("n_alpha", 4.0), ("n_beta", 1.5)):
        field = describe_field(PLM, name)
        slider = sliders[field.label]
        assert (slider["low"], slider["high"], slider["step"]) == pytest.approx(field.slider), name
        assert slider["value"] == value
        assert slider["marks"] == [{"at": value, "word": "this run"}]


def test_the_sliders_of_another_method_start_at_the_declared_defaults(rpml_run: Run) -> None:
    sliders = slider_data(opened("neighborhoods", run=rpml_run.id))
    threshold = sliders[describe_field(PLM, "threshold").label]
    assert threshold["value"] == describe_field(PLM, "threshold").default
    assert threshold["marks"][0]["word"] == "default"


def test_every_candidate_of_the_slider_s_end_is_searched(run: Run) -> None:
    assert f"Members: {MOST_CANDIDATES}" in texts(
        opened("neighborhoods", run=run.id, admission="no", candidates=str(MOST_CANDIDATES)))


@pytest.mark.parametrize("query", [
    {"picked": "nan", "second": "1e12", "embedding": "other", "candidates": "0", "flat": "x", "threshold": "7",
     "n_alpha": "inf", "n_beta": "-1", "admission": "perhaps", "through": "mean", "proxy": "900",
     "selected": "nonsense"},
    {"picked": "5", "second": "5"}, {"second": "-1"}, {"section": "pair", "proxy": "4"}])
def test_a_nonsense_link_still_explains_a_pair(query: dict[str, str], run: Run) -> None:
    test = opened("neighborhoods", run=run.id, **query)
    assert not test.exception
    assert re.search("[Ss]imilar .*(because|although)", texts(test))


def test_an_own_image_can_be_the_first_image_and_be_removed(run: Run) -> None:
    test = opened("neighborhoods", run=run.id, section="pair")
    image = Image.fromarray(np.asarray(run.dataset().images[77]))
    test.session_state[OWN_IMAGE] = own_image(as_file(image, "mine.png"), "add")
    test.run()
    assert not test.exception
    assert "mine.png" in texts(test)
    assert "cosine = 1.000" not in texts(test)
    test.button(key="neighborhood-away").click().run()
    assert not test.exception
    assert "mine.png" not in texts(test)


def test_proxies_show_their_nearest_images_and_a_warning_when_they_collapse(
        run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    test = opened("neighborhoods", run=run.id, proxy="4")
    assert not test.exception
    assert "12 proxies: learned points" in texts(test)
    assert "nearest to ρ5" in texts(test)
    assert "have collapsed" not in texts(test)
    copy = Run(shutil.copytree(run.folder, tmp_path / "runs" / run.id))
    last = max(copy.epoch_numbers())
    (proxies,) = copy.explanations(last)
    assert isinstance(proxies, Proxies)
    collapsed = Proxies(np.repeat(proxies.places[:1], 12, axis=0), proxies.directions)
    sample = copy.epoch_sample(last)
    shutil.rmtree(copy.folder / "epochs" / f"{last:04d}")
    copy.write_epoch(last, [collapsed], sample)
    monkeypatch.setenv("UDML_RUNS", str(tmp_path / "runs"))
    assert "have collapsed" in texts(opened("neighborhoods", run=run.id, section="proxies"))


def test_a_method_without_proxies_has_no_part_about_proxies(rpml_run: Run) -> None:
    test = opened("neighborhoods", run=rpml_run.id, section="proxies")
    assert not test.exception
    assert "Proxies" not in [tab.label for tab in test.tabs]
    assert "learned points" not in texts(test)
    assert "By distance" in texts(opened("neighborhoods", run=rpml_run.id, section="rankings"))


def test_embeddings_without_unit_length_are_ranked_by_distance(places: Path) -> None:
    own = worked(places / "runs", method="ml", fields={"dimension": 4, "epochs": 1}, most_pairs=200)
    final, initial = (texts(opened("neighborhoods", run=own.id, embedding=which, section="rankings"))
                      for which in ("final", "initial"))
    assert "By distance" in final
    assert "cosine" not in final
    assert "cosine" not in initial


def direction(across: float, along: float) -> views.Direction:
    return views.Direction(across, along, (1 + across / 2) ** -4, (1 + along) ** -0.5)


def test_the_drawing_of_a_pair_is_to_scale() -> None:
    pair = views.Pair(1.0, 0.5, direction(0.6, 0.8), direction(0.8, 0.6))
    image = Image.new("L", (8, 8))
    lengths = []
    for part in (pair.first, pair.other):
        lines = list(ElementTree.fromstring(split_drawing(part, pair, (image, image))).iter(
            "{http://www.w3.org/2000/svg}line"))
        along, across = ([float(line.get(name) or 0) for name in ("x1", "y1", "x2", "y2")] for line in lines[2:])
        lengths.append((along[2] - along[0], across[1] - across[3]))
    (p1, o1), (p2, o2) = lengths
    assert o1 / p1 == pytest.approx(0.75, abs=0.01)
    assert (p1, o1) == pytest.approx((o2, p2), abs=0.3)


@pytest.mark.parametrize(("pair", "words"), [
    (views.Pair(0.0, 1.0, direction(0, 0), direction(0, 0)), "the same point"),
    (views.Pair(0.1, 0.9, direction(0, 0.1), direction(0, 0.1)), "Similar because.*mostly along the flats"),
    (views.Pair(1.0, 0.5, direction(1.0, 0), direction(1.0, 0)), "Less similar than most.*because.*mostly across"),
    (views.Pair(1.0, 0.5, direction(1.0, 0), direction(0, 1.0)), "along one flat and across the other")])
def test_the_explanation_names_the_reason(pair: views.Pair, words: str) -> None:
    assert re.search(words, explain_similarity(pair, 0.5, True))
    assert "cosine" not in explain_similarity(pair, 0.5, False)
