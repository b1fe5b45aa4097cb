"""The page Neighborhoods through Streamlit's AppTest: what a link shows, images from outside, proxies, nonsense."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

from pages.parts.neighborhoods.flat import because, split_drawing
from pages.parts.retrieval.query import LOOKED_AT, Brought
from tests.app.opening import ROOT, opened, texts
from tests.running import worked
from udml_core.explanations import Proxies
from udml_core.exploration import neighborhoods as views
from udml_core.runs import Run

pytestmark = pytest.mark.usefixtures("own_places")


@pytest.fixture(scope="module")
def run(places: Path) -> Run:
    return worked(places / "runs", method="plm", fields={"dimension": 16, "epochs": 2, "proxies": 12, "views": 2})


def similarity_shown(text: str) -> float:
    found = re.search(r"s = (\d\.\d+)", text)
    assert found, text
    return float(found[1])


@pytest.mark.parametrize(("picked", "second", "n_alpha"), [(3, 40, 4.0), (1000, 12, 1.5)])
def test_it_shows_the_similarity_of_the_two_images_in_the_link(picked: int, second: int, n_alpha: float,
                                                               run: Run) -> None:
    test = opened("neighborhoods", run=run.id, picked=str(picked), second=str(second), n_alpha=str(n_alpha))
    assert not test.exception
    around = views.surroundings(run.embeddings("final"), np.array([picked, second]), 20)
    geometry = views.Geometry(n_alpha=n_alpha)
    expected = views.pair(around.centers, around.neighborhoods(geometry).basis, geometry).similarity
    assert similarity_shown(texts(test)) == pytest.approx(expected, abs=6e-4)


def test_before_training_it_shows_the_start(run: Run) -> None:
    query = {"run": run.id, "picked": "3", "second": "40"}
    before, after = (texts(opened("neighborhoods", **query | {"embedding": which})) for which in ("initial", "final"))
    assert similarity_shown(before) != similarity_shown(after)


def test_more_directions_than_candidates_are_not_asked_for(run: Run) -> None:
    test = opened("neighborhoods", run=run.id, candidates="3", flat="8")
    assert not test.exception
    assert "Used is m = 3" in texts(test)


def test_without_admission_all_candidates_are_members(run: Run) -> None:
    assert "Members: 10" not in texts(opened("neighborhoods", run=run.id))
    assert "Members: 10" in texts(opened("neighborhoods", run=run.id, admission="no"))


def test_a_run_of_an_ablation_starts_as_it_was_trained(places: Path) -> None:
    fields = {"dimension": 8, "epochs": 1, "proxies": 0, "views": 2, "admission": False, "similarity": "binary"}
    text = texts(opened("neighborhoods", run=worked(places / "runs", method="plm", fields=fields).id))
    assert "Members: 10" in text
    assert "similarities of 0 and 1" in text


def test_the_second_image_stays_while_sliders_move(run: Run) -> None:
    def pair(**query: str) -> str:
        return re.search(r"second \*\*(.*?)\*\*", texts(opened("neighborhoods", run=run.id, **query)))[1]  # type: ignore[index]

    assert pair() == pair(threshold="0.1") == pair(candidates="20")


@pytest.mark.parametrize("query", [{"picked": "nan"}, {"second": "-1"}, {"second": "1e12"}, {"embedding": "other"},
                                   {"candidates": "0"}, {"flat": "x"}, {"threshold": "7"}, {"n_alpha": "inf"},
                                   {"proxy": "900"}, {"picked": "5", "second": "5"}, {"selected": "nonsense"}])
def test_nonsense_in_the_address_is_survived(query: dict[str, str], run: Run) -> None:
    test = opened("neighborhoods", **({"run": run.id} | query))
    assert not test.exception
    assert re.search("[Ss]imilar .*because", texts(test))


def test_an_image_from_outside_is_looked_at_and_taken_away(run: Run) -> None:
    test = opened("home")
    image = Image.fromarray(np.asarray(run.dataset().images[77]))
    test.session_state[LOOKED_AT] = Brought("0" * 40, "mine.png", image, "add")
    test.query_params["run"] = run.id
    test.switch_page(str(ROOT / "pages" / "neighborhoods.py")).run()
    assert not test.exception
    assert "mine.png" in texts(test)
    assert "cosine is 1.000" not in texts(test)
    next(button for button in test.button if button.label == "Take it away").click().run()
    assert not test.exception
    assert "mine.png" not in texts(test)


def test_proxies_say_what_they_stand_for_and_when_they_have_met(run: Run, tmp_path: Path,
                                                               monkeypatch: pytest.MonkeyPatch) -> None:
    test = opened("neighborhoods", run=run.id, proxy="4")
    assert not test.exception
    assert "Learnt points, 12 of them" in texts(test)
    assert "nearest to ρ5" in texts(test)
    assert "have met" not in texts(test)
    copy = Run(shutil.copytree(run.folder, tmp_path / "runs" / run.id))
    last = max(copy.epoch_numbers())
    (proxies,) = copy.explanations(last)
    assert isinstance(proxies, Proxies)
    met = Proxies(np.repeat(proxies.places[:1], 12, axis=0), proxies.directions)
    sample = copy.epoch_sample(last)
    shutil.rmtree(copy.folder / "epochs" / f"{last:04d}")
    copy.write_epoch(last, [met], sample)
    monkeypatch.setenv("UDML_RUNS", str(tmp_path / "runs"))
    assert "have met" in texts(opened("neighborhoods", run=run.id))


def test_methods_without_proxies_have_no_such_part(places: Path) -> None:
    other = worked(places / "runs")
    text = texts(opened("neighborhoods", run=other.id))
    assert re.search("[Ss]imilar .*because", text)
    assert "Learnt points" not in text
    assert "By cosine" in text


def test_embeddings_whose_length_counts_have_their_nearest_by_distance(places: Path) -> None:
    own = worked(places / "runs", method="ml", fields={"dimension": 4, "epochs": 1}, most_pairs=200)
    final, initial = (texts(opened("neighborhoods", run=own.id, embedding=which)) for which in ("final", "initial"))
    assert "By distance" in final
    assert "cosine" not in final
    assert "cosine" not in initial


def direction(across: float, along: float) -> views.Direction:
    return views.Direction(across, along, (1 + across / 2) ** -4, (1 + along) ** -0.5)


def test_a_pair_s_drawing_is_to_scale() -> None:
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
def test_the_sentence_says_why(pair: views.Pair, words: str) -> None:
    assert re.search(words, because(pair, 0.5, True))
    assert "cosine" not in because(pair, 0.5, False)
