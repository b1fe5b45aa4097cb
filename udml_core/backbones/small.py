"""Networks that are small enough to train from scratch on a CPU."""

from __future__ import annotations

from torch import nn


def small_cnn() -> nn.Module:
    """Four 3×3 convolutions with batch normalization, 32–64–128–128 channels, halved twice: for 8 pixels up."""
    layers: list[nn.Module] = []
    inputs = 3
    for position, outputs in enumerate((32, 64, 128, 128)):
        layers += [nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()]
        if position < 2:
            layers.append(nn.MaxPool2d(2))
        inputs = outputs
    return nn.Sequential(*layers)
