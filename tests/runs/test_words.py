"""Words find images: by the cosine in the model's own features, alone or side by side, and from the command line."""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.data.encoders.tiny_words import write_folder
from tests.running import spec, trained
from udml_core.base.errors import UserError
from udml_core.cli.commands import main
from udml_core.data.encoders import Encoder
from udml_core.data.encoders.words import words_of_folder
from udml_core.data.features import features_of, features_path
from udml_core.data.given.exclusions import exclude
from udml_core.runs import Run, create_run
from udml_core.runs.search import Retrieval
from udml_core.runs.search.words import check_word_features, word_query, words_frame

pytest.importorskip("tokenizers")
TEXT = "a bird that swims; a dark bird"


@pytest.fixture(scope="module", params=["", "pixels+"], ids=["alone", "side by side"])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run of frozen features whose encoder, or one of two, is a tiny CLIP."""
    root = tmp_path_factory.mktemp("words")
    folder = write_folder(root / "tiny")
    return trained(root / "runs", method="frozen", backbone=f"{request.param}clip:{folder}", split="all")


def expected_order(run: Run) -> np.ndarray:
    """Return all images by their cosine with the mean direction of the texts, from the features alone."""
    encoder = run.spec().encoder.of_words
    assert encoder is not None
    assert encoder.weights is not None
    features = np.asarray(features_of(run.dataset(), Encoder(encoder)), np.float64)
    texts = words_of_folder(encoder.weights).embed(["a bird that swims", "a dark bird"]).astype(np.float64).mean(0)
    return np.argsort(-(features @ texts) / np.linalg.norm(features, axis=1), kind="stable")


def test_words_rank_images_by_their_cosine(run: Run) -> None:
    opened, expected = Retrieval(run), expected_order(run)
    hits = opened.search(word_query(run, TEXT), 20, words_frame(run))
    assert [hit.index for hit in hits] == expected[:20].tolist()
    assert hits[0].similarity is not None
    assert hits[0].correct is None
    assert hits[0].similarity > hits[-1].similarity
    other = opened.search(word_query(run, "green"), 20, words_frame(run))
    assert [hit.index for hit in other] != [hit.index for hit in hits]


def test_words_respect_excluded_and_filtered_images(run: Run) -> None:
    opened, expected = Retrieval(run), expected_order(run).tolist()
    exclude(opened.dataset, [expected[0]])
    allowed = np.ones(len(opened.dataset), bool)
    allowed[expected[1]] = False
    hits = opened.search(word_query(run, TEXT), 5, words_frame(run), "all", allowed)
    assert [hit.index for hit in hits] == expected[2:7]


def test_the_command_line_prints_what_words_find(run: Run, capsys: pytest.CaptureFixture[str],
                                                 monkeypatch: pytest.MonkeyPatch) -> None:
    answer = command(monkeypatch, capsys, "query", run.id, "--text", TEXT, "-k", "3", "--json", "--runs",
                     str(run.folder.parent))
    found = json.loads(answer)
    assert [row["index"] for row in found["results"]] == expected_order(run)[:3].tolist()
    assert found["query"] == TEXT
    assert found["embedding"] == words_frame(run)
    monkeypatch.setattr("sys.argv", ["udml", "query", run.id, "--text", TEXT, "--embedding", "initial", "--runs",
                                     str(run.folder.parent)])
    with pytest.raises(SystemExit):
        main()
    message = f"Words are compared with the embedding {words_frame(run)} only; got 'initial'"
    assert message in capsys.readouterr().err


def test_missing_features_are_computed_by_the_command_line(run: Run, capsys: pytest.CaptureFixture[str],
                                                           monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = run.spec().encoder.of_words
    assert encoder is not None
    features_path(run.dataset(), encoder).unlink()
    with pytest.raises(UserError, match=f"udml query {run.id} --text"):
        check_word_features(Retrieval(run))
    command(monkeypatch, capsys, "query", run.id, "--text", "a", "--runs", str(run.folder.parent))
    check_word_features(Retrieval(run))


def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """Run a command in this process and return what it prints."""
    monkeypatch.setattr("sys.argv", ["udml", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    printed = capsys.readouterr()
    assert ended.value.code == 0, printed.err
    return printed.out


def test_a_run_without_such_an_encoder_says_so(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"whose encoder is CLIP or SigLIP, and \S+ uses pixels"):
        words_frame(create_run(spec("frozen"), tmp_path))
