"""Types of the hyper-parameters that several methods declare.

A type holds the allowed range and the display hints.

Each method keeps its own default and its own description, because papers differ in both.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from udml_core.declaration import Shown

Trains = Annotated[Literal["head", "encoder"], Shown(label="Trained part")]
"""The trained part: a linear head on frozen features, or the encoder and the head."""

Beginning = Annotated[Literal["random", "pca"], Shown(label="Initial projection")]
"""The initial projection: a random subspace, or the principal components."""

BatchNorm = Annotated[Literal["frozen", "batch"], Shown(label="Batch normalization")]
"""The statistics of batch normalization: the pretrained statistics, or each batch's own."""

Dimension = Annotated[int, Field(ge=1, le=4096), Shown(symbol="l", step=1, high=512)]
PairDimension = Annotated[int, Field(ge=1, le=4096), Shown(symbol="d", step=1, high=128)]
"""The embedding's dimension in the notation of NML's paper."""

Epochs = Annotated[int, Field(ge=1, le=1000), Shown(step=1, high=200)]
BatchSize = Annotated[int, Field(ge=2, le=10_000), Shown(step=1, high=512, label="Batch size")]
LearningRate = Annotated[float, Field(gt=0, le=10), Shown(low=1e-6, high=0.1, logarithmic=True)]
"""A learning rate has no symbol: the papers' η means it in some methods and another field in others."""

Momentum = Annotated[float, Field(ge=0, lt=1), Shown(step=0.05)]
WeightDecay = Annotated[float, Field(ge=0, le=1), Shown(low=1e-6, high=0.01, logarithmic=True)]
KeptViews = Annotated[int, Field(ge=2, le=64), Shown(step=1, high=16, label="Views per image")]

Angle = Annotated[float, Field(gt=0, lt=90), Shown(symbol="α", unit="°", step=1, label="Largest angle")]
Temperature = Annotated[float, Field(gt=0, le=10), Shown(symbol="τ", low=0.02, high=1, logarithmic=True)]
NegativeWeight = Annotated[float, Field(ge=1, le=10_000),
                           Shown(symbol="η", low=1, high=100, logarithmic=True, label="Weight of negatives")]
GraphNeighbors = Annotated[int, Field(ge=1, le=500), Shown(symbol="k", step=1, high=100)]
WalkProbability = Annotated[float, Field(gt=0, lt=1), Shown(symbol="γ", step=0.01, label="Walk probability")]

Partition = Annotated[int, Field(ge=0, le=1_000_000),
                      Shown(symbol="Np", step=1000, high=60_000, label="Partition size")]
PartitionEpochs = Annotated[int, Field(ge=1, le=1000), Shown(step=1, high=50, label="Epochs per partition")]

UnitLength = Annotated[bool, Shown(label="Unit length")]
