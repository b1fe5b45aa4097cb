"""Rankings of images on the page Data: by a check of quality, and by distance to the nearest images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import streamlit as st

from udml_core.base.arrays import Booleans, Floats, Integers
from udml_core.base.errors import counted
from udml_core.data.dataset import Dataset
from udml_core.data.given.exclusions import exclude
from udml_core.data.image_facts import ImageFacts
from udml_core.exploration.audit import Audit, outlier_limit, outliers
from udml_core.exploration.quality import (
    CHECKS,
    all_poor,
    poor_by_check,
    quality_scores,
    reason_words,
    size_words,
    worst_first,
)

from ..draw.gallery import gallery, tile_of
from ..shell.address import choice_from_address, write_address
from ..shell.run_status import escaped
from ..shell.selection import selection
from .excluding import MOST_TILES, ShownImages, change_list, list_buttons, offer_button, offer_key, select_images

EVERY = "all"
"""The choice that shows the findings of all checks of quality."""
OUTSIDE = "▸ "
"""Before the scores of images that count as findings."""
WAITS = '<style>.st-key-audit-ranking:not(:has([data-shown="KEY"])) .st-key-KEY { visibility: hidden; }</style>'
"""Hides the button that excludes many images until the gallery shows them; `keys.js` stops its key as long."""


def show_quality(dataset: Dataset, facts: ImageFacts | None, kept: Booleans) -> None:
    """Show the findings of all checks of quality, or the images in the order of one, with a slider for its limit."""
    if facts is None:
        st.info("An audit of an earlier version has not measured the quality. `udml audit` measures it.",
                icon=":material/info:")
        return
    found = poor_by_check(facts, kept)
    titles = {EVERY: titled("All findings", len(all_poor(found)))} | {
        name: titled(check.title, len(found[name])) for name, check in CHECKS.items()}
    check = st.segmented_control("Check", list(titles), default=choice_from_address("check", titles, EVERY),
                                 format_func=titles.__getitem__, required=True, key="audit-check",
                                 help="All findings together, or what all images are ranked by, the worst first. "
                                      "Number: findings at the check's own limit.") or EVERY
    write_address("check", check, EVERY)
    if check == EVERY:
        _show_all_poor(dataset, found)
        return
    scores = quality_scores(facts, check)
    limit = st.slider("Mark images with a score below", 0.0, 1.0, CHECKS[check].limit, 0.01,
                      key=f"audit-limit-{check}", persist_state="session",
                      help="From 0, the worst, to 1: a higher value marks more images as findings.")
    ranked = worst_first(scores, kept)
    count = int((scores[ranked] < limit).sum())
    notes = size_words(facts, kept, ranked[:MOST_TILES]) if check == "size" else []
    show_ranking(dataset, ranked, scores[ranked], count, f"Number: {CHECKS[check].text}. The lowest first.",
                 "audit-quality", notes)


def _show_all_poor(dataset: Dataset, found: Mapping[str, Integers]) -> None:
    """Show the images that any check of quality finds, each with the reasons, and the button that excludes them."""
    images = all_poor(found)
    if not len(images):
        with st.container(horizontal=True, gap="small"):
            list_buttons(dataset)
        st.success("No check of quality finds an image that is not excluded.", icon=":material/check_circle:")
        return
    tiles = images[:MOST_TILES]
    badges = [f"{reason}\n{dataset.names[index].rsplit('/', 1)[-1]}"
              for reason, index in zip(reason_words(found, tiles), tiles.tolist(), strict=True)]
    caption = (f"Below each of the {counted(len(images), 'image')}: which checks find it. A good photograph can have "
               "an odd shape or size: look before you exclude all. The finding Excluded takes single images back.")
    _show_offered(dataset, ShownImages(images, badges, caption, f"Exclude all {len(images):,}", images),
                  "Findings of all checks", "audit-quality", "Leaves these images out of races, searches and new runs. "
                  "No file is changed, and Undo reverts it.", is_primary=True)


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
    shown = scores[:MOST_TILES].tolist()  # text for 70,000 images would take half a second
    names = [dataset.names[index].rsplit("/", 1)[-1] for index in ranked[:MOST_TILES].tolist()]
    badges = [f"{OUTSIDE * (position < count)}{score:.3f}\n{note}{name}" for position, (score, name, note) in enumerate(
        zip(shown, names, [f"{note}\n" for note in notes] or [""] * len(names), strict=True))]
    words = f"{caption} {OUTSIDE}marks {counted(count, 'finding')}."
    _show_offered(dataset, ShownImages(ranked, badges, words, f"Exclude the first {count:,}", ranked[:count]),
                  "Ranking of images", key, "Excludes the images that count as findings.")


def _show_offered(dataset: Dataset, shown: ShownImages, label: str, key: str, help_text: str,
                  is_primary: bool = False) -> None:
    """Show images and the buttons that exclude them; the button for many is hidden until the images are painted.

    Args:
        dataset: The data set.
        shown: The images.
        label: What the gallery shows, for screen readers.
        key: The gallery's key.
        help_text: What the button does that excludes many images at once.
        is_primary: Whether this button is the first action of the page.
    """
    chosen, page = selection(dataset).ids, st.container(key="audit-ranking")
    buttons = page.container(horizontal=True, vertical_alignment="center", gap="small")
    with page:
        select_images(dataset, shown, label, key)
        st.html(WAITS.replace("KEY", offer_key(shown.offered)))
    with buttons:
        offer_button(dataset, shown.offer, shown.offered, help_text, is_primary)
        st.button(f"Exclude selected ({len(chosen):,})", icon=":material/block:", key="audit-exclude", shortcut="X",
                  disabled=not len(chosen), on_click=change_list, args=(dataset, exclude, chosen))
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
