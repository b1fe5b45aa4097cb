"""The model folder: weights, card, ONNX graph and the search without torch."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file

from tests.cli.test_cli import answer, call
from tests.running import worked, write_digits
from tests.runs.test_opinions import BETTER, WORSE, damage, keep_opinion
from udml_core.base.errors import UserError
from udml_core.data.dataset import read_user_image
from udml_core.data.encoders import Encoder, EncoderSpec
from udml_core.data.given.judged_pairs import judged_pairs, want_precision
from udml_core.data.inference import embed_pixels
from udml_core.methods import Embedder
from udml_core.methods.embedder import AnyHead, Head, KernelHead, LatentHead
from udml_core.numerics.neighbors import read_index
from udml_core.runs import ExclusionList, Run
from udml_core.runs.analyses import analysis_at
from udml_core.runs.opinions import OF_RUN
from udml_core.runs.search import Retrieval
from udml_core.runs.search.same import open_same_pairs, same_threshold
from udml_core.work.exporting import export_model, model_archive, onnx_graph

WITHOUT_ONNX = {"README.md", "config.json", "gallery.csv", "gallery.faiss", "model.safetensors"}
GUARD = """
import runpy, sys
for name in ("torch", "udml_core", "safetensors", "pyarrow", "sklearn"):
    sys.modules[name] = None  # importing it raises an ImportError
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return worked(tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def folder(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "model"
    export_model(run, folder)
    return folder


@pytest.mark.slow
def test_a_model_folder_embeds_as_the_run_does(run: Run, folder: Path) -> None:
    copied, opened = Embedder.load(folder / "model.safetensors"), Retrieval(run)
    chosen = [3, 500, 1700]
    pixels = np.stack([copied.encoder.prepare(opened.dataset.images[index]) for index in chosen])
    np.testing.assert_array_equal(embed_pixels(copied, pixels), opened.embed_prepared(pixels))
    index = read_index(folder / "gallery.faiss")
    np.testing.assert_array_equal(index.reconstruct_n(0, index.ntotal), run.embeddings("final"))
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    assert config["run"] == run.id
    assert config["embedding"] == {"dimension": 16, "unit_length": False, "distance": "Euclidean"}
    assert config["preprocessing"]["size"] == 8


def test_weights_of_a_frozen_encoder_are_part_of_a_whole_file(tmp_path: Path) -> None:
    encoder = Encoder(EncoderSpec(backbone="lenet", size=28))
    with torch.no_grad():
        for parameter in encoder.parameters():
            parameter.add_(0.01)  # unlike the weights that the seed gives
    embedder = Embedder(encoder, Head(torch.eye(128)[:, :5]))
    pixels = np.random.default_rng(0).integers(0, 256, (2, 3, 28, 28), dtype=np.uint8)
    embedder.save(tmp_path / "whole", whole=True)
    loaded = Embedder.load(tmp_path / "whole")
    np.testing.assert_array_equal(embed_pixels(loaded, pixels), embed_pixels(embedder, pixels))
    assert not loaded.trained
    embedder.save(tmp_path / "head")
    assert not np.allclose(embed_pixels(Embedder.load(tmp_path / "head"), pixels), embed_pixels(embedder, pixels))


@pytest.mark.slow
def test_the_card_states_data_protocol_figures_and_limits(run: Run, folder: Path) -> None:
    card = (folder / "README.md").read_text(encoding="utf-8")
    final = (run.evaluation() or {})["final"]
    row = next(line for line in card.splitlines() if line.startswith("| MAP@R |"))
    assert row.split(" | ")[-1].rstrip(" |") == f"{final['map@r']:.1f}"
    assert "Digits: 1,797 images in 10 classes" in card
    assert "Training half: 1,438 images. Test half: 359 images. No labels were used in training." in card
    assert "training and test half have the same classes" in card
    assert "This is a single run: how much the figures vary with the seed is not known." in card
    for part in ("## Intended use", "## Limits", "do not have unit length"):
        assert part in card


def test_the_card_gives_the_spread_of_runs_that_differ_in_the_seed_alone(run: Run, tmp_path: Path) -> None:
    rival = Run(run.folder.with_name("20000101-000000-rpml-000000"))
    shutil.copytree(run.folder, rival.folder)
    try:
        spec, evaluation = rival.spec(), rival.evaluation() or {}
        (rival.folder / "spec.json").write_text(spec.model_copy(update={"seed": 7}).model_dump_json())
        first = evaluation["final"]["map@r"]
        rival.write_evaluation(evaluation | {"final": evaluation["final"] | {"map@r": first + 2.0}})
        export_model(run, tmp_path / "model", onnx=False)
    finally:
        shutil.rmtree(rival.folder)
    card = (tmp_path / "model" / "README.md").read_text(encoding="utf-8")
    row = next(line for line in card.splitlines() if line.startswith("| MAP@R |"))
    assert row.endswith(f"| {first + 1.0:.1f} ± {2**0.5:.1f} |")
    assert "mean ± deviation, 2 seeds" in card
    assert "not known" not in card


@pytest.mark.slow
@pytest.mark.parametrize(("change", "sentence", "has_hits"), [
    ({}, "The classes are divided by name: the first half is for training", True),
    ({"training_classes": 5}, "The authors' training classes are for training, their test classes for testing.", True),
    ({"labels": None, "class_names": ()}, "The images were not divided.", False)])
def test_the_card_says_how_the_classes_are_divided_and_what_a_hit_is(
        change: dict[str, Any], sentence: str, has_hits: bool, tmp_path: Path) -> None:
    run = worked(tmp_path / "runs", method="frozen", split="zero-shot" if has_hits else "all")
    export_model(run, tmp_path / "model", replace(Retrieval(run).dataset, **change), onnx=False)
    card = (tmp_path / "model" / "README.md").read_text(encoding="utf-8")
    stated = [words for words in ("The classes are divided by name", "The authors' training", "were not divided")
              if words in card]
    assert sentence in card
    assert len(stated) == 1
    assert ("A hit is an image of the query's class." in card) is has_hits


def test_the_front_matter_is_read_by_the_parser_of_hugging_face(run: Run, tmp_path: Path) -> None:
    hub = pytest.importorskip("huggingface_hub")
    original = run.spec()
    odd = 'Birds: "a" # & <b>\n--- é 🐦'
    (run.folder / "spec.json").write_text(original.model_copy(update={"dataset_title": odd}).model_dump_json())
    try:
        card_of(run, tmp_path)
    finally:
        (run.folder / "spec.json").write_text(original.model_dump_json())
    data = hub.ModelCard.load(tmp_path / "card" / "README.md").data
    assert (data.license, data.library_name) == ("unknown", "udml-explorer")
    assert {result.dataset_name for result in data.eval_results} == {odd}
    measured = {result.metric_type: result.metric_value for result in data.eval_results}
    final = (run.evaluation() or {})["final"]
    assert {name: measured[name] for name in ("recall@1", "map@r")} == pytest.approx(
        {name: final[name] for name in ("recall@1", "map@r")}, abs=0.005)
    assert not {"images", "dimension"} & measured.keys()


def test_the_card_names_the_license_of_the_user(run: Run, tmp_path: Path) -> None:
    card = card_of(run, tmp_path, "apache-2.0")
    assert "\nlicense: apache-2.0\n" in card
    assert "`apache-2.0`, was given" in card
    assert "`unknown`" not in card
    assert "is `unknown`. Check them" in card_of(run, tmp_path)


def card_of(run: Run, root: Path, license_name: str = "") -> str:
    shutil.rmtree(root / "card", ignore_errors=True)
    export_model(run, root / "card", onnx=False, license_name=license_name)
    return (root / "card" / "README.md").read_text(encoding="utf-8")


def test_the_card_states_the_verdict_without_labels(tmp_path: Path) -> None:
    run = worked(tmp_path)
    evaluation = run.evaluation()
    assert evaluation is not None
    run.write_evaluation({name: {"effective rank": row["effective rank"]} for name, row in evaluation.items()})
    card = card_of(run, tmp_path)
    assert "has neither labels nor a second opinion" in card
    assert "udml opinion RUN" in card
    assert "| Measure |" not in card
    keep_opinion(run, BETTER, WORSE)
    card = card_of(run, tmp_path)
    assert "| Measure |" not in card
    assert "| First result | better | +0.100 | +0." in card
    assert "| Whole group | worse | -0.100 | -0." in card
    damage(run, b"garbage")
    assert "has neither labels nor a second opinion" in card_of(run, tmp_path)
    analysis_at(run, OF_RUN).remove()
    keep_opinion(run, BETTER, WORSE)
    card = card_of(run, tmp_path)
    assert "First result: better. Whole group: worse. Compared with the plain search, without labels" in card
    assert "cannot be judged" not in card
    run.write_evaluation({name: row | {"recall@1": 50.0 + (name == "final"), "map@r": 30.0}
                          for name, row in evaluation.items()})
    card = card_of(run, tmp_path)
    assert "30.0 % MAP@R" in card or "30.0 % against" in card
    assert "The labels agree on R@1." in card


def test_excluded_images_are_not_in_the_gallery(tmp_path: Path) -> None:
    run = worked(tmp_path / "runs", method="frozen")
    dataset = Retrieval(run).dataset
    excluded = ExclusionList.of([dataset.names[0], dataset.names[700]])
    (run.folder / "spec.json").write_text(run.spec().model_copy(update={"excluded": excluded}).model_dump_json())
    export_model(run, tmp_path / "model", onnx=False)
    index = read_index(tmp_path / "model" / "gallery.faiss")
    kept = np.setdiff1d(np.arange(1797), [0, 700])
    np.testing.assert_array_equal(index.reconstruct_n(0, index.ntotal), run.embeddings("final")[kept])
    lines = (tmp_path / "model" / "gallery.csv").read_text(encoding="utf-8").splitlines()
    assert [line.split(",")[0] for line in lines[1:]] == [dataset.names[row] for row in kept]
    assert json.loads((tmp_path / "model" / "config.json").read_text())["gallery"]["images"] == 1795
    assert "faiss index of 1,795 images" in (tmp_path / "model" / "README.md").read_text(encoding="utf-8")


def test_names_in_a_card_are_not_markdown(tmp_path: Path) -> None:
    run = worked(tmp_path / "runs", method="frozen")
    title = "a|b\n# <img src=x>"
    (run.folder / "spec.json").write_text(run.spec().model_copy(update={"dataset_title": title}).model_dump_json())
    export_model(run, tmp_path / "model", onnx=False)
    card = (tmp_path / "model" / "README.md").read_text(encoding="utf-8")
    assert r"a\|b \# \<img src=x\>" in card
    assert "\n# <" not in card


@pytest.mark.parametrize(("words", "message"), [
    (["--model", "--refined", "refine-0"], "Remove --model or --refined"), (["--no-onnx"], "Add --model"),
    (["--refined", "refine-0"], "has no analysis 'refine-0'")])
def test_options_that_do_not_fit_are_rejected(
        words: Sequence[str], message: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
        capsys: Any) -> None:
    code, _, err = call(capsys, monkeypatch, "export", str(run.folder), str(tmp_path / "out"), *words)
    assert (code, message in err) == (2, True), err
    assert not (tmp_path / "out").exists()


def test_the_example_is_short() -> None:
    lines = Path(onnx_graph.__file__).with_name("search.py").read_text(encoding="utf-8").splitlines()
    code = [line for line in lines if line.strip() and not line.startswith(("import ", "from ", '"""'))]
    assert len(code) <= 20


@pytest.mark.parametrize("kind", ["plain", "turned", "transparent", "heic"])
def test_the_example_finds_the_neighbors_of_the_app_without_torch(
        kind: str, run: Run, folder: Path, tmp_path: Path) -> None:
    opened, query = Retrieval(run), tmp_path / f"query.{'heic' if kind == 'heic' else 'png'}"
    if kind == "heic":
        pytest.importorskip("pi_heif")
        shutil.copy(Path(__file__).parents[1] / "data" / "formats" / "heic" / "cat" / "0.heic", query)
    image = opened.dataset.images[42].resize((30, 20))
    exif = image.getexif()
    if kind == "turned":
        exif[0x0112] = 6
    if kind == "transparent":
        image.putalpha(Image.linear_gradient("L").resize(image.size))
    if kind != "heic":
        image.save(query, exif=exif)
    done = subprocess.run([sys.executable, "-I", "-c", GUARD, folder / "search.py", query, "7"], check=False,
                          capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    hits = opened.search_image(read_user_image(query, "query"), 7)
    assert [name for _, name in rows] == [opened.dataset.names[hit.index] for hit in hits]
    np.testing.assert_allclose([float(distance) for distance, _ in rows], [hit.distance for hit in hits], atol=1e-3)


@pytest.mark.parametrize(("content", "reason"), [(None, "No such file"), (b"ftypheic", "cannot identify"),
                                                 (b"", "cannot identify")])
def test_the_example_says_in_a_line_that_a_query_cannot_be_read(
        content: bytes | None, reason: str, folder: Path, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "query.heic").write_bytes(content)
    done = subprocess.run([sys.executable, "-I", "-c", GUARD, folder / "search.py", tmp_path / "query.heic"],
                          check=False, capture_output=True, text=True, cwd=tmp_path)
    (line,) = done.stderr.splitlines()
    assert done.returncode == 1
    assert line.startswith("The query could not be read: ")
    assert line.endswith("Name a JPEG or PNG, or a HEIC after pip install pi-heif.")
    assert reason in line


@pytest.mark.parametrize(("name", "is_known"), [("apache-2.0", True), ("Apache-2.0 OR MIT", True), ("other", True),
                                                ("foo", False), ("my license", False)])
def test_a_license_that_no_one_knows_is_a_warning(name: str, is_known: bool, run: Run, tmp_path: Path,
                                                  monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    code, _, err = call(capsys, monkeypatch, "export", str(run.folder), str(tmp_path / "model"), "--model", "--no-onnx",
                        "--license", name)
    assert code == 0
    assert ("is no SPDX identifier" in err) == (not is_known)
    assert f"license: {name}\n" in (tmp_path / "model" / "README.md").read_text(encoding="utf-8")


def test_the_card_and_the_description_state_the_agreement_of_onnx(folder: Path) -> None:
    stated = json.loads((folder / "config.json").read_text(encoding="utf-8"))["onnx"]
    assert stated["compared_images"] == 16
    assert 0.999 < stated["smallest_cosine_similarity"] < 1.001
    assert f"{stated['smallest_cosine_similarity']:.7f}" in (folder / "README.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_command_line_says_that_a_backbone_with_its_own_preparation_has_no_example(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    timm = pytest.importorskip("timm", reason="needs the package timm")
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))
    save_file(timm.create_model("test_resnet").state_dict(), tmp_path / "net.safetensors")
    images = write_digits(tmp_path / "images", 20)
    run = worked(tmp_path / "runs", method="frozen", dataset=str(images), split="all", backbone="timm:test_resnet",
                 size=32, weights=str(tmp_path / "net.safetensors"))
    code, out, err = call(capsys, monkeypatch, "export", str(run.folder), str(tmp_path / "model"), "--model", "--json")
    assert code == 0, err
    assert set(json.loads(out)["files"]) == WITHOUT_ONNX | {"model.onnx"}
    assert "search.py was left out, because this backbone prepares images in its own way" in err


def test_no_exported_file_names_a_folder_or_a_line_of_code(folder: Path) -> None:
    for path in folder.iterdir():
        for trace in (str(Path.home()), str(Path(__file__).parents[2]), "site-packages", "stack_trace", ".py\", line"):
            assert trace.encode() not in path.read_bytes(), (path.name, trace)


@pytest.mark.slow
@pytest.mark.parametrize(("backbone", "size", "make"), [
    ("pixels", 4, lambda: Head(torch.randn(48, 5), 0.1 * torch.rand(48), False, torch.rand(5))),
    pytest.param("pixels", 4, lambda: LatentHead(torch.randn(48, 6), torch.randn(6, 6), "latent"),
                 marks=pytest.mark.slow),
    pytest.param("pixels", 4, lambda: KernelHead(torch.rand(7, 48).softmax(1), "chi2", 0.5, weight=torch.randn(7, 5)),
                 marks=pytest.mark.slow),
    pytest.param("squeezenet", 32, lambda: Head(torch.randn(512, 8)), marks=pytest.mark.slow),
], ids=["linear", "latent", "kernel", "bgr"])
def test_every_head_agrees_with_torch(backbone: str, size: int, make: Any, tmp_path: Path) -> None:
    torch.manual_seed(0)
    embedder = Embedder(Encoder(EncoderSpec(backbone=backbone, size=size)), make()).eval()
    onnx_graph.write_onnx(embedder, tmp_path / "model.onnx")
    pixels = np.random.default_rng(0).integers(0, 256, (3, 3, size, size), dtype=np.uint8)
    agreement = onnx_graph.compare(tmp_path / "model.onnx", embedder, pixels)
    assert agreement.images == 3
    assert agreement.cosine > 0.9999
    other = Embedder(embedder.encoder, _Doubled(embedder.head))  # type: ignore[arg-type]
    with pytest.raises(UserError, match=r"must agree with torch .* Export with --no-onnx"):
        onnx_graph.compare(tmp_path / "model.onnx", other, pixels)


class _Doubled(torch.nn.Module):
    """A head whose embeddings point in the same direction and have another length."""

    def __init__(self, head: AnyHead) -> None:
        super().__init__()
        self.head = head

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        return 2 * self.head(features)


@pytest.mark.slow
def test_a_network_that_cannot_be_converted_leaves_no_folder(
        run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def branch(self: Head, features: torch.Tensor) -> torch.Tensor:
        return features if features.sum() > 0 else -features

    monkeypatch.setattr(Head, "forward", branch)
    with pytest.raises(UserError, match=r"could not be converted to ONNX: .* Export with --no-onnx"):
        export_model(run, tmp_path / "model", onnx=True)
    assert not any(tmp_path.iterdir())


@pytest.mark.slow
def test_an_archive_is_made_in_another_process_and_without_onnx_if_that_fails(
        run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("onnx", "onnxscript", "onnxruntime"):  # found, but of no use
        (tmp_path / f"{name}.py").write_text("raise ImportError('broken')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(torch.onnx, "export", None)
    with zipfile.ZipFile(BytesIO(model_archive(run))) as archive:
        assert set(archive.namelist()) == {f"model/{name}" for name in WITHOUT_ONNX}
        assert re.search(rb"^# RPML on Digits$", archive.read("model/README.md"), re.MULTILINE)


@pytest.mark.slow
def test_an_archive_that_cannot_be_made_says_why(run: Run, tmp_path: Path) -> None:
    copied = Run(tmp_path / run.id)
    shutil.copytree(run.folder, copied.folder)
    copied.embedder_path.unlink()
    with pytest.raises(UserError, match=r"^(?!Traceback).*embedder\.safetensors"):
        model_archive(copied)


def test_the_command_line_lists_the_files_of_a_model(
        run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    words = ("export", str(run.folder), str(tmp_path / "model"), "--model", "--no-onnx")
    assert set(answer(capsys, monkeypatch, *words)["files"]) == WITHOUT_ONNX
    assert "search.py" not in (tmp_path / "model" / "README.md").read_text(encoding="utf-8")
    code, _, err = call(capsys, monkeypatch, *words)
    assert code == 2
    assert f"{str(tmp_path / 'model')!r} is not empty. Choose another folder, or replace" in err
    assert set(answer(capsys, monkeypatch, *words, "--force")["files"]) == WITHOUT_ONNX


def test_a_model_folder_states_where_the_same_ends_and_the_example_marks_it(
        run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))
    opened = Retrieval(run)
    labels = opened.dataset.labels
    assert labels is not None
    want_precision(opened.dataset, 0.8)
    for _ in range(50):
        pair = open_same_pairs(opened).next()
        assert pair is not None
        judged_pairs(opened.dataset).add(*pair, bool(labels[pair[0]] == labels[pair[1]]))
    export_model(run, tmp_path / "model")
    threshold = same_threshold(opened)
    assert threshold is not None
    stated = json.loads((tmp_path / "model" / "config.json").read_text(encoding="utf-8"))["same"]
    assert stated == json.loads(json.dumps(threshold.describe() | {"sentence": threshold.sentence}))
    card = (tmp_path / "model" / "README.md").read_text(encoding="utf-8")
    assert f"## The same\n\n{threshold.sentence}" in card
    assert f"the last on {datetime.now(UTC).date().isoformat()}" in card
    opened.dataset.images[5].save(tmp_path / "query.png")
    done = subprocess.run([sys.executable, "-I", "-c", GUARD, tmp_path / "model" / "search.py", tmp_path / "query.png",
                           "50"], check=False, capture_output=True, text=True, cwd=tmp_path)
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    marks = [row[2:] == ["same"] for row in rows]
    assert marks == [float(row[0]) <= threshold.distance for row in rows]
    assert 0 < sum(marks) < 50
