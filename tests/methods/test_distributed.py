"""Two CPU processes give the whole batch's loss and gradients."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as distributed
import torch.multiprocessing as multiprocessing
from safetensors.torch import load_file, save_file

from tests.methods.test_instance_methods import training_setup
from udml_core.errors import UserError
from udml_core.methods import ISIF, NCE, PSLR, Epoch, Method, nce, pslr
from udml_core.methods.shared import distributed as parallel
from udml_core.methods.shared import instance
from udml_core.methods.shared.distributed import read_ahead
from udml_core.methods.shared.instance import InstanceMethod
from udml_core.methods.shared.training import embed_training_half

FIELDS: dict[str, Any] = {"dimension": 8, "epochs": 1, "batch": 300, "trains": "all", "learning_rate": 0.01}
CASES: dict[str, tuple[type[InstanceMethod], dict[str, Any]]] = {
    "pslr": (PSLR, {"eta": 10.0}), "pslr neighbors": (PSLR, {"graph": "neighbors"}), "pslr parts": (PSLR, {"parts": 2}),
    "pslr uneven": (PSLR, {"graph": "neighbors", "batch": 128}),  # 25 seeds with their neighbors are 125 images
    "isif": (ISIF, {"colors": True}), "nce": (NCE, {"noise": 64}),
    "head": (ISIF, {"trains": "head", "dimension": 8})}


def build_method(name: str) -> tuple[Method, str]:
    kind, fields = CASES[name]
    method = kind.make(FIELDS | fields)
    return method, "cnn" if method.trains_encoder else "pixels"


def train(name: str) -> Epoch:
    method, backbone = build_method(name)
    return list(method.fit(*training_setup(backbone)))[-1]


def run_process(rank: int, folder: str) -> None:
    """Train every case in one of two processes and store its state.

    Batch normalization is frozen, because half a batch has other statistics than the whole batch. The
    second process computes its neighbors and its memory bank from rows in reverse order; the values of the first
    process must be used.
    """
    torch.set_num_threads(1)
    if rank:
        for module in (nce, pslr):
            module.embed_training_half = lambda *arguments: embed_training_half(*arguments).flip(0)  # type: ignore[attr-defined]
    distributed.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=2)
    for name in CASES:
        epoch = train(name)
        assert bool(epoch.explanations) == (rank == 0 and name.startswith("pslr"))
        loss = {"loss": torch.tensor(epoch.losses["loss"])}
        save_file({key: value.contiguous() for key, value in epoch.state.items()} | loss,
                  Path(folder) / f"{name}-{rank}.safetensors")
    distributed.destroy_process_group()


@pytest.fixture(scope="module")
def two_processes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("two")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")
        for name in CASES:
            training_setup(build_method(name)[1])
        multiprocessing.spawn(run_process, (str(folder),), nprocs=2)  # type: ignore[no-untyped-call]
    return folder


@pytest.mark.parametrize("name", CASES)
def test_two_processes_give_the_loss_and_the_steps_of_one_process(name: str, two_processes: Path,
                                                                  monkeypatch: pytest.MonkeyPatch) -> None:
    """Compare the states, which contain SGD's moments.

    After one step the moments equal the gradients.
    """
    monkeypatch.setattr(instance, "cut_to_multiple", lambda batch: batch[: len(batch) // 2 * 2])
    single = train(name)
    first, second = (load_file(two_processes / f"{name}-{rank}.safetensors") for rank in (0, 1))
    assert float(first["loss"]) == pytest.approx(single.losses["loss"], rel=1e-6)
    assert sum(key.startswith("optimizer.network.") for key in single.state) >= 1
    for key, value in single.state.items():
        torch.testing.assert_close(first[key], value, rtol=1e-4, atol=1e-5, msg=lambda text, key=key: f"{key}: {text}")
        torch.testing.assert_close(first[key], second[key], rtol=1e-6, atol=1e-7)


def test_a_batch_is_cut_to_a_multiple_of_the_processes_and_rejected_if_it_is_smaller(
        monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "process_count", lambda: 3)
    assert parallel.cut_to_multiple(torch.arange(8)).tolist() == list(range(6))
    with pytest.raises(UserError, match=r"each of the 3 processes; got 2\. Raise the field 'batch'"):
        parallel.cut_to_multiple(torch.arange(2))
    with pytest.raises(ValueError, match="must be a multiple"):
        parallel.own_part(torch.arange(8))


def test_a_cut_batch_is_logged_once(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(instance, "cut_to_multiple", lambda batch: batch[:-1])
    caplog.set_level("INFO", "udml")
    list(ISIF(dimension=8, epochs=2, batch=128).fit(*training_setup()))
    assert [record.message.split(",")[0] for record in caplog.records] == ["batches of 127 images in place of 128"]


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
