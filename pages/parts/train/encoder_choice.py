"""The choice of the encoder, of a second one beside it, and of all other options of a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from udml_core.base.declaration import describe
from udml_core.data.dataset import Dataset
from udml_core.data.encoder_names import SIGN, is_several
from udml_core.runs import RunRequest
from udml_core.work.jobs import read_options, write_option

from ..draw.form import field_widget, option_form, option_key
from ..shell.address import write_address
from .data_choice import options_for

BACKBONE, WHITENING = "backbone", "whitening"
SECOND, NONE = "lab-second-encoder", "none"


def choose_options(dataset: Dataset, first: Mapping[str, Any]) -> dict[str, Any]:
    """Show the options of a run, with a plain control that adds a second encoder.

    Args:
        dataset: The data set.
        first: Values that replace the defaults.
    """
    names = options_for(dataset)
    if BACKBONE not in names:
        return option_form(RunRequest, names, first=first, in_row=1)
    backbone = _choose_backbone(first)
    if not is_several(backbone):
        st.query_params.pop(WHITENING, None)
        names.remove(WHITENING)
    names.remove(BACKBONE)
    return {BACKBONE: backbone} | option_form(RunRequest, names, first=first, in_row=1)


def _choose_backbone(first: Mapping[str, Any]) -> str:
    """Choose an encoder and, if wanted, a second one; return the name of both, which the address holds."""
    field = next(field for field in describe(RunRequest) if field.name == BACKBONE)
    default = first.get(BACKBONE, field.default)
    stated = str(read_options(st.query_params.to_dict(), RunRequest).get(BACKBONE, default))
    head, _, rest = (part.strip() for part in stated.partition(SIGN))
    chosen = str(field_widget(field, option_key(BACKBONE, first), begin={BACKBONE: head}))
    suggested = field.shown.suggestions() if field.shown.suggestions else ()
    offered = [NONE, *(name for name in suggested if name != chosen)]
    offered += [rest] if rest and rest not in offered else []
    second = st.selectbox(
        "Second encoder", offered, offered.index(rest) if rest else 0, key=SECOND, accept_new_options=True,
        help="Adds the features of a second network beside the first: two encoders with different errors find more "
             "than one. Their features are computed once. Also timm:NAME, torchvision:NAME, or a name with a weight "
             "such as squeezenet:0.7.")
    is_alone = not second or second == NONE or is_several(chosen)
    value = chosen if is_alone else f"{chosen}{SIGN}{second.strip()}"
    write_address(BACKBONE, write_option(value), write_option(default))
    return value
