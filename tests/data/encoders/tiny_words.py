"""Tiny folders of CLIP and SigLIP with random weights, in the format of published ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from udml_core.data.encoders.text_folder import choose_folder
from udml_core.data.encoders.towers import ImageTower, TextTower

VOCABULARY = ["<unk>", "</s>", "<pad>", "a", "b", "bird", "that", "swims", "dark", "bright", "red", "green", "photo",
              "of", "small", "large", "</w>", "<s>", "<e>"]
SIZES = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
"""Sizes of both networks."""
IMAGE = SIZES | {"image_size": 32, "patch_size": 8}
TEXT = SIZES | {"vocab_size": len(VOCABULARY), "max_position_embeddings": 12}
END = VOCABULARY.index("<e>")
PREPROCESSOR = {
    "clip": {"size": {"shortest_edge": 36}, "crop_size": {"height": 32, "width": 32}, "do_center_crop": True,
             "resample": 3, "image_mean": [0.48, 0.45, 0.4], "image_std": [0.26, 0.27, 0.28]},
    "siglip": {"size": {"height": 32, "width": 32}, "resample": 3, "image_mean": [0.5] * 3, "image_std": [0.5] * 3},
}


def config_of(kind: str) -> dict[str, Any]:
    """Return config.json as a published folder has it."""
    if kind == "clip":
        return {"model_type": "clip", "projection_dim": 24, "vision_config": IMAGE,
                "text_config": TEXT | {"bos_token_id": VOCABULARY.index("<s>"), "eos_token_id": END}}
    return {"model_type": "siglip", "vision_config": IMAGE, "text_config": TEXT | {"pad_token_id": 1}}


def write_tokenizer(folder: Path, kind: str) -> None:
    """Write a tokenizer of whole words, which ends texts as CLIP or SigLIP does."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    tokenizer = Tokenizer(models.WordLevel({word: number for number, word in enumerate(VOCABULARY)}, "<unk>"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    single = "<s> $A <e>" if kind == "clip" else "$A </s>"
    tokenizer.post_processor = processors.TemplateProcessing(
        single=single, special_tokens=[(word, VOCABULARY.index(word)) for word in ("<s>", "<e>", "</s>")])
    tokenizer.save(str(folder / "tokenizer.json"))
    pad = "<e>" if kind == "clip" else "</s>"
    (folder / "tokenizer_config.json").write_text(json.dumps({
        "pad_token": {"content": pad}, "model_max_length": TEXT["max_position_embeddings"],
        "tokenizer_class": "CLIPTokenizer" if kind == "clip" else "SiglipTokenizer"}))


def write_folder(folder: Path, kind: str = "clip", seed: int = 0) -> Path:
    """Write a folder with random weights; it needs the package tokenizers."""
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config_of(kind)))
    (folder / "preprocessor_config.json").write_text(json.dumps(PREPROCESSOR[kind]))
    write_tokenizer(folder, kind)
    save_file({"logit_scale": torch.zeros(())}, folder / "model.safetensors")
    known = choose_folder(str(folder))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        state = ImageTower(known.image).state_dict() | TextTower(known.text).state_dict()
        save_file({name: torch.randn_like(value) * 0.3 for name, value in state.items()}, folder / "model.safetensors")
    return folder
