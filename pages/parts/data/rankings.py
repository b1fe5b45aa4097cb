"""Rankings of images on the page Data: by a check of quality, and by distance to the nearest images."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import streamlit as st

from udml_core.base.arrays import Booleans, Floats, Integers
from udml_core.base.errors import counted
from udml_core.data.dataset import Dataset
from udml_core.data.given.exclusions import exclude
from udml_core.data.image_facts import ImageFacts
from udml_core.exploration.audit import Audit, outlier_limit, outliers
from udml_core.exploration.quality import CHECKS, poor_images, quality_scores, size_words, worst_first

from ..draw.gallery import gallery, tile_of
from ..shell.address import choice_from_address, write_address
from ..shell.run_status import escaped
from ..shell.selection import selection
from .excluding import MOST_TILES, ShownImages, change_list, list_buttons, offer_button, offer_key, select_images

OUTSIDE = "▸ "
"""Before the scores of images that count as findings."""
WAITS = '<style>.st-key-audit-ranking:not(:has([data-shown="KEY"])) .st-key-KEY { visibility: hidden; }</style>'
"""Hides the button that excludes many images until the gallery shows them; `keys.js` stops its key as long."""


def show_quality(dataset: Dataset, facts: ImageFacts | None, kept: Booleans) -> None:
    """Rank the images by a check of quality; a slider says how many count as findings."""
    if facts is None:
        st.info("An audit of an earlier version has not measured the quality. `udml audit` measures it.",
                icon=":material/info:")
        return
    counts = {name: len(poor_images(facts, kept, name)) for name in CHECKS}
    check = st.segmented_control("Check", list(CHECKS), default=choice_from_address("check", CHECKS, "blurry"),
                                 format_func=lambda name: titled(CHECKS[name].title, counts[name]), required=True,
                                 key="audit-check",
                                 help="What the images are ranked by, the worst first. Number: its findings at its own "
                                      "limit.") or "blurry"
    write_address("check", check, "blurry")
    scores = quality_scores(facts, check)
    limit = st.slider("Mark images with a score below", 0.0, 1.0, CHECKS[check].limit, 0.01,
                      key=f"audit-limit-{check}", persist_state="session",
                      help="From 0, the worst, to 1: a higher value marks more images as findings.")
    ranked = worst_first(scores, kept)
    count = int((scores[ranked] < limit).sum())
    notes = size_words(facts, kept, ranked[:MOST_TILES]) if check == "size" else []
    show_ranking(dataset, ranked, scores[ranked], count, f"Number: {CHECKS[check].text}. The lowest first.",
                 "audit-quality", notes)


def show_outliers(dataset: Dataset, audit: Audit, kept: Booleans, fence: float) -> None:
    """Rank the images by their distance to their neighbors, and show the neighbors of one of them.

    Args:
        dataset: The data set.
        audit: The comparison of all images.
        kept: Mask (n,) of the images that are not excluded.
        fence: How far outliers must stand out; see `AuditSettings.fence`.
    """
    if not audit.has_features:
        st.info("Outliers need features, and this audit has none.", icon=":material/info:")
        return
    scores = audit.outlier_scores()
    ranked = worst_first(-scores, kept)
    caption = (f"Number: how much the image differs from its {audit.neighbors.shape[1]} most similar images, from 0 "
               "(equal) to 2. Damaged, mislabeled and rare images come first.")
    if len(ranked):
        caption += (f" The slider is at {fence:g}: images with a number above {outlier_limit(scores, kept, fence):.3f} "
                    "count as findings; a higher value marks fewer.")
    show_ranking(dataset, ranked, scores[ranked], len(outliers(scores, kept, fence)), caption, "audit-outliers")
    chosen = selection(dataset).ids
    if len(ranked):
        _show_neighbors(dataset, audit, int(chosen[0]) if len(chosen) else int(ranked[0]))


def titled(title: str, count: int) -> str:
    """Return the title of a ranking with its number of findings, if it has any."""
    return f"{title} ({count:,})" if count else title


def show_ranking(dataset: Dataset, ranked: Integers, scores: Floats, count: int, caption: str, key: str,
                 notes: Sequence[str] = ()) -> None:
    """Show a ranking, of which the first images count as findings, and the buttons that exclude images.

    Args:
        dataset: The data set.
        ranked: The images in order.
        scores: The score of each.
        count: Number of first images that count as findings.
        caption: What the scores are.
        key: The gallery's key.
        notes: What is odd about each of the first images.
    """
    chosen, page = selection(dataset).ids, st.container(key="audit-ranking")
    buttons = page.container(horizontal=True, vertical_alignment="center", gap="small")
    shown = scores[:MOST_TILES].tolist()  # text for 70,000 images would take half a second
    names = [dataset.names[index].rsplit("/", 1)[-1] for index in ranked[:MOST_TILES].tolist()]
    badges = [f"{OUTSIDE * (position < count)}{score:.3f}\n{note}{name}" for position, (score, name, note) in enumerate(
        zip(shown, names, [f"{note}\n" for note in notes] or [""] * len(names), strict=True))]
    words = f"{caption} {OUTSIDE}marks {counted(count, 'finding')}."
    offered = ranked[:count]
    with page:
        select_images(dataset, ShownImages(ranked, badges, words, offered=offered), "Ranking of images", key)
        st.html(WAITS.replace("KEY", offer_key(offered)))
    with buttons:
        st.button(f"Exclude selected ({len(chosen):,})", icon=":material/block:", key="audit-exclude", shortcut="X",
                  disabled=not len(chosen), on_click=change_list, args=(dataset, exclude, chosen))
        offer_button(dataset, f"Exclude the first {count:,}", offered,
                     "Excludes the images that count as findings.")
        list_buttons(dataset)


def _show_neighbors(dataset: Dataset, audit: Audit, index: int) -> None:
    """Show the nearest images of an image, which make its distance."""
    st.markdown(f"**Nearest images of {escaped(dataset.names[index])}**")
    tiles = [tile_of(dataset, index, "query"), *(
        tile_of(dataset, int(other), badge=f"cosine {similarity:.2f}")
        for other, similarity in zip(audit.neighbors[index], audit.similarities[index], strict=True))]
    gallery(dataset, tiles, "Nearest images", "audit-neighbors", 96, strip=True)
    st.caption("The first selected image, or the first of the ranking, beside the images that are most like it. "
               "Cosine: 1 is equal, and the lower it is, the less they have in common.")


def kept_mask(count: int, excluded: Integers) -> Booleans:
    """Return the mask (n,) of the images that are not excluded."""
    return ~np.isin(np.arange(count), excluded)
