"""Encoders of CLIP and SigLIP: images to features, and words to vectors that are compared with them by their cosine."""

from __future__ import annotations

import re
import string
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import safetensors
import torch
from torch import nn
from torch.nn.functional import normalize

from udml_core.base.arrays import Array
from udml_core.base.errors import UserError
from udml_core.data.encoders.body import Body, Triple
from udml_core.data.encoders.text_folder import PREFIX, TextFolder, check_installed, open_folder, open_tokenizer
from udml_core.data.encoders.towers import ImageTower, TextTower
from udml_core.data.encoders.weights import WeightFile, fill

SEPARATOR = ";"
"""Stands between several texts that mean the same."""
MOST_TEXTS, LONGEST_TEXT = 32, 500
"""Most texts of a query, and letters of a text."""
AT_ONCE = 64
"""Texts that the network reads at once."""
BUFFERS = "position_ids"
"""Ends the names of tensors that early files hold besides the weights."""


def load_images(file: WeightFile, filled: bool) -> Body:
    """Load the network of images of a folder, with its own preparation.

    Args:
        file: The folder.
        filled: Whether weights are read; without them the network is random.

    Raises:
        UserError: The folder is not there, or its weights do not fit.
    """
    folder = open_folder(file)
    network = ImageTower(folder.image)
    if filled:
        _fill(network, folder)
    mean, deviation = (_scaled(values) for values in (folder.mean, folder.deviation))
    return Body(network, mean, deviation, False, folder.image.projection, folder.preparation)


def read_texts(text: str) -> tuple[str, ...]:
    """Return the texts of a query, which semicolons separate.

    Raises:
        UserError: There is none, there are too many, or one is too long.
    """
    texts = tuple(part.strip() for part in text.split(SEPARATOR) if part.strip())
    if not 1 <= len(texts) <= MOST_TEXTS:
        raise UserError(f"The words must be between 1 and {MOST_TEXTS} texts, separated by semicolons; got "
                        f"{len(texts)}. Type what the images show, such as: a bird that swims.")
    longest = max(texts, key=len)
    if len(longest) > LONGEST_TEXT:
        raise UserError(f"A text must have at most {LONGEST_TEXT} letters, got {len(longest):,}. Shorten it.")
    return texts


class Words:
    """The network of words and the tokenizer of a folder.

    Args:
        folder: The folder.

    Raises:
        UserError: The tokenizer cannot be read or does not fit the network, or the weights do not fit.
    """

    def __init__(self, folder: TextFolder) -> None:
        self._folder, self._config = folder, folder.text
        self._tokenizer = open_tokenizer(folder)
        self._network = TextTower(folder.text)
        _fill(self._network, folder)
        self._network.eval()

    def tokens(self, texts: Sequence[str]) -> torch.Tensor:
        """Return the numbers of the tokens (b, t) of texts, cut to the longest text that the network reads."""
        encoded = self._tokenizer.encode_batch([self._clean(text) for text in texts])
        return torch.tensor([entry.ids for entry in encoded], dtype=torch.long).clamp_min(0)

    def embed(self, texts: Sequence[str]) -> Array:
        """Return the vectors (b, l) of texts, of unit length."""
        parts = [texts[start : start + AT_ONCE] for start in range(0, len(texts), AT_ONCE)]
        with torch.inference_mode():
            rows: Array = torch.cat([normalize(self._network(self.tokens(part))) for part in parts]).numpy()
        if not np.isfinite(rows).all():
            raise UserError("The network of words returned values that are not finite: a file of the folder is "
                            "damaged. Download the model again.")
        return rows

    def _clean(self, text: str) -> str:
        """Return a text as the model was trained with: SigLIP's in lower case, its first version's without marks."""
        if self._config.is_clip:
            return text
        lower = text.lower()
        if self._folder.is_cleaned:
            lower = lower.translate(str.maketrans("", "", string.punctuation))
        return re.sub(r"\s+", " ", lower).strip()


@lru_cache(maxsize=1)
def words_of_folder(file: WeightFile) -> Words:
    """Return the network of words of a folder, loaded once; the last one is kept.

    Raises:
        UserError: The folder is not there, or a file does not fit.
    """
    check_installed()
    return Words(open_folder(file))


def _fill(network: nn.Module, folder: TextFolder) -> None:
    """Copy the tensors of one of the two networks from the file of both."""
    modules = tuple(f"{name}." for name, _ in network.named_children())
    with safetensors.safe_open(folder.weights, framework="pt") as stored:  # the other network's stay on the disk
        tensors = {key: stored.get_tensor(key) for key in stored.keys()  # noqa: SIM118  (not a mapping)
                   if key.startswith(modules) and not key.endswith(BUFFERS)}
    fill(network, tensors, f"{PREFIX}{folder.file.name}", folder.weights.name)


def _scaled(values: Triple) -> Triple:
    red, green, blue = (255.0 * value for value in values)
    return red, green, blue
