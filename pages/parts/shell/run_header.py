"""The compact line that says which run a page shows and what training gained."""

from __future__ import annotations

import html

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from udml_core.runs import Run
from udml_core.runs.search import FROZEN

from ..draw.palette import percent
from ..draw.slots import slot
from .analyses import frame_words
from .run_status import method_title, title_of

MEASURES = {"R@1": "recall@1", "MAP@R": "map@r"}
HELP = {"R@1": "Recall@1: share of test images whose nearest image has the same class, a hit.",
        "MAP@R": "Mean average precision at R: how well the ranking puts the R images of the query's class first."}


def header_place() -> DeltaGenerator:
    """Return the place of the run's header, which a page draws once it knows the embedding in view."""
    return slot("run-header")


def run_header(run: Run, embedding: str | None = None, place: DeltaGenerator | None = None) -> None:
    """Show a run's data set, method, main measures before and after training, and the embedding in view.

    Args:
        run: The run.
        embedding: The embedding that the page shows, such as "before training", "epoch 3" or "refined"; by default the
            one that the run keeps.
        place: Where the header is drawn, by default here.
    """
    spec = run.spec()
    parts = [_part("Data set", spec.dataset_title, spec.dataset_title),
             _part("Method", method_title(run), title_of(spec)), *_measures(run),
             _part("Embedding", embedding or _kept(run))]
    with place or header_place():
        st.html(f'<div class="run-header">{"".join(parts)}</div>')


def _measures(run: Run) -> list[str]:
    """Return the measures that the run has: images without classes have none."""
    evaluation = run.evaluation() or {}
    before, after, frozen = (evaluation.get(name, {}) for name in ("initial", "final", "frozen"))
    if run.spec().method == FROZEN:
        return [_part(name, percent(after[key]), HELP[name])
                for name, key in MEASURES.items() if after.get(key) is not None]
    return [_part(name, f"{percent(before.get(key))} → {percent(after[key])}",
                  f"{HELP[name]} Before training → after training; frozen: the features without training.",
                  f"frozen {percent(frozen[key])}" if frozen.get(key) is not None else "")
            for name, key in MEASURES.items() if after.get(key) is not None]


def _kept(run: Run) -> str:
    return frame_words("final", run)


def _part(name: str, text: str, hint: str = "", more: str = "") -> str:
    title = f' title="{html.escape(hint)}"' if hint else ""
    behind = f" <small>{more}</small>" if more else ""
    return f"<span{title}><small>{name}</small> <b>{html.escape(text)}</b>{behind}</span>"
