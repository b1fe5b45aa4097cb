"""Types of the hyper-parameters that several methods declare.

A type holds the allowed range, the display hints and a text, which the docstring of a field replaces. Each method keeps
its own default, because papers differ in it.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from udml_core.base.declaration import Shown

Part = Literal["head", "last", "all"]
OLDER_PARTS = {"encoder": "all"}
"""Former names of trained parts, in stored specs and saved commands."""


def _current_part(value: Any) -> Any:
    return OLDER_PARTS.get(value, value) if isinstance(value, str) else value


Trains = Annotated[Part, BeforeValidator(_current_part), Shown(label="Trained part", text=(
    "Train a linear head on the frozen features of random views, the encoder's last blocks with it, or all layers."))]
"""The trained part: a linear head on frozen features, the last blocks of the encoder and the head, or all of both.

`encoder`, the former name of `all`, is still read.
"""

Beginning = Annotated[Literal["random", "pca"], Shown(
    label="Initial projection", text="Initial projection: the principal components, or a random subspace.")]
"""The initial projection: a random subspace, or the principal components."""

CenteredBeginning = Annotated[Literal["random", "pca", "centered"], Shown(label="Initial projection")]
"""As `Beginning`, or the principal components of centered features, with a learned bias after the projection."""

BatchNorm = Annotated[Literal["frozen", "statistics", "batch"], Shown(label="Batch normalization", text=(
    "Freeze batch normalization as pretrained, freeze only its statistics, or use each batch's statistics. From "
    "scratch, use 'batch'."))]
"""Batch normalization of a trained encoder.

`frozen` keeps the pretrained statistics and the scale γ and shift β of every layer. `statistics` keeps the statistics
and trains γ and β, which `frozen` did before version 0.3. `batch` uses each batch's statistics and trains γ and β.
"""

UnitLength = Annotated[bool, Shown(label="Unit length")]
"""Whether embeddings are scaled to unit length; otherwise the projection keeps their lengths."""

Dimension = Annotated[int, Field(ge=1, le=4096), Shown(symbol="l", step=1, high=512,
                                                       text="Dimension of the embedding.")]
PairDimension = Annotated[int, Field(ge=1, le=4096), Shown(symbol="d", step=1, high=128)]
"""The embedding's dimension in the notation of NML's paper."""

Epochs = Annotated[int, Field(ge=1, le=1000), Shown(step=1, high=200)]
BatchSize = Annotated[int, Field(ge=2, le=10_000), Shown(step=1, high=512, label="Batch size")]
LearningRate = Annotated[float, Field(ge=0, le=10), Shown(low=1e-6, high=0.1, logarithmic=True,
                                                          text="Learning rate of SGD on the encoder.")]
"""A learning rate has no symbol: the papers' η means it in some methods and another field in others.

At 0 nothing changes but the statistics of batch normalization, which shows their share of an effect.
"""

Momentum = Annotated[float, Field(ge=0, lt=1), Shown(step=0.05, text="Momentum of SGD.")]
Dampening = Annotated[float, Field(ge=0, lt=1), Shown(step=0.05)]
WeightDecay = Annotated[float, Field(ge=0, le=1), Shown(low=1e-6, high=0.01, logarithmic=True,
                                                        text="Weight decay of SGD.")]
KeptViews = Annotated[int, Field(ge=2, le=64), Shown(step=1, high=16, label="Views per image")]

Angle = Annotated[float, Field(gt=0, lt=90), Shown(symbol="α", unit="°", step=1, label="Largest half angle")]
Temperature = Annotated[float, Field(gt=0, le=10), Shown(
    symbol="τ", low=0.02, high=1, logarithmic=True,
    text="Temperature of the softmax; lower values concentrate on the most similar images.")]
NegativeWeight = Annotated[float, Field(ge=1, le=10_000),
                           Shown(symbol="η", low=1, high=100, logarithmic=True, label="Weight of negatives")]
GraphNeighbors = Annotated[int, Field(ge=1, le=500), Shown(symbol="k", step=1, high=100)]
WalkProbability = Annotated[float, Field(gt=0, lt=1), Shown(
    symbol="γ", step=0.01, label="Walk probability",
    text="Probability that a random walk continues at each step. Larger values spread the labels farther.")]

Partition = Annotated[int, Field(ge=0, le=1_000_000),
                      Shown(symbol="Np", step=1000, high=60_000, label="Partition size",
                            text="Unlabeled images in a partition; 0 takes all of them.")]
PartitionEpochs = Annotated[int, Field(ge=1, le=1000), Shown(
    step=1, high=50, label="Epochs per partition", text="Epochs with one partition before the next is drawn.")]
