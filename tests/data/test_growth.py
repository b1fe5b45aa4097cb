"""A folder that grows: what has changed, and which rows are computed again."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_sample_image

from tests.running import spec
from udml_core.base.arrays import Array
from udml_core.base.errors import UserError
from udml_core.base.files import read_json
from udml_core.base.paths import dataset_cache
from udml_core.data import catalog, features, image_facts, image_hashes
from udml_core.data.dataset import Dataset
from udml_core.data.encoders import Encoder
from udml_core.data.features import features_of, features_path, stored_words
from udml_core.data.given.duplicate_decisions import decide, decisions_of
from udml_core.data.given.exclusions import exclude, excluded_names, include
from udml_core.data.given.growth import changes_of, mark_seen, note_looked, since_words, was_looked_at
from udml_core.data.given.labels import assign, assigned_labels
from udml_core.data.image_facts import facts_of
from udml_core.data.image_hashes import hashes_of
from udml_core.data.inference import Inference, torch_inference
from udml_core.data.sources.versions import image_to_draw
from udml_core.exploration import duplicates
from udml_core.exploration.audit import AuditSettings, audit_of, find_problems
from udml_core.exploration.new_images import new_images
from udml_core.runs import create_run
from udml_core.work import jobs

SIDE = 96
COPIED = (3, 5, 13)


def part(number: int) -> Image.Image:
    """Return one of 40 different parts of two photographs."""
    image = Image.fromarray(load_sample_image(("china.jpg", "flower.jpg")[number % 2]))
    column, row = number // 2 % 6, number // 12
    return image.crop((column * 100, row * 100, column * 100 + SIDE, row * 100 + SIDE))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))
    photos = tmp_path / "photos"
    photos.mkdir()
    for number in range(24):
        part(number).save(photos / f"{number:02}.png")
    return photos


def grow(folder: Path) -> None:
    """Add 12 files of which 3 are copies and 1 is broken, remove 2, and change 1."""
    for number in range(24, 32):
        part(number).save(folder / f"new {number}.png")
    for number in COPIED:
        part(number).save(folder / f"new copy {number}.bmp")
    (folder / "new broken.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    (folder / "15.png").unlink()
    (folder / "16.png").unlink()
    part(33).save(folder / "07.png")


def compute(dataset: Dataset) -> tuple[Array, ...]:
    encoder = Encoder(jobs.encoder_of(dataset, "pixels"))
    hashes = hashes_of(dataset)
    return features_of(dataset, encoder), hashes.perceptual, hashes.content, facts_of(dataset).entropy


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[Any]]:
    """The images that are read, by what is computed from them."""
    counts: dict[str, list[Any]] = {"features": [], "hashes": [], "facts": [], "aligned": []}
    prepare, reduced, facts, align = (features.PreparedImages._prepare, image_hashes._reduced, image_facts._facts,
                                      duplicates._align)
    monkeypatch.setattr(features.PreparedImages, "_prepare", lambda self, index: (
        counts["features"].append(index), prepare(self, index))[1])
    monkeypatch.setattr(image_hashes, "_reduced", lambda image: (counts["hashes"].append(0), reduced(image))[1])
    monkeypatch.setattr(image_facts, "_facts", lambda dataset, index: (
        counts["facts"].append(index), facts(dataset, index))[1])
    monkeypatch.setattr(duplicates, "_align", lambda dataset, pairs, *rest: (
        counts["aligned"].extend(map(tuple, pairs.tolist())), align(dataset, pairs, *rest))[1])
    return counts


def test_only_new_and_changed_files_are_computed_and_the_rows_equal_a_fresh_computation(
        folder: Path, read: dict[str, list[Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compute(catalog.load(str(folder)))
    assert [len(read[name]) for name in ("features", "hashes", "facts")] == [24, 24, 24]
    grow(folder)
    for images in read.values():
        images.clear()
    grown = catalog.load(str(folder))
    rows = compute(grown)
    wanted = [index for index, name in enumerate(grown.names) if name.startswith("new") or name == "07.png"]
    assert len(wanted) == 12
    assert sorted(read["features"]) == sorted(read["facts"]) == wanted
    assert len(read["hashes"]) == 12
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "fresh"))
    for reused, fresh in zip(rows, compute(catalog.load(str(folder))), strict=True):
        np.testing.assert_array_equal(reused, fresh)


def test_rows_of_two_engines_name_both(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def compute_by(engine: str) -> str:
        monkeypatch.setattr(features, "inference_of", lambda encoder, **_: Inference(
            torch_inference(encoder).rows, engine))
        dataset = catalog.load(str(folder))
        encoder = Encoder(jobs.encoder_of(dataset, "pixels"))
        features_of(dataset, encoder)
        return str(read_json(features_path(dataset, encoder.spec).with_suffix(".json"))["engine"])

    assert compute_by("torch 1") == "torch 1"
    grow(folder)
    assert compute_by("ONNX Runtime 1") == "torch 1, ONNX Runtime 1"
    (folder / "02.png").unlink()
    assert compute_by("torch 2") == "torch 1, ONNX Runtime 1", "every row was copied"
    part(35).save(folder / "other.png")
    assert compute_by("torch 1") == "torch 1, ONNX Runtime 1"


def test_pairs_of_old_images_are_not_aligned_again(folder: Path, read: dict[str, list[Any]]) -> None:
    audit_of(before := catalog.load(str(folder)), compute(before)[0])
    old = {frozenset(before.names[index] for index in pair) for pair in read["aligned"]}
    assert old
    read["aligned"].clear()
    grow(folder)
    audit = audit_of(grown := catalog.load(str(folder)), compute(grown)[0])
    pairs = [frozenset(grown.names[index] for index in pair) for pair in read["aligned"]]
    assert pairs
    assert len(pairs) < len(audit.checked)
    assert all("07.png" in pair for pair in old.intersection(pairs)), "only the changed image is aligned again"
    np.testing.assert_allclose(audit.agreements, duplicates._align(grown, audit.checked, 64, lambda *_: None))


def test_labels_and_exclusions_follow_the_content_of_a_renamed_file(folder: Path) -> None:
    for name in ("copy", "copy again"):
        (folder / f"{name}.png").write_bytes((folder / "05.png").read_bytes())
    before = catalog.load(str(folder))
    index_of = before.indices_by_name()
    assign(before, [index_of[name] for name in ("01.png", "02.png")], "gull")
    exclude(before, [index_of[name] for name in ("03.png", "04.png", "07.png", "copy.png")])
    decide(before, np.array([[index_of["01.png"], index_of["03.png"]]]), same=True)
    (folder / "01.png").rename(folder / "z.png")
    (folder / "03.png").rename(folder / "y.png")
    (folder / "04.png").write_bytes((folder / "06.png").read_bytes())  # replaced, which is no new name
    (folder / "copy.png").rename(folder / "x.png")
    (folder / "copy again.png").unlink()
    for name in ("u.png", "t.png"):
        (folder / name).write_bytes((folder / "07.png").read_bytes())
    (folder / "07.png").unlink()
    after = catalog.load(str(folder))
    names = after.names
    assert assigned_labels(after) == {"z.png": "gull", "02.png": "gull"}
    assert set(excluded_names(after)) == {"y.png", "04.png"}, "of two equal files it is not known which is which"
    assert sorted(names[index] for index in decisions_of(after).same[0]) == ["y.png", "z.png"]
    changes = changes_of(after)
    assert changes is not None
    assert changes.renamed == {"01.png": "z.png", "03.png": "y.png"}
    assert not {"z.png", "y.png"} & {names[index] for index in changes.new}
    assert not {"01.png", "03.png"} & set(changes.removed)
    assert ", 2 renamed, " in changes.words
    include(after, [after.indices_by_name()["y.png"]])
    (folder / "z.png").rename(folder / "v.png")
    (folder / "y.png").rename(folder / "03.png")
    again = catalog.load(str(folder))
    assert assigned_labels(again) == {"v.png": "gull", "02.png": "gull"}, "a second name is followed, too"
    assert excluded_names(again) == ("04.png",), "and so is what was said after the first"


def test_no_pair_of_an_unchanged_folder_is_aligned_again(folder: Path, read: dict[str, list[Any]]) -> None:
    first = audit_of(dataset := catalog.load(str(folder)), compute(dataset)[0])
    assert read["aligned"]
    read["aligned"].clear()
    again = audit_of(dataset, compute(dataset)[0])
    assert not read["aligned"]
    np.testing.assert_array_equal(again.agreements, first.agreements)


def test_a_killed_computation_of_the_new_rows_resumes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(features, "BLOCK", 1)
    compute(catalog.load(str(folder)))
    grow(folder)
    grown = catalog.load(str(folder))
    encoder = Encoder(jobs.encoder_of(grown, "pixels"))

    def die(share: float, _step: str) -> None:
        if round(12 * share) == 8:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        features_of(grown, encoder, die)
    assert list(dataset_cache(grown.fingerprint).glob("*.part"))
    prepared: list[int] = []
    prepare = features.PreparedImages._prepare
    monkeypatch.setattr(features.PreparedImages, "_prepare", lambda self, index: (
        prepared.append(index), prepare(self, index))[1])
    rows = features_of(grown, encoder)
    assert len(prepared) == 4, "eight of twelve rows were stored before the process died"
    np.testing.assert_array_equal(rows, features.features_of_some(grown, encoder, np.arange(len(grown))))


def test_a_damaged_file_of_the_earlier_state_is_computed_again(folder: Path, read: dict[str, list[Any]]) -> None:
    before = catalog.load(str(folder))
    compute(before)
    for path in dataset_cache(before.fingerprint).glob("*.np?"):
        path.write_bytes(path.read_bytes()[:50])
    grow(folder)
    read["features"].clear()
    grown = catalog.load(str(folder))
    compute(grown)
    assert len(read["features"]) == len(grown)


def test_changes_are_counted_from_the_last_look(folder: Path) -> None:
    assert changes_of(catalog.load(str(folder))) is None
    grow(folder)
    grown = catalog.load(str(folder))
    changes = changes_of(grown)
    assert [grown.names[index] for index in changes.new] == sorted(
        name for name in grown.names if name.startswith("new"))
    assert len(changes.new) == 11
    assert [grown.names[index] for index in changes.changed] == ["07.png"]
    assert changes.removed == ("15.png", "16.png")
    assert [skipped.file for skipped in changes.broken] == ["new broken.png"]
    assert changes.words.startswith("12 new files, 2 removed and 1 changed since ")
    (folder / "one more.png").write_bytes((folder / "08.png").read_bytes())
    assert len(changes_of(catalog.load(str(folder))).new) == 12, "a state in between is not a look"
    mark_seen(catalog.load(str(folder)))
    assert changes_of(catalog.load(str(folder))) is None
    (folder / "08.png").unlink()
    assert changes_of(catalog.load(str(folder))).words.startswith("1 removed since ")


def test_decisions_about_old_images_stay_when_the_folder_grows(folder: Path) -> None:
    exclude(catalog.load(str(folder)), [3, 7])
    grow(folder)
    grown = catalog.load(str(folder))
    assert excluded_names(grown) == ("03.png", "07.png")


@pytest.mark.parametrize(("days", "words"), [(0, r"\d\d:\d\d"), (1, "yesterday"), (5, r"[A-Z][a-z]+ \d+"),
                                              (400, r"[A-Z][a-z]+ \d{4}")])
def test_times_are_said_by_the_calendar(days: int, words: str) -> None:
    noon = time.mktime((2026, 11, 27, 12, 0, 0, 0, 0, -1))
    assert re.fullmatch(words, since_words(noon - 86_400 * days, noon))


def test_a_run_keeps_its_images_when_the_folder_grows(folder: Path, tmp_path: Path) -> None:
    before = catalog.load(str(folder))
    run = create_run(spec("frozen", str(folder), "all"), tmp_path / "runs")
    grow(folder)
    shown = run.dataset()
    assert shown.names == before.names
    assert np.asarray(shown.images[4]).tolist() == np.asarray(part(4)).tolist()
    with pytest.raises(UserError, match=r"15.png was removed or changed since this run"):
        shown.images[15]
    assert image_to_draw(shown.images, 15).getcolors() == [(64 * 64, (217, 217, 217))]
    assert image_to_draw(shown.images, 7).getcolors() == [(64 * 64, (217, 217, 217))]


def test_a_run_reads_moved_images_where_they_are_now(folder: Path, tmp_path: Path) -> None:
    run = create_run(spec("frozen", str(folder), "all"), tmp_path / "runs")
    names = catalog.load(str(folder)).names
    for number in range(24):
        place = folder / ("one", "two")[number % 2] / f"{number:02}.png"
        place.parent.mkdir(exist_ok=True)
        os.rename(folder / f"{number:02}.png", place)
    shown = run.dataset()
    assert shown.names == names
    assert np.asarray(shown.images[3]).tolist() == np.asarray(part(3)).tolist()


def test_a_run_of_which_most_images_are_gone_is_refused(folder: Path, tmp_path: Path) -> None:
    run = create_run(spec("frozen", str(folder), "all"), tmp_path / "runs")
    for number in range(13):
        (folder / f"{number:02}.png").unlink()
    with pytest.raises(UserError, match="has changed since this run"):
        run.dataset()


def test_new_images_are_compared_with_the_old(folder: Path) -> None:
    catalog.load(str(folder))
    grow(folder)
    grown = catalog.load(str(folder))
    audit = audit_of(grown, features_of(grown, Encoder(jobs.encoder_of(grown, "pixels"))))
    kept = np.ones(len(grown), bool)
    excluded = grown.names.index("new 24.png")
    kept[excluded] = False
    settings = AuditSettings(compare="hash", hash_distance=0)
    findings = find_problems(audit, grown, np.array([excluded]), settings, facts_of(grown))
    names = {grown.names.index("new 25.png"): ("tile", 0.9)}
    found = new_images(audit, changes_of(grown), findings, kept, facts_of(grown), names)
    assert len(found) == 11, "12 new and changed images without the excluded image"
    copies = {grown.names[image.index]: grown.names[image.copies[0]] for image in found if image.is_copy}
    assert copies == {f"new copy {number}.bmp": f"{number:02}.png" for number in COPIED}
    assert [image.is_copy for image in found[:3]] == [True] * 3
    assert "tile 90 %" in next(image for image in found if image.name).words(grown)


def test_new_images_that_were_named_or_excluded_are_no_news(folder: Path) -> None:
    catalog.load(str(folder))
    for number in range(24, 28):
        part(number).save(folder / f"new {number}.png")
    dataset = catalog.load(str(folder))
    new = [dataset.names.index(f"new {number}.png") for number in range(24, 28)]
    exclude(dataset, new[:1])
    assign(dataset, new[1:3], "gull")
    changes = changes_of(dataset)
    assert changes is not None
    assert changes.new.tolist() == new[3:]
    assert changes.words.startswith("1 new file since ")
    assert not was_looked_at(dataset)
    note_looked(dataset)
    note_looked(dataset)
    assert was_looked_at(dataset)
    assert changes_of(dataset) is not None, "the list stays"
    part(28).save(folder / "new 28.png")
    assert not was_looked_at(catalog.load(str(folder))), "more files came since"
    (folder / "new 24.png").unlink()
    exclude(dataset, [0])
    (folder / dataset.names[0]).unlink()
    now = catalog.load(str(folder))
    changes = changes_of(now)
    assert changes is not None
    assert changes.removed == (), "an excluded image that left is no news"
    assign(now, [now.names.index(f"new {number}.png") for number in (27, 28)], "gull")
    assert changes_of(now) is None


def test_the_preparation_says_which_features_are_stored(folder: Path) -> None:
    dataset = catalog.load(str(folder))
    encoder = jobs.encoder_of(dataset, "pixels")
    assert stored_words(dataset, encoder) == ""
    features_of(dataset, Encoder(encoder))
    assert stored_words(dataset, encoder) == "The features of all images are stored and used again."
    (folder / "15.png").unlink()
    fewer = catalog.load(str(folder))
    assert stored_words(fewer, encoder) == "The features of all images are stored and used again."
    part(24).save(folder / "new.png")
    now = catalog.load(str(folder))
    assert stored_words(now, encoder) == "The features of 23 of 24 images are stored and used again."
