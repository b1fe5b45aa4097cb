"""Copies of a run's curves in TensorBoard or MLflow; a later call adds the epochs since."""

from __future__ import annotations

import json
import math
import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from udml_core.base.errors import UserError
from udml_core.base.files import read_json, replace_text
from udml_core.runs import Run

Target = Literal["tensorboard", "mlflow"]
PLACES: dict[Target, str] = {"tensorboard": "a folder of logs", "mlflow": "a folder or a tracking URI"}
EXAMPLES: dict[Target, str] = {"tensorboard": "logs", "mlflow": "mlruns"}
STATE = "udml-mirror.json"
EXPERIMENT = "UDML Explorer"
OFFSET_TAG, RUN_TAG = "udml.offset", "udml.run"
MOST_AT_ONCE = 1_000
"""Largest number of values that MLflow takes at once."""
LONGEST = 300
"""Letters of a place in a message."""
DATABASES = ("sqlite:", "postgresql", "mysql", "mssql")


def mirror(run: Run, to: Target, where: str) -> int:
    """Copy the curves and the evaluation of a run to TensorBoard or MLflow.

    Args:
        run: A run, finished or not.
        to: The program.
        where: TensorBoard's folder of logs; MLflow's folder, or the tracking URI of a server or database.

    Returns:
        Number of epochs that were added.

    Raises:
        UserError: No place is named, the program's package is not installed, or it cannot write there.
    """
    if not where.strip():
        raise UserError(f"Copying curves to {to} needs {PLACES[to]}, got nothing. Name it after the run, such as "
                        f"`udml mirror {run.id} {EXAMPLES[to]} --to {to}`.")
    if find_spec(to) is None:
        raise UserError(f"Copying curves to {to} needs its package, which is not installed. Install it with "
                        f"`pip install {to}`.")
    try:
        return _to_tensorboard(run, Path(where)) if to == "tensorboard" else _to_mlflow(run, where)
    except UserError:
        raise
    except Exception as error:  # a server, a disk or a package of another version can raise any exception
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise UserError(f"The curves of {run.id} could not be copied to {to} at {where[:LONGEST]}: {reason}. Check the "
                        "place, and repeat the command.") from error


def _to_tensorboard(run: Run, logs: Path) -> int:
    """Append the new epochs to the run's own folder of logs."""
    from torch.utils.tensorboard import SummaryWriter

    folder, offset = logs / run.id, 0
    with suppress(OSError, ValueError, TypeError, KeyError):  # the first call, or someone edited the file
        offset = int(read_json(folder / STATE)["offset"])
    rows, new_offset = run.metrics(offset)
    with SummaryWriter(str(folder)) as writer:
        if not offset:
            writer.add_text("spec", f"```json\n{run.spec().model_dump_json(indent=1)}\n```")
        for row in rows:
            for name, value in _numbers(row):
                writer.add_scalar(name, value, row["epoch"])
        for name, value in _evaluation(run):
            writer.add_scalar(name, value, run.status().epoch)
    replace_text(folder / STATE, json.dumps({"offset": new_offset}))
    return len(rows)


def _to_mlflow(run: Run, uri: str) -> int:
    """Append the new epochs to the MLflow run that carries the run's id."""
    if uri.startswith(DATABASES) and find_spec("sqlalchemy") is None:
        raise UserError(f"MLflow's small package cannot write into a database such as {uri[:60]}. Install the whole "
                        "with `pip install mlflow`, or name a folder or the address of a server.")
    os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")  # its own switch for folders, which need no database
    from mlflow.entities import Metric, Param
    from mlflow.tracking import MlflowClient

    client, spec = MlflowClient(tracking_uri=uri), run.spec()
    experiment = client.get_experiment_by_name(EXPERIMENT)
    known_id = client.create_experiment(EXPERIMENT) if experiment is None else experiment.experiment_id
    known = client.search_runs([known_id], f"tags.`{RUN_TAG}` = '{run.id}'")
    copy = known[0] if known else client.create_run(known_id, run_name=run.id, tags={RUN_TAG: run.id})
    rows, offset = run.metrics(int(copy.data.tags.get(OFFSET_TAG, 0)))
    params = {"method": spec.method, "dataset": spec.dataset_title, "backbone": spec.backbone, "split": spec.split,
              "seed": spec.seed} | {f"field.{name}": value for name, value in spec.fields.items()}
    now = int(1000 * time.time())
    values = [Metric(_mlflow_name(name), value, now, row["epoch"]) for row in rows for name, value in _numbers(row)]
    values += [Metric(_mlflow_name(name), value, now, run.status().epoch) for name, value in _evaluation(run)]
    client.log_batch(copy.info.run_id, params=[Param(name, str(value)[:500]) for name, value in params.items()])
    for start in range(0, len(values), MOST_AT_ONCE):
        client.log_batch(copy.info.run_id, metrics=values[start: start + MOST_AT_ONCE])
    client.set_tag(copy.info.run_id, OFFSET_TAG, str(offset))
    if run.status().state in ("done", "failed"):
        client.set_terminated(copy.info.run_id, "FINISHED" if run.status().state == "done" else "FAILED")
    return len(rows)


def _evaluation(run: Run) -> Iterator[tuple[str, float]]:
    """Yield the measures of the test half by embedding; none before the end of the run."""
    for embedding, measures in (run.evaluation() or {}).items():
        for name, value in _numbers(measures):
            yield f"evaluation/{embedding}/{name}", value


def _numbers(row: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Yield the finite numbers of a row, without the epoch."""
    for name, value in row.items():
        if name != "epoch" and isinstance(value, int | float) and math.isfinite(value):
            yield name, float(value)


def _mlflow_name(name: str) -> str:
    """Return a name in the letters that MLflow accepts, such as `recall at 1` for `recall@1`."""
    return re.sub(r"[^\w\-./ ]", "_", name.replace("@", " at "), flags=re.ASCII)
