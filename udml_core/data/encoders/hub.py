"""Models of timm and torchvision by name.

Both packages are optional and imported only on use. The weights are downloaded when a model is used for the first time,
or read from a file.
"""

from __future__ import annotations

import re
from dataclasses import replace
from difflib import get_close_matches
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from typing import Protocol, cast

import torch
from torch import nn

from udml_core.base.errors import UserError, quoted
from udml_core.base.paths import is_exposed
from udml_core.data.encoders.body import Body
from udml_core.data.encoders.pooling import Pooling, rmac_scales
from udml_core.data.encoders.weights import WeightFile

LIBRARIES = {"timm": "udml_core.data.encoders.timm_models", "torchvision": "udml_core.data.encoders.torchvision_models"}
"""The module that adapts each library."""
VERSION = 2
"""Part of the features' file names. Version 1 averaged all tokens of a transformer."""


class Library(Protocol):
    """What the module of a library offers."""

    @staticmethod
    def names() -> list[str]:
        """List the models."""

    @staticmethod
    def own_size(model: str) -> int:
        """Return the image size in pixels that a model was trained for."""

    @staticmethod
    def step(network: nn.Module) -> int:
        """Return the number of pixels that image sizes are multiples of, as far as the network says."""

    @staticmethod
    def outline(model: str, size: int) -> nn.Module:
        """Build a network for images of a size, with random weights."""

    @staticmethod
    def build(name: str, size: int, pooling: Pooling, weights: WeightFile | None, filled: bool = True) -> Body:
        """Build a network with weights from a file, or downloaded, or random if it is not to be filled."""

    @staticmethod
    def source(model: str) -> str:
        """Return where the weights of a model can be downloaded by hand, and in which format."""


def check(name: str) -> None:
    """Check that the library of a backbone `LIBRARY:NAME` is installed.

    Raises:
        UserError: The library is unknown or not installed.
    """
    library, _, model = name.partition(":")
    if library not in LIBRARIES or not model:
        raise UserError(f"A backbone with a colon must be timm:NAME or torchvision:NAME, got {quoted(name)}. "
                        "Correct the name.")
    if is_exposed() and not re.fullmatch(r"[\w.-]+", model):  # timm also reads local-dir:PATH and hf-hub:OWNER/NAME
        raise UserError(f"On this server a model must be named by letters, digits, dots and hyphens, got "
                        f"{quoted(model)}. Choose another backbone.")
    if find_spec(library) is None:
        raise UserError(f"The backbone '{name}' needs the package {library}, which is not installed. "
                        f"Install it with `.venv/bin/pip install {library}`, or choose another backbone.")


def choose_size(name: str, size: int, pooling: Pooling, is_default: bool) -> int:
    """Choose the image size of a model, and check that the model exists and reads images of that size.

    Args:
        name: `LIBRARY:NAME`.
        size: The wanted size in pixels.
        pooling: Pooling of the feature maps; R-MAC reads images at three scales.
        is_default: Whether another size may be chosen: the next multiple of the model's patch, or the model's own size.

    Raises:
        UserError: The model is unknown, or does not read images of that size.
    """
    library, model = _split(name)
    if ":" in model:  # a model described outside of the library, which is known only after loading
        return size
    try:
        names = library.names()
        if model.partition(".")[0] not in names:
            close = get_close_matches(model, names, 3)
            raise UserError(f"The backbone '{name}' is unknown." + (f" Similar names: {', '.join(close)}." if close
                                                                     else " Correct the name."))
        own, step = library.own_size(model), _step(name)
    except UserError:
        raise
    except Exception as error:  # both libraries raise any exception for a broken installation or an unknown tag
        raise UserError(f"The backbone '{name}' could not be loaded: {error}. Correct the name, or choose another "
                        "backbone.") from error
    if is_default:
        size = -(-size // step) * step
        size = own if _refusal(name, size, pooling) and not _refusal(name, own, pooling) else size
    refusal = _refusal(name, size, pooling)
    if refusal:
        below = size // step * step
        fitting = [str(side) for side in sorted({below, below + step, own})
                   if side and not _refusal(name, side, pooling)]
        raise UserError(f"The backbone '{name}' does not read images of {size} pixels"
                        + (f", which R-MAC reads at {rmac_scales(size)}" if pooling == "rmac" else "")
                        + f": {refusal}. " + (f"Set the image size to {' or '.join(fitting)}." if fitting else
                                              "Choose pooling 'mean' or another backbone." if pooling == "rmac" else
                                              "Choose another backbone."))
    return size


@lru_cache(maxsize=256)
def _step(name: str) -> int:
    """Return the number of pixels that a model's image sizes are multiples of."""
    library, model = _split(name)
    with torch.device("meta"):
        return library.step(library.outline(model, library.own_size(model)))


@lru_cache(maxsize=256)
def _refusal(name: str, size: int, pooling: Pooling) -> str:
    """Return why a model does not read images of a size; empty if it does, or if that is known only after loading.

    The network is computed without values, which takes about half a second.
    """
    library, model = _split(name)
    own = library.own_size(model)
    for side in rmac_scales(size) if pooling == "rmac" else (size,):
        error = _failure(library, model, size, side)
        if error:
            return "" if _failure(library, model, own, own) else error  # if its own size fails, the size is not why
    return ""


def _failure(library: Library, model: str, size: int, side: int) -> str:
    """Return the error of a network for images of a size that reads images of a side; empty without one."""
    try:
        with torch.device("meta"), torch.no_grad():
            library.outline(model, size).eval()(torch.zeros(1, 3, side, side))
    except Exception as error:  # any exception of the library
        return str(error).strip().split("\n")[0].rstrip(".!") or type(error).__name__
    return ""


def load(name: str, size: int, pooling: Pooling, weights: WeightFile | None = None, filled: bool = True) -> Body:
    """Load a network up to its features.

    Args:
        name: `LIBRARY:NAME`.
        size: Image size in pixels.
        pooling: With `mean`, the network ends in the library's own pooled features, as maps of one pixel; with `rmac`,
            in its last feature maps.
        weights: The file of the weights; None to download them.
        filled: Whether weights are read; without them the network is random.

    Raises:
        UserError: The library does not know the model, its weights could not be downloaded or do not fit, or it does
            not read images of this size.
    """
    library, model = _split(name)
    try:
        body = library.build(name, size, pooling, weights, filled)
    except UserError:
        raise
    except Exception as error:  # both libraries pass on any exception of their network code
        advice = "" if weights else f" Its weights are downloaded on first use. {_fetch(library, model)}"
        raise UserError(f"The backbone '{name}' could not be loaded: {error}.{advice}") from error
    try:
        with torch.no_grad():
            width = body.network.eval()(torch.zeros(1, 3, size, size)).shape[1]
    except Exception as error:  # any exception of the library
        raise UserError(f"The backbone '{name}' does not read images of {size} pixels: {error}. Change the image "
                        "size, or choose another backbone.") from error
    return replace(body, dimension=int(width))


def _fetch(library: Library, model: str) -> str:
    try:
        source = library.source(model)
    except Exception:  # an unknown model or tag
        return "Check the name and the connection, or choose another backbone."
    return (f"Check the name and the connection, or fetch the weights on another machine {source}, and name the file "
            "with `--weights FILE.safetensors`.")


def _split(name: str) -> tuple[Library, str]:
    """Return the module of the library, and the model's name in it.

    Raises:
        UserError: The library is installed but cannot be imported.
    """
    library, _, model = name.partition(":")
    try:
        return cast(Library, import_module(LIBRARIES[library])), model
    except Exception as error:  # such as a torchvision for another version of PyTorch
        packages = " and ".join(dict.fromkeys((library, "torchvision")))  # timm imports torchvision
        raise UserError(f"The backbone '{name}' could not be loaded: {error}. Install versions of {packages} that fit "
                        f"PyTorch {torch.__version__}, or choose another backbone.") from error
