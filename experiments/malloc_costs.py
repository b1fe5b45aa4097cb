"""CPU time of the default backbone with default and raised thresholds of glibc.

`udml_core.base.malloc` raises the thresholds. Each measurement runs in its own process, because raised thresholds stay.

    python -m experiments.malloc_costs --out assets/results/malloc.json
"""

from __future__ import annotations

import json
import subprocess
import sys
from statistics import median

from experiments.recording import provenance, record_parser, write_record
from udml_core.data.encoders import DEFAULT_BACKBONE

PASSES, IMAGES, SIZE, ROUNDS = 3, 128, 96, 5
MEASURE = f"""
import json, resource, sys
from udml_core.base.malloc import keep_freed_memory
if sys.argv[1] == "raised":
    keep_freed_memory()
import torch
from udml_core.data.encoders import Encoder, choose_spec
encoder = Encoder(choose_spec("{DEFAULT_BACKBONE}", {SIZE}, False, size={SIZE}))
images = torch.randint(256, ({IMAGES}, 3, {SIZE}, {SIZE}), dtype=torch.uint8, generator=torch.manual_seed(0))
before = resource.getrusage(resource.RUSAGE_SELF)
with torch.inference_mode():
    for _ in range({PASSES}):
        encoder(images)
after = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps({{"user seconds": after.ru_utime - before.ru_utime, "system seconds": after.ru_stime - before.ru_stime,
                  "page faults": after.ru_minflt - before.ru_minflt}}))
"""


def main() -> None:
    parser = record_parser(__doc__)
    options = parser.parse_args()
    record = provenance("malloc_costs") | {
        "protocol": f"medians of {ROUNDS} alternating processes; {PASSES} forward passes of {IMAGES} images of {SIZE} "
                    "pixels; relative time: user and system seconds, relative to the raised thresholds",
        "datasets": {"Forward passes of EfficientNet-Lite0": {"rows": costs()}}}
    write_record(options.out, record)


def costs(rounds: int = ROUNDS) -> dict[str, dict[str, float]]:
    """Measure both settings alternately, and return the medians of each."""
    thresholds = {"glibc's default thresholds": "default", "raised thresholds": "raised"}
    measured: dict[str, list[dict[str, float]]] = {name: [] for name in thresholds}
    for _ in range(rounds):
        for name, argument in thresholds.items():
            measured[name].append(_measure(argument))
    rows = {name: {key: median(row[key] for row in runs) for key in runs[0]} for name, runs in measured.items()}
    fastest = rows["raised thresholds"]["user seconds"] + rows["raised thresholds"]["system seconds"]
    for row in rows.values():
        row["relative time"] = (row["user seconds"] + row["system seconds"]) / fastest
    return rows


def _measure(thresholds: str) -> dict[str, float]:
    done = subprocess.run([sys.executable, "-c", MEASURE, thresholds], capture_output=True, text=True, check=True)
    row: dict[str, float] = json.loads(done.stdout)
    return row


if __name__ == "__main__":
    main()
