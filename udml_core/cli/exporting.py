"""The commands that write for other programs: exports, mirrors and the course."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from udml_core.base.errors import UserError, counted, quoted
from udml_core.cli.options import Json, Root, RunName, named_run
from udml_core.cli.output import print_answer
from udml_core.runs.analyses import find_analysis


def export_run(name: RunName, folder: Annotated[Path, typer.Argument(metavar="DIR", help="A new or empty folder.")],
               model: Annotated[bool, typer.Option("--model", help=(
                   "Write a model folder instead: weights, description, model card, search index, and the model as "
                   "ONNX with an example that searches without torch."))] = False,
               no_onnx: Annotated[bool, typer.Option("--no-onnx", help=(
                   "Leave out ONNX and the example, for a network that cannot be converted."))] = False,
               license_name: Annotated[str, typer.Option("--license", metavar="NAME", show_default=False, help=(
                   "License that the model card names, as model hubs write it, such as apache-2.0."))] = "",
               refined: Annotated[str | None, typer.Option("--refined", metavar="ID", help=(
                   "Export this refinement: its images, vectors and neighbors in all files, without a model. A "
                   "re-ranking changes the neighbors alone."))] = None,
               shards: Annotated[int | None, typer.Option("--shards", metavar="ROWS", min=1, show_default=False, help=(
                   "Write only the embedding after training, in Parquet files of at most this many rows."))] = None,
               force: Annotated[bool, typer.Option("--force", help="Replace an earlier export in the folder.")] = False,
               root: Root = None, as_json: Json = False) -> None:
    """Copy model, embeddings, index, curves and evaluation to a new folder.

    The embeddings are also written as Parquet; images.parquet opens in embedding-atlas, FiftyOne and LanceDB. With
    --model the folder holds what other programs need to use the model.
    """
    from udml_core.work.exporting import export, export_model, export_shards, vectors_note

    if shards is not None and (model or refined is not None):
        raise UserError("Shards have the embedding after training alone. Remove --model and --refined, or --shards.")
    if model and refined is not None:
        raise UserError("A refinement has no model of its own. Remove --model or --refined.")
    if no_onnx and not model:
        raise UserError("ONNX is a part of the model folder. Add --model, or remove --no-onnx.")
    if license_name and not model:
        raise UserError("The license stands in the model card. Add --model, or remove --license.")
    if license_name and not _is_known_license(license_name):
        typer.echo(f"The license {quoted(license_name)} is no SPDX identifier, such as apache-2.0 or cc-by-4.0; the "
                   "card names it as it is.", err=True)
    run = named_run(name, root)
    if shards is not None:
        files = export_shards(run, folder, shards, force=force)
    elif model:
        files = export_model(run, folder, onnx=not no_onnx, force=force, license_name=license_name)
        if {"model.onnx", "search.py"} & {path.name for path in files} == {"model.onnx"}:
            typer.echo("search.py was left out, because this backbone prepares images in its own way. config.json "
                       "describes it.", err=True)
    else:
        refinement = find_analysis(run, refined) if refined else None
        files = export(run, folder, refinement=refinement, force=force)
        note = vectors_note(refinement) if refinement else ""
        if note:
            typer.echo(note, err=True)
    print_answer({"folder": str(folder), "files": [path.name for path in files]}, as_json,
                 lambda: [str(path) for path in files])


def lessons(folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder to write to.")],
            app: Annotated[str, typer.Option(metavar="URL", help="The address of the app, to which the files link.")
                           ] = "http://localhost:8501",
            as_json: Json = False) -> None:
    """Write the course as HTML files that work without a server."""
    from udml_core.results.lessons import export_course

    files = export_course(folder, app.rstrip("/"))
    print_answer({"folder": str(folder), "files": [path.name for path in files]}, as_json,
                 lambda: [str(path) for path in files])


def mirror_run(name: RunName, where: Annotated[str, typer.Argument(metavar="DIR|URI", help=(
                   "TensorBoard's folder of logs, or MLflow's tracking URI."))],
               to: Annotated[Literal["tensorboard", "mlflow"], typer.Option(help="The program.")],
               root: Root = None, as_json: Json = False) -> None:
    """Copy the curves and the evaluation of a run to TensorBoard or MLflow.

    Repeat the command to add the epochs since.
    """
    from udml_core.work.exporting import mirror

    run = named_run(name, root)
    added = mirror(run, to, where)
    print_answer({"run": run.id, "to": to, "where": where, "epochs": added}, as_json,
                 lambda: [f"added {counted(added, 'epoch')} of {run.id} to {to} at {where}"])


def _is_known_license(name: str) -> bool:
    """Return whether a name is an SPDX expression, or `other` or `unknown`, as model hubs write."""
    try:
        from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression
    except ImportError:  # an older version of the package
        return True
    try:
        return name in ("other", "unknown") or bool(canonicalize_license_expression(name))
    except InvalidLicenseExpression:
        return False
