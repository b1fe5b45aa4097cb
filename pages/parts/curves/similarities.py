"""How near images are to their own kind against all others, epoch by epoch, on both halves."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from pages.parts.base.cached import dataset_of, load_split
from pages.parts.base.epochs import epoch_at, load_record, pick_epoch_cursor
from pages.parts.base.run_status import title_of
from pages.parts.base.user_errors import show_user_errors
from pages.parts.kit.figures import COLORS, GRAY, draw, table_behind
from udml_core.arrays import Array
from udml_core.data.splits import fixed_sample
from udml_core.explanations import LatentLayer
from udml_core.exploration import instances as views
from udml_core.exploration.instances import Similarities
from udml_core.runs import Run, find_run, runs_folder

Half = Literal["training half", "test half", "all images"]
MOST = 1000
"""Images of each half that are compared with each other."""
FILLS = ("rgba(0,114,178,0.25)", "rgba(213,94,0,0.25)")


def halves(run: Run) -> tuple[Half, ...]:
    """Of which images a run keeps every epoch's embedding."""
    if run.spec().split == "all":
        return ("all images",)
    trained = run.epoch_trained(run.epoch_numbers()[0]) is not None
    return ("training half", "test half") if trained else ("test half",)


@st.cache_data(max_entries=512, show_spinner=False)
def _similarities(folder: str, epoch: int, half: Half, latent: bool) -> Similarities | None:
    """After an epoch; of z, None where the epoch keeps no latent layer."""
    run = find_run(folder, runs_folder())
    positions, embedding = _kept(run, epoch, half)
    labels = dataset_of(run).labels
    own = views.nearest_of(_kept(run, run.epoch_numbers()[0], half)[1]) if labels is None else (
        views.same_class(labels[positions]))
    if latent:
        layer = load_record(run, epoch, LatentLayer)
        if layer is None:
            return None
        embedding = views.latent_rows(embedding, layer.weight)
    return views.similarities(embedding, own)


def _kept(run: Run, epoch: int, half: Half) -> tuple[Array, Array]:
    """Data set positions of some images of a half, and their embedding after an epoch."""
    if half == "training half":
        trained = run.epoch_trained(epoch)
        assert trained is not None
        return fixed_sample(load_split(run).train, len(trained)), trained
    sample = run.sample_indices()
    chosen = np.linspace(0, len(sample) - 1, min(MOST, len(sample))).astype(int)
    return sample[chosen], run.epoch_sample(epoch)[chosen]


def similarity_pictures(run: Run, epoch: int, key: str) -> None:
    """The training half beside the test half after an epoch, over the start; of PSLR its z below its x."""
    folder, numbers, shown = str(run.folder), run.epoch_numbers(), halves(run)
    last, table = numbers[-1], {}
    for latent in (False, True):
        found = {half: [_similarities(folder, one, half, latent) for one in (epoch, numbers[0], last)]
                 for half in shown}
        known = [one for three in found.values() for one in three if one is not None]
        if not known:
            continue
        edges = views.common_edges(known)
        for column, (half, (now, start, _)) in zip(st.columns(len(shown)), found.items(), strict=True):
            if now is not None and start is not None:
                name = f"{half.capitalize()}, z" if latent else half.capitalize() + (", x" if _has_latent(run) else "")
                with column:
                    if not (len(now.positive) and len(now.negative)):
                        missing = "another of its class" if len(now.negative) else "one of another class"
                        st.info(f"{name}: no image here has {missing} to be compared with.",
                                icon=":material/lightbulb:")
                        continue
                    _picture(now, start, edges, name, f"{key}-{half}-{latent}")
                for word, values in zip(("own", "others"), now.shares(edges), strict=True):
                    table[f"{name}: {word}, %"] = pd.Series(values.round(2), index=edges[:-1].round(3))
    if table:
        table_behind("The similarities as a table", pd.DataFrame(table).rename_axis("From cosine").reset_index())


def _has_latent(run: Run) -> bool:
    return load_record(run, run.epoch_numbers()[0], LatentLayer) is not None


def _picture(now: Similarities, start: Similarities, edges: Array, name: str, key: str) -> None:
    middles = (edges[:-1] + edges[1:]) / 2
    figure = go.Figure()
    for word, before, after, color, fill, dash in zip(("own kind", "others"), start.shares(edges), now.shares(edges),
                                                      COLORS, FILLS, ("solid", "dash"), strict=False):
        figure.add_scatter(x=middles, y=after, name=word, fill="tozeroy", fillcolor=fill, mode="lines",
                           line={"color": color, "dash": dash, "width": 2, "shape": "hvh"})
        figure.add_scatter(x=middles, y=before, name=f"{word}, start", mode="lines", opacity=0.8,
                           line={"color": GRAY, "dash": dash, "width": 1, "shape": "hvh"})
    figure.update_layout(title={"text": f"{name}: AUC {now.auc:.3f} (start {start.auc:.3f})", "font": {"size": 14}},
                         height=280, margin={"l": 8, "r": 8, "t": 36, "b": 8}, hovermode="x unified",
                         legend={"orientation": "h", "y": -0.28})
    figure.update_xaxes(title="cosine", range=[edges[0], 1])
    figure.update_yaxes(title="% of pairs", rangemode="tozero")
    draw(figure, key, f"{name}: cosines to the nearest of the own kind, mean {now.positive.mean():.3f}, against "
         f"others, mean {now.negative.mean():.3f}; AUC {now.auc:.3f}, at the start {start.auc:.3f}.")


def similarity_words(run: Run) -> str:
    """What the pictures hold, and what to look for."""
    labelled = dataset_of(run).labels is not None
    kind = ("the nearest 5 of its own class, and the nearest 5 of other classes (PSLR, Fig. 6)" if labelled else
            "the 5 that were its nearest before training, and the nearest 5 of the others: there are no classes")
    words = (f"Each image's cosine to {kind}, among at most {MOST:,} images of a half. AUC is how often an own one is "
             "nearer than another: 0.5 is chance, 1 is apart. Thin grey lines are the start. ")
    if halves(run) == ("test half",):
        return words + "This run was made before the training half was kept as well; train again to see it."
    if not labelled:
        return words + "What was near and is no longer has been pushed apart."
    return words + ("All images trained, so nothing here tells how new ones would lie." if halves(run) == (
        "all images",) else "Blue and orange that part on the training half alone are learnt by heart.")


@st.fragment
@show_user_errors()
def explore_similarities(run_ids: tuple[str, ...]) -> None:
    """One or two runs at an epoch."""
    runs = [run for run in (find_run(run_id, runs_folder()) for run_id in run_ids) if run.epoch_numbers()]
    if not runs:
        return
    st.subheader("Own kind against others")
    moment = pick_epoch_cursor(runs, "similarity")
    for run in runs:
        if len(runs) > 1:
            st.markdown(f"**{title_of(run.spec())}**")
        similarity_pictures(run, epoch_at(run, moment), f"near-{run.id}")
    st.caption(similarity_words(runs[0]))
