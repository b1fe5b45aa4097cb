"""A folder of CLIP or SigLIP that a user names: what its files say, checked before a network is built.

Four files are read, and nothing in them can be executed: the sizes of both networks (config.json), their weights
(model.safetensors), the preparation of images (preprocessor_config.json) and the tokenizer (tokenizer.json).
"""

from __future__ import annotations

import hashlib
import os
import re
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal

from PIL import Image
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from udml_core.base.errors import UserError, listed, quoted
from udml_core.base.files import parse_json, read_regular
from udml_core.base.paths import existing_path
from udml_core.data.encoders.body import Preparation, Triple
from udml_core.data.encoders.weights import WeightFile, check_tensor_file, hash_of, remember_path, remembered_paths

PREFIX = "clip:"
CONFIG, WEIGHTS, PREPROCESSOR, TOKENIZER = "config.json", "model.safetensors", "preprocessor_config.json", (
    "tokenizer.json")
NEEDED = (CONFIG, WEIGHTS, PREPROCESSOR, TOKENIZER)
TOKENIZER_CONFIG = "tokenizer_config.json"
"""Says how words are padded and cleaned; the defaults of SigLIP apply without it."""
LONGEST_SETTINGS, LONGEST_TOKENIZER = 2**20, 2**26
"""Largest lengths in bytes of the files of settings and of the tokenizer; SigLIP 2 has one of 34 MB."""
EXECUTABLE = ("auto_map", "custom_pipelines")
"""Keys of settings that name code in the folder."""

Count = Annotated[int, Field(ge=1, le=16_384)]
Few = Annotated[int, Field(ge=1, le=256)]
Activation = Literal["quick_gelu", "gelu", "gelu_pytorch_tanh"]
Positive = Annotated[float, Field(gt=0)]


class TowerConfig(BaseModel):
    """The sizes of one of the two networks, under the names of the files; what a file leaves out has CLIP's default.

    Attributes:
        is_clip: Whether it is a network of CLIP, else of SigLIP.
        projection: Width l of the features.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    is_clip: bool
    projection: Count
    hidden_size: Count = 768
    intermediate_size: Annotated[int, Field(ge=1, le=65_536)] = 3072
    num_hidden_layers: Few = 12
    num_attention_heads: Few = 12
    hidden_act: Activation = "quick_gelu"
    layer_norm_eps: Annotated[float, Field(gt=0, lt=1)] = 1e-5

    @model_validator(mode="after")
    def _check_heads(self) -> TowerConfig:
        if self.hidden_size % self.num_attention_heads:
            raise ValueError(f"hidden_size {self.hidden_size} is not a multiple of num_attention_heads "
                             f"{self.num_attention_heads}")
        return self


class ImageConfig(TowerConfig):
    """The network of images."""

    num_channels: Literal[3] = 3
    image_size: Annotated[int, Field(ge=4, le=1024)] = 224
    patch_size: Annotated[int, Field(ge=1, le=1024)] = 32
    vision_use_head: Literal[True] = True

    @model_validator(mode="after")
    def _check_patches(self) -> ImageConfig:
        if self.image_size < self.patch_size:
            raise ValueError(f"image_size {self.image_size} is smaller than patch_size {self.patch_size}")
        return self


class TextConfig(TowerConfig):
    """The network of words."""

    vocab_size: Annotated[int, Field(ge=1, le=2_000_000)] = 49_408
    max_position_embeddings: Annotated[int, Field(ge=2, le=4096)] = 77
    eos_token_id: int = 49_407
    pad_token_id: int = 1


class _Side(BaseModel):
    shortest_edge: int | None = None
    height: int | None = None
    width: int | None = None


class _Preprocessor(BaseModel):
    """How an image is prepared."""

    size: _Side | int
    crop_size: _Side | int | None = None
    do_center_crop: bool | None = None
    resample: Annotated[int, Field(ge=0, le=5)] = Image.Resampling.BICUBIC.value
    image_mean: Triple
    image_std: tuple[Positive, Positive, Positive]


class TextFolder(BaseModel):
    """What the files of a folder say.

    Attributes:
        path: The folder.
        file: Its name and the hash of its files.
        image: The network of images.
        text: The network of words.
        mean: Value subtracted from each channel, on the scale 0–1.
        deviation: Value that each channel is divided by, on the scale 0–1.
        preparation: How images become squares.
        pad: The token that fills short texts; empty if the network's number for it counts.
        is_cleaned: Whether punctuation is removed from texts, as SigLIP's first tokenizer does.
    """

    model_config = ConfigDict(frozen=True)

    path: Path
    file: WeightFile
    image: ImageConfig
    text: TextConfig
    mean: Triple
    deviation: Triple
    preparation: Preparation
    pad: str
    is_cleaned: bool

    @property
    def weights(self) -> Path:
        """The file of the weights."""
        return self.path / WEIGHTS

    @property
    def tokenizer(self) -> Path:
        """The file of the tokenizer."""
        return self.path / TOKENIZER

    def choose_size(self, size: int | None) -> int:
        """Return the wanted image size in pixels, by default the network's own.

        Raises:
            UserError: It is not a multiple of the patches.
        """
        own, patch = self.image.image_size, self.image.patch_size
        if size is None or size == own:
            return own
        if size % patch or size < patch:
            raise UserError(f"The image size of {PREFIX}{self.file.name} must be {own} pixels or another multiple of "
                            f"its patch of {patch} pixels, got {size}. Set the image size to {own}.")
        return size


def is_text_model(backbone: str) -> bool:
    """Return whether a backbone's name begins as `clip:FOLDER`."""
    return backbone.startswith(PREFIX)


def check_installed() -> None:
    """Check that the package that reads tokenizers is installed.

    Raises:
        UserError: It is not.
    """
    if find_spec("tokenizers") is None:
        raise UserError("Words need the package tokenizers, which is not installed. Install it with "
                        "`.venv/bin/pip install tokenizers`, or choose another backbone.")


def named_folders() -> list[Path]:
    """List the folders of CLIP and SigLIP that the user has named and that still exist."""
    return [path for path in remembered_paths() if path.is_dir()]


def choose_folder(text: str) -> TextFolder:
    """Read the folder that a user names, or that was named before, and remember its path.

    Args:
        text: The path of the folder; or the name of a folder whose path is remembered.

    Raises:
        UserError: It does not exist, may not be read, lacks a file, or a file cannot be used.
    """
    path = existing_path(text)
    if path is None:  # a run names its folder without the path
        path = next((existing_path(str(known)) for known in named_folders() if _name(known) == text), None)
    if path is None or not path.is_dir():
        raise UserError(f"The backbone {PREFIX}FOLDER needs a folder of CLIP or SigLIP, and {quoted(text)} is not a "
                        "folder that can be read. Correct the path.")
    folder = _read(Path(os.path.abspath(path)))
    if find_spec("tokenizers") is not None:
        open_tokenizer(folder)
    remember_path(folder.file, folder.path)
    return folder


def open_folder(file: WeightFile) -> TextFolder:
    """Read the folder of a run's weights, where the user named it last.

    Raises:
        UserError: It is not there, or a file has changed.
    """
    path = file.path
    if path is not None and path.is_dir():
        folder = _read(path)
        if folder.file.sha256 == file.sha256:
            return folder
    where = "no path of it is known here" if path is None else (
        f"{quoted(str(path))} {'has changed' if path.is_dir() else 'does not exist'}")
    raise UserError(f"The folder {quoted(file.name)} with the SHA-256 {file.sha256[:12]}… is needed, and {where}. "
                    f"Restore the folder, or name its new path once with `udml train --backbone {PREFIX}FOLDER`.")


def _read(path: Path) -> TextFolder:
    lacking = [name for name in NEEDED if not (path / name).is_file()]
    if lacking:
        raise UserError(f"The folder {quoted(str(path))} lacks {listed(lacking)}. A folder of CLIP or SigLIP has "
                        f"{listed(NEEDED)}; weights are read from safetensors files only, because other formats can "
                        "execute code. Download the missing files of the model.")
    try:
        check_tensor_file(path / WEIGHTS)
        config, preprocessor = (_settings(path / name) for name in (CONFIG, PREPROCESSOR))
        tokenizer = _settings(path / TOKENIZER_CONFIG) if (path / TOKENIZER_CONFIG).is_file() else {}
        _check_tokenizer(path / TOKENIZER)
        image, text = _towers(config)
        prepared = _Preprocessor.model_validate(preprocessor)
        return TextFolder(
            path=path, file=WeightFile(name=_name(path), sha256=_digest(path)), image=image, text=text,
            mean=prepared.image_mean, deviation=prepared.image_std, preparation=_preparation(prepared, image),
            pad=_pad(tokenizer), is_cleaned=str(tokenizer.get("tokenizer_class", "")).startswith("SiglipTokenizer"))
    except (OSError, ValueError) as error:
        raise UserError(f"The folder {quoted(str(path))} cannot be used: {_reason(error)}. Download the model again, "
                        "or choose another backbone.") from error


@lru_cache(maxsize=2)
def open_tokenizer(folder: TextFolder) -> Any:
    """Return the tokenizer of a folder, which cuts and fills texts as the model was trained with.

    CLIP ignores what follows the end of a text; SigLIP reads texts of one length. The last tokenizers are kept.

    Raises:
        UserError: It cannot be read, or is another model's.
    """
    from tokenizers import Tokenizer

    config, name = folder.text, f"{PREFIX}{folder.file.name}"
    try:
        tokenizer = Tokenizer.from_file(str(folder.tokenizer))
    except Exception as error:  # the package raises no narrower one
        raise UserError(f"The {TOKENIZER} of {quoted(name)} cannot be read: {str(error)[:200]}. Download the model "
                        "again.") from error
    size = tokenizer.get_vocab_size()
    if size > config.vocab_size:
        raise UserError(f"The {TOKENIZER} of {quoted(name)} has {size:,} tokens, and the network of words reads "
                        f"{config.vocab_size:,}. Use the files of one model.")
    tokenizer.enable_truncation(config.max_position_embeddings)
    number = tokenizer.token_to_id(folder.pad) if folder.pad else None
    pad = {"pad_id": config.pad_token_id if number is None else number, "pad_token": folder.pad or "[PAD]"}
    tokenizer.enable_padding(**pad, length=None if config.is_clip else config.max_position_embeddings)
    end = tokenizer.encode("a").ids[-1:]
    if config.is_clip and config.eos_token_id not in (2, *end):
        raise UserError(f"The {TOKENIZER} of {quoted(name)} ends a text with token {end or 'none'}, and the network of "
                        f"words expects {config.eos_token_id}. Use the files of one model.")
    return tokenizer


def _settings(path: Path) -> dict[str, Any]:
    """Read a file of settings.

    Raises:
        OSError: It is too long.
        ValueError: It holds no settings, or names code.
    """
    values = parse_json(read_regular(path, LONGEST_SETTINGS))
    if not isinstance(values, dict):
        raise ValueError(f"{path.name} holds no settings by name")
    named = [key for key in EXECUTABLE if values.get(key)]
    if named:
        raise ValueError(f"{path.name} names code in the folder ({named[0]}), which is never executed")
    return values


def _check_tokenizer(path: Path) -> None:
    """Check the length of a tokenizer.

    Raises:
        OSError: It is too long.
    """
    if path.stat().st_size > LONGEST_TOKENIZER:
        raise OSError(f"{path.name} has {path.stat().st_size:,} bytes, and at most {LONGEST_TOKENIZER:,} are read")


def _towers(config: dict[str, Any]) -> tuple[ImageConfig, TextConfig]:
    kind = config.get("model_type")
    if kind not in ("clip", "siglip"):
        raise ValueError(f"its model_type must be clip or siglip, got {quoted(str(kind))}")
    is_clip = kind == "clip"
    parts = [dict(config.get(name) or {}) for name in ("vision_config", "text_config")]
    if is_clip:
        common = {"is_clip": True, "projection": config.get("projection_dim", 512)}
        parts[1] = {"hidden_size": 512, "intermediate_size": 2048, "num_attention_heads": 8} | parts[1]
    else:
        common = {"is_clip": False, "projection": parts[0].get("hidden_size", 768)}
        default = {"hidden_act": "gelu_pytorch_tanh", "layer_norm_eps": 1e-6}
        parts = [default | {"patch_size": 16} | parts[0],
                 default | {"vocab_size": 32_000, "max_position_embeddings": 64} | parts[1]]
    return ImageConfig.model_validate(parts[0] | common), TextConfig.model_validate(parts[1] | common)


def _preparation(prepared: _Preprocessor, image: ImageConfig) -> Preparation:
    """Return how images become squares of the network's own size.

    Raises:
        ValueError: They become another size.
    """
    interpolation = Image.Resampling(prepared.resample)
    size = prepared.size if isinstance(prepared.size, _Side) else _Side(shortest_edge=prepared.size)
    crop = prepared.crop_size if isinstance(prepared.crop_size, _Side) else _Side(
        height=prepared.crop_size, width=prepared.crop_size)
    resized, cropped = size.shortest_edge or size.height or 0, crop.height or size.shortest_edge or size.height
    squares = (size.height == size.width, crop.height == crop.width, cropped == image.image_size, resized >= (
        image.image_size))
    if not all(squares):
        raise ValueError(f"{PREPROCESSOR} does not prepare squares of {image.image_size} pixels, which the network "
                         "reads")
    return Preparation("center" if size.shortest_edge else "squash", image.image_size / resized, interpolation)


def _pad(tokenizer: dict[str, Any]) -> str:
    """Return the token that fills short texts; early files describe it by a table."""
    token = tokenizer.get("pad_token") or ""
    return str(token.get("content", "")) if isinstance(token, dict) else str(token)


def _digest(path: Path) -> str:
    """Return the hash of all files that features and words depend on."""
    names = [name for name in (*NEEDED, TOKENIZER_CONFIG) if (path / name).is_file()]
    return hashlib.sha256("".join(f"{name} {hash_of(path / name)}\n" for name in names).encode()).hexdigest()


def _name(path: Path) -> str:
    """Return a folder's name as a backbone has it: letters, digits, dots and hyphens, but not a number alone."""
    name = re.sub(r"[^\w.-]+", "-", path.name)[:60] or "folder"
    return f"model-{name}" if re.fullmatch(r"[\d.]+", name) else name


def _reason(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        return f"{'.'.join(map(str, first['loc']))} {first['msg']}, got {quoted(str(first['input']))}".strip()
    return str(error).rstrip(".")
