"""What is asked about: images of the data set in the address, images from outside in this session.

The page Retrieval has a query of several, the page Neighborhoods a first and a second image.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

import streamlit as st
from PIL import Image

from pages.parts.base.address import indices_from_address, join_indices, write_address
from pages.parts.base.user_errors import show_user_errors
from pages.parts.components.paste import pasted
from pages.parts.kit.pictures import picture
from udml_core.arrays import Array
from udml_core.data.dataset import read_user_image
from udml_core.retrieval import Query, Retrieval, Which

Side = Literal["add", "subtract"]
Mode = Literal["alone", "add", "subtract"]
MODES: dict[Mode, str] = {"alone": "asks with it", "add": "+ adds it", "subtract": "− subtracts it"}
SIGNS: dict[Side, str] = {"add": "+", "subtract": "−"}
OTHER: dict[Side, Side] = {"add": "subtract", "subtract": "add"}
MOST = 24
LOOKED_AT = "looked-at"
"""Where a session keeps the image from outside that the page Neighborhoods looks at."""


@dataclass(frozen=True)
class Brought:
    """An image from outside: the digest of its file, its name, and on which side of the query it stands."""

    digest: str
    name: str
    image: Image.Image
    side: Side


@dataclass(frozen=True)
class Asked:
    """What the page asks with: positions in the data set on both sides, and images from outside."""

    add: tuple[int, ...] = ()
    subtract: tuple[int, ...] = ()
    brought: tuple[Brought, ...] = ()

    def __len__(self) -> int:
        return len(self.add) + len(self.subtract) + len(self.brought)

    @property
    def alone(self) -> int | None:
        """The image of the data set that is asked with, where it is the only one."""
        return self.add[0] if len(self) == len(self.add) == 1 else None

    def with_image(self, index: int, mode: Mode) -> Asked:
        """With an image of the data set on a side, or with it alone."""
        if mode == "alone":
            return Asked((index,))
        without = self.without(index)
        return replace(without, **{mode: (*getattr(without, mode), index)})

    def with_files(self, brought: Iterable[Brought], mode: Mode) -> Asked:
        """With images from outside, besides what is there or instead of it."""
        kept = Asked() if mode == "alone" else self
        merged = {one.digest: one for one in (*kept.brought, *brought)}
        return replace(kept, brought=tuple(merged.values()))

    def without(self, one: int | str) -> Asked:
        """Without an image, by its position or its digest."""
        return Asked(tuple(other for other in self.add if other != one),
                     tuple(other for other in self.subtract if other != one),
                     tuple(other for other in self.brought if other.digest != one))

    def turned(self, one: int | str, side: Side) -> Asked:
        """With an image, by its position or its digest, on the given side."""
        if isinstance(one, int):
            return self.with_image(one, side)
        return replace(self, brought=tuple(replace(other, side=side) if other.digest == one else other
                                           for other in self.brought))

    def parts(self, side: Side) -> tuple[int | Brought, ...]:
        """The images of a side."""
        return (*(self.add if side == "add" else self.subtract), *(one for one in self.brought if one.side == side))


def asked_now(opened: Retrieval) -> Asked:
    """The query in the address and in this session."""
    count = len(opened.dataset)
    add, subtract = (indices_from_address(side, count)[-MOST:] for side in SIGNS)
    return Asked(tuple(add), tuple(one for one in subtract if one not in add), st.session_state.get("brought", ()))


def ask(query: Asked) -> None:
    """Make this the query; it holds so many images at most, the newest."""
    write_address("add", join_indices(query.add[-MOST:]))
    write_address("subtract", join_indices(query.subtract[-MOST:]))
    st.session_state["brought"] = query.brought[-MOST:]


def look_at(index: int = -1, second: int = -1) -> None:
    """On the page Neighborhoods make an image of the data set the first one, in place of one from outside; and another
    the second."""
    st.session_state.pop(LOOKED_AT, None)
    for name, value in (("picked", index), ("second", second)):
        if value >= 0:
            write_address(name, str(value))


def chosen_mode() -> Mode:
    """What a click on an image does."""
    return st.segmented_control("A click on an image", list(MODES), default="alone", required=True, key="query-mode",
                                format_func=MODES.__getitem__) or "alone"


def brought_now(key: str, most: int, side: Side = "add") -> list[Brought]:
    """A box for images from outside, and those that were just brought; what is no image is said."""
    found = []
    for name, content in pasted(key, most):
        with show_user_errors():
            image = read_user_image(io.BytesIO(content), name)
            image.thumbnail((1024, 1024))
            found.append(Brought(hashlib.sha1(content, usedforsecurity=False).hexdigest(), name, image, side))
    return found


def bring_images(opened: Retrieval, mode: Mode) -> None:
    """Images from the clipboard or from files become part of the query."""
    found = brought_now("query-paste", MOST, "subtract" if mode == "subtract" else "add")
    if found:
        ask(asked_now(opened).with_files(found, mode))


def strip(opened: Retrieval, query: Asked) -> None:
    """The query's images with their signs; each can change sides or be taken out."""
    with st.container(horizontal=True, key="query-strip"):
        for side in SIGNS:
            for one in query.parts(side):
                _card(opened, query, one, side)


def _card(opened: Retrieval, query: Asked, one: int | Brought, side: Side) -> None:
    if isinstance(one, int):
        key: int | str = one
        name, image = opened.dataset.caption(one), opened.dataset.images[one]
    else:
        key, name, image = one.digest, one.name, one.image
    with st.container(horizontal=True, border=True, width=290, vertical_alignment="center", key=f"query-{key}"):
        picture(image, 72, f"{'Added' if side == 'add' else 'Subtracted'}: {name}")
        with st.container(gap=None, width=165):
            st.markdown(f"**{SIGNS[side]}** {name}")
            with st.container(horizontal=True, gap="small"):
                st.button("Subtract" if side == "add" else "Add", key=f"turn-{key}", type="tertiary",
                          on_click=ask, args=(query.turned(key, OTHER[side]),))
                st.button("Take out", key=f"out-{key}", type="tertiary", on_click=ask, args=(query.without(key),))


def query_of(opened: Retrieval, asked: Asked, which: Which) -> Query:
    """The query for one of the run's two embeddings."""
    def sides(side: Side) -> tuple[int | Array, ...]:
        return tuple(one if isinstance(one, int) else embedded(opened, one, which)
                     for one in asked.parts(side))

    return Query(sides("add"), sides("subtract"))


def embedded(opened: Retrieval, one: Brought, which: Which) -> Array:
    """The embedding (l,) of an image from outside, computed once."""
    return _embedded(str(opened.run.folder), one.digest, which, opened, one)


@st.cache_data(max_entries=200, show_spinner="Embedding …")
def _embedded(folder: str, digest: str, which: Which, _opened: Retrieval, _one: Brought) -> Array:  # noqa: ARG001
    return _opened.embed(_one.image, which)
