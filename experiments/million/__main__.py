"""Measure the way of 100,000 and a million images through the app, and write the record.

    python -m experiments.million --folder FOLDER --out assets/results/million.json
    python -m experiments.million --sizes --before TREE --folder FOLDER --out assets/results/sizes.json

The vectors are features of the app's 6,000 photographs of clothes, reduced to 128 dimensions and repeated with noise.
Each step has a process of its own. Its figures are kept in the folder, so that an interrupted measurement continues;
only the pages are measured again. A picture of the map is written beside them.

The second command measures images and vectors of four sizes, with the library of another folder and with this one; see
`sizes.py`. `git worktree add --detach TREE 25b57a3` writes that folder.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from experiments.million.pages import open_pages
from experiments.million.sizes import LIMITS, sizes_record
from experiments.million.sizes import SIZES as SIZES_BY_COUNT
from experiments.million.steps import STEPS, execute, run_id
from experiments.recording import provenance, record_parser, write_record
from udml_core.base.files import jsonable, read_json, replace_text

SIZES = (100_000, 1_000_000)


def measure(root: Path, rows: int) -> dict[str, float]:
    """Execute the steps of one size that are not done, and open the pages."""
    folder = root / str(rows)
    folder.mkdir(parents=True, exist_ok=True)
    os.environ |= {"UDML_CACHE": str(root / "cache"), "UDML_RUNS": str(folder / "runs"), "UDML_MAPS": "0",
                   "UDML_EXAMPLES": "0"}
    kept = folder / "steps.json"
    done: dict[str, dict[str, Any]] = read_json(kept) if kept.exists() else {}
    for step in STEPS:
        if step in done:
            continue
        load = os.getloadavg()[0]
        command = ["-m", "experiments.million", "--step", step, "--rows", str(rows), "--folder", str(root)]
        answer = subprocess.run([sys.executable, *command], check=True, stdout=subprocess.PIPE, text=True).stdout
        done[step] = json.loads(answer.splitlines()[-1]) | {f"{step}, load": load}
        replace_text(kept, json.dumps(done, indent=1))
        print(rows, step, done[step], flush=True)
    load = os.getloadavg()[0]
    pages = open_pages(run_id(), dict(os.environ), folder)
    print(rows, "pages", pages, flush=True)
    return {name: value for figures in done.values() for name, value in figures.items()} | pages | {"pages, load": load}


def main() -> None:
    parser = record_parser(__doc__, required=False)
    parser.add_argument("--folder", type=Path, required=True, help="folder of tables, runs and figures; 5 GB")
    parser.add_argument("--rows", type=int, action="append", help=f"rows of a table; repeatable; default {SIZES}")
    parser.add_argument("--step", choices=STEPS, help=argparse.SUPPRESS)
    parser.add_argument("--sizes", type=int, nargs="*", choices=SIZES_BY_COUNT, help="measure the table of sizes")
    parser.add_argument("--before", type=Path, help="folder of an earlier version, for the table of sizes")
    parser.add_argument("--limits", type=int, nargs=2, default=LIMITS, help="processor seconds of a step before, after")
    parser.add_argument("--kept", action="store_true", help="write the table from the steps that are done")
    options = parser.parse_args()
    if options.sizes is not None:
        if options.before is None:
            parser.error("--before must name the folder of an earlier version")
        record = sizes_record(options.folder.resolve(), options.before.resolve(), options.sizes, options.limits,
                              options.kept)
        if options.out:
            write_record(options.out, provenance("million") | record)
        return
    root, sizes = options.folder.resolve(), options.rows or SIZES
    if options.step:
        print(json.dumps(jsonable(execute(options.step, root / str(sizes[0]), sizes[0]))))
        return
    rows = {f"{size:,} images": {name: round(value, 2) for name, value in measure(root, size).items()}
            for size in sizes}
    if options.out:
        record = provenance("million") | {
            "protocol": "features of 6,000 photographs of clothes, reduced to 128 dimensions by PCA and repeated with "
                        "noise; a run of frozen features; each step in a process of its own; headless Chromium with "
                        f"software GL on {os.cpu_count()} CPU cores that also run the server; the load of the machine "
                        "is the mean number of running processes in the minute before a step",
            "load": round(os.getloadavg()[0], 1), "datasets": {"The way of a large table through the app": {
                "rows": rows}}}
        replace_text(options.out, json.dumps(jsonable(record), indent=1) + "\n")


if __name__ == "__main__":
    main()
