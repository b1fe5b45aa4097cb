"""The menu that says which run a view shows and what training gained."""

from __future__ import annotations

import html

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from udml_core.numerics.measures import MAIN_MEASURES
from udml_core.runs import Run
from udml_core.runs.search import FROZEN, frame_words

from ..shell.run_status import method_title, title_of
from .sections import slot


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
             _part("Embedding", embedding or frame_words("final", run))]
    with place or header_place(), st.popover("About this run", icon=":material/info:", type="tertiary"):
        st.html(f'<div class="run-header">{"".join(parts)}</div>')


def _measures(run: Run) -> list[str]:
    """Return the measures that the run has: images without classes have none."""
    evaluation = run.evaluation() or {}
    before, after, frozen = (evaluation.get(name, {}) for name in ("initial", "final", "frozen"))
    measured = [measure for measure in MAIN_MEASURES[::-1] if after.get(measure.key) is not None]
    if run.spec().method == FROZEN:
        return [_part(of.plain_title, of.text(after[of.key]), of.help) for of in measured]
    return [_part(of.plain_title, f"{of.text(before.get(of.key))} → {of.text(after[of.key])}",
                  f"{of.help} Before training → after training; frozen: the features without training.",
                  f"frozen {of.text(frozen[of.key])}" if frozen.get(of.key) is not None else "")
            for of in measured]


def _part(name: str, text: str, hint: str = "", more: str = "") -> str:
    title = f' title="{html.escape(hint)}"' if hint else ""
    behind = f" <small>{more}</small>" if more else ""
    return f"<span{title}><small>{name}</small> <b>{html.escape(text)}</b>{behind}</span>"
