"""What all commands that write a record share: the option `--out`, the provenance, and the file."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import torch

from udml_core.base.files import jsonable, replace_text
from udml_core.runs import installed_versions
from udml_core.work.jobs import resolve_device


def record_parser(description: str | None, required: bool = True) -> argparse.ArgumentParser:
    """Return a parser that shows a module's docstring and has the option `--out`."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=required, help="the record to write")
    return parser


def provenance(module: str) -> dict[str, Any]:
    """Return command, device, versions and date of a module's record."""
    arguments = " ".join(f'"{argument}"' if " " in argument else argument for argument in sys.argv[1:])
    return {"command": f"python -m experiments.{module} {arguments}", "device": device_name(resolve_device("auto")),
            "versions": installed_versions(), "date": time.strftime("%Y-%m-%d")}


def device_name(device: str) -> str:
    """Return the name of a device, as records show it."""
    return torch.cuda.get_device_name(device) if device != "cpu" else f"CPU, {os.cpu_count()} cores"


def mean_and_deviation(values: list[float]) -> list[float]:
    return [round(statistics.mean(values), 2), round(statistics.stdev(values), 2) if len(values) > 1 else 0.0]


def is_comparable(rows: dict[str, Any]) -> bool:
    """Return whether every row of a record is comparable with the paper; an empty record is not."""
    return bool(rows) and all(row["comparable"] for row in rows.values())


def write_record(path: Path, record: dict[str, Any]) -> None:
    """Replace a record; an interrupt leaves the earlier or the new one."""
    replace_text(path, json.dumps(jsonable(record), indent=1, ensure_ascii=False) + "\n")
