"""Controls of the geometry: linear neighborhoods and the similarity s."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from udml_core.base.declaration import describe_field
from udml_core.exploration import neighborhoods as views
from udml_core.methods.plm import PLM
from udml_core.runs import Run

from ..draw.slider import field_slider
from ..shell.address import choice_from_address, choose_segment, write_address

NOTES = {"candidates": "nearest images that may enter", "flat": "higher admits more",
         "threshold": "higher admits fewer", "n_alpha": "decay of s across it",
         "n_beta": "decay of s along it"}
MAIN, DECAYS = ("candidates", "flat", "threshold"), ("n_alpha", "n_beta")
YES, NO = "yes", "no"
Through = Literal["point", "origin"]
THROUGH_WORDS: dict[Through, str] = {"point": "the image", "origin": "the origin"}


def choose_geometry(run: Run, more: DeltaGenerator | None = None) -> views.Geometry:
    """Choose the geometry, at first the run's or PLM's default; the address holds it.

    Args:
        run: The run.
        more: Where to show all controls but k, m and T; below these if None.
    """
    own = run.spec().build_method().model_dump()
    values = {}
    for column, name in zip(st.columns(len(MAIN), vertical_alignment="bottom"), MAIN, strict=True):
        with column:
            values[name] = _slider(name, own)
    with more or st.container():
        values |= {name: _slider(name, own) for name in DECAYS}
        reject, through = _choose_admission(own)
    return views.Geometry(int(values["candidates"]), int(values["flat"]), values["threshold"], values["n_alpha"],
                          values["n_beta"], reject, through)


def _slider(name: str, own: Mapping[str, Any]) -> float:
    field = describe_field(PLM, name)
    default = own.get(name, field.default)
    return field_slider(field, f"geometry-{name}", default, NOTES[name],
                        marks={float(default): "this run" if name in own else "default"})


def _choose_admission(own: Mapping[str, Any]) -> tuple[bool, Through]:
    """Choose whether candidates are tested, and what a linear neighborhood passes through."""
    admission = describe_field(PLM, "admission")
    default = YES if own.get("admission", admission.default) else NO
    reject = st.toggle("Reject candidates that do not fit",
                       choice_from_address("admission", (YES, NO), default) == YES, key="geometry-admission",
                       help="Without rejection all k candidates are members, as in the paper's first ablation.")
    write_address("admission", YES if reject else NO, default)
    through = _choose_through(own.get("through", describe_field(PLM, "through").default))
    if own.get("similarity") == "binary":
        st.caption("This run was trained with similarities of 0 and 1 by membership. The similarity s on this page is "
                   "eq. 5, which the training did not use.")
    return reject, through


def _choose_through(default: Through) -> Through:
    """Choose what a linear neighborhood passes through; the address holds it."""
    return choose_segment(
        "Linear neighborhood through", "through", THROUGH_WORDS, default, key="geometry-through",
        help="Quality is the share of the squared distance from the image, or from the origin of the embedding, that "
             "lies in the neighborhood; through the origin, one image fewer is a member without a test.")
