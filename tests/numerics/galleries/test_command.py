"""The commands `udml index`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.cli.test_cli import answer, call
from tests.numerics.galleries.literal import grouped, literal_nearest, squared_distances

Shell = tuple[pytest.CaptureFixture[str], pytest.MonkeyPatch]


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shell:
    return capsys, monkeypatch


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    np.save(tmp_path / "vectors.npy", grouped(600))
    np.save(tmp_path / "queries.npy", grouped(3, seed=5))
    np.save(tmp_path / "ids.npy", np.arange(3) + 5000)
    return tmp_path


def test_a_gallery_from_its_build_to_its_removals(shell: Shell, folder: Path) -> None:
    vectors, queries = grouped(600), grouped(3, seed=5)
    built = answer(*shell, "index", "build", str(folder / "vectors.npy"), str(folder / "g"), "--kind", "ivf")
    assert (built["kind"], built["vectors"], built["dimension"]) == ("ivf", 600, 24)
    assert built["recall@10"] >= 0.95
    assert built["bytes"] > vectors.nbytes
    found = answer(*shell, "index", "search", str(folder / "g"), str(folder / "queries.npy"), "-k", "4", "--probes",
                   "64")["results"]
    truth = literal_nearest(queries, vectors, np.arange(600), 4)
    assert [row["ids"] for row in found] == truth.tolist()
    distances = np.sqrt(np.take_along_axis(squared_distances(queries, vectors), truth, axis=1))
    np.testing.assert_allclose([row["distances"] for row in found], distances, rtol=1e-4)
    added = answer(*shell, "index", "add", str(folder / "g"), str(folder / "queries.npy"))
    assert added["vectors"] == 603
    answer(*shell, "index", "add", str(folder / "g"), str(folder / "queries.npy"), "--ids", str(folder / "ids.npy"))
    found = answer(*shell, "index", "search", str(folder / "g"), str(folder / "queries.npy"), "-k", "2")["results"]
    assert [sorted(row["ids"]) for row in found] == [[600, 5000], [601, 5001], [602, 5002]]
    answer(*shell, "index", "remove", str(folder / "g"), "600", "601", "602")
    left = answer(*shell, "index", "remove", str(folder / "g"), "0", "--ids", str(folder / "ids.npy"))
    assert (left["vectors"], left["removed"]) == (599, 7)
    assert answer(*shell, "index", "info", str(folder / "g")) == left


def test_the_lines_state_size_probes_and_recall(shell: Shell, folder: Path) -> None:
    code, lines, messages = call(*shell, "index", "build", str(folder / "vectors.npy"), str(folder / "g"), "--kind",
                                 "ivf-pq")
    assert code == 0
    size, search, recall = lines.splitlines()
    assert size.startswith("600 vectors of 24 dimensions, 0 removed, ")
    assert search.startswith("ivf-pq: ")
    assert "codes of 6 bytes" in search
    assert recall.startswith("recall@10 0.9")
    assert "training the index: 50 %, about 0 s left" in messages
    code, lines, _ = call(*shell, "index", "build", str(folder / "vectors.npy"), str(folder / "flat"))
    assert lines.splitlines()[1] == "flat: every search compares all vectors, so its recall is 1"


@pytest.mark.parametrize(("words", "message"), [
    (["build", "none.npy", "g"], "The file none.npy does not exist."),
    (["build", "letter.txt", "g"], "letter.txt must end in one of .npy"),
    (["build", "broken.npy", "g"], "broken.npy should hold an array"),
    (["build", "ids.npy", "g"], "The vectors must be an array of numbers (n, d); got int64 (3,)."),
    (["build", "vectors.npy", "."], ". holds other files."),
    (["build", "vectors.npy", "vectors.npy"], "vectors.npy is not a folder."),
    (["build", "vectors.npy", "g", "--ids", "queries.npy"], "queries.npy must hold ids as a list of integers"),
    (["build", "vectors.npy", "g", "--ids", "ids.npy"], "The ids must be 600 integers"),
    (["info", "."], ". is not a gallery: it has no manifest.json."),
    (["remove", "g"], "Name the ids to remove"),
    (["search", "none", "queries.npy"], "none is not a gallery")])
def test_bad_input_is_answered_by_a_message_and_code_2(words: list[str], message: str, shell: Shell,
                                                       folder: Path) -> None:
    (folder / "letter.txt").write_text("Dear")
    (folder / "broken.npy").write_bytes(b"no array")
    shell[1].chdir(folder)
    code, lines, messages = call(*shell, "index", *words)
    assert (code, lines) == (2, "")
    assert messages.startswith(message)
    assert "Traceback" not in messages
