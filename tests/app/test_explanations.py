"""The pages Clusters and Triplets through Streamlit's AppTest: empty, what a link shows, nonsense in the address."""

from __future__ import annotations

import shutil
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest

from pages.parts.triplets.triangle import ARC, HEIGHT, WIDTH, triangle
from tests.app.opening import opened, texts
from tests.running import worked
from udml_core.analyses import list_analyses
from udml_core.data.splits import make_split
from udml_core.explanations import Clusters, Triplets
from udml_core.exploration import clusters, triplets
from udml_core.graph import AuthorityGraph
from udml_core.runs import Run

PAGES = ("clusters", "triplets")
pytestmark = pytest.mark.usefixtures("own_places")


@pytest.fixture(scope="module")
def run(places: Path) -> Run:
    return worked(places / "runs", fields={"dimension": 16, "epochs": 2, "alpha": 40.0})


@pytest.fixture(scope="module")
def frozen(places: Path) -> Run:
    return worked(places / "frozen", method="frozen")


@pytest.fixture
def bare(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """The same run, by itself and without anything that was computed about it."""
    copy = Run(shutil.copytree(run.folder, tmp_path / "runs" / run.id))
    shutil.rmtree(copy.folder / "analyses")
    monkeypatch.setenv("UDML_RUNS", str(tmp_path / "runs"))
    return copy


def figures(test: AppTest) -> dict[str, str]:
    return {one.label: one.value for one in test.metric}


def graph_of(run: Run) -> tuple[AuthorityGraph, np.ndarray]:
    """The graph of the training half, and its images' classes."""
    analysis = list_analyses(run, "graph")[0]
    graph, labels = analysis.result(), run.dataset().labels
    assert isinstance(graph, AuthorityGraph)
    assert labels is not None
    return graph, labels[analysis.indices()]


def used(run: Run, epoch: int) -> Triplets:
    return next(one for one in run.explanations(epoch) if isinstance(one, Triplets))


@pytest.mark.parametrize("page", PAGES)
def test_without_any_run_it_says_what_to_do(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UDML_RUNS", str(tmp_path / "none"))
    test = opened(page)
    assert not test.exception
    assert "Train one, then come back" in texts(test)


@pytest.mark.parametrize("query", [{"run": "nonsense"}, {"epsilon": "nan"}, {"epsilon": "7"}, {"gamma": "-1"},
                                   {"cluster": "9" * 400}, {"picked": "1e9"}, {"picked": "-3"}, {"alpha": "inf"},
                                   {"epoch": "99"}, {"triplet": "1e12"}, {"triplet": "-2"}, {"by": "nonsense"},
                                   {"only": "x"}, {"rescaled": "²"}, {"cluster": "0.5"}, {"selected": "nonsense"}])
@pytest.mark.parametrize("page", PAGES)
def test_nonsense_in_the_address_is_survived(page: str, query: dict[str, str], run: Run) -> None:
    test = opened(page, **({"run": run.id} | query))
    assert not test.exception
    assert figures(test), "something is shown all the same"


@pytest.mark.parametrize("epsilon", ["", "0.3", "0.9", "1"])
def test_clusters_shows_the_clusters_at_the_link_s_epsilon(epsilon: str, run: Run) -> None:
    test = opened("clusters", run=run.id, **({"epsilon": epsilon} if epsilon else {}))
    assert not test.exception
    graph, labels = graph_of(run)
    expected = clusters.summary(graph.clusters(float(epsilon or 0.65), 100.0), labels)
    shown = figures(test)
    assert shown["Clusters"] == f"{expected.count:,}"
    assert shown["Coverage"] == f"{100 * expected.coverage:.1f} %"
    assert shown["Alone"] == f"{expected.singletons:,}"
    assert shown["Purity"] == f"{100 * (expected.purity or 0):.1f} %"


def test_clusters_starts_where_training_was_and_keeps_its_pseudo_labels(run: Run) -> None:
    trained = next(one for one in run.explanations(1) if isinstance(one, Clusters))
    again = graph_of(run)[0].clusters(0.65, 100.0)
    np.testing.assert_array_equal(again.labels, trained.labels)
    assert figures(opened("clusters", run=run.id))["Clusters"] == f"{len(trained.modes):,}"


def test_clusters_tells_gamma_and_the_rescaled_authority_from_the_link(run: Run) -> None:
    test = opened("clusters", run=run.id, epsilon="0.5", gamma="900", rescaled="1")
    expected = clusters.rescaled(graph_of(run)[0]).clusters(0.5, 900.0)
    assert figures(test)["Clusters"] == f"{len(expected.modes):,}"
    assert test.toggle(key="clusters-rescaled").value


def test_clusters_leads_a_picked_image_to_its_authority(run: Run) -> None:
    graph, _ = graph_of(run)
    indices = list_analyses(run, "graph")[0].indices()
    found = graph.clusters(0.4, 100.0)
    longest = max(range(len(indices)), key=lambda point: len(clusters.ascent_path(found, point)))
    steps = len(clusters.ascent_path(found, longest)) - 1
    assert steps > 1
    test = opened("clusters", run=run.id, epsilon="0.4", picked=str(indices[longest]))
    assert f"reaches its authority in {steps} steps" in texts(test)
    outside = opened("clusters", run=run.id, picked=str(make_split(run.dataset(), "seen").test[0]))
    assert "not in the graph" in texts(outside)


def test_clusters_without_a_graph_offers_it_and_computes_nothing_unasked(bare: Run) -> None:
    test = opened("clusters", run=bare.id)
    assert not test.exception
    assert "no neighbor graph yet" in texts(test)
    assert [button.label for button in test.button if button.label == "Build the graph"]
    assert not list_analyses(bare)


def test_clusters_without_a_map_leads_to_one(run: Run, bare: Run) -> None:
    shutil.copytree(list_analyses(run, "graph")[0].folder, bare.folder / "analyses" / list_analyses(run, "graph")[0].id)
    test = opened("clusters", run=bare.id)
    assert not test.exception
    assert "no map of its training images" in texts(test)
    assert figures(test)["Clusters"]


@pytest.mark.parametrize("alpha", ["", "20", "60"])
@pytest.mark.parametrize("epoch", ["", "1"])
def test_triplets_counts_who_violates_the_link_s_alpha(alpha: str, epoch: str, run: Run) -> None:
    query = {name: value for name, value in (("alpha", alpha), ("epoch", epoch)) if value}
    test = opened("triplets", run=run.id, **query)
    assert not test.exception
    record, labels = used(run, int(epoch or 2)), run.dataset().labels
    assert labels is not None
    violating = triplets.shape_of(record).argument(float(alpha or 40)) > 0
    assert f"{violating.sum():,} of {len(violating):,} kept triplets violate α = {alpha or 40}°" in texts(test)
    positive, negative = triplets.truth(record, labels[make_split(run.dataset(), "seen").train])
    assert f"True to the classes: {100 * (positive & negative).mean():.0f} % of all" in texts(test)
    assert f"{100 * positive.mean():.0f} % of the positives" in texts(test)


def test_triplets_of_a_method_without_any_says_which_methods_have_them(
        frozen: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UDML_RUNS", str(frozen.folder.parent))
    test = opened("triplets", run=frozen.id)
    assert not test.exception
    assert "RPML and sRPML make them" in texts(test)


def test_triplets_of_a_run_from_before_distances_were_kept_are_not_offered(bare: Run) -> None:
    for number in bare.epoch_numbers():
        path = bare.folder / "epochs" / f"{number:04d}" / "triplets.npz"
        if path.exists():
            with np.load(path) as stored:
                old = {name: stored[name] for name in ("anchor", "positive", "negative", "argument", "weight")}
            np.savez(path, **old)  # type: ignore[arg-type]
    test = opened("triplets", run=bare.id)
    assert not test.exception
    assert not test.error
    assert not figures(test)


def test_triplets_only_those_that_violate(run: Run) -> None:
    test = opened("triplets", run=run.id, only="1", alpha="89")
    assert not test.exception
    assert "No kept triplet violates α = 89°" in texts(test)


def drawn(svg: str) -> tuple[np.ndarray, np.ndarray]:
    """The true triangle's corners (3, 2) and the arc's ends (2, 2), in pixels with y upwards."""
    root = ElementTree.fromstring(svg)
    polygon, arc = (next(one for one in root.iter() if one.tag.endswith(name)) for name in ("polygon", "path"))
    corners = [[float(part) for part in pair.split(",")] for pair in polygon.attrib["points"].split()]
    words = arc.attrib["d"].split()
    return np.array(corners) * [1, -1], np.array([words[1:3], words[-2:]], dtype=float) * [1, -1]


@given(st.lists(st.floats(-2, 2, allow_subnormal=False), min_size=9, max_size=9), st.floats(1, 89))
def test_a_triplet_is_drawn_to_scale_and_stays_within_its_picture(numbers: list[float], alpha: float) -> None:
    points = np.array(numbers).reshape(3, 3)
    shape = triplets.shape_in(points, *np.arange(3)[:, None])
    corners, angle = triplets.corners(shape, 0), float(shape.angle[0])
    found, arc = drawn(triangle(corners, alpha, angle))
    assert (found[:, 0] >= 0).all()
    assert (found[:, 0] <= WIDTH).all()
    assert (-found[:, 1] >= 0).all()
    assert (-found[:, 1] <= HEIGHT).all()
    true = np.array([np.linalg.norm(points[one] - points[other]) for one, other in ((0, 1), (0, 2), (1, 2))])
    if true.max() > 0.1:
        shown = np.array([np.linalg.norm(found[one] - found[other]) for one, other in ((0, 1), (0, 2), (1, 2))])
        scale = shown.max() / true[shown.argmax()]
        np.testing.assert_allclose(shown, scale * true, atol=0.5)
    apex = arc[0] + [0, ARC]
    turned = np.degrees(np.arctan2(*(arc[1] - apex) * [1, -1]))
    assert turned == pytest.approx(angle, abs=0.5)


def test_a_selection_of_another_data_set_is_not_taken_for_one_of_this(run: Run) -> None:
    test = opened("map", run=run.id, selected="000000:1.2.3")
    assert not test.exception
    assert "of another data set" in texts(test)
    assert "3 images selected" not in texts(test)
    own = run.spec().fingerprint[:6]
    assert "3 images selected" in texts(opened("map", run=run.id, selected=f"{own}:1.2.3"))


def test_a_link_that_names_a_run_that_is_gone_says_so(run: Run) -> None:
    test = opened("clusters", run="20200101-000000-rpml-000000")
    assert not test.exception
    assert "names a run that cannot be shown here" in texts(test)


def test_a_lesson_s_answer_is_in_its_link() -> None:
    closed = "The slider appears when you have answered or skipped"
    assert closed in texts(opened("lesson_epsilon"))
    for answer in ("0", "2", "skipped"):
        assert closed not in texts(opened("lesson_epsilon", answer=answer, epsilon="0.45"))
    assert closed in texts(opened("lesson_epsilon", answer="9"))
