"""One image, enlarged: its path, class and original size, with the previous and the next image."""

from __future__ import annotations

import streamlit as st

from udml_core.base.arrays import Integers
from udml_core.data.dataset import Dataset
from udml_core.data.text_tiles import TableImages, image_path

from ..draw.pictures import picture, sharp
from ..shell.run_picker import open_search
from ..shell.run_status import escaped
from ..shell.user_errors import show_user_errors

POSITION = "data-enlarged"


def enlarge(dataset: Dataset, order: Integers, index: int) -> None:
    """Open an image in a dialog.

    Args:
        dataset: The data set.
        order: Indices of the images in the order of the gallery.
        index: Index of the image.
    """
    st.session_state[POSITION] = int((order == index).argmax())
    _dialog(dataset, order)


@st.dialog("Image", width="large")
@show_user_errors()
def _dialog(dataset: Dataset, order: Integers) -> None:
    position = st.session_state[POSITION]
    index = int(order[position])
    image = dataset.images[index]
    caption = dataset.caption(index)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button("Previous", icon=":material/chevron_left:", shortcut="Left", disabled=position == 0,
                  on_click=_move, args=(-1,))
        st.button("Next", icon=":material/chevron_right:", shortcut="Right", disabled=position == len(order) - 1,
                  on_click=_move, args=(1,))
        st.caption(f"{position + 1:,} of {len(order):,}", width="content")
        if st.button("Search with it", icon=":material/image_search:", key="enlarged-search",
                     help="Opens Search with this image as the query."):
            open_search(dataset, index)
    left, right = st.columns(2, gap="medium")
    with left:
        picture(sharp(image), "stretch", caption)
    with right:
        label = "none" if dataset.labels is None else escaped(dataset.class_names[dataset.labels[index]])
        size = f"**Original size**  \n{image.width} × {image.height} pixels\n\n" if shows_image(dataset, index) else ""
        st.markdown(f"**Class**  \n{label}\n\n{size}**Index**  \n{index:,}\n\n**{'Path' if size else 'Name'}**")
        st.code(image_path(dataset, index), language=None, wrap_lines=True)


def _move(step: int) -> None:
    st.session_state[POSITION] += step


def shows_image(dataset: Dataset, index: int) -> bool:
    """Return whether an image is shown as itself; the row of a table may be shown as text."""
    return not isinstance(dataset.images, TableImages) or dataset.images.path(index) is not None
