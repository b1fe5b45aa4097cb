"""What a page offers when no run fits it: the example that shows the page best."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import streamlit as st

from udml_core.runs import Run, example_runs, runs_folder, show_examples

from .run_status import title_of

IMPROVING, CLOTHES, DRAWINGS = ("20261122-120000-rpml-digits", "20261122-120100-plm-clothes",
                                "20261122-120200-isif-emoji")
LABELED, PAIRED = "20261122-120300-ssdml-digits", "20261122-120400-nml-digits"
BEST = {"explore": IMPROVING, "clusters": IMPROVING, "triplets": IMPROVING, "retrieval": DRAWINGS,
        "instances": DRAWINGS, "refine": CLOTHES, "neighborhoods": CLOTHES, "labels": LABELED, "affinity": LABELED,
        "pairs": PAIRED, "pair_labels": PAIRED}
# The examples by page. Pages that show a method's records need an example that has them: clusters and triplets of
# RPML, proxies of PLM, affinities of SSDML, prototypes and pairs of NML.


def best_example(page: str, examples: Sequence[Run], fits: Callable[[Run], bool] = lambda _run: True) -> Run | None:
    """Return the example that shows a page best.

    Args:
        page: The page's name in the address.
        examples: The examples to choose from.
        fits: Whether the page can show a run.

    Returns:
        The example; the first that fits if the page has none of its own, and None if none fits.
    """
    fitting = [run for run in examples if fits(run)]
    return next((run for run in fitting if run.id == BEST.get(page)), fitting[0] if fitting else None)


def offer_example(fits: Callable[[Run], bool] = lambda _run: True) -> None:
    """Show a button that opens the example that shows the current page best; hidden examples are listed again."""
    example = best_example(st.session_state.get("page", ""), example_runs(), fits)
    if example is None:
        return
    if st.button(f"Open the example {title_of(example.spec())}", icon=":material/play_circle:", key="open-example",
                 help="A finished run that comes with the app."):
        show_examples(runs_folder())
        st.query_params["run"] = example.id
        st.rerun()
