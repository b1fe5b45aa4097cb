"""Weights from a file: only safetensors, only the names of the model, and found again after a move."""

from __future__ import annotations

import os
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import timm
import torch
from safetensors.torch import load, load_file, save_file
from torch import Tensor
from torchvision.models._api import WeightsEnum

from udml_core.base.errors import UserError
from udml_core.base.paths import EXPOSED, cache_folder, given_folder
from udml_core.data import catalog
from udml_core.data.encoders import Encoder, EncoderSpec, choose_spec, pretrained
from udml_core.data.features import features_path
from udml_core.data.inference import embed_pixels
from udml_core.methods.embedder import Embedder
from udml_core.runs import RunRequest, Spec
from udml_core.work import jobs

MODEL = "test_vit"
"""A small model of timm with patches of 16 pixels, made for 160 pixels."""
BACKBONE = f"timm:{MODEL}"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "vit.safetensors"
    save_file(timm.create_model(MODEL).state_dict(), path)
    return path


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))


def spec_of(path: Path) -> EncoderSpec:
    return choose_spec(BACKBONE, 28, False, size=32, weights=str(path))


def test_a_file_gives_the_features_of_its_weights(file: Path) -> None:
    encoder = Encoder(spec_of(file))
    pixels = np.random.default_rng(0).integers(0, 256, (2, 3, 32, 32), dtype=np.uint8)
    library: Any = timm.create_model(MODEL, dynamic_img_size=True).eval()
    library.load_state_dict(load_file(file))
    mean, deviation = (torch.tensor(library.pretrained_cfg[part]).view(1, 3, 1, 1) for part in ("mean", "std"))
    with torch.no_grad():
        expected = library.forward_head(library.forward_features(
            (torch.from_numpy(pixels) / 255 - mean) / deviation), pre_logits=True)
    np.testing.assert_allclose(embed_pixels(encoder, pixels), expected.numpy(), rtol=1e-4, atol=1e-5)


def test_a_list_of_tensors_that_takes_much_memory_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "long.safetensors"
    content = b'{"a":{"dtype":"F32","shape":[' + b"0," * 2**23 + b'0],"data_offsets":[0,0]}}'
    path.write_bytes(len(content).to_bytes(8, "little") + content)
    load(path.read_bytes())  # a valid file
    with pytest.raises(UserError, match=r"declares 16,777,\d\d\d bytes, and at most 16,777,216 are read"):
        spec_of(path)


def test_the_key_follows_the_content_and_not_the_path(file: Path, tmp_path: Path) -> None:
    same, other = tmp_path / "same.safetensors", tmp_path / "other.safetensors"
    shutil.copy(file, same)
    save_file(load_file(file) | {"cls_token": torch.ones(1, 1, 64)}, other)
    keys = [spec_of(path).key for path in (file, same, other)]
    assert keys[0] == keys[1] != keys[2]
    assert choose_spec(BACKBONE, 28, False, size=32).key not in keys


@pytest.mark.parametrize(("damage", "where"), [
    (Path.unlink, "'.*/vit.safetensors' does not exist"),
    (lambda path: path.write_bytes(b"x"), "'.*/vit.safetensors' has changed"),
    (lambda _path: shutil.rmtree(given_folder()), "no path of it is known here")])
def test_a_missing_or_changed_file_is_found_again_once_its_new_path_is_named(
        damage: Callable[[Path], object], where: str, file: Path, tmp_path: Path) -> None:
    spec, moved = spec_of(file), tmp_path / "moved.safetensors"
    shutil.copy(file, moved)
    damage(file)
    assert spec.weights is not None
    with pytest.raises(UserError, match=rf"The weights 'vit.safetensors' with the SHA-256 {spec.weights.sha256[:12]}… "
                                        rf"are needed, and {where}. Restore the file, or name its new path once"):
        Encoder(spec)
    spec_of(moved)
    assert Encoder(spec).dimension == 64


def test_a_trained_encoder_needs_no_file_and_names_no_folder(file: Path, tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (2, 3, 32, 32), dtype=np.uint8)
    trained = Embedder(Encoder(spec_of(file)), trained=True)
    expected = embed_pixels(trained, pixels)
    trained.save(tmp_path / "embedder.safetensors")
    file.unlink()
    np.testing.assert_array_equal(embed_pixels(Embedder.load(tmp_path / "embedder.safetensors"), pixels), expected)
    assert str(tmp_path).encode() not in (tmp_path / "embedder.safetensors").read_bytes()


def without(name: str) -> Callable[[dict[str, Tensor]], dict[str, Tensor]]:
    return lambda state: {key: value for key, value in state.items() if key != name}


@pytest.mark.parametrize(("change", "message"), [
    (without("cls_token"), r"1 of \d+ parameters are missing \(cls_token\)"),
    (lambda _state: {}, r"(\d+) of \1 parameters are missing \(\w+, \w+, [\w.]+, …\)"),
    (lambda state: state | {"new.weight": torch.ones(2)}, r"1 of \d+ names are unknown \(new.weight\)"),
    (lambda state: state | {"cls_token": torch.ones(1, 1, 32)},
     r"1 of \d+ parameters have another shape \(cls_token \(1, 1, 32\) for \(1, 1, 64\)\)"),
])
def test_weights_of_another_model_are_rejected(
        change: Callable[[dict[str, Tensor]], dict[str, Tensor]], message: str, file: Path) -> None:
    save_file(change(load_file(file)), file)
    with pytest.raises(UserError, match=rf"do not fit the backbone 'timm:test_vit': {message}.* Use the file of this"):
        Encoder(spec_of(file))


@pytest.mark.parametrize("change", [
    without("head.weight"),
    lambda state: state | {"head.weight": torch.ones(5, 64), "head.bias": torch.ones(5)},
    lambda state: {f"visual.trunk.{key}": value for key, value in without("head.weight")(state).items()
                   if not key.startswith("head.")},
], ids=["no classifier", "another classifier", "names of open_clip"])
def test_the_classifier_is_ignored_and_timms_conversions_apply(
        change: Callable[[dict[str, Tensor]], dict[str, Tensor]], file: Path) -> None:
    state = {name: values.clone() for name, values in load_file(file).items()}  # the file is written over
    save_file(change(state), file)
    assert torch.equal(Encoder(spec_of(file)).network.model.cls_token, state["cls_token"])  # type: ignore[union-attr]


class _Shell:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, ("executed",)


@pytest.mark.parametrize(("name", "message"), [
    ("weights.pth", "other formats can execute code when they are read; got 'weights.pth'. Convert a file"),
    ("weights.safetensors", "are not a .safetensors file that can be read"),
])
def test_a_pickle_is_rejected_and_not_executed(
        name: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_bytes(pickle.dumps(_Shell()))
    with pytest.raises(UserError, match=message):
        spec_of(tmp_path / name)
    assert not (tmp_path / "executed").exists()


def test_an_embedder_of_another_version_of_the_features_embeds_no_new_image(file: Path, tmp_path: Path) -> None:
    embedder = Embedder(Encoder(spec_of(file)))
    embedder.save(tmp_path / "new")
    assert Embedder.load(tmp_path / "new").encoder.spec == spec_of(file)
    stored = load_file(file)
    former = embedder.encoder.spec.model_dump_json(exclude={"features_version"})
    save_file(stored, tmp_path / "old", {"encoder": former, "trained": "false"})
    with pytest.raises(UserError, match=r"used version 1 of the features .* 'timm:test_vit'.* train again"):
        Embedder.load(tmp_path / "old")
    assert EncoderSpec.model_validate_json(former).key == spec_of(file).key, "stored features are found as before"
    own = EncoderSpec(backbone="cnn", size=28)
    assert EncoderSpec.model_validate_json(own.model_dump_json(exclude={"features_version"})) == own


def test_a_missing_file_and_a_backbone_with_its_own_weights_are_rejected(file: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"nothing.safetensors' is not a file that can be read"):
        spec_of(tmp_path / "nothing.safetensors")
    with pytest.raises(UserError, match="'weights' applies to models of timm and torchvision, got backbone 'cnn'"):
        choose_spec("cnn", 28, False, weights=str(file))


def test_a_linked_file_can_be_named_again_by_the_path_that_is_remembered(file: Path, tmp_path: Path) -> None:
    """Caches of downloads keep the content under its hash and link to it by name."""
    link = tmp_path / "snapshot" / "model.safetensors"
    link.parent.mkdir()
    link.symlink_to(file.rename(tmp_path / "0a1b2c"))
    first = spec_of(link)
    assert first.weights is not None
    assert first.weights.path == link
    assert spec_of(first.weights.path) == first


def test_a_browser_user_names_no_file_outside_of_the_readable_folders(
        file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(EXPOSED, "1")
    with pytest.raises(UserError, match="is not a file that can be read"):
        spec_of(file)


def test_a_run_keeps_path_and_hash(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(file.parent)
    dataset = catalog.load("digits")
    request = RunRequest(dataset="digits", method="frozen", backbone=BACKBONE, size=32, weights=file.name)
    stored = Spec.model_validate_json(jobs.plan(request, dataset).model_dump_json())
    assert stored.weights == str(file)
    assert stored.encoder == spec_of(file).model_copy(update={"gray": stored.encoder.gray})
    assert stored.encoder.weights is not None
    assert stored.encoder.weights.sha256[:16] in features_path(dataset, stored.encoder).name
    assert jobs.link_of(stored, "small")["weights"] == str(file)


@pytest.mark.parametrize(("backbone", "place"), [
    ("timm:vit_small_patch16_dinov3", r"model.safetensors from https://huggingface.co/timm/vit_small_patch16_dinov3.l.*"
                                      "; a gated model needs an account that accepted its license"),
    ("torchvision:resnet18", r"https://download.pytorch.org/models/resnet18-\w+.pth; convert it: `python -c"),
])
def test_a_failed_download_says_how_to_fetch_the_weights_elsewhere(
        backbone: str, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_arguments: Any, **_options: Any) -> None:
        raise OSError("403 Client Error: access to this model is restricted")

    monkeypatch.setattr("timm.models._builder.load_state_dict_from_hf", refuse)
    monkeypatch.setattr(WeightsEnum, "get_state_dict", refuse)
    with pytest.raises(UserError, match=rf"'{backbone}' could not be loaded: 403 Client Error.* downloaded on first "
                                        rf"use. .*on another machine \({place}.*with `--weights FILE.safetensors`"):
        Encoder(EncoderSpec(backbone=backbone, size=32))


class UnpickledError(Exception):
    """The package's pickle was read."""


@pytest.fixture
def squeezenet_file(own_cache: None) -> Path:
    pretrained.squeezenet()
    (path,) = (cache_folder() / "weights").iterdir()
    return path


def test_squeezenet_is_read_from_its_converted_file(squeezenet_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = pretrained.squeezenet().state_dict()
    stored = load_file(squeezenet_file)

    def refuse(_file: Any) -> None:
        raise UnpickledError

    monkeypatch.setattr(pretrained, "read_pickled_arrays", refuse)
    again = pretrained.squeezenet().state_dict()
    assert expected.keys() == stored.keys()
    assert all(torch.equal(again[name], value) and torch.equal(stored[name], value)
               for name, value in expected.items())
    squeezenet_file.unlink()
    with pytest.raises(UnpickledError):
        pretrained.squeezenet()


def flip_last_byte(content: bytes) -> bytes:
    return content[:-1] + bytes([content[-1] ^ 1])


@pytest.mark.parametrize("damage", [flip_last_byte, lambda content: content[:-1000], lambda _content: b"",
                                    lambda _content: b"\xff" * 100], ids=["bit", "short", "empty", "junk"])
def test_a_damaged_converted_file_is_noticed_and_written_again(
        damage: Callable[[bytes], bytes], squeezenet_file: Path) -> None:
    content = squeezenet_file.read_bytes()
    expected = load(content)
    squeezenet_file.write_bytes(damage(content))
    state = pretrained.squeezenet().state_dict()
    assert all(torch.equal(state[name], value) for name, value in expected.items())
    assert squeezenet_file.read_bytes() == content


def test_squeezenet_needs_no_writable_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "file"))
    assert pretrained.squeezenet().state_dict()
