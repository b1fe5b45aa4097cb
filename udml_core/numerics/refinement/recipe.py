"""Refinement recipes: an ordered declaration of steps, such as ``views+whiten+average:k=10,times=2``.

A recipe names its steps in the order of their application, joined by ``+``. A step's options follow a colon as
``field=value``, joined by commas. The command line, the sliders and the error messages are generated from the fields.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from udml_core.base.declaration import Options, Shown
from udml_core.base.errors import UserError, quoted

Role = Literal["views", "rows", "queries", "ranking"]
"""What a step changes: the features of each image, every embedding, the embeddings of queries only, or the ranking."""
Seen = Literal["nothing", "fitted", "gallery"]
"""The images that a step learns from: none, the images it is fitted on, or always the unlabeled gallery."""
Whitening = Literal["together", "each", "none"]
"""What is whitened where several encoders stand side by side: their joint vector, the features of each, or nothing."""

Neighbors = Annotated[int, Field(ge=0, le=500), Shown(symbol="k", step=1, high=60, label="Neighbors")]
Exponent = Annotated[float, Field(ge=0, le=20), Shown(symbol="α", step=0.5, high=8, label="Weight exponent")]


class Step(Options):
    """A step of a recipe; its fields are its options.

    Attributes:
        name: Its name in recipes.
        title: Its name on pages.
        idea: Its effect, for a reader who has read no paper.
        technique: How it has this effect, in the terms of the papers.
        source: The papers.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    idea: ClassVar[str]
    technique: ClassVar[str]
    source: ClassVar[str]
    role: ClassVar[Role] = "rows"
    sees: ClassVar[Seen] = "fitted"

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.message_prefix = f"{cls.name}: "

    def __str__(self) -> str:
        """Return the step as a recipe names it, with the options that differ from their defaults."""
        values = {name: value for name, value in self.model_dump().items()
                  if value != type(self).model_fields[name].default}
        options = ",".join(f"{name}={_format_value(value)}" for name, value in values.items())
        return f"{self.name}:{options}" if options else self.name


class Views(Step):
    """Average the features of several views of each image."""

    name: ClassVar[str] = "views"
    title: ClassVar[str] = "Several views of each image"
    idea: ClassVar[str] = ("Looks at each image several times and averages what the network saw: the image, its "
                           "mirror image and center crops.")
    technique: ClassVar[str] = "Test-time augmentation."
    source: ClassVar[str] = "Krizhevsky, Sutskever, Hinton, NeurIPS 2012"
    role: ClassVar[Role] = "views"
    sees: ClassVar[Seen] = "nothing"

    flip: bool = True
    """Add the mirror image of each view."""

    zoom: Annotated[float, Field(gt=0.2, le=1), Shown(step=0.05, low=0.4, label="Center crop")] = 0.7
    """Share of each side that a second view keeps around the center; 1 adds no crop."""


class Whiten(Step):
    """Whiten the embedding."""

    name: ClassVar[str] = "whiten"
    title: ClassVar[str] = "Whitening"
    idea: ClassVar[str] = "Pays less attention to what differs between very similar images."
    technique: ClassVar[str] = ("Shrinks the directions in which mutual neighbors differ, or the directions of large "
                                "variance.")
    source: ClassVar[str] = ("Mutual neighbors: no paper; as the method `whiten`. All images: Jégou, Chum, "
                             "\"Negative Evidences and Co-occurrences in Image Retrieval\", ECCV 2012")

    covariance: Annotated[Literal["neighbors", "images"], Shown(
        label="Even out differences between")] = "neighbors"
    """The covariance to whiten: of the differences of mutual neighbors, or of all images (PCA whitening)."""

    k: Annotated[int, Field(ge=1, le=100), Shown(symbol="k", step=1, high=30, label="Paired neighbors")] = 5
    """Two images form a pair if each is among the k nearest neighbors of the other."""

    shrinkage: Annotated[float, Field(gt=0, le=100), Shown(symbol="s", step=0.05, high=5.0)] = 1.0
    """Multiple of the mean variance that is added in every direction; larger values change the embedding less."""


class Average(Step):
    """Average each gallery image with its neighbors."""

    name: ClassVar[str] = "average"
    title: ClassVar[str] = "Neighbor averaging"
    idea: ClassVar[str] = "Moves each image toward the images that resemble it."
    technique: ClassVar[str] = "Replaces its embedding by the weighted mean of itself and its k nearest neighbors."
    source: ClassVar[str] = ("Mean: Turcot, Lowe, ICCV Workshops 2009; weights cosine^α: Gordo et al., \"End-to-End "
                             "Learning of Deep Visual Representations for Image Retrieval\", IJCV 2017")
    sees: ClassVar[Seen] = "gallery"

    k: Neighbors = 10
    """Number of neighbors in the mean; 0 changes nothing."""

    times: Annotated[int, Field(ge=1, le=10), Shown(step=1, high=4, label="Repetitions")] = 1
    """Number of repetitions; the neighbors are searched again before each."""

    alpha: Exponent = 0.0
    """Neighbors count cosine^α; 0 is the plain mean, larger values trust near neighbors more."""


class Reduce(Step):
    """Project on principal components."""

    name: ClassVar[str] = "reduce"
    title: ClassVar[str] = "Reduction"
    idea: ClassVar[str] = "Keeps the directions in which the images differ most, and drops the rest."
    technique: ClassVar[str] = "Projects on the principal components."
    source: ClassVar[str] = "Pearson, 1901"

    dimension: Annotated[int, Field(ge=1, le=4096), Shown(symbol="l", step=1, high=512)] = 128
    """Number of principal components."""


class Expand(Step):
    """Expand queries."""

    name: ClassVar[str] = "expand"
    title: ClassVar[str] = "Query expansion"
    idea: ClassVar[str] = "Searches once more with the first results."
    technique: ClassVar[str] = "Replaces the query by the weighted mean of itself and its k nearest images."
    source: ClassVar[str] = ("Mean: Chum et al., \"Total Recall\", ICCV 2007; weights cosine^α: Radenović, Tolias, "
                             "Chum, \"Fine-Tuning CNN Image Retrieval with No Human Annotation\", TPAMI 2019")
    role: ClassVar[Role] = "queries"
    sees: ClassVar[Seen] = "gallery"

    k: Neighbors = 10
    """Number of gallery images in the mean; 0 changes nothing."""

    alpha: Exponent = 0.0
    """Gallery images count cosine^α; 0 is the plain mean, larger values trust near images more."""


class Rerank(Step):
    """Re-rank by common reciprocal neighbors."""

    name: ClassVar[str] = "rerank"
    title: ClassVar[str] = "Re-ranking"
    idea: ClassVar[str] = "Prefers images that find the query as the query finds them."
    technique: ClassVar[str] = ("k-reciprocal re-ranking: ranks by the Jaccard distance of the sets of reciprocal "
                                "neighbors.")
    source: ClassVar[str] = ("Zhong, Zheng, Cao, Li, \"Re-ranking Person Re-identification with k-reciprocal "
                             "Encoding\", CVPR 2017")
    role: ClassVar[Role] = "ranking"
    sees: ClassVar[Seen] = "gallery"

    k1: Annotated[int, Field(ge=1, le=200), Shown(symbol="k₁", step=1, high=80, label="Shared neighbors")] = 20
    """Two images find each other, as reciprocal neighbors, if each is among the k₁ nearest of the other."""

    k2: Annotated[int, Field(ge=1, le=200), Shown(symbol="k₂", step=1, high=30, label="Local expansion")] = 6
    """The neighbor sets of the k₂ nearest images, the image included, are averaged; 1 changes nothing."""

    weight: Annotated[float, Field(ge=0, le=1), Shown(symbol="λ", step=0.05, label="Original distance")] = 0.3
    """Weight of the original distance; 0 ranks by the Jaccard distance only, 1 keeps the original ranking."""

    shortlist: Annotated[int, Field(ge=10, le=5000), Shown(step=10, high=500)] = 200
    """Number of images that are ranked for each query: the smallest Jaccard distances and the nearest images."""


class Diffuse(Step):
    """Rank by diffusion."""

    name: ClassVar[str] = "diffuse"
    title: ClassVar[str] = "Diffusion"
    idea: ClassVar[str] = "Follows chains of similar images to images that look different but belong together."
    technique: ClassVar[str] = "Ranks by a random walk with restart on the graph of mutual neighbors."
    source: ClassVar[str] = ("Iscen, Tolias, Avrithis, Furon, Chum, \"Efficient Diffusion on Region Manifolds: "
                             "Recovering Small Objects with Compact CNN Representations\", CVPR 2017")
    role: ClassVar[Role] = "ranking"
    sees: ClassVar[Seen] = "gallery"

    k: Annotated[int, Field(ge=1, le=500), Shown(symbol="k", step=1, high=100, label="Linked neighbors")] = 50
    """Two images are connected if each is among the k nearest neighbors of the other."""

    alpha: Annotated[float, Field(gt=0, lt=1), Shown(symbol="α", step=0.01, label="Walk probability")] = 0.99
    """Probability that the walk continues instead of returning to the query."""

    gamma: Annotated[float, Field(gt=0, le=20), Shown(symbol="γ", step=0.5, high=8, label="Affinity exponent")] = 3.0
    """The affinity of two connected images is cosine^γ."""

    shortlist: Annotated[int, Field(ge=10, le=5000), Shown(step=10, high=1000)] = 500
    """Number of nearest images to which each walk is confined, as in the paper's truncation."""


STEPS: dict[str, type[Step]] = {step.name: step for step in (Views, Whiten, Average, Reduce, Expand, Rerank, Diffuse)}
"""Every step by its name, in the usual order."""


@dataclass(frozen=True)
class Recipe:
    """An ordered list of steps.

    Attributes:
        steps: The steps in the order of their application; views come first, query expansion follows the steps that
            change embeddings, and a re-ranking is last.
    """

    steps: tuple[Step, ...] = ()

    def __post_init__(self) -> None:
        order: dict[Role, int] = {"views": 0, "rows": 1, "queries": 2, "ranking": 3}
        for before, after in zip(self.steps, self.steps[1:], strict=False):
            if order[before.role] > order[after.role]:
                raise UserError(f"In a recipe the step '{before.name}' must come after '{after.name}'; got '{self}'. "
                                "Exchange the two steps.")
            if before.role == after.role != "rows":
                raise UserError(f"A recipe can have one step of the kind of '{after.name}'; got '{self}'. Remove "
                                f"'{before.name}' or '{after.name}'.")

    @classmethod
    def parse(cls, text: str) -> Recipe:
        """Read a recipe such as ``views+whiten+average:k=10,times=2``; an empty text has no steps.

        Raises:
            UserError: A step or a field is unknown, a value is not allowed, or the order is not possible.
        """
        return cls(tuple(_parse_step(part.strip()) for part in text.split("+")) if text.strip() else ())

    def __str__(self) -> str:
        """Return the text that `parse` reads."""
        return "+".join(map(str, self.steps))

    def find(self, role: Role) -> Step | None:
        """Return the first step of a role, if the recipe has one."""
        return next((step for step in self.steps if step.role == role), None)

    def without(self, role: Role) -> Recipe:
        """Return the recipe without the steps of a role."""
        return Recipe(tuple(step for step in self.steps if step.role != role))

    def ranking_steps(self) -> tuple[Step, ...]:
        """Return the steps that change the ranking of the gallery's images, but not their embeddings."""
        return tuple(step for step in self.steps if step.role in ("queries", "ranking")
                     and not (isinstance(step, Expand) and step.k == 0))

    def caution(self) -> str:
        """Return what to know before queries from outside search the gallery; empty if there is nothing."""
        average = next((step for step in self.steps if isinstance(step, Average) and step.k), None)
        if average is None or self.find("queries") or self.find("ranking"):
            return ""
        expand = Expand(k=average.k, alpha=average.alpha)
        return ("`average` moves the gallery away from queries from outside, whose R@1 falls. Add "
                f"'+{expand}' for such queries; among the gallery's own images this costs some R@1.")

    def sees_gallery(self, has_training: bool) -> bool:
        """Return whether a step learns from the unlabeled gallery.

        Args:
            has_training: Whether the steps that are fitted are fitted on the training half.
        """
        return any(step.sees == "gallery" or (step.sees == "fitted" and not has_training) for step in self.steps)


def _parse_step(text: str) -> Step:
    name, _, options = text.partition(":")
    if name not in STEPS:
        raise UserError(f"A recipe has the steps {', '.join(STEPS)}, joined by '+'; got {quoted(name)}.")
    values: dict[str, Any] = {}
    for option in filter(None, (part.strip() for part in options.split(","))):
        field, sign, value = (part.strip() for part in option.partition("="))
        if not sign or not value:
            raise UserError(f"The options of {quoted(name)} must be field=value, joined by ','; got {quoted(option)}.")
        if field in values:
            raise UserError(f"Name the option {quoted(field)} of {quoted(name)} once; got {quoted(text)}.")
        values[field] = _parse_value(value)
    return make_step(name, values)


def make_step(name: str, values: Mapping[str, Any]) -> Step:
    """Build a step from its name and the values of its fields.

    Raises:
        UserError: The step or a field is unknown, or a value is not allowed.
    """
    if name not in STEPS:
        raise UserError(f"A recipe has the steps {', '.join(STEPS)}; got {quoted(name)}.")
    unknown = [field for field in values if field not in STEPS[name].model_fields]
    if unknown:
        raise UserError(f"The step '{name}' has the options {', '.join(STEPS[name].model_fields)}; got "
                        f"'{unknown[0]}'.")
    return STEPS[name].make(values)


def _parse_value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _format_value(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(int(value) if isinstance(value, float) and value.is_integer() else value)
