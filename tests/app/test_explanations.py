"""The pages Clusters and Triplets and the shared address of selections, through Streamlit's AppTest."""

from __future__ import annotations

import base64
import re
import shutil
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest

from pages.parts.maps.coloring import ascent_settings
from pages.parts.maps.frame import covering_map
from pages.parts.shell.interesting import interesting_queries
from pages.parts.triplets import browsing
from pages.parts.triplets.triangle import ARC, HEIGHT, LEAST_HALF, WIDTH, shared_half, triangle
from tests.app.opening import opened, texts
from tests.app.test_refine_page import components, tiles
from tests.running import worked
from udml_core.base.errors import counted
from udml_core.data.encoders import Encoder
from udml_core.data.features import features_of
from udml_core.data.splits import make_split
from udml_core.exploration import clusters, triplets
from udml_core.exploration.gallery_content import Tile
from udml_core.methods import Embedder, Head
from udml_core.methods.rpml import RPML
from udml_core.numerics.explanations import Clusters, Triplets
from udml_core.numerics.graph import AuthorityGraph
from udml_core.runs import Run, RunRequest, create_run
from udml_core.runs.analyses import list_analyses, plan_analysis
from udml_core.runs.analyses.kinds.graph import NeighborGraph
from udml_core.work import jobs
from udml_core.work.workers.analyse import keep

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
    """A copy of the run without its analyses, in a folder of its own."""
    copy = Run(shutil.copytree(run.folder, tmp_path / "runs" / run.id))
    shutil.rmtree(copy.folder / "analyses")
    monkeypatch.setenv("UDML_RUNS", str(tmp_path / "runs"))
    return copy


def metrics(test: AppTest) -> dict[str, str]:
    return {metric.label: metric.value for metric in test.metric}


def graph_of(run: Run) -> tuple[AuthorityGraph, np.ndarray]:
    """Return the graph of the training half and the labels of its images."""
    analysis = list_analyses(run, NeighborGraph)[0]
    graph, labels = analysis.result(), run.dataset().labels
    assert isinstance(graph, AuthorityGraph)
    assert labels is not None
    return graph, labels[analysis.indices()]


def stored_triplets(run: Run, epoch: int) -> Triplets:
    return next(record for record in run.explanations(epoch) if isinstance(record, Triplets))


@pytest.mark.parametrize("page", PAGES)
def test_without_a_run_the_page_says_what_to_do(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UDML_RUNS", str(tmp_path / "none"))
    test = opened(page)
    assert not test.exception
    assert "Train" in texts(test)


NONSENSE = (
    {"run": "nonsense", "epsilon": "nan", "gamma": "-1", "cluster": "9" * 400, "picked": "1e9", "alpha": "inf",
     "epoch": "99", "triplet": "1e12", "by": "nonsense", "only": "x", "rescaled": "²", "selected": "nonsense"},
    {"epsilon": "7", "gamma": "x", "cluster": "0.5", "picked": "-3", "alpha": "0", "epoch": "-1", "triplet": "-2",
     "by": "", "only": "²", "rescaled": "x", "selected": ":1.2"},
)


@pytest.mark.parametrize("query", NONSENSE, ids=["every value", "boundary values"])
@pytest.mark.parametrize("page", PAGES)
def test_a_page_ignores_nonsense_in_the_address(page: str, query: dict[str, str], run: Run) -> None:
    test = opened(page, **({"run": run.id} | query))
    assert not test.exception
    assert metrics(test), "the page shows its default view"


def test_an_anchor_has_the_color_of_anchors_and_its_badge_says_if_its_triplet_agrees(
        run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[Tile] = []
    monkeypatch.setattr(browsing, "gallery", lambda _dataset, tiles, *_others, **_options: shown.extend(tiles))
    opened("triplets", run=run.id)
    assert {tile.mark for tile in shown} == {"anchor"}
    assert all(re.fullmatch(r"[\d.]+ [✓✕]", tile.badge) for tile in shown)


def test_triplets_takes_the_order_from_the_link(run: Run) -> None:
    for by in ("loss", "weight", "angle"):
        assert f"the badge is the {by} of the first triplet" in texts(opened("triplets", run=run.id, by=by))


@pytest.mark.parametrize("epsilon", ["", "0.3", "0.9", "1"])
def test_clusters_uses_the_epsilon_in_the_link(epsilon: str, run: Run) -> None:
    test = opened("clusters", run=run.id, **({"epsilon": epsilon} if epsilon else {}))
    assert not test.exception
    graph, labels = graph_of(run)
    expected = clusters.cluster_summary(graph.clusters(float(epsilon or 0.65), 100.0), labels)
    shown = metrics(test)
    assert shown["Clusters"] == f"{expected.count - expected.singletons:,}"
    assert shown["Coverage"] == f"{100 * expected.coverage:.1f} %"
    assert shown["Alone"] == counted(expected.singletons, "image")
    assert shown["Purity"] == f"{100 * (expected.purity or 0):.1f} %"
    groups = expected.count - expected.singletons
    assert counted(groups, "group") in texts(test), "the number that Lab gives"
    assert counted(expected.singletons, "image") in texts(test)
    assert f"of the {len(labels):,} images of the" in texts(test)


def test_clusters_shows_the_pseudo_labels_of_training_by_default(run: Run) -> None:
    trained = next(record for record in run.explanations(1) if isinstance(record, Clusters))
    recomputed = graph_of(run)[0].clusters(0.65, 100.0)
    np.testing.assert_array_equal(recomputed.labels, trained.labels)
    assert metrics(opened("clusters", run=run.id))["Clusters"] == f"{(np.bincount(trained.labels) > 1).sum():,}"


def test_clusters_uses_the_defaults_of_rpml_for_other_methods(frozen: Run, tmp_path: Path) -> None:
    assert ascent_settings(frozen) == RPML()
    dataset = frozen.dataset()
    request = RunRequest(dataset=dataset.name, method="ssdml", backbone="pixels", fields={"gamma": 0.5})
    ssdml = create_run(jobs.plan(request, dataset), tmp_path)
    assert ascent_settings(ssdml) == RPML(), "γ of SSDML is not γ of authority ascent"


def test_clusters_takes_gamma_and_the_rescaled_authority_from_the_link(run: Run) -> None:
    test = opened("clusters", run=run.id, epsilon="0.5", gamma="900", rescaled="1")
    expected = clusters.rescale_authority(graph_of(run)[0]).clusters(0.5, 900.0)
    assert metrics(test)["Clusters"] == f"{(np.bincount(expected.labels) > 1).sum():,}"
    assert test.toggle(key="clusters-rescaled").value


def test_clusters_shows_the_ascent_path_of_a_picked_image(run: Run) -> None:
    graph, _ = graph_of(run)
    indices = list_analyses(run, NeighborGraph)[0].indices()
    expected = graph.clusters(0.4, 100.0)
    longest = max(range(len(indices)), key=lambda point: len(clusters.ascent_path(expected, point)))
    steps = len(clusters.ascent_path(expected, longest)) - 1
    assert steps > 1
    test = opened("clusters", run=run.id, epsilon="0.4", picked=str(indices[longest]))
    assert f"reaches the image where its ascent ends in {steps} steps, the mode of its cluster" in texts(test)
    outside = opened("clusters", run=run.id, picked=str(make_split(run.dataset(), "seen").test[0]), section="path")
    assert "not in the graph" in texts(outside)


def test_clusters_without_a_graph_offers_to_compute_it_and_does_not_start_by_itself(bare: Run) -> None:
    test = opened("clusters", run=bare.id)
    assert not test.exception
    assert "no neighbor graph yet" in texts(test)
    assert [button.label for button in test.button if button.label == "Build graph"]
    assert not list_analyses(bare)


def test_clusters_shows_the_graph_of_a_refined_training_half(bare: Run, run: Run) -> None:
    plain = list_analyses(run, NeighborGraph)[0].folder
    shutil.copytree(plain, bare.folder / "analyses" / plain.name)
    assert [button.label for button in opened("clusters", run=bare.id).button if button.key == "clusters-refine"] == [
        "Refine training half"]
    refined = plan_analysis(kind="refine", recipe="average:k=5", scope="train")
    refinement = keep(bare, refined, lambda _share, _step: None)
    offered = opened("clusters", run=bare.id)
    assert offered.button(key=f"clusters-{refinement.id}").label == "Build graph of average:k=5"
    spec = plan_analysis(kind="graph", scope="train", frames=(refinement.id,), n_neighbors=30)
    keep(bare, spec, lambda _share, _step: None)
    labels, shown = bare.dataset().labels, {}
    for graph in list_analyses(bare, NeighborGraph):
        result = graph.result()
        assert isinstance(result, AuthorityGraph)
        summary = clusters.cluster_summary(result.clusters(0.65, 100.0), labels[graph.indices()])
        shown[graph.id] = f"{summary.count - summary.singletons:,}"
    assert len(set(shown.values())) == 2
    for graph_id, count in shown.items():
        test = opened("clusters", run=bare.id, graph=graph_id)
        assert not test.exception
        assert metrics(test)["Clusters"] == count
    assert set(test.selectbox(key=f"graph-{bare.id}").options) == {
        "frozen features · 50 neighbors", "embedding refined by average:k=5 · 30 neighbors"}
    assert {spec.id, plain.name} == set(shown)


def test_clusters_without_a_map_links_to_the_page_map(run: Run, bare: Run) -> None:
    graph = list_analyses(run, NeighborGraph)[0]
    shutil.copytree(graph.folder, bare.folder / "analyses" / graph.id)
    test = opened("clusters", run=bare.id)
    assert not test.exception
    assert "no map of its training images" in texts(test)
    assert metrics(test)["Clusters"]


@pytest.mark.parametrize("alpha", ["", "20", "60"])
@pytest.mark.parametrize("epoch", ["", "1"])
def test_triplets_counts_the_triplets_that_violate_the_alpha_in_the_link(alpha: str, epoch: str, run: Run) -> None:
    query = {name: value for name, value in (("alpha", alpha), ("epoch", epoch)) if value}
    test = opened("triplets", run=run.id, section="all", **query)
    assert not test.exception
    record, labels = stored_triplets(run, int(epoch or 2)), run.dataset().labels
    assert labels is not None
    violating = triplets.recorded_shape(record).argument(float(alpha or 40)) > 0
    assert f"Violating α = {alpha or 40}°: {violating.sum():,} of {len(violating):,} stored triplets" in texts(test)
    positive, negative = triplets.truth(record, labels[make_split(run.dataset(), "seen").train])
    assert f"{100 * (positive & negative).mean():.1f} % of all triplets" in texts(test)
    assert f"{100 * positive.mean():.1f} % of the positives" in texts(test)


def test_triplets_compares_the_run_with_its_bound_and_with_pca(run: Run) -> None:
    dataset = run.dataset()
    features = np.array(features_of(dataset, Encoder(run.spec().encoder)), dtype=float)
    rows = (features / np.linalg.norm(features, axis=1, keepdims=True))[make_split(dataset, "seen").train]
    record = stored_triplets(run, 2)
    a, p, n = (rows[part] for part in (record.anchor, record.positive, record.negative))
    weights = []
    for path in (run.initial_embedder_path, run.embedder_path):
        head = Embedder.load(path).head
        assert isinstance(head, Head)
        assert head.weight is not None
        weights.append(head.weight.numpy().astype(float))
    shares = []
    for weight in weights:
        near, far = ((difference @ weight) ** 2 for difference in (a - p, n - (a + p) / 2))
        shares.append((near.sum(1) > 4 * np.tan(np.radians(40)) ** 2 * far.sum(1)).mean())
    centered = rows - rows.mean(0)
    principal = np.linalg.svd(centered, full_matrices=False)[2][:16].T
    variance = ((centered @ weights[1]) ** 2).sum() / ((centered @ principal) ** 2).sum()
    overlap = ((weights[1].T @ principal) ** 2).sum() / 16
    shown = texts(opened("triplets", run=run.id, alpha="20", section="all"))
    said = re.search(r"At this run's α = 40°, ([\d.]+) % of these triplets violate the bound before training and "
                     r"([\d.]+) % after training\.", shown)
    assert said, shown
    # The page computes in float32, so a triplet at the bound can count there and not here.
    assert [float(share) for share in said.groups()] == pytest.approx([100 * share for share in shares], abs=0.11)
    assert f"keeps {100 * variance:.1f} % of the variance that PCA of the same dimension keeps" in shown
    assert f"overlap of the two subspaces is {overlap:.2f}" in shown


def test_triplets_say_when_mining_chose_them(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = "triplets that violated the bound when the epoch began come first"
    assert words not in texts(opened("triplets", run=run.id, section="all"))
    monkeypatch.setenv("UDML_RUNS", str(tmp_path / "runs"))
    mined = worked(tmp_path / "runs", fields={"dimension": 16, "epochs": 1, "mining": "violating"})
    shown = texts(opened("triplets", run=mined.id, section="all"))
    assert f"The run chose these triplets by mining: {words}, so the shares do not hold for random triplets." in shown


def test_triplets_of_a_run_without_triplets_names_the_methods_that_store_them(
        frozen: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UDML_RUNS", str(frozen.folder.parent))
    test = opened("triplets", run=frozen.id)
    assert not test.exception
    assert "a method that trains with triplets stores them" in texts(test)


def test_triplets_does_not_offer_an_old_run_without_stored_distances(bare: Run) -> None:
    for number in bare.epoch_numbers():
        path = bare.folder / "epochs" / f"{number:04d}" / "triplets.npz"
        if path.exists():
            with np.load(path) as stored:
                old = {name: stored[name] for name in ("anchor", "positive", "negative", "argument", "weight")}
            np.savez(path, **old)  # type: ignore[arg-type]
    test = opened("triplets", run=bare.id)
    assert not test.exception
    assert not test.error
    assert not metrics(test)


def test_triplets_shows_the_first_triplet_of_the_current_image(run: Run) -> None:
    record, dataset = stored_triplets(run, 2), run.dataset()
    split = make_split(dataset, "seen")
    order = np.argsort(-record.loss, kind="stable")
    anchor = record.anchor[order[len(order) // 2]]
    test = opened("triplets", run=run.id, picked=str(split.train[anchor]), section="numbers")
    first = order[record.anchor[order] == anchor][0]
    ids = [tile["id"] for tile in tiles(test, "Anchor, positive and negative")]
    assert ids == split.train[[record.anchor[first], record.positive[first], record.negative[first]]].tolist()
    assert "not the anchor" not in texts(test)
    linked = opened("triplets", run=run.id, picked=str(split.train[anchor]), triplet="3", section="numbers")
    assert tiles(linked, "Anchor, positive and negative")[0]["id"] == split.train[record.anchor[3]], "a link names it"


def test_triplets_represents_an_image_that_is_no_anchor_by_the_nearest_anchor(run: Run) -> None:
    record, points = stored_triplets(run, 2), run.embeddings("final")
    split = make_split(run.dataset(), "seen")
    image, anchors = int(split.test[3]), np.unique(split.train[record.anchor])
    nearest = anchors[((points[anchors] - points[image]) ** 2).sum(axis=1).argmin()]
    test = opened("triplets", run=run.id, picked=str(image), section="numbers")
    assert tiles(test, "Anchor, positive and negative")[0]["id"] == nearest
    assert f"nearest anchor is shown: **{run.dataset().caption(int(nearest))}**" in texts(test)


def test_clusters_marks_the_current_image_on_the_map_and_opens_its_cluster(run: Run) -> None:
    indices = list_analyses(run, NeighborGraph)[0].indices()
    labels = graph_of(run)[0].clusters(0.65, 100.0).labels
    picked = int(indices[np.flatnonzero(labels != labels[0])[5]])
    test = opened("clusters", run=run.id, picked=str(picked), section="largest")
    header, = components(test, "scatter")
    shown = covering_map(run, indices)
    assert shown is not None
    assert [(shown.projection.indices[mark["row"]], mark["word"]) for mark in header["marks"]] == [(picked, "current")]
    members = {tile["id"] for tile in tiles(test, "Images of the current cluster")}
    assert members == set(indices[labels == labels[np.searchsorted(indices, picked)]].tolist())
    first = components(opened("clusters", run=run.id), "scatter")[0]["marks"]
    assert [shown.projection.indices[mark["row"]] for mark in first] == [interesting_queries(run)[0][0]]


def test_triplets_shows_only_violating_triplets_on_request(run: Run) -> None:
    test = opened("triplets", run=run.id, only="1", alpha="89")
    assert not test.exception
    assert "No stored triplet violates α = 89°" in texts(test)


def shapes_in(svg: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the true triangle's corners (3, 2) and the ends of the arc (2, 2), in pixels with y upwards."""
    root = ElementTree.fromstring(svg)
    polygon, arc = (next(element for element in root.iter() if element.tag.endswith(name))
                    for name in ("polygon", "path"))
    corners = [[float(part) for part in pair.split(",")] for pair in polygon.attrib["points"].split()]
    numbers = arc.attrib["d"].split()
    return np.array(corners) * [1, -1], np.array([numbers[1:3], numbers[-2:]], dtype=float) * [1, -1]


@given(st.lists(st.floats(-2, 2, allow_subnormal=False), min_size=9, max_size=9), st.floats(1, 89))
def test_a_triplet_is_drawn_to_scale_within_its_picture(numbers: list[float], alpha: float) -> None:
    points = np.array(numbers).reshape(3, 3)
    shape = triplets.shape_in(points, *np.arange(3)[:, None])
    corners, angle = triplets.corners(shape, 0), float(shape.angle[0])
    pixels, arc = shapes_in(triangle(corners, alpha, angle))
    assert (pixels[:, 0] >= 0).all()
    assert (pixels[:, 0] <= WIDTH).all()
    assert (-pixels[:, 1] >= 0).all()
    assert (-pixels[:, 1] <= HEIGHT).all()
    true = np.array([np.linalg.norm(points[first] - points[second]) for first, second in ((0, 1), (0, 2), (1, 2))])
    if true.max() > 0.1:
        shown = np.array([np.linalg.norm(pixels[first] - pixels[second]) for first, second in ((0, 1), (0, 2), (1, 2))])
        scale = shown.max() / true[shown.argmax()]
        np.testing.assert_allclose(shown, scale * true, atol=0.5)
    apex = arc[0] + [0, ARC]
    drawn_angle = np.degrees(np.arctan2(*(arc[1] - apex) * [1, -1]))
    assert drawn_angle == pytest.approx(angle, abs=0.5)


def test_the_words_of_a_drawing_stand_in_the_page_at_their_places() -> None:
    def show() -> None:
        from pages.parts.draw.drawing import place_drawing, svg

        place_drawing(svg(200, 100, "#000", ['<circle cx="1" cy="2" r="3"/>',
                                             '<text x="50" y="25" text-anchor="end" font-size="13">a &lt; b</text>']),
                      'A "title"')

    (html,) = AppTest.from_function(show).run().get("html")
    body = html.proto.body
    assert 'alt="A &quot;title&quot;"' in body
    assert re.search(r'left:25.00%;top:25.00%;font-size:13px[^>]*translate\(-100%[^>]*>a &lt; b<', body)
    picture = base64.b64decode(body.partition("base64,")[2].partition('"')[0]).decode()
    assert "<circle" in picture
    assert "<text" not in picture, "no word is drawn twice"


def test_drawings_of_a_triplet_share_the_length_of_the_base_line_and_the_middle() -> None:
    small, large = (np.array([[-half, 0], [half, 0], [0.2, top], [0, top]]) for half, top in ((0.2, 0.6), (3.0, 4.0)))
    half = shared_half([small, large], 25)
    lines = []
    for corners in (small, large):
        drawing = triangle(corners, 25, 20, half=half)
        pixels, _ = shapes_in(drawing)
        lines.append(pixels[:2, 0])
        assert f'<text x="{WIDTH / 2:g}" y="18" text-anchor="middle"' in drawing
    assert lines[0] == pytest.approx(lines[1], abs=0.1)
    assert lines[0].mean() == pytest.approx(WIDTH / 2)
    narrow = np.array([[-0.01, 0], [0.01, 0], [0, 5], [0, 5]])
    assert shared_half([narrow, large], 25) == LEAST_HALF, "a very long triangle does not make the others tiny"


def test_a_selection_of_another_data_set_is_ignored_with_a_message(run: Run) -> None:
    test = opened("explore", run=run.id, selected="000000:1.2.3")
    assert not test.exception
    assert "another data set" in texts(test)
    assert "3 images selected" not in texts(test)
    own = run.spec().fingerprint[:6]
    assert "3 images selected" in texts(opened("explore", run=run.id, selected=f"{own}:1.2.3", panel="selected"))


def test_a_link_to_a_missing_run_shows_a_message(run: Run) -> None:
    test = opened("clusters", run="20200101-000000-rpml-000000")
    assert not test.exception
    assert "20200101-000000-rpml-000000" in texts(test)
