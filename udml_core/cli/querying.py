"""Search from the command line: with an image, or with words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from udml_core.base.errors import UserError, quoted
from udml_core.base.paths import existing_path
from udml_core.cli.options import Json, Root, RunName, named_run
from udml_core.cli.output import print_answer, print_progress

if TYPE_CHECKING:
    from udml_core.data.dataset import Dataset
    from udml_core.runs.search import Hit, Query, Retrieval
    from udml_core.runs.search.resemblance import Unlike
    from udml_core.runs.search.same import Threshold

LONGEST_NUMBER = 20


def query(name: RunName, image: Annotated[str | None, typer.Argument(help=(
              "An image file, or the name or the number of an image of the data set."))] = None,
          text: Annotated[str | None, typer.Option(help=(
              "Words in place of an image, such as 'a bird that swims; a swan': the directions of texts between "
              "semicolons are averaged. Needs a run of CLIP or SigLIP, whose own features are searched."))] = None,
          k: Annotated[int, typer.Option("-k", min=1, max=10_000, help="Number of results.")] = 10,
          gallery: Annotated[Literal["test", "all"], typer.Option(help="Search all images or the test half.")] = "all",
          embedding: Annotated[str | None, typer.Option(show_default="final, or that of words", help=(
              "final, initial, frozen, the number of an epoch (fixed sample of test images only), or the id of a "
              "refinement."))] = None,
          same_only: Annotated[bool, typer.Option("--same-only", help=(
              "Print only the results that count as the same; see udml same."))] = False,
          root: Root = None, as_json: Json = False) -> None:
    """Find the images most similar to a query image, or the images that words describe.

    All images are searched, the training half included, unless --gallery test is given. A sentence says so if no image
    resembles an image file. Results that count as the same are marked with "=" once enough pairs are judged.
    """
    from udml_core.runs.search import Retrieval
    from udml_core.runs.search.same import same_threshold

    opened = Retrieval(named_run(name, root))
    if text is None and image is not None:
        embedding = embedding or "final"
        wanted, unlike = _image_query(opened, image, embedding)
    elif image is None and text is not None:
        wanted, unlike, embedding = _word_query(opened, text, embedding)
    else:
        raise UserError("A query is an image or --text WORDS. Name one of them.")
    hits, searched = opened.search(wanted, k, embedding, gallery), opened.describe_searched(embedding, gallery)
    dataset, threshold = opened.dataset, None if image is None else same_threshold(opened, embedding)
    if same_only and threshold is None:
        raise UserError("Words have no end of \"the same\", which is known between images. Remove --same-only."
                        if image is None else
                        f"No end of \"the same\" is known in the embedding {embedding} of {opened.run.id}. Judge "
                        f"pairs: udml same {opened.run.id} --frame {embedding} --ask")
    if same_only and threshold is not None:
        hits = [hit for hit in hits if threshold.holds(hit)]
    rows = _result_rows(dataset, hits, threshold)
    typer.echo(f"{searched}, embedding: {embedding}", err=True)
    if unlike is not None:
        typer.echo(unlike.sentence, err=True)
    if threshold is not None:
        typer.echo(f"= marks the same: {threshold.sentence}", err=True)
    print_answer({"run": opened.run.id, "query": text if image is None else image, "embedding": embedding,
                  "searched": searched, "threshold": None if threshold is None else threshold.describe(),
                  "unlike": None if unlike is None else unlike.describe(), "results": rows}, as_json, lambda: [
        f"{row['rank']:3}  {row['shown']:.4f}  #{row['index']}  {dataset.caption(row['index'])}"
        + ("  =" if row["same"] else "") for row in rows])


def _image_query(opened: Retrieval, image: str, embedding: str) -> tuple[Query, Unlike | None]:
    """Return the query of an image, and that no image resembles a file if none does."""
    from udml_core.data.dataset import UserImage
    from udml_core.runs.search import Query
    from udml_core.runs.search.resemblance import find_unlike

    opened.frame(embedding)  # rejects an unknown name before an image is read
    path = existing_path(image)
    if path is not None:
        own = UserImage(path, str(path))
        return (Query((opened.embed(own, embedding),)),
                find_unlike(opened, lambda frame: opened.embed(own, frame), embedding))
    if image.isdecimal() and len(image) < LONGEST_NUMBER:
        return Query((int(image),)), None
    known = opened.dataset.indices_by_name({image})
    if not known:
        raise UserError("The query must be an existing image file, or the name or the number of an image, such as "
                        f"{quoted(opened.dataset.names[0])}; got {quoted(image[:80])}.")
    return Query((known[image],)), None


def _word_query(opened: Retrieval, text: str, embedding: str | None) -> tuple[Query, None, str]:
    """Return the query of words and the embedding that they are compared with, whose missing features are computed.

    Raises:
        UserError: Another embedding was named.
    """
    from udml_core.runs.search.words import compute_word_features, word_query, words_frame

    wanted, own = word_query(opened.run, text), words_frame(opened.run)
    if embedding not in (None, own):
        raise UserError(f"Words are compared with the embedding {own} only; got {quoted(embedding)}. Leave out "
                        "--embedding.")
    compute_word_features(opened, print_progress())
    return wanted, None, own


def _result_rows(dataset: Dataset, hits: Sequence[Hit], threshold: Threshold | None) -> list[dict[str, Any]]:
    """Return the results of a search as `--json` writes them."""
    return [{"rank": hit.rank, "index": hit.index, "image": dataset.names[hit.index], "distance": hit.distance,
             "similarity": hit.similarity, "shown": hit.shown,
             "class": None if dataset.labels is None else dataset.class_names[dataset.labels[hit.index]],
             "correct": hit.correct, "same": None if threshold is None else threshold.holds(hit)} for hit in hits]
