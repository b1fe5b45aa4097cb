"""Whether any image of a run resembles a user's image: every search has nearest images, however far they are.

The distance to the nearest image is compared with the distances of the run's images to their own nearest. Training
keeps only what tells the data set's images apart, so the features without training are asked, too. In the examples,
four trained numbers take noise for a digit, which the pixels do not; and pixels take a blank image for a piece of
clothing, which eight trained numbers do not.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from udml_core.base.arrays import Array, Floats, evenly_spaced
from udml_core.base.errors import UserError
from udml_core.base.files import read_arrays, replace_arrays
from udml_core.runs.analyses import REFINED
from udml_core.runs.search.frame import Frame, frame_file
from udml_core.runs.search.names import FROZEN, RECIPE, frame_words
from udml_core.runs.search.query import Query
from udml_core.runs.search.retrieval import Retrieval

LEAST = 0.99
"""Share of the images that have a nearer nearest image, from which nothing resembles a user's image."""
FAR, DOUBTFUL = 0.75, 0.9
"""The same share from which the nearest image is farther than usual, and from which a user's image may be of a kind
that is not here: 1 in 10 images of a kind that is here has the latter, and more of the others."""
SAMPLE = 500
"""Number of images whose distances to their nearest are known; of fewer images, all."""
FEWEST = 20
"""Least number of images from which anything can be said: of so few, each must have a nearer nearest image."""
MOST_BYTES = 1_000_000


@dataclass(frozen=True)
class Unlike:
    """A user's image that no image of a run resembles.

    Attributes:
        embedding: The name of the embedding in which none does.
        words: Its name in words.
        share: Share of the run's images whose nearest image is nearer than the user's image has its nearest.
    """

    embedding: str
    words: str
    share: float

    @property
    def sentence(self) -> str:
        """What is known, for users."""
        images = "every image" if self.share == 1 else f"{int(100 * self.share)} % of the images"
        return f"No image here resembles yours: its nearest is farther away than that of {images} here ({self.words})."

    def describe(self) -> dict[str, Any]:
        """Return what is known as `--json` writes it."""
        return {"embedding": self.embedding, "share": self.share, "words": self.sentence}


def find_unlike(retrieval: Retrieval, embed: Callable[[str], Array], name: str = "final") -> Unlike | None:
    """Return that no image of a run resembles a user's image; None if an image does, or if too few can be compared.

    Args:
        retrieval: The search of the run.
        embed: Returns the embedding (l,) of the user's image by an embedding's name.
        name: The embedding in which the user searches; of a refined embedding, the embedding after training is asked.
            The features without training are asked, too.
    """
    name = "final" if name.startswith((REFINED, RECIPE)) else name
    for asked in dict.fromkeys([name, FROZEN] if retrieval.before == FROZEN else [name]):
        share = share_beside(retrieval, embed, asked)
        if share is not None and share >= LEAST:
            return Unlike(asked, frame_words(asked, retrieval.run), share)
    return None


def share_beside(retrieval: Retrieval, embed: Callable[[str], Array], name: str) -> float | None:
    """Return the share of a run's images that have a nearer nearest image than a user's image; None of too few images.

    Args:
        retrieval: The search of the run.
        embed: Returns the embedding (l,) of the user's image by an embedding's name.
        name: The embedding.
    """
    distances = nearest_distances(retrieval.frame(name), retrieval.searched(name))
    if len(distances) < FEWEST:
        return None
    (nearest,) = retrieval.search(Query((embed(name),)), 1, name)
    return share_nearer(distances, nearest.distance)


def doubt_words(share: float | None) -> str:
    """Return that no image may be of the kind of a user's image, in a sentence; empty if its nearest is near."""
    if share is None or share < FAR:
        return ""
    nearer = f"{int(100 * share)} of 100 images here have a nearer one"
    return (f"Your image may be of a kind that is not here: its nearest image is far, and {nearer}."
            if share >= DOUBTFUL else
            f"The nearest image is farther than usual: {nearer}. Look whether it is of the same kind.")


def share_nearer(distances: Floats, distance: float) -> float:
    """Return the share of images whose distance to their own nearest, of (s,), is below a distance."""
    return float(np.mean(distances < distance))


def nearest_distances(frame: Frame, searched: Array) -> Floats:
    """Return the distances (s,) of images to their own nearest, computed once and kept in the cache.

    Args:
        frame: The embedding.
        searched: Mask (n,) of the images that a search covers.
    """
    path = frame_file(frame, "nearest")
    if path.exists():
        with suppress(UserError, KeyError):
            stored: Floats = read_arrays(path, MOST_BYTES)["distances"]
            return stored
    images = np.flatnonzero(searched)
    some = images[evenly_spaced(len(images), SAMPLE)]
    distances = frame.index.neighbors(some, 1, searched)[1].ravel()
    with suppress(OSError):  # without room in the cache they are computed again next time
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_arrays(path, {"distances": distances})
    return distances
