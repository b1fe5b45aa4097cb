"""Networks small enough to train from scratch on a CPU."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn.functional import relu


def small_cnn() -> nn.Module:
    """Build four 3×3 convolutions with batch normalization and two 2×2 max-pools.

    The widths are 32–64–128–128 channels.
    """
    layers: list[nn.Module] = []
    inputs = 3
    for position, outputs in enumerate((32, 64, 128, 128)):
        layers += [nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()]
        if position < 2:
            layers.append(nn.MaxPool2d(2))
        inputs = outputs
    return nn.Sequential(*layers)


def lenet() -> nn.Module:
    """Build SSDML's network for MNIST and Fashion-MNIST.

    It maps 28×28 gray pixels to 128 maps of 1×1. Conv 5×5, 20 → max-pool → conv 5×5, 50 → max-pool → conv 4×4, 500 →
    ReLU → fully connected, 128, without padding; derived from MatConvNet's network.
    """
    return nn.Sequential(_Gray(), nn.Conv2d(1, 20, 5), nn.MaxPool2d(2), nn.Conv2d(20, 50, 5), nn.MaxPool2d(2),
                         nn.Conv2d(50, 500, 4), nn.ReLU(), nn.Conv2d(500, 128, 1))


def cifar_quick() -> nn.Module:
    """Build SSDML's network for CIFAR-10, from 32×32 pixels to 64 maps of 1×1.

    Conv 5×5, 32 → max-pool → ReLU → conv 5×5, 32 → ReLU → mean-pool → conv 5×5, 64 → ReLU → mean-pool → conv 4×4, 64 →
    ReLU; derived from MatConvNet's network. The paper prints no padding. Padding by 2 pixels and 3×3 pools of stride 2,
    rounded up, give sides of 32 → 16 → 8 → 4 → 1.
    """
    return nn.Sequential(nn.Conv2d(3, 32, 5, padding=2), nn.MaxPool2d(3, 2, ceil_mode=True), nn.ReLU(),
                         nn.Conv2d(32, 32, 5, padding=2), nn.ReLU(), nn.AvgPool2d(3, 2, ceil_mode=True),
                         nn.Conv2d(32, 64, 5, padding=2), nn.ReLU(), nn.AvgPool2d(3, 2, ceil_mode=True),
                         nn.Conv2d(64, 64, 4), nn.ReLU())


class _Gray(nn.Module):
    """The mean over channels, (b, c, h, w) → (b, 1, h, w)."""

    def forward(self, maps: Tensor) -> Tensor:
        return maps.mean(1, keepdim=True)


class _Residual(nn.Module):
    """Two 3×3 convolutions with a shortcut.

    The shortcut is the identity, or a 1×1 convolution if the shape changes.
    """

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)
        self.first_norm = nn.BatchNorm2d(outputs)
        self.second = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.second_norm = nn.BatchNorm2d(outputs)
        self.shortcut: nn.Module = nn.Identity()
        if stride > 1 or inputs != outputs:
            self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, maps: Tensor) -> Tensor:
        inner = relu(self.first_norm(self.first(maps)))
        return relu(self.second_norm(self.second(inner)) + self.shortcut(maps))


def small_resnet18() -> nn.Module:
    """Build ResNet-18 for small images, (b, 3, s, s) → (b, 512, s/8, s/8).

    K. He et al., CVPR 2016, with the stem of their CIFAR networks as PSLR and ISIF use it: a 3×3 convolution of stride
    1 and no max-pool.
    """
    blocks: list[nn.Module] = [nn.Conv2d(3, 64, 3, padding=1, bias=False), nn.BatchNorm2d(64), nn.ReLU()]
    inputs = 64
    for outputs in (64, 128, 256, 512):
        blocks += [_Residual(inputs, outputs, 1 if outputs == inputs else 2), _Residual(outputs, outputs, 1)]
        inputs = outputs
    return nn.Sequential(*blocks)
