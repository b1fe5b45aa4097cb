"""The command `udml names`: the names that follow from labels, for a yes or a no."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from udml_core.base.errors import UserError, counted, quoted
from udml_core.cli.images import listed_images
from udml_core.cli.options import Json, Root, RunName, named_run, warn_of_new
from udml_core.cli.output import print_answer, print_progress
from udml_core.cli.sorting import Frame, Precision

if TYPE_CHECKING:
    from udml_core.exploration.grouping import Proposal
    from udml_core.runs.search.naming import NamedImages

SHOWN = 3
"""Images of each class that a line lists."""


def names(name: RunName,
          confirm: Annotated[str | None, typer.Option(metavar="CLASS", help=(
              "Assign the class to all images for which it is proposed, or to the images of --image and --file."))
          ] = None,
          give: Annotated[str | None, typer.Option("--assign", metavar="CLASS", help=(
              "Assign the class to the images of --image and --file, whether it is proposed for them or not."))] = None,
          reject: Annotated[str | None, typer.Option(metavar="CLASS", help=(
              "Say that these images do not have the class; it is not proposed for them again."))] = None,
          images: Annotated[list[str] | None, typer.Option("--image", metavar="IMAGE", help=(
              "Assign, confirm or reject the class of this image only; repeat it for several."))] = None,
          file: Annotated[Path | None, typer.Option("--file", metavar="CSV", help=(
              "Also read names of images from the column image of this file."))] = None,
          listed: Annotated[bool, typer.Option("--list", help="List all proposed images with their certainty.")
                            ] = False,
          undo: Annotated[bool, typer.Option("--undo", help="Revert the last answer, name or change of groups.")
                          ] = False,
          least: Annotated[float | None, typer.Option(min=0.0, max=1.0, show_default=False, help=(
              "Propose names from this certainty, 0 to 1. Default: by --precision."))] = None,
          precision: Precision = 0.9,
          frame: Frame = "final", root: Root = None, as_json: Json = False) -> None:
    """List the names that follow from your labels, confirm or reject them, and name single images.

    Answers about single images count as checked: they calibrate the certainty from which names are accepted. A whole
    class that is confirmed or rejected at once does not, because you have not looked at each image.
    """
    from udml_core.data.given.labels import assign
    from udml_core.data.given.labels import undo as revert
    from udml_core.runs.search import Retrieval
    from udml_core.runs.search.naming import name_all

    if sum((give is not None, confirm is not None, reject is not None, undo)) > 1:
        raise UserError("Assign, confirm or reject names, or undo: one at a time. Remove the others.")
    if (images or file) and give is None and confirm is None and reject is None:
        raise UserError("--image and --file need a class. Add --assign CLASS, --confirm CLASS or --reject CLASS.")
    if give is not None and not (images or file):
        raise UserError("--assign needs images. Add --image IMAGE or --file CSV.")
    opened = Retrieval(named_run(name, root))
    warn_of_new(opened)
    if undo:
        typer.echo(f"{counted(len(revert(opened.dataset)), 'image')} reverted", err=True)

    if give is not None:
        assigned = list(dict.fromkeys(listed_images(opened.dataset, images or [], file)))
        typer.echo(f"{counted(len(assigned), 'image')}: {assign(opened.dataset, assigned, give)}", err=True)

    def named() -> NamedImages:
        return name_all(opened, frame, target=precision, chosen=least, report=print_progress())

    before = named()
    label = confirm if confirm is not None else reject
    if label is not None:
        chosen = listed_images(opened.dataset, images or [], file) if images or file else None
        _answer(before, label, chosen, confirm is not None)
        before = named()
    typer.echo(before.words, err=True)
    rows = _rows(before, listed)
    print_answer({"run": opened.run.id, "embedding": frame, "least": before.least_by_class,
                  "words": before.words, "proposed": rows}, as_json, lambda: _lines(rows, listed))


def _proposal(named: NamedImages, label: str) -> Proposal:
    """Return the proposals of a class.

    Raises:
        UserError: The class is proposed for no image.
    """
    found = {named.classes[proposal.code]: proposal for proposal in named.proposals}
    if label not in found:
        proposed = ", ".join(map(quoted, found)) or "none; name a few images first, with --assign CLASS"
        raise UserError(f"The class {quoted(label)} is proposed for no image. Proposed classes: {proposed}.")
    return found[label]


def _answer(named: NamedImages, label: str, chosen: list[int] | None, is_right: bool) -> None:
    """Store the answer about all proposed images of a class, or about the chosen images of them.

    Raises:
        UserError: The class is not proposed for an image.
    """
    from udml_core.data.given.labels import assign, reject

    proposal = _proposal(named, label)
    certainty = dict(zip(named.images[proposal.rows].tolist(), proposal.certainty.tolist(), strict=True))
    other = [image for image in chosen or [] if image not in certainty]
    if other:
        raise UserError(f"The class {quoted(label)} is not proposed for {quoted(named.dataset.names[other[0]])}. udml "
                        "names RUN --list lists the proposed images.")
    images = list(certainty) if chosen is None else list(dict.fromkeys(chosen))
    seen = [] if chosen is None else [certainty[image] for image in images]
    if is_right:
        assign(named.dataset, images, label, is_unseen=chosen is None, certainties=seen)
    else:
        reject(named.dataset, images, label, seen)
    typer.echo(f"{counted(len(images), 'image')}: {'' if is_right else 'not '}{label}", err=True)


def _rows(named: NamedImages, everything: bool) -> list[dict[str, Any]]:
    """Return each proposed class with the number of its images, and all or the least certain of them."""
    return [{"class": named.classes[proposal.code], "images": len(proposal.rows),
             "proposed": _images(named, proposal, None if everything else SHOWN)}
            for proposal in named.proposals]


def _images(named: NamedImages, proposal: Proposal, most: int | None) -> list[dict[str, Any]]:
    return [{"image": named.dataset.names[image], "certainty": round(certainty, 4)} for image, certainty in zip(
        named.images[proposal.rows[:most]].tolist(), proposal.certainty[:most].tolist(), strict=True)]


def _lines(rows: list[dict[str, Any]], everything: bool) -> list[str]:
    if everything:
        return [f"{row['class']}  {100 * image['certainty']:3.0f} %  {image['image']}"
                for row in rows for image in row["proposed"]]
    return [f"{row['images']:6,} more look like {row['class']}; least certain: "
            + ", ".join(image["image"] for image in row["proposed"]) for row in rows] or [
                "No name is proposed. Name images first, with --assign CLASS --image IMAGE, or a group with udml "
                "groups RUN --name 4=heron."]
