"""Adding and removing vectors, compared with a dictionary of vectors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from filelock import FileLock

from tests.numerics.galleries.literal import grouped, literal_nearest
from udml_core.base.errors import UserError
from udml_core.numerics.galleries import (
    StoredGallery,
    add_vectors,
    build_gallery,
    changes,
    rebuild_advice,
    remove_vectors,
)

QUERIES = grouped(20, seed=5)


def check(gallery: StoredGallery, expected: dict[int, np.ndarray]) -> None:
    """Compare a gallery, and its copy on the disk, with a dictionary."""
    ids, vectors = np.array(list(expected)), np.stack(list(expected.values()))
    for opened in (gallery, StoredGallery.open(gallery.folder)):
        assert len(opened) == len(expected)
        assert sorted(opened.ids().tolist()) == sorted(expected)
        found = opened.search(QUERIES, 5, probes=opened.manifest.lists)[1]
        np.testing.assert_array_equal(found, literal_nearest(QUERIES, vectors, ids, 5))
        # A filter does not bring removed vectors back.
        found = opened.search(QUERIES, 5, np.ones(2**15, np.bool_), opened.manifest.lists)[1]
        np.testing.assert_array_equal(found, literal_nearest(QUERIES, vectors, ids, 5))


@pytest.mark.parametrize("kind", ["flat", "ivf"])
def test_changes_equal_those_of_a_dictionary(kind: str, tmp_path: Path) -> None:
    pool, random = grouped(4000), np.random.default_rng(0)
    gallery = build_gallery(pool[:600], tmp_path / "gallery", kind=kind)  # type: ignore[arg-type]
    expected = dict(enumerate(pool[:600]))
    used = 600
    for _ in range(3):
        gone = random.choice(list(expected), 150, replace=False)
        gallery = remove_vectors(gallery.folder, gone)
        expected = {name: vector for name, vector in expected.items() if name not in set(gone.tolist())}
        check(gallery, expected)
        # Some removed ids come back with other vectors.
        ids = np.concatenate([gone[:20], 10_000 + used + np.arange(200)])
        vectors = pool[used : used + 220]
        used += 220
        gallery = add_vectors(gallery.folder, ids, vectors)
        expected |= dict(zip(ids.tolist(), vectors, strict=True))
        check(gallery, expected)


def test_nothing_is_no_change(tmp_path: Path) -> None:
    gallery = build_gallery(grouped(50), tmp_path / "gallery")
    before = gallery.manifest
    gallery = add_vectors(gallery.folder, np.zeros(0, np.int64), np.zeros((0, 24)))
    gallery = remove_vectors(gallery.folder, np.zeros(0, np.int64))
    assert gallery.manifest == before


def test_all_vectors_can_be_removed_and_others_added(tmp_path: Path) -> None:
    gallery = build_gallery(grouped(60), tmp_path / "gallery", kind="ivf")
    gallery = remove_vectors(gallery.folder, np.arange(60))
    assert gallery.search(QUERIES, 5)[1].shape == (20, 0)
    gallery = add_vectors(gallery.folder, np.array([7, 3]), grouped(60)[:2])
    assert gallery.search(grouped(60)[:2], 1)[1].tolist() == [[7], [3]]


@pytest.mark.parametrize(("ids", "message"), [
    ([0, 100], "1 id of these 2 is in the gallery already, such as 0"), ([100, 100], "100 occurs 2 times"),
    ([-1, 100], "between 0 and 2,147,483,647; got -1"), ([100], "2 integers"), ([0.5, 1], "2 integers")])
def test_unsuitable_ids_are_not_added(tmp_path: Path, ids: list[int], message: str) -> None:
    gallery = build_gallery(grouped(50), tmp_path / "gallery")
    with pytest.raises(UserError, match=message):
        add_vectors(gallery.folder, np.array(ids), grouped(2))
    assert len(StoredGallery.open(tmp_path / "gallery")) == 50


def test_unknown_ids_are_not_removed(tmp_path: Path) -> None:
    gallery = build_gallery(grouped(50), tmp_path / "gallery")
    gallery = remove_vectors(gallery.folder, np.array([4]))
    with pytest.raises(UserError, match="2 ids of these 3 are not in the gallery, such as 4"):
        remove_vectors(gallery.folder, np.array([3, 4, 50]))
    assert len(StoredGallery.open(tmp_path / "gallery")) == 49


@pytest.mark.parametrize("change", ["add", "remove"])
def test_a_change_that_ends_before_the_manifest_has_not_happened(
        change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pool = grouped(400)
    build_gallery(pool[:300], tmp_path / "gallery", kind="ivf")

    def apply() -> StoredGallery:
        if change == "add":
            return add_vectors(tmp_path / "gallery", np.arange(300, 400), pool[300:])
        return remove_vectors(tmp_path / "gallery", np.arange(100))

    with monkeypatch.context() as patched:
        patched.setattr(changes, "write_manifest", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            apply()
    check(StoredGallery.open(tmp_path / "gallery"), dict(enumerate(pool[:300])))
    check(apply(), dict(enumerate(pool)) if change == "add" else dict(list(enumerate(pool[:300]))[100:]))


def test_a_second_writer_is_refused(tmp_path: Path) -> None:
    gallery = build_gallery(grouped(50), tmp_path / "gallery")
    with FileLock(tmp_path / "gallery" / "lock"), pytest.raises(UserError, match="Another process changes"):
        remove_vectors(gallery.folder, np.array([4]))


def test_the_recall_is_measured_again_after_many_changes(tmp_path: Path) -> None:
    gallery = build_gallery(grouped(3000), tmp_path / "gallery", kind="ivf")
    first = gallery.manifest.recall
    gallery = add_vectors(gallery.folder, np.arange(3000, 3010), grouped(10, seed=8))
    assert gallery.manifest.recall == first
    gallery = add_vectors(gallery.folder, np.arange(3010, 3050), grouped(40, seed=9))
    measured = gallery.manifest.recall
    assert measured is not None
    assert measured.rows == 3050
    assert measured.recall >= 0.95


def test_a_new_build_is_advised_when_lists_lose_their_balance(tmp_path: Path) -> None:
    gallery = build_gallery(grouped(2000), tmp_path / "gallery", kind="ivf")
    assert rebuild_advice(gallery) == ""
    near = grouped(2000)[:1] + 0.01 * grouped(900, seed=3)  # all in one list
    gallery = add_vectors(gallery.folder, np.arange(2000, 2900), near)
    sizes = np.bincount(np.concatenate([np.repeat(np.arange(gallery.manifest.lists), part.sizes)
                                        for part in gallery._parts if part.sizes is not None]))
    assert gallery.imbalance == pytest.approx(len(sizes) * (sizes.astype(float) ** 2).sum() / sizes.sum() ** 2)
    assert "imbalance" in rebuild_advice(gallery)


def test_a_new_build_is_advised_after_many_removals(tmp_path: Path) -> None:
    gallery = build_gallery(grouped(100), tmp_path / "gallery")
    gallery = remove_vectors(gallery.folder, np.arange(30))
    assert rebuild_advice(gallery) == ""
    gallery = remove_vectors(gallery.folder, np.array([30]))
    assert "31 of its 100 stored vectors are removed" in rebuild_advice(gallery)
