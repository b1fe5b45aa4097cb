"""Features of a judge: an encoder, or a table of vectors of the same images that another program computed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from udml_core.base.arrays import Array, Integers
from udml_core.base.errors import UserError, listed
from udml_core.data.dataset import Dataset, Report
from udml_core.data.encoder_names import encoders_in, is_several, parts_of
from udml_core.data.encoders import BACKBONES, Encoder, check_backbone, choose_spec
from udml_core.data.features import features_of
from udml_core.data.judge_names import WEAK
from udml_core.data.refinement_views import View, stored_view_features
from udml_core.data.sources.embeddings import EmbeddingTable, table_of

NAMED = 0.1
"""Least share of all weight with which a judge is named in a sentence."""
PIXELS = "differ as soon as an object moves"
"""Why raw pixels are a weak judge, of which the weight says how weak on the images at hand."""
OTHER_VIEW = View(zoom=0.85, flip=True)
"""The other view of an image that tells how steady a judge is."""


def check_judge(name: str, has_images: bool = True) -> None:
    """Check that a judge is an available backbone, or a table of vectors.

    Args:
        name: The name of the judge.
        has_images: Whether there are images, which a backbone needs.

    Raises:
        UserError: It is neither, or it is a backbone without images.
    """
    table = table_of(name)
    if table is not None:
        table.check()
    elif has_images and is_several(name):
        raise UserError(f"A judge is a single encoder, got {name}. Name its encoders as several judges.")
    elif has_images:
        check_backbone(name)
    else:
        raise UserError(f"A table of vectors has no images that {name} could read, so it needs a second table of "
                        "vectors of the same images as a judge. Name it with `udml advise TABLE --judges "
                        "other.parquet`.")


def encoder_title(name: str) -> str:
    """Return the short title of a backbone or of a table of vectors, such as `SqueezeNet 1.1`."""
    if is_several(name) and table_of(name) is None:
        return " + ".join(encoder_title(part.backbone) + (f" × {part.weight:g}" if part.weight != 1 else "")
                          for part in parts_of(name))
    table = None if name in BACKBONES else table_of(name)
    return BACKBONES[name].title.partition(",")[0] if name in BACKBONES else name if table is None else table.path.name


def judges_words(weights: Mapping[str, float], where: str = "") -> str:
    """Return the judges in a sentence: encoders that took no part, and the raw pixels with the reason for their weight.

    Args:
        weights: What each judge counts, by its name; a judge that hardly counts beside others is not named.
        where: In what the encoders took no part, such as `in this run`.
    """
    total = sum(weights.values()) or 1.0
    heaviest = max(weights, key=weights.__getitem__)
    shares = {name: weight / total for name, weight in weights.items() if name == heaviest or weight >= NAMED * total}
    encoders = [name for name in shares if name not in WEAK]
    titles = [encoder_title(name) + (f" (counts for {100 * shares[name]:.0f} %)" if len(shares) > 1 else "")
              for name in encoders]
    said = [f"{listed(titles)}, which took no part{where and f' {where}'}"] if encoders else []
    if WEAK[0] in shares:
        counted = f" (count for {100 * shares[WEAK[0]]:.0f} %)" if encoders else ""
        said.append(f"the raw pixels{counted}, which {PIXELS}")
    return ", and ".join(said)


def unknown_judges(judges: Iterable[str], backbone: str) -> tuple[str, ...]:
    """Return the judges that may be a run's encoder under another name: tables, models of timm, or all for a table."""
    return tuple(judge for judge in judges if not {judge, *encoders_in(backbone)} <= set(BACKBONES))


def kin_reasons(judges: Mapping[str, Array], backbone: str, judged: Sequence[Array]) -> dict[str, str]:
    """Return which judges took part in an embedding, by their name or by what they see, and how that is known.

    This is the law of every second opinion: an encoder that took part may not judge.

    Args:
        judges: Features (n, d) of the same images by the judge's name.
        backbone: The embedding's encoder.
        judged: The features (n, e) of this encoder and of its parts, and the embedding (n, l).
    """
    from udml_core.numerics.kinship import kin_words  # here, because it loads faiss

    unknown, took_part = unknown_judges(judges, backbone), encoders_in(backbone)
    reasons = {name: f"{encoder_title(name)} took part in it." if name in took_part else
               kin_words(name, features, judged, name in unknown) for name, features in judges.items()}
    return {name: reason for name, reason in reasons.items() if reason}


def without_kin(judges: Mapping[str, Array], backbone: str, judged: Sequence[Array]) -> dict[str, Array]:
    """Return the judges that took no part in an embedding, as `kin_reasons` tells; none if only raw pixels are left."""
    kin = kin_reasons(judges, backbone, judged)
    left = {name: features for name, features in judges.items() if name not in kin}
    return {} if set(left) <= set(WEAK) else left


def judge_features(dataset: Dataset, name: str, report: Report, device: str) -> Array:
    """Return a judge's features (n, d) of all images, computed on first use.

    Raises:
        UserError: The judge is not available, or a table does not have the images of the data set.
    """
    table = table_of(name)
    if table is not None:
        return _vectors_of(dataset, table, report)
    check_judge(name, has_images=not dataset.is_table)
    return features_of(dataset, _encoder(dataset, name, device), report)


def judge_views(dataset: Dataset, name: str, indices: Integers, report: Report, device: str) -> Array | None:
    """Return a judge's features (m, d) of `OTHER_VIEW` of some images (m,), computed on first use.

    Returns:
        The features; None if the judge is a table, which has no views.
    """
    if table_of(name) is not None:
        return None
    return stored_view_features(dataset, _encoder(dataset, name, device), OTHER_VIEW, indices, report)


def _encoder(dataset: Dataset, name: str, device: str) -> Encoder:
    return Encoder(choose_spec(name, dataset.native_size, dataset.gray)).to(device)


def _vectors_of(dataset: Dataset, table: EmbeddingTable, report: Report) -> Array:
    """Return a table's vectors (n, d) in the order of a data set's images: by their names, else by their order."""
    other = table.load(report)
    assert other.vectors is not None, "a table has vectors"
    rows = {name: row for row, name in enumerate(other.names)}
    if all(name in rows for name in dataset.names):
        return np.asarray(other.vectors)[[rows[name] for name in dataset.names]]
    if len(other) != len(dataset):
        raise UserError(f"A judge must have a vector for each image; {table.path} has {len(other):,} rows without the "
                        f"names of all {len(dataset):,} images of {dataset.title}. Add a column of names, or rows.")
    return other.vectors
