"""Search beside brute force, and export."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.running import worked
from udml_core.errors import UserError
from udml_core.methods import Embedder
from udml_core.retrieval import Retrieval, export
from udml_core.runs import Run
from udml_core.tasks import Status


@pytest.fixture(scope="module")
def run(shared_cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UDML_CACHE", str(shared_cache))
        return worked(tmp_path_factory.mktemp("runs"))


@pytest.mark.parametrize("which", ["initial", "final"])
@pytest.mark.parametrize("gallery", ["test", "all"])
def test_search_gives_the_nearest_by_brute_force_without_the_query(run: Run, which: str, gallery: str) -> None:
    opened = Retrieval(run)
    embeddings = np.asarray(run.embeddings(which)).astype(np.float64)  # type: ignore[arg-type]
    allowed = opened.split.test if gallery == "test" else np.arange(len(opened.dataset))
    for query in (int(opened.split.test[5]), int(opened.split.train[5])):
        similarity = embeddings[allowed] @ embeddings[query]
        similarity[allowed == query] = -2
        expected = np.sort(similarity)[::-1][:7]
        hits = opened.search_item(query, 7, which, gallery)  # type: ignore[arg-type]
        assert [hit.rank for hit in hits] == list(range(1, 8))
        assert query not in [hit.index for hit in hits]
        np.testing.assert_allclose([hit.similarity for hit in hits], expected, atol=1e-5)
        labels = np.asarray(opened.dataset.labels)
        assert [hit.correct for hit in hits] == [labels[hit.index] == labels[query] for hit in hits]


def test_an_image_from_outside_finds_its_twin_first(run: Run) -> None:
    opened = Retrieval(run)
    first, *_ = opened.search_image(opened.dataset.images[12], 3, "final", "all")
    assert first.index == 12
    assert first.similarity == pytest.approx(1, abs=1e-5)
    assert first.correct is None


def test_an_image_that_is_not_there_and_a_run_that_is_not_done_are_told(run: Run) -> None:
    with pytest.raises(UserError, match="numbered 0 to 1796, got 5000"):
        Retrieval(run).search_item(5000)
    status = run.stored_status()
    try:
        run.write_status(Status(state="stopped"))
        with pytest.raises(UserError, match="is stopped, so there is nothing to search yet"):
            Retrieval(run)
    finally:
        run.write_status(status)


def test_export_holds_what_is_needed_to_embed_elsewhere(run: Run, tmp_path: Path) -> None:
    target = tmp_path / "out"
    names = {path.name for path in export(run, target)}
    assert {"embedder.safetensors", "embeddings.npy", "index.faiss", "images.csv", "evaluation.json"} <= names
    assert len((target / "images.csv").read_text().splitlines()) == 1798
    copied = Embedder.load(target / "embedder.safetensors")
    assert copied.encoder.spec == run.spec().encoder
    with pytest.raises(UserError, match="new or empty folder"):
        export(run, target)
