"""Weights from a file that a user names, for machines without a network.

Only safetensors files are read, because nothing in them can be executed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

import safetensors
from pydantic import BaseModel, ConfigDict
from safetensors.torch import load_file
from torch import Tensor, nn

from udml_core.base.errors import UserError, quoted
from udml_core.base.files import check_regular, digest_of_file, replace_text
from udml_core.base.paths import existing_path, given_folder

SUFFIX = ".safetensors"
LONGEST_HEADER = 2**24
"""Largest length of the list of tensors in bytes. 10,000 tensors take 1 MB; reading it can take 20 times its length."""
NOTES = "weights"
"""The folder of the notes that hold the paths of weights."""
MOST_NAMES = 3
"""Names of parameters that a message lists."""


class WeightFile(BaseModel):
    """A file of weights, as runs and exported models name it: without the folders of a computer.

    The folder of a user's data remembers the path of every hash, so that a moved file is found again once it is named.

    Attributes:
        name: Name of the file.
        sha256: Hash of the content, so that a changed file is not used.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    sha256: str

    @property
    def note(self) -> Path:
        """The text file that holds the path of the weights."""
        return given_folder() / NOTES / f"{self.sha256}.txt"

    @property
    def path(self) -> Path | None:
        """The path that a user named last; None if none is remembered."""
        try:
            return Path(self.note.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None


def choose_weights(text: str) -> WeightFile:
    """Return the file that a user names, and remember its path.

    Raises:
        UserError: It does not exist, may not be read, or is not a safetensors file.
    """
    path = existing_path(text)
    if path is None or not path.is_file():
        raise UserError(f"The weights must be a {SUFFIX} file, and {quoted(text)} is not a file that can be read. "
                        "Correct the path.")
    if path.suffix != SUFFIX:
        raise UserError(f"The weights must be a {SUFFIX} file, because other formats can execute code when they are "
                        f"read; got {quoted(path.name)}. Convert a file that you trust: `python -c \"import torch, "
                        "safetensors.torch as s; s.save_file(torch.load('FILE', weights_only=True), "
                        f"'FILE{SUFFIX}')\"`.")
    try:
        check_tensor_file(path)
    except (OSError, ValueError) as error:
        raise UserError(f"The weights {quoted(str(path))} are not a {SUFFIX} file that can be read: {error}. Download "
                        "or convert the file again.") from error
    file = WeightFile(name=path.name, sha256=hash_of(path))
    # Not resolved: the target of a link can have a name without the suffix.
    remember_path(file, Path(os.path.abspath(path)))
    return file


def remember_path(file: WeightFile, path: Path) -> None:
    """Note the path of weights that a user named."""
    if file.path != path:
        file.note.parent.mkdir(parents=True, exist_ok=True)
        replace_text(file.note, str(path))


def remembered_paths() -> list[Path]:
    """List the paths of weights that a user named, in the order of their names."""
    paths = []
    for note in (given_folder() / NOTES).glob("*.txt"):
        with suppress(OSError, ValueError):
            paths.append(Path(note.read_text(encoding="utf-8")))
    return sorted(set(paths))


def check_tensor_file(path: Path) -> None:
    """Check that the list of tensors of a safetensors file can be read.

    Raises:
        OSError: The file cannot be read.
        ValueError: It is not such a file.
    """
    _check_header(path)
    try:
        with safetensors.safe_open(path, framework="pt"):
            pass
    except safetensors.SafetensorError as error:
        raise ValueError(str(error)) from error


def _check_header(path: Path) -> None:
    """Check the length that a file declares for its list of tensors, before the list is read.

    Raises:
        ValueError: It is too long.
    """
    check_regular(path)
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
    if length > LONGEST_HEADER:
        raise ValueError(f"its list of tensors declares {length:,} bytes, and at most {LONGEST_HEADER:,} are read")


def read_weights(file: WeightFile) -> dict[str, Tensor]:
    """Read the tensors of a file by name.

    Raises:
        UserError: The file is not where the user named it last, or has changed.
    """
    path = file.path
    if path is not None and path.is_file() and hash_of(path) == file.sha256:
        return load_file(path)
    where = "no path of it is known here" if path is None else (
        f"{quoted(str(path))} {'has changed' if path.is_file() else 'does not exist'}")
    raise UserError(f"The weights {quoted(file.name)} with the SHA-256 {file.sha256[:12]}… are needed, and {where}. "
                    "Restore the file, or name its new path once with `udml train --weights FILE`.")


def fill(network: nn.Module, tensors: Mapping[str, Tensor], name: str, source: str,
         ignored: tuple[str, ...] = ()) -> None:
    """Copy tensors into a network, which must have the same names and shapes.

    Args:
        network: The network.
        tensors: Tensors by name.
        name: Name of the backbone, for the message.
        source: Name of the file, for the message.
        ignored: Modules, such as the classifier, that features do not use; their tensors need not fit.

    Raises:
        UserError: A tensor is missing, unknown, or of another shape.
    """
    expected = {key: tuple(value.shape) for key, value in network.state_dict().items()}
    loaded = {key: value for key, value in tensors.items() if not _is_below(key, ignored)}
    # Files without PyTorch's version of a layer may lack the number of batches, which only training uses.
    missing = [key for key in expected if key not in loaded and not _is_below(key, ignored)
               and not key.endswith("num_batches_tracked")]
    unknown = [key for key in loaded if key not in expected]
    unlike = [f"{key} {tuple(loaded[key].shape)} for {shape}" for key, shape in expected.items()
              if key in loaded and tuple(loaded[key].shape) != shape]
    problems = [f"{len(keys)} of {len(total)} {words} ({', '.join(keys[:MOST_NAMES])}"
                f"{', …' if len(keys) > MOST_NAMES else ''})"
                for keys, total, words in ((missing, expected, "parameters are missing"),
                                           (unknown, loaded, "names are unknown"),
                                           (unlike, expected, "parameters have another shape")) if keys]
    if problems:
        raise UserError(f"The weights {quoted(source)} do not fit the backbone '{name}': {'; '.join(problems)}. Use "
                        "the file of this model, or name the model of the file.")
    network.load_state_dict(loaded, strict=False)


def fits(network: nn.Module, tensors: Mapping[str, Tensor], ignored: tuple[str, ...]) -> bool:
    """Return whether tensors have the names and shapes of a network, apart from ignored modules."""
    expected = network.state_dict()
    compared = {key: value for key, value in tensors.items() if not _is_below(key, ignored)}
    return expected.keys() == compared.keys() and all(expected[key].shape == compared[key].shape for key in expected)


def _is_below(key: str, modules: tuple[str, ...]) -> bool:
    return any(key.startswith(f"{module}.") for module in modules)


def hash_of(path: Path) -> str:
    """Return the hash of a file, computed once for each change of the file."""
    state = path.stat()
    return _hash_of_state(path, state.st_size, state.st_mtime_ns)


@lru_cache(maxsize=64)
def _hash_of_state(path: Path, _size: int, _changed: int) -> str:
    """Return the hash of a file that was last changed at a time; a page asks for it again and again."""
    return digest_of_file(path)
