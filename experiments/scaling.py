"""What several processes gain: throughput on this CPU, and the bytes that they exchange in each step.

    python -m experiments.scaling --out assets/results/scaling.json

The bytes are counted in the real calls of torch.distributed while two processes train one epoch. A bound on the speed
follows: if nothing overlaps, p processes are p·t / (t + c(p)) times as fast as one, where t is the time of a step
without communication, in which each process encodes its part, and c(p) the bytes divided by the bandwidth. A ring moves
2·(p − 1)/p of the bytes of a sum, and p − 1 parts of a gathering, over each link.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import torch
import torch.distributed as distributed
import torch.multiprocessing as multiprocessing
from torch.optim.optimizer import register_optimizer_step_post_hook

from experiments.recording import provenance
from udml_core.base.files import jsonable
from udml_core.data import catalog
from udml_core.data.augmentation import CROPS
from udml_core.data.encoders import Encoder, choose_spec
from udml_core.data.features import features_of, pixels_of, views_of
from udml_core.data.label_budget import PER_CLASS, drawn_labels
from udml_core.data.splits import make_split
from udml_core.data.training_data import TrainingData, training_data
from udml_core.methods import Method, Setting, find_method

IMAGES = 200
BATCH = 100
COMMON: dict[str, Any] = {"dimension": 32, "epochs": 1, "trains": "all", "batch": BATCH}
OWN: dict[str, dict[str, Any]] = {
    "plm": {"batch_norm": "statistics"}, "ssdml": {"partition": 200, "steps": 3}, "srpml": {"steps": 3},
    "nce": {"noise": 256}, "distill": {"kept_views": 2}, "simclr": {"hidden": 128}, "supcon": {"hidden": 128}}
TRIED: tuple[str, ...] = ("plm", "srpml", "ssdml", "pslr", "isif", "nce", "distill", "simclr")
BANDWIDTHS = {"1 GbE": 0.125e9, "10 GbE": 1.25e9, "100 Gb InfiniBand": 12.5e9, "PCIe 4.0 x16": 32e9, "NVLink 4": 450e9}
EXAMPLE_STEP = 0.1
"""Seconds of a step without communication, for the table of gains."""
PROCESSES = 8


class Volume:
    """The bytes that this process hands to each kind of collective operation."""

    def __init__(self) -> None:
        self.bytes = {"all_reduce": 0, "all_gather": 0, "broadcast": 0}
        self.calls = dict.fromkeys(self.bytes, 0)

    def add(self, kind: str, tensor: torch.Tensor) -> None:
        self.bytes[kind] += tensor.numel() * tensor.element_size()
        self.calls[kind] += 1

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Count the calls of this project, and the buckets that DistributedDataParallel reduces."""
        originals = {kind: getattr(distributed, kind) for kind in self.bytes}
        wrapped = torch.nn.parallel.DistributedDataParallel.__init__

        def all_reduce(tensor: torch.Tensor, *more: Any, **named: Any) -> Any:
            self.add("all_reduce", tensor)
            return originals["all_reduce"](tensor, *more, **named)

        def all_gather(parts: list[torch.Tensor], tensor: torch.Tensor, *more: Any, **named: Any) -> Any:
            self.add("all_gather", tensor)
            return originals["all_gather"](parts, tensor, *more, **named)

        def broadcast(tensor: torch.Tensor, *more: Any, **named: Any) -> Any:
            self.add("broadcast", tensor)
            return originals["broadcast"](tensor, *more, **named)

        def hook(_state: Any, bucket: Any) -> Any:
            self.add("all_reduce", bucket.buffer())
            done = originals["all_reduce"](bucket.buffer(), async_op=True).get_future()
            return done.then(lambda future: future.value()[0] / distributed.get_world_size())

        # DistributedDataParallel compares the types themselves, which annotations of this module are not.
        hook.__annotations__ = {"bucket": distributed.GradBucket, "return": torch.futures.Future[torch.Tensor]}

        def with_hook(replica: Any, *arguments: Any, **named: Any) -> None:
            wrapped(replica, *arguments, **named)
            replica.register_comm_hook(None, hook)

        replaced = {"all_reduce": all_reduce, "all_gather": all_gather, "broadcast": broadcast}
        for kind, counted in replaced.items():
            setattr(distributed, kind, counted)
        torch.nn.parallel.DistributedDataParallel.__init__ = with_hook  # type: ignore[method-assign]
        try:
            yield
        finally:
            for kind, original in originals.items():
                setattr(distributed, kind, original)
            torch.nn.parallel.DistributedDataParallel.__init__ = wrapped  # type: ignore[method-assign]


def prepare(method: Method) -> tuple[TrainingData, Setting]:
    """Return a part of the digits and the small network that starts from random weights."""
    dataset = catalog.load("digits")
    encoder = Encoder(choose_spec("cnn", dataset.native_size, dataset.gray))
    train = make_split(dataset, "seen").train[:IMAGES]
    views = views_of(dataset, encoder, train, method.views_needed, CROPS, 0) if method.views_needed else None
    few = drawn_labels(dataset, train, PER_CLASS, 0) if method.card.supervision == "few" else None
    data = training_data(features_of(dataset, encoder), dataset.labels, train, method.card.supervision,
                         pixels_of(dataset, encoder), views, few)
    return data, Setting(0, torch.device("cpu"), encoder)


def build(name: str) -> Method:
    """Return a method whose batches have equal size in all methods."""
    kind = find_method(name)
    fields = COMMON | OWN.get(name, {})
    return kind.make({field: value for field, value in fields.items() if field in kind.model_fields})


def train(name: str) -> dict[str, Any]:
    """Train one epoch and return the steps, the seconds of CPU time and the bytes."""
    method = build(name)
    data, setting = prepare(method)
    volume, steps = Volume(), [0]

    def count(*_: Any) -> None:
        steps[0] += 1

    counter = register_optimizer_step_post_hook(count)
    with volume.counting():
        began = time.process_time()
        list(method.fit(data, setting))
        seconds = time.process_time() - began
    counter.remove()
    parameters = sum(value.numel() for value in setting.encoder.parameters())
    return {"steps": steps[0], "seconds": seconds, "bytes": volume.bytes, "calls": volume.calls,
            "encoder_parameters": parameters}


def work(rank: int, folder: str, names: tuple[str, ...]) -> None:
    """Train every method in one of two processes."""
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=2)
    for name in names:
        row = train(name)
        if not rank:
            Path(folder, f"{name}.json").write_text(json.dumps(row), encoding="utf-8")
    distributed.destroy_process_group()


def seconds_on_link(volume: dict[str, float], processes: int, bandwidth: float) -> float:
    """Return the seconds in which a ring exchanges the bytes of a step.

    Args:
        volume: Bytes of one of two processes by operation. The part of each process in a gathering shrinks with their
            number.
        processes: Number p of processes.
        bandwidth: Bytes a second of each link.
    """
    gathered = volume["all_gather"] * 2 / processes * (processes - 1)
    summed = volume["all_reduce"] * 2 * (processes - 1) / processes
    return (gathered + summed + volume["broadcast"]) / bandwidth


def measure(names: tuple[str, ...], throughput: bool) -> dict[str, Any]:
    """Train every method in two processes, for the throughput also in one, and return the tables of the record."""
    torch.set_num_threads(1)
    for name in names:  # the features are computed before the clock runs
        prepare(build(name))
    single = {name: train(name) for name in names} if throughput else {}
    with tempfile.TemporaryDirectory() as folder:
        multiprocessing.spawn(work, (folder, names), nprocs=2)  # type: ignore[no-untyped-call]
        double = {name: json.loads(Path(folder, f"{name}.json").read_text(encoding="utf-8")) for name in names}
    volumes = {name: {kind: amount / max(1, row["steps"]) for kind, amount in row["bytes"].items()}
               for name, row in double.items()}
    exchanged = {find_method(name).card.title: {
        "steps": double[name]["steps"], "encoder parameters": double[name]["encoder_parameters"],
        "kB summed a step": volumes[name]["all_reduce"] / 1000,
        "kB gathered a step": volumes[name]["all_gather"] / 1000,
        "kB broadcast a step": volumes[name]["broadcast"] / 1000} | ({
            "images per CPU second, 1 process": IMAGES / single[name]["seconds"],
            "images per CPU second, 2 processes": IMAGES / (2 * double[name]["seconds"])} if single else {})
        for name in names}
    return {f"Communication, {IMAGES} digits in batches of {BATCH}": {"rows": exchanged},
            f"Gain of {PROCESSES} GPUs if a step of each takes {EXAMPLE_STEP:g} s": {"rows": {
                find_method(name).card.title: {f"{link}": PROCESSES * EXAMPLE_STEP / (
                    EXAMPLE_STEP + seconds_on_link(volumes[name], PROCESSES, bandwidth))
                    for link, bandwidth in BANDWIDTHS.items()} for name in names}}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--methods", nargs="*", default=TRIED)
    parser.add_argument("--throughput", action="store_true", help="Also compare CPU time; the machine must be idle.")
    options = parser.parse_args()
    loads = [psutil.getloadavg()[0]]
    tables = measure(tuple(options.methods), options.throughput)
    loads.append(psutil.getloadavg()[0])
    record = provenance("scaling") | {
        "protocol": "one epoch with trains=all in two processes on a CPU; the bytes depend neither "
                    "on the load nor on the device; gains without any overlap of communication and computation"
                    + (f"; load {loads[0]:.0f} before and {loads[1]:.0f} after" if options.throughput else ""),
        "datasets": tables}
    text = json.dumps(jsonable(record), indent=1)
    if options.out:
        options.out.write_text(text + "\n", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
