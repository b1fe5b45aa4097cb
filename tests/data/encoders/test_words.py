"""Folders of CLIP and SigLIP give the vectors that the package transformers computes, and hostile ones are refused."""

import json
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch.nn.functional import normalize

from tests.data.encoders.tiny_words import PREPROCESSOR, VOCABULARY, config_of, write_folder, write_tokenizer
from udml_core.base.errors import UserError
from udml_core.data.encoders import Encoder, choose_spec
from udml_core.data.encoders.text_folder import choose_folder, named_folders, open_folder
from udml_core.data.encoders.words import Words, read_texts
from udml_core.runs.request import backbone_titles

pytest.importorskip("tokenizers")
KINDS = ("clip", "siglip")
TEXTS = ("a bird that swims", "Red!", "a photo of a dark bird that swims a photo of a large green bird")
"""The last one is longer than the network reads."""


@pytest.fixture(scope="module", params=KINDS)
def oracle(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """A folder that transformers wrote, and its model."""
    transformers = pytest.importorskip("transformers")
    kind, folder = request.param, tmp_path_factory.mktemp("oracle") / request.param
    config_type, model_type = ((transformers.CLIPConfig, transformers.CLIPModel) if kind == "clip" else
                               (transformers.SiglipConfig, transformers.SiglipModel))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        model = model_type(config_type(**config_of(kind))).eval()
        for value in model.parameters():  # its own start is so small that a wrong layer would hardly change a vector
            value.data += 0.3 * torch.randn_like(value)
    model.save_pretrained(folder)
    (folder / "preprocessor_config.json").write_text(json.dumps(PREPROCESSOR[kind]))
    write_tokenizer(folder, kind)
    return folder, model


def picture(seed: int, size: tuple[int, int] = (54, 42)) -> Image.Image:
    """Return a random image; both sides leave an even rest after resizing, which every library centers equally."""
    return Image.fromarray(np.random.default_rng(seed).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8))


def own_features(folder: Path, images: list[Image.Image], size: int | None = None) -> torch.Tensor:
    encoder = Encoder(choose_spec(f"clip:{folder}", 96, False, size=size))
    with torch.inference_mode():
        return encoder(torch.from_numpy(np.stack([encoder.prepare(image) for image in images])))


def prepared(folder: Path, images: list[Image.Image]) -> torch.Tensor:
    """Return the pixels as transformers prepares them with Pillow."""
    name = "clip" if "clip" in folder.name else "siglip"
    module = pytest.importorskip(f"transformers.models.{name}.image_processing_pil_{name}")
    processor = getattr(module, "CLIPImageProcessorPil" if name == "clip" else "SiglipImageProcessorPil")
    return processor(**PREPROCESSOR[name])(images, return_tensors="pt")["pixel_values"]


def test_features_of_images_are_those_of_transformers(oracle: tuple[Path, Any]) -> None:
    folder, model = oracle
    images = [picture(seed) for seed in range(3)]
    with torch.inference_mode():
        expected = model.get_image_features(pixel_values=prepared(folder, images)).pooler_output
    assert expected.std(0).min() > 0.01, "the images differ"
    torch.testing.assert_close(own_features(folder, images), expected, rtol=1e-5, atol=1e-5)


def test_another_size_interpolates_the_positions_as_transformers_does(oracle: tuple[Path, Any]) -> None:
    folder, model = oracle
    encoder = Encoder(choose_spec(f"clip:{folder}", 96, False, size=48))
    pixels = torch.from_numpy(encoder.prepare(picture(1)))[None]
    with torch.inference_mode():
        normal = ((pixels - encoder.mean) / encoder.deviation)
        expected = model.get_image_features(pixel_values=normal, interpolate_pos_encoding=True).pooler_output
        torch.testing.assert_close(encoder(pixels), expected, rtol=1e-5, atol=1e-5)


def tokens_of(folder: Path, texts: tuple[str, ...], kind: str) -> torch.Tensor:
    """Return the numbers of tokens without the tokenizer: words of the vocabulary, cut and filled by hand."""
    rows = []
    for text in texts:
        words = [VOCABULARY.index(word) if word in VOCABULARY else 0 for word in text.lower().split()]
        begin, end = ([VOCABULARY.index("<s>")], VOCABULARY.index("<e>")) if kind == "clip" else ([], 1)
        numbers = [*begin, *words[:12 - len(begin) - 1], end]
        rows.append(numbers + [end] * (12 - len(numbers)))
    return torch.tensor(rows)


def test_vectors_of_words_are_those_of_transformers(oracle: tuple[Path, Any]) -> None:
    folder, model = oracle
    kind = "clip" if "clip" in folder.name else "siglip"
    # SigLIP's tokenizer removes marks, CLIP's keeps them.
    numbers = tokens_of(folder, tuple(text.replace("!", "" if kind == "siglip" else "!") for text in TEXTS), kind)
    with torch.inference_mode():
        expected = normalize(model.get_text_features(input_ids=numbers).pooler_output)
    own = Words(choose_folder(str(folder))).embed(TEXTS)
    assert np.abs(own[0] - own[1]).max() > 0.01, "the texts differ"
    np.testing.assert_allclose(own, expected.numpy(), rtol=1e-5, atol=1e-5)


def test_early_files_end_texts_by_the_largest_token(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "early")
    expected = Words(choose_folder(str(folder))).embed(TEXTS)
    change(folder / "config.json", lambda values: values["text_config"].update(eos_token_id=2))
    np.testing.assert_array_equal(Words(choose_folder(str(folder))).embed(TEXTS), expected)


def test_the_spec_names_the_folder_without_its_path(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "my model")
    spec = choose_spec(f"clip:{folder}", 96, False)
    assert (spec.backbone, spec.size, spec.of_words) == ("clip:my-model", 32, spec)
    assert str(tmp_path) not in spec.model_dump_json()
    assert spec.weights is not None
    assert spec.weights.sha256[:16] in spec.key
    assert folder in named_folders()
    assert choose_spec("clip:my-model", 96, False) == choose_spec("clip:x", 96, False, weights=str(folder)) == spec


def test_side_by_side_names_the_part_that_reads_words(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "tiny")
    spec = choose_spec(f"pixels+clip:{folder}:0.5", 96, False)
    assert spec.backbone == "pixels+clip:tiny:0.5"
    assert spec.of_words is not None
    assert spec.of_words.backbone == "clip:tiny"
    assert spec == choose_spec("pixels+clip:tiny:0.5", 96, False, weights=str(folder))
    assert spec.named_weights is not None
    assert spec.named_weights.path == folder


def change(path: Path, edit: Callable[[dict[str, Any]], object]) -> None:
    """Change a JSON file."""
    values = json.loads(path.read_text())
    edit(values)
    path.write_text(json.dumps(values))


def without_safetensors(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


def with_huge_header(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", 2**40) + b"{}")


HOSTILE: list[tuple[Callable[[Path], object], str]] = [
    (without_safetensors, "lacks model.safetensors.*can execute code"),
    (with_huge_header, "declares 1,099,511,627,776 bytes"),
    (lambda folder: (folder / "tokenizer.json").unlink(), "lacks tokenizer.json"),
    (lambda folder: (folder / "preprocessor_config.json").unlink(), "lacks preprocessor_config.json"),
    (lambda folder: (folder / "tokenizer.json").open("ab").truncate(2**27), "134,217,728 bytes"),
    (lambda folder: (folder / "config.json").write_text("[" * 100_000), "nested too deeply|not JSON|Expecting"),
    (lambda folder: change(folder / "config.json", lambda values: values.update(auto_map={"AutoModel": "evil.Model"})),
     r"names code in the folder \(auto_map\), which is never executed"),
    (lambda folder: change(folder / "tokenizer_config.json", lambda values: values.update(auto_map=["evil.T", None])),
     "names code"),
    (lambda folder: change(folder / "config.json", lambda values: values.update(model_type="llama")),
     "must be clip or"),
    (lambda folder: change(folder / "config.json", lambda values: values["vision_config"].update(hidden_size=10**9)),
     "hidden_size .*1000000000"),
    (lambda folder: change(folder / "config.json", lambda values: values["vision_config"].update(
        num_attention_heads=5)), "not a multiple of num_attention_heads 5"),
    (lambda folder: change(folder / "config.json", lambda values: values["text_config"].update(hidden_act="eval")),
     "hidden_act"),
    (lambda folder: change(folder / "preprocessor_config.json", lambda values: values.update(
        crop_size={"height": 16, "width": 16})), "does not prepare squares of 32 pixels"),
]


@pytest.mark.parametrize(("break_it", "message"), HOSTILE)
def test_a_hostile_folder_is_refused(tmp_path: Path, break_it: Callable[[Path], object], message: str) -> None:
    folder = write_folder(tmp_path / "tiny")
    break_it(folder)
    with pytest.raises(UserError, match=message):
        choose_spec(f"clip:{folder}", 96, False)


@pytest.mark.parametrize(("edit", "message"), [
    (lambda text: text.update(vocab_size=5), "has 19 tokens, and the network of words reads 5"),
    (lambda text: text.update(eos_token_id=7), r"ends a text with token \[18\].*expects 7"),
    (lambda text: text.update(num_hidden_layers=3), "do not fit the backbone 'clip:tiny': .* are missing"),
])
def test_files_of_different_models_are_refused(tmp_path: Path, edit: Callable[[dict[str, Any]], object], message: str
                                               ) -> None:
    folder = write_folder(tmp_path / "tiny")
    change(folder / "config.json", lambda values: edit(values["text_config"]))
    with pytest.raises(UserError, match=message):
        Words(choose_folder(str(folder)))


def test_a_damaged_tokenizer_is_found_when_the_encoder_is_chosen(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "tiny")
    (folder / "tokenizer.json").write_text("{}")
    with pytest.raises(UserError, match=r"The tokenizer.json of 'clip:tiny' cannot be read"):
        choose_spec(f"clip:{folder}", 96, False)


def test_a_changed_or_lost_folder_is_not_used(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "tiny")
    spec = choose_spec(f"clip:{folder}", 96, False)
    assert spec.weights is not None
    shutil.copytree(write_folder(tmp_path / "other", seed=1), folder, dirs_exist_ok=True)
    with pytest.raises(UserError, match="has changed"):
        open_folder(spec.weights)
    shutil.rmtree(folder)
    with pytest.raises(UserError, match=r"does not exist\. Restore the folder, or name its new path once"):
        Encoder(spec)
    assert folder not in named_folders()


def test_an_exposed_server_reads_no_folder_outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_folder(tmp_path / "tiny")
    monkeypatch.setenv("UDML_EXPOSED", "1")
    for name in (f"clip:{folder}", "clip:tiny"):
        with pytest.raises(UserError, match="is not a folder that can be read"):
            choose_spec(name, 96, False)


def test_sizes_and_pooling_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "tiny")
    with pytest.raises(UserError, match="must be 32 pixels or another multiple of its patch of 8 pixels, got 50"):
        choose_spec(f"clip:{folder}", 96, False, size=50)
    with pytest.raises(UserError, match="the pooling must be 'mean', got 'rmac'"):
        choose_spec(f"clip:{folder}", 96, False, pooling="rmac")


@pytest.mark.parametrize(("text", "message"), [(" ; ", "got 0"), (";".join("a" * 33), "got 33"),
                                               ("a" * 501, "at most 500 letters, got 501")])
def test_words_out_of_range_are_refused(text: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        read_texts(text)
    assert read_texts(" a bird ;; a swan;") == ("a bird", "a swan")


def test_forms_offer_a_folder_only_after_it_was_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("UDML_DATA", str(tmp_path))  # an exposed server may read it, and still does not list it
    folder = write_folder(tmp_path / "tiny")
    for note in (tmp_path / "cache" / "weights").iterdir():
        note.unlink()
    assert not any("clip" in name for name in backbone_titles())
    choose_spec(f"clip:{folder}", 96, False)
    assert backbone_titles()[f"clip:{folder}"] == "tiny, images and words"
    monkeypatch.setenv("UDML_EXPOSED", "1")
    assert not any("clip" in name for name in backbone_titles())
