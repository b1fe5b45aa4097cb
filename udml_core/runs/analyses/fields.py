"""Fields that several kinds of analyses declare: type, range and meaning. Each kind has its own default."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from udml_core.base.declaration import Shown

Scope = Literal["test", "train", "all", "sample"]
REFINED = "refine-"
"""Beginning of the id of a refinement, which is also the name of its embedding as a frame."""
FrameName = Annotated[str, Field(pattern=rf"^(frozen|initial|final|0|[1-9][0-9]*|{REFINED}[0-9a-f]{{12}})$")]

Images = Annotated[Scope, Field(description=(
    "The images: all, a half of the run without the images held out for validation, or the sample of test images "
    "whose embedding is stored for every epoch."))]

Frames = Annotated[tuple[FrameName, ...], Field(min_length=1, max_length=200, description=(
    "The embeddings, in the order of their layouts; epoch numbers need the scope sample, the id of a refinement needs "
    "the scope of the refinement, and a graph has exactly one frame."))]

Judges = Annotated[tuple[str, ...], Field(min_length=1, max_length=10, description=(
    "The encoders that judge, or tables of vectors of the same images; the run's own encoder is left out."))]

Neighbors = Annotated[int, Field(ge=2, le=500, description=(
    "Number of neighbors of UMAP and of the graph. Few neighbors show local detail, many show the global structure.")),
    Shown(high=100, options=("--neighbors",))]

Seed = Annotated[int, Field(ge=0, le=2**31 - 1, description="Seed of t-SNE and UMAP.")]

MapId = Annotated[str, Field(description=(
    "The map whose images a grid arranges or on which images are placed, by its id."))]

FrameOfMap = Annotated[str, Field(description="Frame of that map.")]
