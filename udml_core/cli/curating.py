"""The commands `udml audit`, `udml exclude` and `udml sample`: what is wrong in a data set, and which images to use."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from udml_core.base.errors import UserError, counted, quoted
from udml_core.cli.copies import decide_copies, exclude_copies
from udml_core.cli.images import listed_images
from udml_core.cli.options import DatasetName, Json, call_with_options
from udml_core.cli.output import audit_lines, new_lines, print_answer, print_progress, write_file
from udml_core.cli.ranking import agree, exclude_first, first_images, parse_rankings

if TYPE_CHECKING:
    from udml_core.base.arrays import Array, Integers
    from udml_core.data.dataset import Dataset
    from udml_core.data.given.duplicate_decisions import Decisions
    from udml_core.data.image_facts import ImageFacts
    from udml_core.exploration.audit import Audit, AuditSettings


def audit(context: typer.Context) -> Any:
    """Find broken files, duplicates, outliers, small classes and images in both halves of a data set."""
    from udml_core.exploration.audit import AuditSettings  # its fields are the options

    return call_with_options(_audit, AuditSettings, context)


def _audit(options: dict[str, Any], dataset: DatasetName,
           backbone: Annotated[str | None, typer.Option(help="Backbone whose stored features are compared.")] = None,
           keep: Annotated[Literal["best", "first"] | None, typer.Option(help=(
               "Exclude all but one image of each group of duplicates: keep the best copy, which you or else pixels, "
               "file size, sharpness and age choose, or the first. `udml exclude DATASET --undo` reverts it."))] = None,
           exclude_ranked: Annotated[list[str] | None, typer.Option("--exclude", metavar="CHECK:COUNT", help=(
               "Exclude the first COUNT images of a ranking: blurry, dark, bright, information, aspect, size or "
               "outliers. Repeatable; lists the names, asks, and is one decision that `udml exclude DATASET --undo` "
               "reverts."))] = None,
           plan: Annotated[bool, typer.Option("--plan", help="List what --exclude would exclude, and change nothing."
                                              )] = False,
           yes: Annotated[bool, typer.Option("--yes", help="Exclude without a question.")] = False,
           same: Annotated[list[str] | None, typer.Option(metavar="IMAGE", help=(
               "Say that these images are the same photograph; give it twice or more."))] = None,
           different: Annotated[list[str] | None, typer.Option(metavar="IMAGE", help=(
               "Say that these images are different photographs; give it twice or more."))] = None,
           prefer: Annotated[list[str] | None, typer.Option(metavar="IMAGE", help=(
               "Choose this copy of its group, which --keep best then keeps. Repeatable."))] = None,
           undo: Annotated[bool, typer.Option("--undo", help="Revert the last of these decisions, of here or the app.")
                           ] = False,
           new: Annotated[bool, typer.Option("--new", help=(
               "Report on files that were added, changed or removed since the last `--new`, or since the folder was "
               "opened first; features of unchanged images are not computed again."))] = False,
           out: Annotated[Path | None, typer.Option(help="Write the findings as JSON to this file.")] = None,
           as_json: Json = False) -> None:
    """Find broken files, duplicates, poor images, outliers, small classes and images in both halves of a data set.

    Images are compared by hashes and, if they are stored, by features, and similar images are aligned. `udml train
    --dataset DATASET --method frozen` stores features. Excluded images are left out.
    """
    from udml_core.data import catalog
    from udml_core.data.given.duplicate_decisions import decisions_of
    from udml_core.data.given.exclusions import excluded_images
    from udml_core.data.given.growth import mark_seen
    from udml_core.data.image_facts import facts_of
    from udml_core.data.sources.image_folder import Folder
    from udml_core.data.sources.levels import name_with_level, other_levels, split_level
    from udml_core.data.sources.metadata import unused_table
    from udml_core.data.sources.table_folder import TableFolder
    from udml_core.exploration.audit import AuditSettings, audit_of, report_of

    settings, ranked = AuditSettings.make(options), parse_rankings(exclude_ranked or [])
    if ranked and (keep or new):
        raise UserError("--exclude is one decision. Remove --keep or --new, and repeat the command with it.")
    if (plan or yes) and not ranked:
        raise UserError("--plan and --yes belong to --exclude CHECK:COUNT. Add it, or remove them.")
    loaded = catalog.load(dataset, print_progress())
    decide_copies(loaded, same or [], different or [], prefer or [], undo)
    source = catalog.find(loaded.name)
    if isinstance(source, Folder) and (unused := unused_table(source.path)):
        typer.echo(unused, err=True)
    if isinstance(source, TableFolder) and source.unused_split:
        typer.echo(source.unused_split, err=True)
    features = _stored_features(loaded, backbone)
    if features is None and (new or (keep and settings.compare != "hash")):
        features = _computed_features(loaded, backbone, only_new=not keep)
    if features is None:
        typer.echo("No features are stored, so near-duplicates are found by the hash alone and outliers are not "
                   f"found. Compute them: {_features_command(loaded, backbone)}", err=True)
    compared = audit_of(loaded, features, print_progress())
    if features is not None:
        _keep_audit(loaded, backbone, compared)
    facts = None if loaded.is_table else facts_of(loaded, print_progress())
    decided = decisions_of(loaded)
    if ranked:
        first = first_images(loaded, ranked, compared, facts)
        changed = exclude_first(loaded, first, plan, yes, to_error=as_json or not plan)
        if plan or as_json:
            print_answer({"dataset": loaded.name, "planned": plan, "changed": changed, "rankings": {
                check: [loaded.names[index] for index, _ in images] for check, images in first.items()}}, as_json, list)
            return
    report = report_of(compared, loaded, excluded_images(loaded), settings, facts, decided)
    report["classes_column"] = source.classes_column() if loaded.class_names else None
    report["other_levels"] = [] if not isinstance(source, Folder) else [
        {"level": other.level, "classes": len(other.sizes),
         "dataset": name_with_level(split_level(loaded.name)[0], other.level)}
        for other in other_levels(source.levels(), source.level)]
    if new:
        report["new"] = _news(loaded, compared, settings, facts, decided)
    if out is not None:
        write_file(out, json.dumps(report, indent=1, ensure_ascii=False).encode())
    if keep == "first":
        facts, decided = None, replace(decided, preferred=())
    print_answer(report, as_json, lambda: new_lines(report["new"]) if new else audit_lines(report))
    if keep:
        exclude_copies(loaded, compared, settings, facts, decided)  # after what was found before it
    if new and report["new"]["changes"]:
        mark_seen(loaded)  # once it was printed: a report that got lost is not seen


def _keep_audit(dataset: Dataset, backbone: str | None, compared: Audit) -> None:
    """Store the comparison for the app, which then does not compute it again."""
    from udml_core.data.encoders import DEFAULT_BACKBONE
    from udml_core.runs import runs_folder
    from udml_core.work import jobs
    from udml_core.work.jobs.auditing import keep_audit

    keep_audit(dataset, jobs.encoder_of(dataset, backbone or DEFAULT_BACKBONE), compared, runs_folder())


def _news(dataset: Dataset, compared: Audit, settings: AuditSettings, facts: ImageFacts | None,
          decided: Decisions) -> dict[str, Any]:
    """Return what is new in a folder."""
    import numpy as np

    from udml_core.data.given.exclusions import excluded_images
    from udml_core.data.given.growth import changes_of
    from udml_core.exploration.audit import find_problems
    from udml_core.exploration.new_images import new_images, report_new
    from udml_core.runs import runs_folder
    from udml_core.runs.newer import say_run_of
    from udml_core.runs.search.naming import names_along

    changes = changes_of(dataset)
    if changes is None:
        return report_new(dataset, None, ())
    excluded = excluded_images(dataset)
    findings = find_problems(compared, dataset, excluded, settings, facts, decided)
    kept = ~np.isin(np.arange(len(dataset)), excluded)
    found = new_images(compared, changes, findings, kept, facts, names_along(dataset, compared.neighbors))
    return report_new(dataset, changes, found) | {"run": say_run_of(dataset, runs_folder())}


def _computed_features(dataset: Dataset, backbone: str | None, only_new: bool) -> Array | None:
    """Compute features that are not stored.

    Args:
        dataset: The data set.
        backbone: The backbone; None for the usual one.
        only_new: Whether they are computed only if features of the folder's other images are stored.

    Returns:
        The features; None if they are not computed.
    """
    from udml_core.data.encoders import DEFAULT_BACKBONE, Encoder
    from udml_core.data.features import features_of, features_path
    from udml_core.data.reusing import earlier_file
    from udml_core.work import jobs

    encoder = jobs.encoder_of(dataset, backbone or DEFAULT_BACKBONE)
    if only_new and earlier_file(dataset, features_path(dataset, encoder).name) is None:
        return None
    return features_of(dataset, Encoder(encoder), print_progress())


def _stored_features(dataset: Dataset, backbone: str | None) -> Array | None:
    """Return the features of a data set by a backbone, by default the usual one; None if they are not stored."""
    from udml_core.base.files import read_array
    from udml_core.data.encoders import DEFAULT_BACKBONE
    from udml_core.data.features import features_path
    from udml_core.work import jobs

    if dataset.vectors is not None:
        return dataset.vectors
    path = features_path(dataset, jobs.encoder_of(dataset, backbone or DEFAULT_BACKBONE))
    return read_array(path, mapped=True) if path.exists() else None


def _features_command(dataset: Dataset, backbone: str | None) -> str:
    """Return the command that stores features."""
    command = ["udml", "train", "--dataset", dataset.name, "--method", "frozen"]
    return shlex.join([*command, *(["--backbone", backbone] if backbone else [])])


def exclude(dataset: DatasetName,
            images: Annotated[list[str] | None, typer.Argument(metavar="[IMAGE]...", help="Names of images.")] = None,
            file: Annotated[Path | None, typer.Option("--file", metavar="CSV", help=(
                "Also read names from the column image of this file."))] = None,
            again: Annotated[bool, typer.Option("--include", help=(
                "Remove these images from the list instead, so that runs use them again."))] = False,
            undo: Annotated[bool, typer.Option("--undo", help="Revert the last change of the list.")] = False,
            move_to: Annotated[Path | None, typer.Option(metavar="FOLDER", help=(
                "Move the files of all excluded images to this folder outside the data set, with their subfolders and "
                "the list moved.csv. Shows the plan and asks first."))] = None,
            move_back: Annotated[Path | None, typer.Option(metavar="LIST", help=(
                "Move the files on the list moved.csv, or in its folder, back into the data set."))] = None,
            plan: Annotated[bool, typer.Option("--plan", help="Show the plan of a move and move nothing.")] = False,
            yes: Annotated[bool, typer.Option("--yes", help="Move without a question.")] = False,
            out: Annotated[Path | None, typer.Option(help="Write the list as CSV to this file.")] = None,
            as_json: Json = False) -> None:
    """Exclude images of a data set from later runs, or list the excluded images.

    No run learns from excluded images or searches them. Their files stay in place unless --move-to moves them; an
    interrupted move continues by the same command.
    """
    from udml_core.data import catalog
    from udml_core.data.given import exclusions

    loaded = catalog.load(dataset, print_progress())
    if move_to or move_back:
        if images or file or again or undo or out or (move_to and move_back):
            raise UserError("A move takes no other change of the list. Remove --move-to or --move-back, or the rest.")
        _move(loaded, move_to, move_back, plan, yes, as_json)
        return
    if plan or yes:
        raise UserError("--plan and --yes belong to a move. Add --move-to FOLDER or --move-back LIST.")
    if undo and (images or file or again):
        raise UserError("An undo takes no images. Remove the images, or --undo.")
    if again and not (images or file):
        raise UserError("--include needs the names of images, or --file.")
    changed = exclusions.undo(loaded) if undo else 0
    if images or file:
        change = exclusions.include if again else exclusions.exclude
        changed = change(loaded, listed_images(loaded, images or [], file))
    names = exclusions.excluded_names(loaded)
    if out is not None:
        write_file(out, exclusions.write_list(loaded))
    typer.echo(f"{counted(changed, 'image')} changed; {len(names)} of {counted(len(loaded), 'image')} "
               f"{'is' if len(names) == 1 else 'are'} excluded", err=True)
    print_answer({"dataset": loaded.name, "changed": changed, "excluded": names,
                  "digest": exclusions.digest_of(names)}, as_json, lambda: list(names))


def _move(dataset: Dataset, away: Path | None, back: Path | None, is_plan: bool, yes: bool, as_json: bool) -> None:
    """Show the plan of a move, ask, and move the files."""
    from udml_core.work.exporting import move_files, plan_moving, plan_moving_back

    plan = plan_moving_back(dataset, back) if back is not None else plan_moving(dataset, away or "")
    files = [item.file for item in plan.items]
    for line in (*plan.lines, *(f"  {file}" for file in files)):
        typer.echo(line, err=as_json or not is_plan)
    if not (is_plan or yes) and files:
        agree(f"Move {counted(len(files), 'file')}?", "Nothing was moved")
    moved = 0 if is_plan else move_files(plan, print_progress())
    if not is_plan:
        typer.echo(f"{counted(moved, 'file')} moved." + ("" if plan.is_back else " Undo: " + shlex.join(
            ["udml", "exclude", dataset.name, "--move-back", str(plan.away)])), err=True)
    if as_json:
        print_answer({"dataset": dataset.name, "from": str(plan.source), "to": str(plan.target), "planned": is_plan,
                      "moved": moved, "files": files,
                      "left": [{"file": name, "reason": reason} for name, reason in plan.left]}, as_json, lambda: [])


def sample(dataset: DatasetName,
           by: Annotated[Literal["diverse", "typical", "outlying", "next"], typer.Option(help=(
               "Images far from each other (diverse), in dense regions (typical), far from their neighbors "
               "(outlying), or images whose labels would reach most images without a label (next)."))] = "next",
           count: Annotated[int, typer.Option(min=1, help="Number of images; at most all.")] = 100,
           of_class: Annotated[str | None, typer.Option("--class", help=(
               "Choose among images of this class, of the data set or assigned on Label."))] = None,
           contains: Annotated[str, typer.Option(help="Choose among images whose name contains this text.")] = "",
           backbone: Annotated[str | None, typer.Option(help="Backbone whose stored features are compared.")] = None,
           out: Annotated[Path | None, typer.Option(help="Write the names as CSV to this file.")] = None,
           as_json: Json = False) -> None:
    """Choose a few images of a data set: diverse, typical or outlying images, or images to label next.

    Excluded images are left out; for `next`, assigned labels count as labels.
    """
    import numpy as np

    from udml_core.data import catalog
    from udml_core.data.given.exclusions import list_of
    from udml_core.data.given.labels import assigned_now
    from udml_core.exploration.sample import neighborhoods_of, sample_rows

    loaded = catalog.load(dataset, print_progress())
    wanted = _images_of(loaded, of_class, contains)
    features = _stored_features(loaded, backbone)
    if features is None:
        raise UserError(f"A sample needs features. Compute them: {_features_command(loaded, backbone)}")
    images, among = neighborhoods_of(loaded, features)
    labeled = np.flatnonzero(np.isin(images, list(assigned_now(loaded))))
    chosen = images[sample_rows(by, among, np.isin(images, wanted), count, labeled.tolist())]
    names = [loaded.names[index] for index in chosen]
    if not names and by == "next" and np.isin(images[labeled], wanted).any():
        raise UserError("Every image that matches these filters has a label, and next chooses images without one. Use "
                        "--by diverse, typical or outlying.")
    if not names:
        raise UserError(f"No image of {loaded.title} that is not excluded matches these filters, so the sample is "
                        "empty. Change --contains or --class.")
    if out is not None:
        write_file(out, list_of(names))
    print_answer({"dataset": loaded.name, "by": by, "images": names}, as_json, lambda: names)


def _images_of(dataset: Dataset, label: str | None, contains: str) -> Integers:
    """Return the images of a class, of the data set or assigned, whose name contains a text.

    Raises:
        UserError: There is no such class.
    """
    import numpy as np

    from udml_core.data.given.labels import assigned_now
    from udml_core.exploration.browsing import find_images

    found, assigned = find_images(dataset, None, contains), assigned_now(dataset)
    classes = dict.fromkeys((*dataset.class_names, *assigned.values()))
    if label is None:
        return found
    if label not in classes:
        raise UserError(f"{dataset.title} has no class {quoted(label)}. Its classes are: "
                        f"{', '.join(classes)[:300] or 'none'}.")
    own = dataset.members(dataset.class_names.index(label)) if label in dataset.class_names else found[:0]
    return np.intersect1d(found, np.union1d(own, [image for image, name in assigned.items() if name == label]))
