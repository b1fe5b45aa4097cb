"""The command that writes a table of runs for a paper."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from udml_core.cli.options import Root, named_run


def table(names: Annotated[list[str], typer.Argument(metavar="RUN…", help="Finished runs on the same images.")],
          form: Annotated[Literal["latex", "markdown", "csv"], typer.Option("--form", help=(
              "LaTeX with booktabs, Markdown, or CSV with each seed and the corrected p-values."))] = "latex",
          measures: Annotated[list[str] | None, typer.Option("--measure", metavar="NAME", help=(
              "Key of a measure, such as map@r; may be repeated. By default recall@1 and map@r."))] = None,
          over: Annotated[Literal["seeds", "queries"], typer.Option("--test-over", help=(
              "Whether a difference must hold for other seeds, or for other queries (R@1 and MAP@R; ranks all test "
              "images)."))] = "seeds",
          root: Root = None) -> None:
    """Print runs as a table for a paper: mean and standard deviation over the seeds of equal settings.

    The best row and all rows within one standard deviation of it, or with the same printed mean, are bold. A dagger
    marks rows that differ from the best by a paired t-test over the seeds or queries, corrected by Holm's method.
    """
    from udml_core.runs.paper_table import table_of_runs

    runs = [named_run(name, root) for name in names]
    typer.echo(table_of_runs(runs, measures or (), over=over).written(form), nl=False)
