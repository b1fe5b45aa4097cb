"""The query of the page Search.

The address holds its images of the data set, and names its own images, which the session holds.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Literal

import streamlit as st
from PIL import Image
from streamlit.delta_generator import DeltaGenerator

from udml_core.base.errors import UserError, counted
from udml_core.data.given.exclusions import excluded_images
from udml_core.data.query_images import find_query_image, keep_query_image
from udml_core.runs.search import Retrieval
from udml_core.runs.search.words import reads_words

from ..draw.palette import QUERY
from ..draw.pictures import picture
from ..shell.address import indices_from_address, join_indices, write_address
from ..shell.focus import BROUGHT, OWN
from ..shell.run_status import escaped
from .own_images import OwnImage, Side, own_image, receive_images

Mode = Literal["alone", "add", "subtract"]
MODES: dict[Mode, str] = {"alone": "search with it", "add": "+ add it", "subtract": "− subtract it"}
SIGNS: dict[Side, str] = {"add": "+", "subtract": "−"}
OTHER: dict[Side, Side] = {"add": "subtract", "subtract": "add"}
WORDS = "words"
"""The parameter of the address with the words of a query."""
MOST = 24
"""Most images of a query."""
MINUS = "-"
"""What precedes the digest of a subtracted own image in the address."""
LOST = "visit-own-lost"
"""Session key of the number of own images in the link that are not kept."""
MOST_SHOWN, QUERY_SIDE = 6, 72
"""Most images of a query that are drawn beside its name, and the width in pixels of a single one."""


@dataclass(frozen=True)
class PageQuery:
    """The images of the query.

    Attributes:
        add: Indices of data set images that are added.
        subtract: Indices of data set images that are subtracted.
        own: Images from outside the data set.
        words: What the images show, in words; empty without.
    """

    add: tuple[int, ...] = ()
    subtract: tuple[int, ...] = ()
    own: tuple[OwnImage, ...] = ()
    words: str = ""

    def __len__(self) -> int:
        return len(self.add) + len(self.subtract) + len(self.own) + bool(self.words)

    @property
    def single(self) -> int | None:
        """Index of the added image if the query has no other image."""
        return self.add[0] if len(self) == len(self.add) == 1 else None

    def with_image(self, index: int, mode: Mode) -> PageQuery:
        """Return the query with a data set image on a side, or with this image alone."""
        if mode == "alone":
            return PageQuery((index,))
        rest = self.without(index)
        return replace(rest, add=(*rest.add, index)) if mode == "add" else replace(
            rest, subtract=(*rest.subtract, index))

    def with_own(self, own: Iterable[OwnImage], mode: Mode) -> PageQuery:
        """Return the query with further own images, or with these alone."""
        rest = PageQuery() if mode == "alone" else self
        merged = {image.digest: image for image in (*rest.own, *own)}
        return replace(rest, own=tuple(merged.values()))

    def without(self, key: int | str) -> PageQuery:
        """Return the query without an image, given by its index or its digest."""
        return PageQuery(tuple(index for index in self.add if index != key),
                         tuple(index for index in self.subtract if index != key),
                         tuple(image for image in self.own if image.digest != key), self.words)

    def moved(self, key: int | str, side: Side) -> PageQuery:
        """Return the query with an image, given by index or digest, on another side."""
        if isinstance(key, int):
            return self.with_image(key, side)
        return replace(self, own=tuple(replace(image, side=side) if image.digest == key else image
                                       for image in self.own))

    def images(self, side: Side) -> tuple[int | OwnImage, ...]:
        """Return the images of a side."""
        indices = self.add if side == "add" else self.subtract
        return (*indices, *(image for image in self.own if image.side == side))


def current_query(retrieval: Retrieval) -> PageQuery:
    """Return the query from the address and the session; images that the user excluded are left out, with a message."""
    count, excluded = len(retrieval.dataset), set(excluded_images(retrieval.dataset).tolist())
    add, subtract = (indices_from_address(side, count)[-MOST:] for side in SIGNS)
    if gone := excluded.intersection([*add, *subtract]):
        add, subtract = ([index for index in side if index not in excluded] for side in (add, subtract))
        write_address("add", join_indices(add))
        write_address("subtract", join_indices(subtract))
        name = retrieval.dataset.caption(min(gone)) if len(gone) == 1 else counted(len(gone), "image")
        st.toast(f"{escaped(name)}: excluded, so no query. Data, part Audit, includes it again.",
                 icon=":material/block:")
    if BROUGHT not in st.session_state:  # the page was loaded again
        st.session_state[BROUGHT] = _own_in_address()
    write_address(OWN, _join_own(st.session_state[BROUGHT]))
    return PageQuery(tuple(add), tuple(index for index in subtract if index not in add),
                     st.session_state[BROUGHT], current_words() if reads_words(retrieval.run) else "")


def _own_in_address() -> tuple[OwnImage, ...]:
    """Return the own images that the address names, as far as they are kept; say how many are gone."""
    found, named = list[OwnImage](), list(filter(None, st.query_params.get(OWN, "").split(".")))[:MOST]
    for name in named:
        with suppress(UserError):  # a file that was changed is no image
            if source := find_query_image(name.removeprefix(MINUS)):
                found.append(own_image(source, "subtract" if name.startswith(MINUS) else "add"))
    if lost := len(named) - len(found):
        st.session_state[LOST] = lost
    return tuple(found)


def _join_own(own: Iterable[OwnImage]) -> str:
    """Write own images as `_own_in_address` reads them."""
    return ".".join(f"{MINUS * (image.side == 'subtract')}{image.digest}" for image in own)


def current_words() -> str:
    """Return the words of the query from the address."""
    return st.query_params.get(WORDS, "").strip()


def kept_query() -> dict[str, str]:
    """Return the parameters of the query, for a link to another run on the same images."""
    return {name: st.query_params[name] for name in ("add", "subtract", WORDS) if name in st.query_params}


def set_query(query: PageQuery) -> None:
    """Replace the query; of too many images the newest are kept."""
    write_address("add", join_indices(query.add[-MOST:]))
    write_address("subtract", join_indices(query.subtract[-MOST:]))
    write_address(WORDS, query.words)
    st.session_state[BROUGHT] = query.own[-MOST:]
    st.session_state.pop(LOST, None)
    write_address(OWN, _join_own(st.session_state[BROUGHT]))


def choose_mode() -> Mode:
    """Choose what a click on an image does."""
    return st.segmented_control("Click an image to", list(MODES), default="alone", required=True, key="query-mode",
                                format_func=MODES.__getitem__) or "alone"


def receive_query_images(query: PageQuery) -> None:
    """Show a box for own images and make received images part of the query."""
    mode: Mode = st.session_state.get("query-mode") or "alone"
    images = receive_images("query-paste", MOST, "subtract" if mode == "subtract" else "add")
    if lost := st.session_state.get(LOST):
        st.caption(f":material/image_not_supported: {counted(lost, 'own image')} of this link "
                   f"{'is' if lost == 1 else 'are'} not kept any more. Choose {'it' if lost == 1 else 'them'} again.")
    if images:
        for image in images:
            keep_query_image(image.source, image.digest)
        set_query(query.with_own(images, mode))
        st.rerun(scope="fragment")


def compose_query(retrieval: Retrieval, query: PageQuery) -> None:
    """Show what a click does, and the query's images with buttons that move or remove them."""
    choose_mode()
    with st.container(key="query-images"):
        for side in SIGNS:
            for image in query.images(side):
                _show_query_image(retrieval, query, image, side)
    if query.own:
        st.caption("Your own images are kept for a day: until then, this page shows them again after a reload.")


def show_query(retrieval: Retrieval, query: PageQuery) -> DeltaGenerator:
    """Show the query's images with their signs, and its name; return the place below the name."""
    st.html(f"<style>.st-key-query-shown img {{ outline: 3px solid {QUERY}; outline-offset: 1px; }}</style>")
    images = [(SIGNS[side], image) for side in SIGNS for image in query.images(side)]
    side = QUERY_SIDE if len(images) == 1 else QUERY_SIDE // 2
    with st.container(horizontal=True, gap="small", vertical_alignment="center", width="content",
                      key="query-shown"):
        for sign, image in images[:MOST_SHOWN]:
            name, content = _name_and_content(retrieval, image)
            picture(content, side, f"{'Added' if sign == '+' else 'Subtracted'}: {name}")
    names = [f"{sign} {_name_and_content(retrieval, image)[0]}" for sign, image in images]
    names = [f"\u201c{query.words}\u201d", *names] if query.words else names
    words = names[0].removeprefix("+ ").removeprefix("− ") if len(names) == 1 else " ".join(names)
    below = st.container(gap=None, width="content")
    below.markdown(f"Query: **{escaped(words)}**" if names else "**No query**")
    return below


def _name_and_content(retrieval: Retrieval, image: int | OwnImage) -> tuple[str, Image.Image]:
    if isinstance(image, int):
        return retrieval.dataset.caption(image), retrieval.dataset.images[image]
    return image.name, image.image


def _show_query_image(retrieval: Retrieval, query: PageQuery, image: int | OwnImage, side: Side) -> None:
    key: int | str = image if isinstance(image, int) else image.digest
    name, content = _name_and_content(retrieval, image)
    with st.container(horizontal=True, border=True, width=290, vertical_alignment="center", key=f"query-{key}"):
        picture(content, 72, f"{'Added' if side == 'add' else 'Subtracted'}: {name}")
        with st.container(gap=None, width=165):
            st.markdown(f"**{SIGNS[side]}** {escaped(name)}")
            with st.container(horizontal=True, gap="small"):
                st.button("Subtract" if side == "add" else "Add", key=f"turn-{key}", type="tertiary",
                          on_click=set_query, args=(query.moved(key, OTHER[side]),))
                st.button("Remove", key=f"out-{key}", type="tertiary", on_click=set_query, args=(query.without(key),))
