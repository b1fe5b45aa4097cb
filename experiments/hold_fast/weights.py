"""Files of weights that a user names: damaged, of another format or network, links, pipes, and files that change."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import safetensors.torch
import torch
from torch import nn

from experiments.hold_fast.attempt import Hostility
from experiments.hold_fast.damage import FURTHER_KINDS, damage
from experiments.hold_fast.inputs import call, checked
from experiments.hold_fast.junk import junk, word
from experiments.hold_fast.names import name_for
from experiments.hold_fast.small_runs import digits_folder
from udml_core.data.encoders.weights import choose_weights, fill, read_weights

BACKBONES = ("timm:resnet10t", "torchvision:resnet18", "clip:", "pixels", "cnn", "efficientnet-lite0")
DTYPES = (torch.float32, torch.float16, torch.bfloat16, torch.int8, torch.bool)
ENDINGS = (".safetensors", ".safetensors", ".safetensors", ".pt", ".bin", ".SAFETENSORS", "")


def network() -> nn.Module:
    """Return a network of the kinds of layers that encoders have."""
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Linear(4, 2))


def try_weights(random: np.random.Generator, scratch: Path) -> str | None:
    """Name a file of weights and fill a network with it: all tensors arrive, or one message says why not."""
    path = scratch / f"{name_for(random)[:60]}{random.choice(ENDINGS)}"
    _write(random, path)
    filled = network()
    before = {name: tensor.clone() for name, tensor in filled.state_dict().items()}
    is_filled = False

    def use() -> None:
        nonlocal is_filled
        file = choose_weights(str(path) if random.random() < 0.9 else str(junk(random))[:3000])
        if random.random() < 0.2:
            damage(path, str(random.choice(FURTHER_KINDS)))  # it changes after it was named
        fill(filled, read_weights(file), "a model", file.name)
        is_filled = True

    if broken := checked(use):
        return f"{path.name!r}: {broken}"
    expected = before | safetensors.torch.load(path.read_bytes()) if is_filled else before
    if any(not torch.allclose(tensor, expected[name].to(tensor.dtype), equal_nan=True)
           for name, tensor in filled.state_dict().items()):
        return f"{path.name!r}: the network has not the weights of {'the file' if is_filled else 'before'}"
    words = ["train", "--dataset", str(digits_folder()), "--method", "frozen", "--backbone",
             str(random.choice(BACKBONES)), "--weights", word(path)]
    broken = call([*words, "--runs", str(scratch / "runs")])
    return f"{words}: {broken}" if broken else None


def _write(random: np.random.Generator, path: Path) -> None:
    """Write a file of weights, most of them with a fault."""
    tensors = dict(network().state_dict())
    for name in random.choice(list(tensors), int(random.integers(0, 3))):
        match int(random.integers(5)):
            case 0:
                tensors.pop(str(name), None)
            case 1:
                tensors[f"{name}{junk(random)}".encode(errors="replace").decode()] = torch.zeros(2)
            case 2:
                tensors[str(name)] = torch.zeros(tuple(int(side) for side in random.integers(0, 5, 2)))
            case 3:
                tensors[str(name)] = torch.zeros(2).to(DTYPES[int(random.integers(len(DTYPES)))])
            case 4:
                tensors[str(name)] = torch.full((4,), float("nan"))
    content = bytearray(safetensors.torch.save(tensors))
    if random.random() < 0.3:
        content[:8] = int(random.choice([0, 7, 2**24, 2**40, 2**63 - 1])).to_bytes(8, "little")
    for _ in range(int(random.integers(0, 6)) if random.random() < 0.5 else 0):
        content[int(random.integers(len(content)))] = int(random.integers(256))
    path.write_bytes(content)
    if random.random() < 0.2:
        damage(path, str(random.choice(FURTHER_KINDS)))
    elif random.random() < 0.1:
        os.replace(path, path.with_name("target"))
        path.symlink_to("target")


PART = Hostility("weights", try_weights, batch=10, limit=60, goal=200)
