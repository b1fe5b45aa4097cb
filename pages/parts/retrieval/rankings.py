"""Results of a search: a column for each embedding, the nearest image by epoch, and downloads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from udml_core.base.arrays import Array
from udml_core.base.errors import UserError, counted
from udml_core.exploration.gallery_content import DetailedTile, Mark, Tile
from udml_core.results.embedding_words import in_numbers
from udml_core.runs.analyses import REFINED, find_analysis
from udml_core.runs.search import FINAL, FROZEN, RECIPE, Hit, Query, Retrieval, epoch_words
from udml_core.runs.search.resemblance import doubt_words, find_unlike, share_beside
from udml_core.runs.search.same import Threshold
from udml_core.work.exporting import embeddings_file, images_file, model_archive, steps_without_vectors

from ..draw.downloads import Download, image_files, share, table_file, zipped
from ..draw.gallery import gallery, image_size, mark_of, tile_of
from ..draw.palette import HITS, color_legend
from ..shell.address import write_address
from ..shell.cached import known_threshold
from ..shell.pools import among, images_of
from ..shell.run_status import escaped
from .embeddings import Column
from .filters import Filter
from .own_images import Side, embed_image
from .query import PageQuery
from .words import word_vector

MARKS: dict[bool | None, Mark] = {True: "hit", False: "miss", None: ""}
SIDE, CELL = 88, 160
"""Width of an image in pixels at first, and the pixels that are sent, which the image size slider may show."""
FEWEST_EPOCHS = 3
"""States of a run from which its epochs are shown: the start, and two epochs. A single step is before and after."""

MOST_WIDE = 2
"""Most columns whose heading fits in one line."""
HEADING_STYLE = """<style>@media (min-width: 1280px) { [class*="st-key-heading-"] p {
white-space: nowrap; overflow: hidden; text-overflow: ellipsis; } }</style>"""

SAME_PICTURE = 0.9995
"""The cosine similarity from which an own image is one of the images themselves."""


@dataclass(frozen=True)
class SearchResult:
    """The results of a search in one embedding.

    Attributes:
        column: The embedding.
        hits: The hits, nearest first.
        pool: Among which images the hits are counted, in words.
        searched: The number of searched images with the reasons, in words.
        problem: Why this embedding cannot be searched with the query; empty if it can.
        threshold: Where "the same" ends in this embedding; None if it is unknown.
    """

    column: Column
    hits: list[Hit]
    pool: str
    searched: str
    problem: str = ""
    threshold: Threshold | None = None

    @property
    def end(self) -> int | None:
        """Number of first hits that count as the same as the query; None without a threshold."""
        return None if self.threshold is None else sum(map(self.threshold.holds, self.hits))


def rank_images(columns: Sequence[Column], query: PageQuery, search_filter: Filter) -> list[SearchResult]:
    """Search with the same query in every column's embedding."""
    return [_rank(column, query, search_filter) for column in columns]


def _rank(column: Column, query: PageQuery, search_filter: Filter) -> SearchResult:
    gallery, allowed = search_filter.gallery, search_filter.allowed
    retrieval, name = column.retrieval, column.frame.name
    searched = retrieval.describe_searched(name, gallery, allowed)
    mask = retrieval.searched(name, gallery, allowed)
    pool = among(int(mask.sum()), retrieval.split, len(mask))
    try:
        hits = retrieval.search(query_in(column, query), search_filter.k, name, gallery, allowed)
        threshold = None if query.words else known_threshold(retrieval, name)  # known between images only
        return SearchResult(column, hits, pool, searched, threshold=threshold)
    except UserError as error:
        return SearchResult(column, [], pool, searched, str(error))


def query_in(column: Column, query: PageQuery) -> Query:
    """Build the query of the search in a column's embedding.

    Raises:
        UserError: The query has an own image, and the embedding has no model that could embed it; or its words cannot
            be read.
    """
    def vectors(side: Side) -> tuple[int | Array, ...]:
        return tuple(image if isinstance(image, int) else embed_image(column.retrieval, image, column.frame.name)
                     for image in query.images(side))

    words = (word_vector(column.retrieval, query.words),) if query.words else ()
    return Query((*words, *vectors("add")), vectors("subtract"))


def say_unlike(retrieval: Retrieval, query: PageQuery) -> None:
    """Say that no image resembles an own image, which is the whole query, or that it is one of the images."""
    if len(query) != 1 or not query.images("add") or not query.own:
        return
    (image,) = query.own
    with suppress(UserError):  # the results below say why the image cannot be embedded
        unlike = find_unlike(retrieval, lambda name: embed_image(retrieval, image, name))
        if unlike is not None:
            st.warning(escaped(unlike.sentence), icon=":material/image_search:")
            return
        plain = FINAL if retrieval.spec.method == FROZEN else retrieval.before
        doubt = doubt_words(share_beside(retrieval, lambda name: embed_image(retrieval, image, name), plain))
        nearest = retrieval.search(Query((embed_image(retrieval, image, plain),)), 1, plain)
        if doubt:
            st.caption(f":material/help: {doubt}")
        elif nearest and (nearest[0].similarity or 0.0) >= SAME_PICTURE:
            st.caption(f":material/content_copy: This picture is among the images: "
                       f"**{escaped(retrieval.dataset.caption(nearest[0].index))}**, so it finds itself first.")


def show_rankings(retrieval: Retrieval, rankings: Sequence[SearchResult], on_pick: Callable[[int], None],
                  filtered: str = "", show_verdict: Callable[[], object] = lambda: None, is_named: bool = False,
                  notes: str = "") -> None:
    """Show the verdict on the rankings, the rankings side by side, then what is to see.

    Args:
        retrieval: The search of the run.
        rankings: The rankings.
        on_pick: Called with an image that is clicked.
        filtered: What the filters search, in words.
        show_verdict: Shows what judges or people say of the embeddings.
        is_named: Whether the page has named the only embedding already.
        notes: What is said of the embeddings behind the "?".
    """
    st.html(HEADING_STYLE)
    with st.container(horizontal=True, vertical_alignment="center", key="retrieval-verdict"):
        with st.container(key="retrieval-verdict-words"):
            show_verdict()
        image_size("image-size", SIDE)
    is_wide = len(rankings) <= MOST_WIDE
    unnamed = [not _names_images(retrieval, ranking) for ranking in rankings]
    is_shared = any(unnamed) and len({ranking.searched for ranking in rankings}) == 1
    for place, ranking, is_unnamed in zip(st.columns(len(rankings), gap="medium"), rankings, unnamed, strict=True):
        with place:
            _show_ranking(retrieval, ranking, is_wide, on_pick, _effect(ranking, rankings),
                          says_searched=is_unnamed and not is_shared, is_named=is_named)
    is_dimmed = any(ranking.end and ranking.end < len(ranking.hits) for ranking in rankings)
    if marks := (*(HITS if _are_judged(rankings) else ()), *(["beyond"] if is_dimmed else ())):
        color_legend("query", *marks)
    of_all = f" {rankings[0].searched}." if is_shared else ""
    details = " ".join(filter(None, (_explain(rankings), filtered)))
    st.caption(f"Click an image to search with it.{of_all}", help="\n\n".join(filter(None, (details, notes))))


def _names_images(retrieval: Retrieval, ranking: SearchResult) -> bool:
    """Return whether the heading of a ranking names the searched images already, which are all images."""
    has_score = any(hit.correct is not None for hit in ranking.hits)
    return has_score and not retrieval.dataset.is_large and ranking.pool.startswith("among all ")


def _effect(ranking: SearchResult, rankings: Sequence[SearchResult]) -> str:
    """Return what a refinement at once changes among the results after training; empty for other embeddings."""
    before = next((other.hits for other in rankings if other.column.name == "final"), [])
    is_refined = ranking.column.frame.name.startswith(RECIPE)
    return effect_words(before, ranking.hits) if is_refined and before and ranking.hits else ""


def effect_words(before: Sequence[Hit], after: Sequence[Hit]) -> str:
    """Say how the results of a refinement differ from the results after training, for the same query and images.

    Args:
        before: The results after training.
        after: The results after a refinement.
    """
    new = len({hit.index for hit in after} - {hit.index for hit in before})
    images = f"{new} of {len(after)} results are new" if new else "The same images"
    if all(hit.correct is None for hit in after):
        return images
    gain = sum(bool(hit.correct) for hit in after) - sum(bool(hit.correct) for hit in before)
    if not gain:
        return f"{images}, as many hits as after training"
    return f"{images}, {abs(gain)} {'more' if gain > 0 else 'fewer'} hit{'s' * (abs(gain) > 1)} than after training"


def _show_ranking(retrieval: Retrieval, ranking: SearchResult, is_wide: bool, on_pick: Callable[[int], None],
                  effect: str, says_searched: bool, is_named: bool) -> None:
    """Show one ranking; similarities say nothing without a scale, so that they stand in tooltips, beside the ranks.

    Args:
        retrieval: The search of the run.
        ranking: The ranking.
        is_wide: Whether its heading fits in one line.
        on_pick: Called with an image that is clicked.
        effect: What a refinement at once changes.
        says_searched: Whether it says how many images are searched.
        is_named: Whether the page has named it already, so that only a score makes a heading.
    """
    column, hits = ranking.column, ranking.hits
    known = [hit.correct for hit in hits if hit.correct is not None]
    width = in_numbers(column.frame.rows.shape[1] or None)
    separator = " · " if is_wide else "  \n"
    score = f"{separator}{sum(known)} of {len(known)} hits {ranking.pool}" if known else ""
    plain = "plain-" * _is_plain(column)  # app.css shows its results last on a phone
    if score or not is_named:
        with st.container(key=f"heading-{plain}{column.name}"):
            mark = f'<span style="color:{column.color}" aria-hidden="true">■</span>'
            length = f"Each image is compared by {width}, its embedding." if width else None
            st.markdown(f"{mark} **{escaped(column.title)}**{score}", unsafe_allow_html=True, help=length)
    said: list[str] = []
    if ranking.problem:
        st.info(ranking.problem, icon=":material/block:")
    elif not hits:
        st.info("No image passes the filters. Remove a filter, or search all images.",
                icon=":material/filter_alt_off:")
    else:
        measure = column.frame.index.measure
        tiles: list[Tile] = [DetailedTile(hit.index, retrieval.dataset.caption(hit.index), MARKS[hit.correct],
                                          str(hit.rank), f"rank {hit.rank}, {measure} {hit.shown:.3f}") for hit in hits]
        gallery(retrieval.dataset, tiles, f"The {len(hits)} nearest images, {column.words}",
                f"retrieval-{column.name}", side=SIDE, cell=CELL, on_pick=on_pick, end=ranking.end)
        end = "" if ranking.threshold is None else f" {ranking.end} of {len(hits)} count as the same: " \
                                                   f"{ranking.threshold.short}."
        said.append(f"{f'**{effect}.**' if effect else ''}{end}".strip())
    if says_searched:
        said.append(f"{ranking.searched}.")
    if any(said):
        st.caption(" ".join(filter(None, said)))


def _is_plain(column: Column) -> bool:
    """Return whether a column is the plain search."""
    is_untrained = column.retrieval.run.spec().method == FROZEN and column.frame.name == FINAL
    return is_untrained or column.frame.name == FROZEN


def _explain(rankings: Sequence[SearchResult]) -> str:
    measured = " The measures use the test half alone." if _are_judged(rankings) else ""
    linked = ", and the same image in another list gets a dashed frame" if len(rankings) > 1 else ""
    return f"Below each image: its rank. Point at an image: its tooltip tells how similar it is{linked}.{measured}"


def _are_judged(rankings: Sequence[SearchResult]) -> bool:
    """Return whether a hit is known to be of the query's class or of another."""
    return any(hit.correct is not None for ranking in rankings for hit in ranking.hits)


def show_epochs(retrieval: Retrieval, index: int, on_pick: Callable[[int], None], row: DeltaGenerator) -> None:
    """Show the nearest image of a query in the fixed sample by epoch, behind a switch, if the run has several epochs.

    Args:
        retrieval: The search of the run.
        index: The query.
        on_pick: Called with an image that is clicked.
        row: Where the switch stands.
    """
    if len(retrieval.run.epoch_numbers()) < FEWEST_EPOCHS:
        return
    shown = row.toggle("Nearest image by epoch", st.query_params.get("epochs") == "1", key="query-epochs")
    write_address("epochs", "1" if shown else "")
    if not shown:
        return
    with st.spinner("Searching in every epoch …"):
        history = retrieval.history()
    at, sampled = history.row(index), f"{len(history.indices):,} {images_of(retrieval.run, 'test')}"
    if at is None:
        st.caption(f"This image is not in the fixed sample of {sampled} whose embeddings are kept for every epoch.")
        return
    nearest = history.indices[history.nearest[:, at]].tolist()
    tiles = [tile_of(retrieval.dataset, other, mark_of(retrieval.dataset, other, index),
                     epoch_words(retrieval.run, epoch).removesuffix(" training"))
             for epoch, other in zip(history.epochs, nearest, strict=True)]
    st.caption(f"The search covers the fixed sample of {sampled}.")
    gallery(retrieval.dataset, tiles, "Nearest image by epoch", "retrieval-epochs", side=SIDE, cell=CELL,
            on_pick=on_pick)


def share_results(retrieval: Retrieval, rankings: Sequence[SearchResult]) -> None:
    """Show a menu with the run's files and the results of the search."""
    hits = [(ranking.column.words, hit) for ranking in rankings for hit in ranking.hits]
    columns = {"embedding": np.array([words for words, _ in hits]), "rank": np.array([hit.rank for _, hit in hits]),
               "similarity": np.array([hit.similarity for _, hit in hits], dtype=float),
               "distance": np.array([hit.distance for _, hit in hits])}
    run, files = retrieval.run, image_files(retrieval.dataset, list(dict.fromkeys(hit.index for _, hit in hits)))
    results = [Download("Results (CSV)", "results.csv", "text/csv", lambda: table_file(
        retrieval.dataset, np.array([hit.index for _, hit in hits]), columns))] if hits else []
    if files:
        results.append(Download(f"The {counted(len(files), 'image')} found (ZIP)", "found.zip", "application/zip",
                                lambda: zipped(files)))
    name = next((ranking.column.frame.name for ranking in rankings if ranking.column.retrieval.run == run
                 and ranking.column.frame.name.startswith(REFINED)), "final")
    is_live = any(ranking.column.frame.name.startswith(RECIPE) for ranking in rankings)
    which, of_model = (", refined", " before the refinement") if name != "final" else (
        (", without the steps that are on" if is_live else ""), "")
    lacking = "" if name == "final" else steps_without_vectors(find_analysis(run, name))
    vectors = f", before {lacking}" if lacking else which
    models = [Download(f"Model folder{of_model} (ZIP)", "model.zip", "application/zip", lambda: model_archive(run))
              ] if retrieval.spec.encoder.reads_images else []
    share([*results,
           Download(f"Embeddings{vectors} (Parquet)", "embeddings.parquet", "application/vnd.apache.parquet",
                    lambda: embeddings_file(retrieval, name)),
           Download(f"Images, map and neighbors{which} (Parquet)", "images.parquet", "application/vnd.apache.parquet",
                    lambda: images_file(retrieval, name)),
           *models,
           *([] if retrieval.dataset.is_large else [Download(
               f"Index{of_model} (faiss)", "index.faiss", "application/octet-stream", run.index_path.read_bytes)]),
           Download(f"Model{of_model} (safetensors)", "embedder.safetensors", "application/octet-stream",
                    run.embedder_path.read_bytes)], "retrieval")
