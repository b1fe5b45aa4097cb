"""Two CPU processes give the whole batch's loss and gradients."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.distributed as distributed
import torch.multiprocessing as multiprocessing
from safetensors.torch import load_file, save_file
from torch import Tensor
from torch.nn.functional import conv2d

from tests.methods.golden_steps import CLASSES, IMAGES, double_precision, tiny_data, tiny_setting
from tests.methods.test_instance_methods import training_setup
from udml_core.base.arrays import Array, Integers
from udml_core.data.augmentation import CROPS
from udml_core.data.training_data import TrainingData
from udml_core.methods import METHODS, Epoch, Method, Setting, plm, ssdml
from udml_core.methods.anchor_neighborhoods import AND
from udml_core.methods.barlow_twins import BarlowTwins
from udml_core.methods.deepcluster import DeepCluster
from udml_core.methods.distill import Distill, Targets
from udml_core.methods.exemplar import Exemplar
from udml_core.methods.isif import ISIF
from udml_core.methods.mom import MOM
from udml_core.methods.nce import NCE
from udml_core.methods.plm import PLM
from udml_core.methods.pslr import PSLR
from udml_core.methods.rotnet import RotNet
from udml_core.methods.rpml import SRPML
from udml_core.methods.shared import distributed as parallel
from udml_core.methods.shared.distributed import gather_rows, own_part, read_ahead
from udml_core.methods.shared.instance import InstanceMethod
from udml_core.methods.shared.training import embed_training_half
from udml_core.methods.simclr import SimCLR
from udml_core.methods.ssdml import SSDML
from udml_core.methods.stml import STML
from udml_core.methods.supcon import SupCon
from udml_core.methods.uhml import UHML
from udml_core.numerics.geometry.conjugate_gradient import ConjugateGradient, DescentProgress, ManifoldFunction

FIELDS: dict[str, Any] = {"dimension": 8, "epochs": 1, "batch": 300, "trains": "all", "learning_rate": 0.01}
INSTANCE: dict[str, tuple[type[InstanceMethod], dict[str, Any]]] = {
    "pslr": (PSLR, {"eta": 10.0}), "pslr neighbors": (PSLR, {"graph": "neighbors"}), "pslr parts": (PSLR, {"parts": 2}),
    "pslr uneven": (PSLR, {"graph": "neighbors", "batch": 128}),  # 25 seeds with their neighbors are 125 images
    "isif": (ISIF, {"colors": True}), "nce": (NCE, {"noise": 64}), "exemplar": (Exemplar, {}),
    "deepcluster": (DeepCluster, {"clusters": 10}), "rotnet": (RotNet, {}), "simclr": (SimCLR, {"hidden": 16}),
    "barlow": (BarlowTwins, {"hidden": 16, "projected": 16}),
    "and": (AND, {"trains": "head", "neighbors": 2, "epochs": 2, "rounds": 2}),
    "mom": (MOM, {"trains": "head"}), "stml": (STML, {"trains": "head", "learning_rate": 0.001}),
    "uhml": (UHML, {"trains": "head"}), "supcon": (SupCon, {"hidden": 16}),
    "head": (ISIF, {"trains": "head", "dimension": 8})}
COVERED = {method for method, _ in INSTANCE.values()}
INSTANCE |= {method.card.name: (method, {}) for method in METHODS
             if issubclass(method, InstanceMethod) and method not in COVERED}

OF_PLM: dict[str, Any] = {"dimension": 6, "epochs": 2, "batch": 16, "group": 5, "proxies": 5, "candidates": 6,
                          "flat": 2, "threshold": 0.8, "momentum": 0.7, "learning_rate": 0.003, "views": 3}
OF_SRPML: dict[str, Any] = {"dimension": 5, "epochs": 2, "batch": 14, "alpha": 30.0, "epsilon": 0.6, "gamma": 2.0,
                            "n_neighbors": 5, "steps": 3, "learning_rate": 0.02, "kept_views": 3}
OF_SSDML: dict[str, Any] = {"dimension": 5, "epochs": 2, "batch": 41, "alpha": 30.0, "n_neighbors": 6, "gamma": 0.9,
                            "partition": 20, "partition_epochs": 1, "steps": 3, "learning_rate": 0.02}
OF_DISTILL: dict[str, Any] = {"dimension": 5, "epochs": 2, "batch": 14, "group": 4, "kept_views": 3, "averaged": 4,
                              "whitening_neighbors": 3, "learning_rate": 0.003}
PARTS = ("head", "last", "all")
TINY: dict[str, tuple[type[Method], dict[str, Any]]] = {
    **{f"plm {part}": (PLM, OF_PLM | {"trains": part, "batch_norm": "statistics"}) for part in PARTS},
    **{f"srpml {part}": (SRPML, OF_SRPML | {"trains": part}) for part in PARTS},
    **{f"ssdml {part}": (SSDML, OF_SSDML | {"trains": part}) for part in PARTS},
    **{f"distill {part}": (Distill, OF_DISTILL | {"trains": part}) for part in PARTS},
    "ssdml pretrained": (SSDML, OF_SSDML | {"trains": "all", "pretraining": 2, "alternation": "partition"})}
FOLLOWING: dict[str, tuple[type[Method], dict[str, Any]]] = {
    "plm batch statistics": (PLM, OF_PLM | {"trains": "all", "batch_norm": "batch"}),
    "ssdml batch statistics": (SSDML, OF_SSDML | {"trains": "all", "batch_norm": "batch", "epochs": 1, "batch": 2000})}
"""Batch normalization sees half a batch, so that two processes do not equal one."""


def build_method(name: str) -> tuple[Method, str]:
    kind, fields = INSTANCE[name]
    method = kind.make(FIELDS | fields)
    return method, "cnn" if method.trains_encoder else "pixels"


def train(name: str) -> Epoch:
    method, backbone = build_method(name)
    data, setting = training_setup(backbone)
    if method.card.supervision == "all":
        data = replace(data, given_labels=torch.arange(len(data)) % CLASSES)
    return list(method.fit(data, setting))[-1]


class Reads:
    """Rows that are read from an array, and how many were read at each time."""

    def __init__(self, rows: Any) -> None:
        self.rows = np.asarray(rows)
        self.counts: list[int] = []

    def __getitem__(self, indices: Integers) -> Array:
        self.counts.append(len(indices))
        return np.asarray(self.rows[indices])


def tiny_setup() -> tuple[TrainingData, Setting, list[int]]:
    """Return 40 images with views, activations and few labels, and the list of the numbers of rows read."""
    setting = tiny_setting()
    labels = torch.where(torch.arange(IMAGES) < 12, torch.arange(IMAGES) % CLASSES, -1)
    data = tiny_data(setting, labels)
    pixels = Reads(data.pixels)
    whole, random = torch.from_numpy(pixels.rows), torch.Generator().manual_seed(4)
    views = [CROPS(whole, random) for _ in range(3)]
    with torch.no_grad():
        features = Reads(torch.stack([setting.encoder(view) for view in views], dim=1))
        early = Reads(torch.stack([setting.encoder.early(view) for view in (whole, *views[:2])], dim=1).half())
    features.counts = early.counts = pixels.counts
    return replace(data, pixels=pixels, views=features, activations=early), setting, pixels.counts


def train_tiny(name: str, spoil: Callable[[Setting], Any] = lambda _: nullcontext()) -> tuple[Epoch, list[int]]:
    """Train in float64, and return the last epoch and the numbers of rows read."""
    kind, fields = (TINY | FOLLOWING)[name]
    with double_precision():
        data, setting, reads = tiny_setup()
        with spoil(setting):
            return list(kind.make(fields).fit(data, setting))[-1], reads


@contextmanager
def spoiled(setting: Setting) -> Iterator[None]:
    """Change everything that a process must take from the first process."""
    step, network, projection = ConjugateGradient.step, plm.first_network, ssdml.first_projection
    nearest, triplets, targets = plm.nearest, ssdml.affinity_triplets, Distill.targets
    clusters, point, distances = SRPML._clusters, SRPML._first_point, SRPML._mining_distances

    def worse_step(self: ConjugateGradient, objective: ManifoldFunction, progress: DescentProgress) -> DescentProgress:
        after = step(self, objective, progress)
        return replace(after, point=tuple(part * 1.01 for part in after.point), step=after.step * 2)

    def worse_network(*arguments: Any) -> Any:
        other = network(*arguments)
        with torch.no_grad():
            other.weight.mul_(1.1)
        return other

    with torch.no_grad():
        for parameter in setting.encoder.parameters():
            parameter.mul_(1.1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ConjugateGradient, "step", worse_step)
        patch.setattr(plm, "first_network", worse_network)
        patch.setattr(Distill, "targets", lambda *data: Targets(*(part.flip(0) for part in targets(*data))))
        patch.setattr(plm, "nearest", lambda *rows: tuple(part[::-1].copy() for part in nearest(*rows)))
        patch.setattr(ssdml, "first_projection", lambda *options: projection(*options).flip(0))
        patch.setattr(ssdml, "affinity_triplets", lambda *rows: triplets(*rows).flip(0))
        patch.setattr(SRPML, "_clusters", lambda *data: replace(clusters(*data), labels=clusters(*data).labels.flip(0)))
        patch.setattr(SRPML, "_first_point", lambda *data: tuple(part.flip(0) for part in point(*data)))
        patch.setattr(SRPML, "_mining_distances", lambda *rows: distances(*rows).flip(0))
        yield


def run_process(rank: int, folder: str) -> None:
    """Train every case in one of two processes and store its state.

    Batch normalization is frozen, because half a batch has other statistics than the whole batch. The
    second process computes its neighbors, memory bank and clusters from rows in reverse order; the values of the first
    process must be used.
    """
    torch.set_num_threads(1)
    if rank:
        for module in {sys.modules[method.__module__] for method, _ in INSTANCE.values()}:
            if hasattr(module, "embed_training_half"):
                module.embed_training_half = lambda *arguments: embed_training_half(*arguments).flip(0)
    distributed.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=2)
    for name in INSTANCE:
        epoch = train(name)
        assert bool(epoch.explanations) == (rank == 0 and name.startswith("pslr"))
        store(folder, f"{name}-{rank}", epoch)
    for name in TINY | FOLLOWING:
        epoch, reads = train_tiny(name, spoiled) if rank else train_tiny(name)
        store(folder, f"{name}-{rank}", epoch, {"reads": torch.tensor(reads)})
    distributed.destroy_process_group()


def store(folder: str, name: str, epoch: Epoch, more: dict[str, Tensor] | None = None) -> None:
    state = {key: value.contiguous() for key, value in epoch.state.items()}
    loss = {"loss": torch.tensor(epoch.losses["loss"], dtype=torch.float64)}
    save_file(state | loss | (more or {}), Path(folder) / f"{name}.safetensors")


@pytest.fixture(scope="module")
def two_processes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("two")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")
        for name in INSTANCE:
            training_setup(build_method(name)[1])
        multiprocessing.spawn(run_process, (str(folder),), nprocs=2)  # type: ignore[no-untyped-call]
    return folder


def stored(name: str, folder: Path) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Return the states of both processes."""
    first, second = (load_file(folder / f"{name}-{rank}.safetensors") for rank in (0, 1))
    return first, second


@pytest.mark.slow
@pytest.mark.parametrize("name", INSTANCE)
def test_two_processes_give_the_loss_and_the_steps_of_one_process(name: str, two_processes: Path) -> None:
    """Compare the states, which contain SGD's moments.

    After one step the moments equal the gradients.
    """
    single = train(name)
    first, second = stored(name, two_processes)
    assert float(first["loss"]) == pytest.approx(single.losses["loss"], rel=1e-6)
    assert sum(key.startswith("optimizer.network.") for key in single.state) >= 1
    for key, value in single.state.items():
        torch.testing.assert_close(first[key], value, rtol=1e-4, atol=1e-5, msg=lambda text, key=key: f"{key}: {text}")
        torch.testing.assert_close(first[key], second[key], rtol=1e-6, atol=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("name", TINY)
def test_two_processes_learn_the_encoder_projection_and_proxies_of_one_process(name: str, two_processes: Path) -> None:
    single, reads = train_tiny(name)
    first, second = stored(name, two_processes)
    assert float(first["loss"]) == pytest.approx(single.losses["loss"], rel=1e-9)
    assert any(key.startswith("optimizer.") for key in single.state) == (name not in ("srpml head", "ssdml head"))
    for key, value in single.state.items():
        torch.testing.assert_close(first[key], value, rtol=1e-7, atol=1e-9, msg=lambda text, key=key: f"{key}: {text}")
        assert torch.equal(first[key], second[key]), key
    own = [-(-count // 2) for count in reads]
    if name.startswith("distill"):  # each process computes the targets from all images, and the first one's are used
        own[0] = IMAGES
    assert first["reads"].tolist() == second["reads"].tolist() == own
    assert bool(own) == (name not in ("srpml head", "ssdml head"))


@pytest.mark.slow
@pytest.mark.parametrize("name", FOLLOWING)
def test_all_processes_keep_the_batch_statistics_of_the_first(name: str, two_processes: Path) -> None:
    first, second = stored(name, two_processes)
    assert all(torch.equal(value, second[key]) for key, value in first.items())
    if name == "ssdml batch statistics":
        images = first["triplets"].unique()
        seen = images[: -(-len(images) // 2)]
        with double_precision():
            data, setting, _ = tiny_setup()
            start = setting.encoder.state_dict()
            maps = conv2d((data.images(seen).double() - 128) / 128, start["network.0.weight"], padding=1)
            expected = 0.9 * start["network.1.running_mean"] + 0.1 * maps.mean((0, 2, 3))
        torch.testing.assert_close(first["encoder.network.1.running_mean"], expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("count", "parts"), [
    (8, [[0, 1, 2], [3, 4, 5], [5, 6, 7]]), (6, [[0, 1], [2, 3], [4, 5]]), (4, [[0, 1], [2, 3], [2, 3]]),
    (2, [[0], [1], [1]])])
def test_equally_long_parts_cover_a_batch_and_each_image_is_gathered_once(
        count: int, parts: list[list[int]], monkeypatch: pytest.MonkeyPatch) -> None:
    """Gather two views of each image: view v of image i is the row (i, v)."""
    monkeypatch.setattr(parallel, "process_count", lambda: 3)
    all_rows = torch.stack([torch.tensor([[image, view] for view in (0, 1) for image in part]) for part in parts])
    monkeypatch.setattr(parallel._Gather, "apply", lambda _rows: all_rows)
    for rank, part in enumerate(parts):
        monkeypatch.setattr(parallel, "_rank", lambda rank=rank: rank)
        rows, first = own_part(torch.arange(10, 10 + count))
        assert (rows - 10).tolist() == part
        assert first == part[0]
        assert gather_rows(all_rows[rank], 2, count).tolist() == [[i, view] for view in (0, 1) for i in range(count)]


def test_reading_ahead_keeps_the_order_and_raises_errors() -> None:
    batches = list(torch.arange(10).split(3))
    results = list(read_ahead(lambda batch: batch * 2, batches))
    assert all(torch.equal(inputs, batch * 2) for batch, inputs in results)
    assert torch.equal(torch.cat([batch for batch, _ in results]), torch.arange(10))
    assert not list(read_ahead(lambda batch: batch, []))

    def fails(batch: torch.Tensor) -> torch.Tensor:
        raise OSError(os.strerror(5))

    with pytest.raises(OSError, match=os.strerror(5)):
        list(read_ahead(fails, batches))
