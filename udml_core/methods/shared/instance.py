"""What the methods share that tell every image from all others: views, batches, SGD, several processes, the state."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Annotated, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from udml_core.backbones import EncoderSpec
from udml_core.data.augmentation import COLORS, CROPS, Augmentation
from udml_core.data.training import TrainingData
from udml_core.declaration import Shown
from udml_core.errors import UserError
from udml_core.explanations import Explanation
from udml_core.methods.base import Epoch, Method, Setting, State, mean_curves
from udml_core.methods.embedder import AnyHead, Embedder
from udml_core.methods.shared.distributed import (
    agree,
    average_gradients,
    divisible,
    gathered,
    is_first,
    own_part,
    processes,
    read_ahead,
    replicated,
    without_averaging,
)
from udml_core.methods.shared.projection import (
    Beginning,
    check_batch_norm,
    check_projection,
    check_trainable,
    first_network,
)
from udml_core.methods.shared.training import (
    Network,
    follow_batches,
    load_module,
    load_optimizer,
    module_state,
    optimizer_state,
    random_views,
)
from udml_core.sampling import generator

Curves = dict[str, Tensor]
log = logging.getLogger("udml")


class Objective(nn.Module, ABC):
    """The loss of a batch's instance features, and what is learnt or remembered beside the network."""

    def begin(self, network: Network, data: TrainingData) -> None:
        """Before a pass."""

    def batches(self, images: int, size: int, random: torch.Generator) -> Iterator[Tensor]:
        """Positions of the training half, `size` at a time, in random order; what does not fill a batch is left out."""
        order = torch.randperm(images, generator=random)
        yield from order[: images - images % size].split(size)

    @abstractmethod
    def loss(self, instance: Tensor, batch: Tensor, random: torch.Generator) -> tuple[Tensor, Curves]:
        """The batch's loss () and curves.

        Args:
            instance: unit rows (views·m, l), first views above second ones. batch: (m,) positions, on the CPU.
            random: for noise; the same in every process.
        """

    def remember(self, instance: Tensor, batch: Tensor) -> None:
        """After a step, the instance features that it was made with."""

    def head(self, weight: Tensor) -> AnyHead | None:
        """What embeds beside the encoder; None for the network's own linear head."""
        return None

    def explained(self, network: Network, data: TrainingData) -> tuple[Explanation, ...]:
        """After a pass."""
        return ()


class InstanceMethod(Method, ABC):
    """Instance features x = unit(unit(f) · W) of random views, trained by SGD.

    The papers' projection has a bias and, on pretrained networks, a batch normalization before it; here it is the same
    linear head as in every other method.
    """

    views: ClassVar[int] = 2
    """Of each image, in a batch."""

    dimension: Annotated[int, Field(ge=1, le=4096), Shown(symbol="l", step=1, high=512)] = 128
    """Width of the embedding."""

    trains: Literal["head", "encoder"] = "head"
    """A linear head on the frozen features of random views, or the encoder with it."""

    epochs: Annotated[int, Field(ge=1, le=1000), Shown(step=1, high=200)] = 20
    """Passes over the training half; from scratch the paper makes 200."""

    learning_rate: Annotated[float, Field(gt=0, le=10), Shown(low=1e-5, high=0.1, logarithmic=True)] = 1e-3
    """Step of SGD. From scratch the paper has .03, of pretrained encoders .001."""

    schedule: Literal["constant", "steps"] = "constant"
    """The same step throughout, or a tenth of it after 60 % and a hundredth after 80 % of the epochs: 120 and 160 of
    the paper's 200 from scratch."""

    momentum: Annotated[float, Field(ge=0, lt=1), Shown(step=0.05)] = 0.9
    """Momentum of SGD."""

    weight_decay: Annotated[float, Field(ge=0, le=1), Shown(low=1e-6, high=0.01, logarithmic=True)] = 5e-4
    """Weight decay of SGD."""

    batch: Annotated[int, Field(ge=2, le=10_000), Shown(step=1, high=512)] = 128
    """Images in a batch. The paper has 128 from scratch and 64 of pretrained encoders."""

    parts: Annotated[int, Field(ge=1, le=256), Shown(step=1, high=16)] = 1
    """In how many parts a batch passes the encoder, each twice where there are several: the whole batch's gradient in a
    part of the memory. Batch normalization that follows the batches sees the parts."""

    kept_views: Annotated[int, Field(ge=2, le=64), Shown(step=1, high=16)] = 4
    """Random views of each image whose frozen features are kept, where only the head trains."""

    colors: bool = False
    """Whether views also change their colors and a fifth is gray, as the paper has it on small images."""

    beginning: Beginning = "pca"
    """Where the projection starts: the principal components, or a random subspace."""

    batch_norm: Literal["frozen", "batch"] = "frozen"
    """Whether batch normalization keeps its pretrained statistics or follows the batches; from scratch it must
    follow."""

    def check_encoder(self, encoder: EncoderSpec) -> None:
        if self.trains_encoder:
            check_trainable(encoder)
        check_batch_norm(self, self.batch_norm, encoder)

    @property
    def trains_encoder(self) -> bool:
        return self.trains == "encoder"

    @property
    def views_needed(self) -> int:
        return self.kept_views if self.trains == "head" else 0

    @property
    def shares_batches(self) -> bool:
        return True

    @property
    def augmentation(self) -> Augmentation:
        return COLORS if self.colors else CROPS

    def expected_seconds(self, images: int, width: int, image_seconds: float) -> float:
        steps = images / self.batch * (0.003 + 2e-9 * self.views * self.batch * width * self.dimension)
        return steps + (3 * self.views * images * image_seconds if self.trains_encoder else 0)

    def check(self, images: int, width: int | None) -> None:
        check_projection(type(self).__name__, self.dimension, self.beginning, images, width)
        if images < 2:
            raise UserError(f"{type(self).__name__} tells images from each other and needs at least 2, got {images}. "
                            "Add images.")

    def rate(self, epoch: int) -> float:
        """SGD's step in an epoch, counted from 1."""
        if self.schedule == "constant":
            return self.learning_rate
        return self.learning_rate * 0.1 ** sum(epoch > share * self.epochs for share in (0.6, 0.8))

    def initial(self, data: TrainingData, setting: Setting) -> Embedder:
        return self._network(data, setting).embedder(setting.encoder)

    @abstractmethod
    def objective(self, network: Network, data: TrainingData, setting: Setting) -> Objective:
        """As it is before the first epoch, on the device."""

    def fit(self, data: TrainingData, setting: Setting, start: State | None = None) -> Iterator[Epoch]:
        training = _Training(self, data, setting, start)
        for epoch in range(training.done + 1, self.epochs + 1):
            curves = training.one_pass(epoch)
            network, objective = training.network, training.objective
            yield Epoch(epoch, curves, network.embedder(setting.encoder, objective.head(network.weight)),
                        objective.explained(network, data) if is_first() else (), training.state(epoch))

    def _network(self, data: TrainingData, setting: Setting) -> Network:
        return first_network(self, data, setting, self.dimension, self.beginning)


class _Training:
    """A fit under way: the network, the objective, and SGD on both."""

    def __init__(self, method: InstanceMethod, data: TrainingData, setting: Setting, start: State | None) -> None:
        self.method, self.data, self.setting = method, data, setting
        self.network = method._network(data, setting)
        self.objective = method.objective(self.network, data, setting)
        self._modules: Mapping[str, nn.Module] = {"network": self.network, "objective": self.objective}
        self._named = [(f"{name}.{key}", one) for name, module in self._modules.items()
                       for key, one in module.named_parameters()]
        self._sgd = torch.optim.SGD([one for _, one in self._named], lr=method.learning_rate,
                                    momentum=method.momentum, weight_decay=method.weight_decay)
        self.done = 0
        if start is not None:
            self.done = int(start["epoch"])
            for name, module in self._modules.items():
                load_module(name, module, start)
            load_optimizer(self._sgd, self._named, start)
        agree(self.objective.buffers())
        self._replica = replicated(self.network)

    def one_pass(self, epoch: int) -> dict[str, float]:
        """One epoch; its curves."""
        method, setting = self.method, self.setting
        random = generator(setting.seed, epoch)
        for group in self._sgd.param_groups:
            group["lr"] = method.rate(epoch)
        self.objective.begin(self.network, self.data)
        size = min(method.batch, len(self.data))
        drawn = list(self.objective.batches(len(self.data), size, random))
        batches = [divisible(batch) for batch in drawn]
        if epoch == self.done + 1 and len(batches[0]) < len(drawn[0]):
            log.info("batches of %d images in place of %d, which %d processes cannot share evenly", len(batches[0]),
                     len(drawn[0]), processes())
        follow_batches(self.network, method.batch_norm == "batch")
        seen = []
        for position, (batch, read) in enumerate(read_ahead(self._read, batches)):
            seen.append(self._step(batch, read.to(setting.device, non_blocking=True), random))
            setting.report((position + 1) / len(batches))
        self.network.eval()
        agree(self.network.buffers())
        return mean_curves([{name: float(value) for name, value in one.items()} for one in seen])

    def state(self, epoch: int) -> dict[str, Tensor]:
        """Everything to go on behind an epoch."""
        found = {"epoch": torch.tensor(epoch)} | optimizer_state(self._sgd, self._named)
        for name, module in self._modules.items():
            found |= module_state(name, module)
        return found

    def _read(self, batch: Tensor) -> Tensor:
        """This process's part of a batch: images, or the features of kept views."""
        rows, _ = own_part(batch)
        read = self.data.images(rows) if self.method.trains_encoder else self.data.view_features(rows)
        return read.pin_memory() if self.setting.device.type == "cuda" else read

    def _step(self, batch: Tensor, read: Tensor, random: torch.Generator) -> Curves:
        """One step of SGD on the whole batch's loss."""
        given = random_views(read, self.method.views, random,
                             self.method.augmentation if self.method.trains_encoder else None, len(batch),
                             own_part(batch)[1])
        self._sgd.zero_grad(set_to_none=True)
        parts = given.chunk(self.method.parts)
        instance = self._replica(given) if len(parts) == 1 else self._ahead(parts).requires_grad_()
        rows = gathered(instance, self.method.views)
        loss, curves = self.objective.loss(rows, batch, random)
        loss.backward()
        if len(parts) > 1:
            assert instance.grad is not None
            self._pass_on(parts, instance.grad.chunk(len(parts)))
        average_gradients(self.objective)
        self._sgd.step()
        self.objective.remember(rows.detach(), batch)
        return {"loss": loss.detach()} | curves

    def _ahead(self, parts: tuple[Tensor, ...]) -> Tensor:
        """Instance features of all parts without a gradient; the statistics of batch normalization stay, as the parts
        will pass again."""
        kept = [one.clone() for one in self.network.buffers()]
        with torch.no_grad():
            instance = torch.cat([self.network(part) for part in parts])
        for one, before in zip(self.network.buffers(), kept, strict=True):
            one.copy_(before)
        return instance

    def _pass_on(self, parts: tuple[Tensor, ...], gradients: tuple[Tensor, ...]) -> None:
        """The loss's gradient with respect to instance features, through the network a part at a time."""
        for part, gradient in zip(parts[:-1], gradients[:-1], strict=True):
            with without_averaging(self._replica):
                self._replica(part).backward(gradient)
        self._replica(parts[-1]).backward(gradients[-1])


def alignment(rows: Tensor, name: str = "") -> Curves:
    """Two-view unit rows (2m, l): the mean similarity of an image's views, and of any rows; 1 and 1 is a collapse."""
    with torch.no_grad():
        first, second = rows.chunk(2)
        return {f"{name}positive similarity": (first * second).sum(1).mean(),
                f"{name}mean similarity": rows.mean(0).square().sum()}
