"""Embeddings as Parquet shards of a chosen size, for vector stores and for galleries that exceed the memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from udml_core.base.arrays import Integers
from udml_core.base.errors import UserError
from udml_core.data.dataset import Dataset
from udml_core.runs import Run
from udml_core.runs.search import Retrieval
from udml_core.work.exporting import target
from udml_core.work.exporting.run_files import write_spec
from udml_core.work.exporting.tables import class_names_of, fixed_lists, strings

LEAST = 100
"""Least rows of a shard; a file of fewer rows is mostly its header."""
MOST_SHARDS = 99_999
"""Most shards, which are numbered with five digits."""


def export_shards(run: Run, folder: Path, rows: int, dataset: Dataset | None = None, force: bool = False
                  ) -> list[Path]:
    """Write the embedding after training into Parquet files of at most `rows` rows each.

    The columns are index (in the data set), file_name, label (null without classes), test (bool) and vector, a list of
    fixed length. Excluded images are left out. One shard is in memory at a time. The metadata of a shard name the run,
    the embedding, and the metric by which it is searched: `cosine` for unit vectors, else `l2`.

    Args:
        run: A finished run.
        folder: A new or empty folder.
        rows: Rows of a shard; the last one can have fewer.
        dataset: The run's data set, if it is loaded already.
        force: Whether the folder may also be an earlier export, which is replaced.

    Returns:
        The written files.

    Raises:
        UserError: The run is not done, the shards are too small or too many, or the folder is not empty or cannot be
            written.
    """
    opened = Retrieval(run, dataset)
    kept = opened.kept
    count = -(-len(kept) // max(1, rows))
    if rows < LEAST or count > MOST_SHARDS:
        raise UserError(f"A shard needs at least {max(LEAST, -(-len(kept) // MOST_SHARDS)):,} rows, got {rows:,}. "
                        "Choose larger shards.")
    with target.written_aside(folder, force) as aside:
        write_spec(run, aside / target.SPEC)
        for number in range(count):
            table = _shard(opened, kept[number * rows : (number + 1) * rows])
            with (aside / target.SHARD.format(number, count)).open("wb") as file:  # Arrow takes no name but UTF-8
                parquet.write_table(table, file)
        names = sorted(path.name for path in aside.iterdir())
    return [folder / name for name in names]


def _shard(opened: Retrieval, indices: Integers) -> pa.Table:
    dataset = opened.dataset
    vectors = opened.frame("final").take(indices)
    columns = {"index": pa.array(indices, pa.int64()), "file_name": strings(dataset.names, indices),
               "label": pa.array(class_names_of(dataset, indices), pa.string()),
               "test": pa.array(np.isin(indices, opened.split.test)), "vector": fixed_lists(vectors)}
    metric = "cosine" if opened.run.is_normalized("final") else "l2"
    return pa.table(columns, metadata={"run": opened.run.id, "embedding": "final", "metric": metric})
