"""The commands `udml groups` and `udml sort`: groups become names, and names become folders."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from udml_core.base.errors import UserError, counted, quoted
from udml_core.cli.images import listed_images
from udml_core.cli.options import Json, Root, RunName, named_run, warn_of_new
from udml_core.cli.output import print_answer, print_progress
from udml_core.cli.ranking import agree
from udml_core.cli.regrouping import group_rows, join_groups, keep_parts, move_images

if TYPE_CHECKING:
    from udml_core.base.arrays import Integers
    from udml_core.runs import Run
    from udml_core.runs.analyses.kinds.groups import Grouping
    from udml_core.runs.search import Retrieval

SHOWN = 3
"""Images of each end of a group that are listed."""
Frame = Annotated[str, typer.Option(help="The embedding: final, initial, frozen, or the id of a refinement.")]
Precision = Annotated[float, typer.Option(min=0.5, max=0.99, help=(
    "Share of the accepted names that should be right. The certainty that it takes is estimated from names that you "
    "judged, else from labeled images that are named without their own labels."))]


def groups(name: RunName,
           count: Annotated[int | None, typer.Option(min=1, show_default="what suits the images", help=(
               "Number of groups. By default it is the number with which Label begins: of a useful size, best apart."))
           ] = None,
           epsilon: Annotated[float | None, typer.Option(min=0.0, max=1.0, show_default=False, help=(
               "Form groups by authority ascent at this ε instead; udml analyse RUN --kind graph builds its graph."))
           ] = None,
           split: Annotated[list[str] | None, typer.Option(metavar="GROUP=PARTS", help=(
               "Split a group into parts, such as 3=2, or at a second ε inside it, such as 3=0.8; the parts get the "
               "next numbers. With --keep they stay."))] = None,
           keep: Annotated[bool, typer.Option("--keep", help="Store the parts of --split as groups, as Label does.")
                           ] = False,
           join: Annotated[list[str] | None, typer.Option(metavar="GROUP=GROUP", help=(
               "Join the first group to the second, which is stored."))] = None,
           to: Annotated[int | None, typer.Option("--to", metavar="GROUP", min=1, show_default=False, help=(
               "Move the images of --image and --file into a group, which is stored."))] = None,
           images: Annotated[list[str] | None, typer.Option("--image", metavar="IMAGE", help=(
               "An image to move; repeat it for several."))] = None,
           file: Annotated[Path | None, typer.Option("--file", metavar="CSV", help=(
               "Also read names of images to move from the column image of this file."))] = None,
           names: Annotated[list[str] | None, typer.Option("--name", metavar="GROUP=CLASS", help=(
               "Assign a class to the images of a group that have none yet, in one action."))] = None,
           merge: Annotated[list[str] | None, typer.Option(metavar="CLASS=CLASS", help=(
               "Assign the second class to all images of the first."))] = None,
           undo: Annotated[bool, typer.Option("--undo", help=(
               "Revert the last assignment or change of groups, of here or of the app."))] = False,
           frame: Frame = "final", root: Root = None, as_json: Json = False) -> None:
    """Form groups of similar images, list them, and name, split or join them.

    Each group is listed with its most typical images and the images at its border, in the order of the page Label:
    groups of similar images first, then leftovers and named groups. Groups have the same numbers each time: 1 is the
    largest, and when images are added, a group keeps the number that most of its images had. Groups that were joined,
    split or changed by moved images stay so, here and in the app, until --undo.
    """
    from udml_core.data.given.labels import undo as revert
    from udml_core.exploration.grouping import first_number
    from udml_core.runs.search import Retrieval
    from udml_core.runs.search.naming import grouping_of

    if count is not None and epsilon is not None:
        raise UserError("Groups are formed by their number or by ε. Remove --count or --epsilon.")
    _check_changes(bool(split), keep, bool(join), to is not None, bool(images or file), bool(names))
    opened = Retrieval(named_run(name, root))
    warn_of_new(opened)
    if undo:
        typer.echo(f"{counted(len(revert(opened.dataset)), 'image')} reverted", err=True)
    grouping, splits = grouping_of(opened, frame, print_progress()), _splits(split or [])
    number = None if epsilon is not None else count or first_number(
        grouping.tree, opened.frame(frame).take(grouping.indices))
    form = partial(_rows_of_groups, opened, grouping, frame, number, epsilon)
    if keep:
        keep_parts(opened.dataset, grouping.indices, form([]), form(splits))
    if join:
        join_groups(opened.dataset, grouping.indices, form([]), [
            (_number(first, "--join"), _number(second, "--join")) for first, second in _pairs(join, "--join")])
    if to is not None:
        move_images(opened.dataset, grouping.indices, form([]), to, listed_images(opened.dataset, images or [], file))
    rows = form([] if keep else splits)
    _name(opened, grouping, rows, [(_number(group, "--name"), label) for group, label in _pairs(names or [], "--name")])
    for old, new in _pairs(merge or [], "--merge"):
        _merge(opened, old, new)
    listed = _listed(opened, grouping, rows, frame)
    if number is not None and count is None:
        typer.echo(f"{counted(number, 'group')}, with which Label begins too; --count forms another number of them.",
                   err=True)
    print_answer({"run": opened.run.id, "embedding": frame, "count": number, "groups": listed}, as_json, lambda: [
        f"{row['group']:4}  {row['images']:6,} images  {_names_words(row['names'])}typical: "
        f"{', '.join(row['typical'])}; border: {', '.join(row['border'])}" for row in listed])


def _check_changes(splits: bool, keeps: bool, joins: bool, moves: bool, has_images: bool, names: bool) -> None:
    """Check which changes of groups are combined: a change can give groups other numbers.

    Raises:
        UserError: Two changes, a change with names, or a part of a change.
    """
    if keeps and not splits:
        raise UserError("--keep stores the parts of a group. Add --split GROUP=PARTS.")
    if moves != has_images:
        raise UserError("Images are moved to a group by --to GROUP with --image IMAGE or --file CSV. Add the other.")
    if splits + joins + moves > 1 or (names and (keeps or joins or moves)):
        raise UserError("A change of groups can give groups other numbers. Use --split, --join, --to and --name in "
                        "commands of their own.")


def _names_words(names: dict[str, int]) -> str:
    return "".join(f"{label} {count:,}, " for label, count in names.items())


def _pairs(texts: list[str], option: str) -> list[tuple[str, str]]:
    """Return the two sides of each FIRST=SECOND."""
    pairs = [text.partition("=") for text in texts]
    for text, (first, equals, second) in zip(texts, pairs, strict=True):
        if not (equals and first.strip() and second.strip()):
            raise UserError(f"{option} needs two values with = between them; got {quoted(text)}.")
    return [(first.strip(), second.strip()) for first, _, second in pairs]


def _number(text: str, option: str) -> int:
    if not text.isdecimal() or len(text) > 9 or int(text) < 1:
        raise UserError(f"{option} needs the number of a group, such as 3; got {quoted(text)}.")
    return int(text)


def _splits(texts: list[str]) -> list[tuple[int, int | float]]:
    """Return each group with its number of parts, or with the ε, which has a decimal point."""
    pairs = [(_number(first, "--split"), second) for first, second in _pairs(texts, "--split")]
    return [(group, float(text) if re.fullmatch(r"0?\.\d{1,9}|1\.0", text) else _number(text, "--split"))
            for group, text in pairs]


def _rows_of_groups(opened: Retrieval, grouping: Grouping, frame: str, count: int | None, epsilon: float | None,
                    splits: list[tuple[int, int | float]]) -> list[Integers]:
    """Return the rows of each group by its number, then the parts of split groups; a number may have no images."""
    import numpy as np

    from udml_core.base.arrays import rows_by_group
    from udml_core.data.given.exclusions import excluded_images
    from udml_core.data.given.group_changes import group_changes
    from udml_core.exploration.grouping import edit_groups, remaining_groups, split_group
    from udml_core.runs.search.naming import groups_at_epsilon
    from udml_core.runs.search.numbering import Forming, numbered_groups

    numbered = numbered_groups(opened.run, Forming(count, epsilon), lambda run, embedding: _grouped(
        run, embedding, opened, grouping), frame)
    changes = group_changes(opened.dataset)
    if changes.problem:
        typer.echo(changes.problem, err=True)
    codes = edit_groups(numbered.groups, grouping.indices, changes.changes, numbered.is_later)
    kept = np.flatnonzero(~np.isin(grouping.indices, excluded_images(opened.dataset)))
    by_number = {int(codes[part[0]]): part for part in rows_by_group(kept, codes)}
    rows = [by_number.get(number, kept[:0]) for number in range(codes.max(initial=-1) + 1)]
    for group, parts in splits:
        own = group_rows(rows, group)
        codes = (groups_at_epsilon(opened, grouping, frame, parts)[own] if isinstance(parts, float) else
                 split_group(opened.frame(frame).take(grouping.indices[own]), parts))
        rows += [own[part] for part in remaining_groups(codes, np.ones(len(own), bool))]
        rows[group - 1] = own[:0]
    return rows


def _grouped(run: Run, frame: str, opened: Retrieval, grouping: Grouping) -> tuple[Retrieval, Grouping] | None:
    """Return a run of an earlier state and its groups; None if it cannot be opened."""
    from udml_core.runs.search import Retrieval
    from udml_core.runs.search.naming import grouping_of

    if run.id == opened.run.id:
        return opened, grouping
    with suppress(UserError):  # most of its images are gone
        earlier = Retrieval(run)
        return earlier, grouping_of(earlier, frame, print_progress())
    return None


def _name(opened: Retrieval, grouping: Grouping, rows: list[Integers], names: Sequence[tuple[int, str]]) -> None:
    """Name the images of groups, except images that have a name already; all groups, or none if one cannot be named."""
    from udml_core.data.given.labels import assign, assigned_now, cleaned_class

    labeled, chosen = assigned_now(opened.dataset), list[tuple[int, str, list[int], int]]()
    for group, label in names:
        own = grouping.indices[group_rows(rows, group)].tolist()
        images = [image for image in own if image not in labeled]
        if not images:
            raise UserError(f"Every image of group {group} has a name already. Change a class by --merge, or single "
                            "images on the page Label.")
        chosen.append((group, cleaned_class(label), images, len(own) - len(images)))
    for group, label, images, kept in chosen:
        stored = assign(opened.dataset, images, label, is_unseen=True)
        words = f"; {counted(kept, 'image')} kept {'its' if kept == 1 else 'their'} own name" if kept else ""
        typer.echo(f"{counted(len(images), 'image')} of group {group}: {stored}{words}", err=True)


def _merge(opened: Retrieval, old: str, new: str) -> None:
    from udml_core.data.given.labels import assigned_labels, merge_classes

    if old not in assigned_labels(opened.dataset).values():
        raise UserError(f"No image has the class {quoted(old)}. Name a class that udml groups lists.")
    typer.echo(f"{counted(merge_classes(opened.dataset, old, new), 'image')} of {old}: {new}", err=True)


def _listed(opened: Retrieval, grouping: Grouping, rows: list[Integers], frame: str) -> list[dict[str, Any]]:
    """Return each group with its size, its names, and its typical and border images, in the order to name them."""
    from collections import Counter

    from udml_core.data.given.labels import assigned_labels
    from udml_core.exploration.grouping import from_center

    labels, names, listed = assigned_labels(opened.dataset), opened.dataset.names, []
    for number in _order(opened, grouping, rows, frame, bool(labels)):
        images = grouping.indices[rows[number]]
        ordered = [names[image] for image in images[from_center(opened.frame(frame).take(images))].tolist()]
        known = Counter(labels[names[image]] for image in images.tolist() if names[image] in labels)
        listed.append({"group": number + 1, "images": len(images), "names": dict(known.most_common()),
                       "typical": ordered[:SHOWN], "border": ordered[max(SHOWN, len(ordered) - SHOWN):]})
    return listed


def _order(opened: Retrieval, grouping: Grouping, rows: list[Integers], frame: str, has_labels: bool) -> list[int]:
    """Return the groups that have images in the order in which Label shows them."""
    import numpy as np

    from udml_core.exploration.grouping import alikeness, order_to_name
    from udml_core.runs.search.naming import name_all

    kept, sizes = np.concatenate(rows), np.array([len(own) for own in rows])
    if not len(kept):
        return []
    codes, left = np.repeat(np.arange(len(rows)), sizes), sizes
    alike = np.ones(len(rows))
    found = alikeness(opened.frame(frame).take(grouping.indices[kept]), codes)
    alike[:len(found)] = found
    if has_labels:
        named = name_all(opened, frame, report=print_progress())
        is_open = np.isin(grouping.indices[kept], named.images[named.accepted < 0])
        left = np.bincount(codes[is_open], minlength=len(rows))
    return [int(number) for number in order_to_name(alike, sizes, left)]


def sort(name: RunName, target: Annotated[Path, typer.Argument(metavar="TARGET", help=(
             "A new or empty folder, or an earlier export of these images, to which images are added."))],
         plan: Annotated[bool, typer.Option("--plan", help="Show the plan and write nothing.")] = False,
         how: Annotated[Literal["copies", "links", "list"], typer.Option("--as", help=(
             "Write copies, symbolic links, or the lists alone."))] = "copies",
         unnamed: Annotated[bool, typer.Option("--unnamed", help="Write images without a name to a folder, too.")
                            ] = False,
         programs: Annotated[bool, typer.Option("--programs/--no-programs", help=(
             "Also write the files that FiftyOne and Label Studio import."))] = True,
         prune: Annotated[bool, typer.Option("--prune", help=(
             "Remove files of earlier exports that do not belong to this one: links to your images, and copies that "
             "equal the image in your folder. Lists them and asks first."))] = False,
         yes: Annotated[bool, typer.Option("--yes", help="Remove the listed files without a question.")] = False,
         least: Annotated[float | None, typer.Option(min=0.0, max=1.01, show_default=False, help=(
             "Accept names from this certainty, 0 to 1; above 1 only assigned labels. Default: by --precision."))
         ] = None,
         precision: Precision = 0.9,
         frame: Frame = "final", root: Root = None, as_json: Json = False) -> None:
    """Write the images that have a name into one folder for each class, or all that are not excluded into one folder.

    Names are your labels, and names that follow from them with enough certainty. Beside the folders stand
    metadata.csv, images.parquet, and, unless you pass --no-programs, files that FiftyOne and Label Studio import. No
    file of yours is moved or deleted.
    An interrupted export leaves the list unfinished.csv, and the same command continues it. Repeated into the same
    folder, it adds what has a name since, and lists its earlier files that do not belong there any more; --prune
    removes them.
    """
    from udml_core.runs.search import Retrieval
    from udml_core.runs.search.naming import name_all
    from udml_core.work.exporting import plan_sorting, write_plan

    if yes and not prune:
        raise UserError("--yes belongs to --prune. Add it, or remove --yes.")
    opened = Retrieval(named_run(name, root))
    warn_of_new(opened)
    named = name_all(opened, frame, target=precision, chosen=least, report=print_progress())
    planned = plan_sorting(named, target, how, unnamed, programs, prune)
    removed = [former.item.file for former in planned.removed]
    for line in (*[named.words] * bool(named.labels), *planned.lines, *(f"  remove {file}" for file in removed)):
        typer.echo(line, err=as_json or not plan)
    if removed and not (plan or yes):
        agree(f"Remove {counted(len(removed), 'file')}?", "Nothing was written or removed")
    files = [] if plan else write_plan(planned, print_progress())
    if not as_json and plan:
        return
    print_answer({"run": opened.run.id, "target": str(planned.target), "how": planned.how, "planned": plan,
                  "classes": {label: count for label, count in planned.classes.items() if label},
                  "unnamed": planned.classes.get("", 0), "left_out": planned.left_out, "excluded": planned.excluded,
                  "missing": planned.missing, "there": len(planned.there), "former": len(planned.earlier),
                  "removed": removed,
                  "guessed": planned.guessed, "least": named.least_by_class,
                  "words": named.words, "continues": planned.continues, "files": [str(path) for path in files]},
                 as_json, lambda: [str(path) for path in files])
