"""Turn a run request into a spec, and check it before training."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from udml_core.base.arrays import Array
from udml_core.base.errors import UserError, counted
from udml_core.base.files import read_array
from udml_core.data.dataset import TABLE, Dataset
from udml_core.data.encoder_names import is_several
from udml_core.data.encoders import EncoderSpec, check_backbone, check_compiler, choose_spec, feature_width
from udml_core.data.encoders.encoder import SMALLEST
from udml_core.data.features import features_path
from udml_core.data.given.exclusions import excluded_names, indices_of
from udml_core.data.given.labels import assigned_labels
from udml_core.data.given.pair_sets import PairSet
from udml_core.data.label_budget import check_labels, default_per_class, default_select
from udml_core.data.splits import HOLDING_OUT, VALIDATION_SHARE, Select, Split, SplitName, default_split, make_split
from udml_core.methods import Method, find_method, names_of
from udml_core.methods.embedder import histograms
from udml_core.runs import ExclusionList, Run, RunRequest, Spec
from udml_core.runs.tasks import ADVICE
from udml_core.work.jobs.needed_memory import check_memory, expected_memory
from udml_core.work.jobs.presets import apply_preset
from udml_core.work.jobs.queue import resolve_device, resolve_processes

MOST_CHECKED = 500
"""Most training images that are looked at while a run is planned; more take longer than a form should."""
IMAGE_OPTIONS = ("backbone", "weights", "whitening", "pooling", "size", "compile")
"""Options of a run that apply to images only, not to a table of embeddings."""


def plan(request: RunRequest, dataset: Dataset, pairs: PairSet | None = None, gpus: int | None = None) -> Spec:
    """Resolve and check a request.

    Args:
        request: The options.
        dataset: The data set that `request.dataset` names.
        pairs: Pairs to learn from in place of pairs drawn from labels; hand them to `submit` as well.
        gpus: Number of GPUs where the run will work; by default this machine's.

    Raises:
        UserError: An option does not fit; the message names it.
    """
    if dataset.is_table:
        _check_table_options(request, dataset)
    request = apply_preset(request, dataset)
    method = find_method(request.method).make(request.fields)
    if dataset.is_table:
        _check_learns_from_vectors(method, dataset)
    encoder = encoder_of(dataset, request.backbone, request)
    split = request.split or default_split(dataset)
    select = request.select or _default_select(request, method, split)
    excluded = ExclusionList.of(excluded_names(dataset) if request.exclusions == "listed" else ())
    halves = make_split(dataset, split, select if request.labels == "drawn" else "last", request.seed).without(
        indices_of(dataset, excluded.images))
    _check_halves(dataset, halves, excluded.count)
    encoder = encoder.fitted(halves.train, dataset.fingerprint)
    if select in HOLDING_OUT and request.labels == "drawn":
        _check_validation(dataset, halves, select)
    _check_supervision(method, dataset, halves, pairs)
    method = _with_possible_dimension(method, request, len(halves.train), feature_width(encoder))
    method.check(len(halves.train), feature_width(encoder))
    method.check_encoder(encoder)
    if gpus is None:  # else the run works on another machine
        check_memory(expected_memory(method, encoder, dataset, halves))
    _check_features(method, dataset, encoder, halves.train)
    if request.compile:
        if method.trained_part != "all":
            raise UserError("The option 'compile' applies only if the whole encoder is trained, and "
                            f"{method.card.name} trains '{method.trained_part}'. Leave it off, or set the field "
                            "'trains' to 'all'.")
        check_compiler(resolve_device(request.device, gpus))
    processes = resolve_processes(request.device, request.processes, gpus)
    _check_patience(request.patience, select, processes)
    if processes > 1 and not method.shares_batches:
        raise UserError(f"{method.card.title} trains in one process, got {processes} processes. Use one, or "
                        f"{names_of(lambda other: other.shares_batches)}.")
    few = method.card.supervision == "few"
    if not few and (request.labels != "drawn" or request.labels_per_class is not None):
        raise UserError("Only methods that learn from few labels have the options 'labels' and 'labels_per_class', and "
                        f"{method.card.name} does not. Remove these options, or choose another method.")
    per_class = _labels_per_class(request, dataset, halves) if few else None
    spec = Spec.model_validate(request.model_dump() | {
        "dataset": dataset.name, "dataset_title": dataset.title, "fingerprint": dataset.fingerprint,
        "fields": method.model_dump(), "encoder": encoder, "backbone": encoder.backbone,
        "size": encoder.size if encoder.reads_images else None,
        "weights": encoder.named_weights and str(encoder.named_weights.path), "split": split, "select": select,
        "excluded": excluded, "device": resolve_device(request.device, gpus), "processes": processes,
        "labels_per_class": per_class,
        "given_labels": assigned_labels(dataset) if request.labels == "given" else {},
        "pairs": "labels" if pairs is None else "given"})
    if few:
        labels = spec.few_labels(dataset, halves.train)
        assert labels is not None
        check_labels(labels)
    return spec


def _with_possible_dimension(method: Method, request: RunRequest, images: int, width: int | None) -> Method:
    """Lower a dimension that is the default, and not the user's, to what a few images or short features span."""
    default, most = getattr(method, "dimension", 0), images if width is None else min(images, width)
    if "dimension" in request.fields or default <= most:
        return method
    try:
        method.check(images, width)
    except UserError:
        return type(method).make({**request.fields, "dimension": most})
    return method


def words_of_dimension(spec: Spec, request: RunRequest) -> str:
    """Say that the default dimension was lowered; empty if it was not."""
    usual = getattr(find_method(spec.method).make({}), "dimension", None)
    dimension = spec.fields.get("dimension")
    if "dimension" in request.fields or spec.preset != "default" or dimension == usual:
        return ""
    return (f"The embedding has {dimension} dimensions, not the default of {usual}, because the training images and "
            "their features span no more.")


def _check_patience(patience: int | None, select: Select, processes: int) -> None:
    """Check that judges can stop a training."""
    if patience is not None and select != "judges":
        raise UserError(f"The option 'patience' stops a training by the judges' verdict; got {patience} with select "
                        f"'{select}'. Set select 'judges', or remove patience.")
    if patience is not None and processes > 1:
        raise UserError(f"The option 'patience' stops a training in one process; got {processes} processes. Use one, "
                        "or remove patience.")


def _default_select(request: RunRequest, method: Method, split: SplitName) -> Select:
    """Return the default choice of the epoch.

    Judges choose where training sees no labels and the trained images are searched: there they prevent the largest
    losses of the record. On images of other classes they are right about as often as wrong; see docs/judging.md.
    """
    is_judged = split == "all" and method.card.supervision == "none" and method.epochs_planned > 1
    return "judges" if is_judged else default_select(request.labels)


def caution_of_processes(spec: Spec) -> str:
    """Return why several processes give other results than one; empty if they differ by rounding alone."""
    method = spec.build_method()
    if spec.processes == 1 or not method.trains_encoder or getattr(method, "batch_norm", "") != "batch":
        return ""
    return (f"With batch_norm 'batch' each of the {spec.processes} processes normalizes by its own part of a batch, so "
            "that the run differs from one process. With a pretrained encoder, batch_norm 'statistics' "
            "or 'frozen' gives equal results.")


def _check_halves(dataset: Dataset, halves: Split, excluded: int) -> None:
    """Check that both halves have two images.

    Args:
        dataset: The data set.
        halves: Its halves without the excluded images.
        excluded: Number of excluded images.

    Raises:
        UserError: A half has fewer.
    """
    if min(len(halves.train), len(halves.test)) >= 2:
        return
    whole = "" if halves.name == "all" else ", or use the split 'all'"
    command = shlex.join(["udml", "exclude", dataset.name, "--include", "IMAGE"])
    fix = f"Add images{whole}." if not excluded else (
        f"{counted(excluded, 'image')} of this data set {'is' if excluded == 1 else 'are'} excluded: include some "
        f"again on the page Data under Audit, Excluded, or with `{command}`{whole}.")
    raise UserError(f"The split '{halves.name}' needs at least 2 images in each half, got {len(halves.train):,} in the "
                    f"training half and {len(halves.test):,} in the test half. {fix}")


def encoder_of(dataset: Dataset, backbone: str, request: RunRequest | None = None) -> EncoderSpec:
    """Choose the encoder of a data set.

    Args:
        dataset: The data set. A table of embeddings has no backbone; its encoder stands for the stored vectors.
        backbone: The backbone for images.
        request: Pooling, image size, seed and file of weights; the defaults if None.

    Raises:
        UserError: The backbone is not available, or the options do not fit it.
    """
    if dataset.vectors is not None:
        return EncoderSpec(backbone=TABLE, size=SMALLEST, width=dataset.vectors.shape[1])
    if backbone == TABLE:
        raise UserError(f"The backbone '{TABLE}' stands for the vectors of a table of embeddings, and {dataset.title} "
                        "has images. Choose another backbone.")
    check_backbone(backbone)
    if request is None:
        return choose_spec(backbone, dataset.native_size, dataset.gray)
    if not is_several(backbone) and request.whitening != RunRequest.model_fields["whitening"].default:
        raise UserError(f"The option 'whitening' applies to several encoders side by side, got '{request.whitening}' "
                        f"with {backbone}. Remove it, or add an encoder by a plus sign, such as "
                        "efficientnet-lite0+squeezenet.")
    return choose_spec(backbone, dataset.native_size, dataset.gray, request.pooling, request.size, request.seed,
                       request.weights, request.whitening)


def _check_table_options(request: RunRequest, dataset: Dataset) -> None:
    """Check that a request has no options of images.

    Raises:
        UserError: It has; the message names the option.
    """
    if request.preset == "paper":
        raise UserError(f"The papers' settings are for images, and {dataset.title} is a table of embeddings. Remove "
                        "the preset.")
    allowed = {"backbone": TABLE}
    for name in IMAGE_OPTIONS:
        value = getattr(request, name)
        if name in request.model_fields_set and value not in (allowed.get(name), RunRequest.model_fields[name].default):
            raise UserError(f"The features of {dataset.title} are its stored vectors, so the option '{name}' does not "
                            f"apply; got {value!r}. Remove it.")


def _check_learns_from_vectors(method: Method, dataset: Dataset) -> None:
    """Check that a method learns from stored vectors alone.

    Raises:
        UserError: It needs images.
    """
    if method.learns_from_vectors:
        return
    if method.trained_part != "head" and not method.cached_views:
        raise UserError(f"With trains='{method.trained_part}' {method.card.title} trains an encoder of images, and "
                        f"{dataset.title} is a table of embeddings. Set the field 'trains' to 'head', or choose "
                        "another method.")
    raise UserError(f"{method.card.title} {method.needs_images}, and {dataset.title} is a table of "
                    f"embeddings. Choose {names_of(lambda other: other.learns_from_vectors)}.")


def plan_continuation(run: Run, dataset: Dataset, pairs: PairSet, fields: Mapping[str, Any], device: str = "auto"
                      ) -> Spec:
    """Plan a new run that continues a finished run with further pairs.

    The new run starts from the finished run's kept state and learns from the further pairs only, which is the online
    use of NML's paper. Data set, features, split, seed and method are the finished run's, which does not change.

    Args:
        run: The finished run.
        dataset: Its data set.
        pairs: The further pairs; hand them to `submit` as well, with the finished run's folder of runs.
        fields: Hyper-parameters to change, except fields that shape the model. `epochs` counts the new run's own
            epochs and is 1 by default.
        device: Device of the computation.

    Raises:
        UserError: The run cannot be continued, or a value does not fit.
    """
    spec, state = run.spec(), run.status().state
    before = spec.build_method()
    if not before.continues_with_pairs:
        raise UserError(f"Only runs of methods that learn from pairs can be continued, and {run.id} is a run of "
                        f"{before.card.title}. Choose a run of {names_of(lambda method: method.continues_with_pairs)}.")
    if state != "done":
        raise UserError(f"Only a finished run can be continued, and {run.id} is {state}. {ADVICE[state]}")
    run.kept_checkpoint()
    changed = spec.fields | {"epochs": 1} | dict(fields)
    method = find_method(spec.method).make(changed)
    for name, value in method:
        if name not in method.fields_when_continued and value != getattr(before, name):
            raise UserError(f"A continued run keeps '{name}' at {getattr(before, name)}, got {value}. Remove it, or "
                            f"start a new run; a continued run can change {', '.join(method.fields_when_continued)}.")
    run.check_dataset(dataset)
    train = spec.halves(dataset).train
    pairs.within(train).check()
    method.check(len(train), feature_width(spec.encoder))
    return Spec.model_validate(spec.model_dump(exclude={"created", "version", "versions"}) | {
        "version": Spec.model_fields["version"].get_default(), "fields": method.model_dump(),
        "device": resolve_device(device), "pairs": "given", "starts_from": run.id})


def _labels_per_class(request: RunRequest, dataset: Dataset, halves: Split) -> int | None:
    """Return the number of labels drawn from each class; None with assigned labels."""
    count = request.labels_per_class
    if request.labels == "given":
        if count is not None:
            raise UserError(f"All assigned labels are used, so labels_per_class={count} does not apply. Remove it, or "
                            "use labels 'drawn'.")
        return None
    if count is None or dataset.labels is None:
        return default_per_class(dataset, halves.train)
    largest = int(np.bincount(dataset.labels[halves.train]).max())
    if count > largest:
        raise UserError(f"labels_per_class must be between 1 and {largest:,}, the size of the largest class of the "
                        f"training half, got {count:,}.")
    return count


def _check_features(method: Method, dataset: Dataset, encoder: EncoderSpec, train: Array) -> None:
    """Check the features that are stored already; the run checks all others before its first epoch.

    Some images of a small training half must be similar, and a table's vectors must suit the method's kernel.
    """
    if method.positive_only and dataset.vectors is not None:
        histograms(torch.from_numpy(np.array(dataset.vectors[train[:MOST_CHECKED]])))
    if not method.clusters_by_ascent or len(train) > MOST_CHECKED:
        return
    try:
        features = read_array(features_path(dataset, encoder), mapped=True)
    except UserError:  # not computed yet
        return
    if features.ndim == 2 and len(features) == len(dataset):
        method.check_features(torch.from_numpy(np.array(features[train])))


def _check_supervision(method: Method, dataset: Dataset, halves: Split, pairs: PairSet | None) -> None:
    """Check that the data set has the images, and the labels or pairs, that the method learns from."""
    card = method.card
    if method.needs_different_images and dataset.distinct == 1:
        raise UserError(f"{card.title} compares different images, and all {len(dataset)} images of {dataset.title} are "
                        "the same. Add other images, or choose another method.")
    if card.supervision == "pairs" and pairs is not None:
        pairs.within(halves.train).check()
        return
    if pairs is not None:
        raise UserError(f"{card.title} does not learn from pairs, but pairs were given. Remove them, or choose "
                        f"{names_of(lambda method: method.card.supervision == 'pairs')}.")
    if card.supervision in ("all", "pairs") and dataset.labels is None:
        other = " or give pairs of images," if card.supervision == "pairs" else ""
        if dataset.evaluation_classes is not None:
            raise UserError(f"{card.title} learns from one class for each image, and {dataset.title} "
                            f"{dataset.without_labels}. Choose a method that learns without labels"
                            f"{',' + other.rstrip(',') if other else ''}.")
        raise UserError(f"{card.title} learns from class labels, and {dataset.title} has none. "
                        f"{dataset.advice_on_classes},{other} or choose another method.")
    if card.supervision in ("all", "pairs") and dataset.labels is not None:
        sizes = np.bincount(dataset.labels[halves.train])
        if (sizes > 0).sum() < 2 or sizes.max() < 2:
            raise UserError(f"{card.title} compares images of the same class and of two classes, so the training half "
                            f"needs two classes, one of them with two images; got {counted(sizes.sum(), 'image')} in "
                            f"{counted((sizes > 0).sum(), 'class')}. Add images, or choose another split or method.")


def _check_validation(dataset: Dataset, halves: Split, select: Select) -> None:
    """Check that some class has two held-out images, because MAP@R needs them."""
    if dataset.labels is None:
        raise UserError("Selecting the epoch by validation needs class labels, and this data set "
                        f"{dataset.without_labels}. Use select 'last'.")
    if select == "classes" and not len(halves.validation):
        raise UserError("Selecting the epoch on held-out classes holds out two classes or more and trains on two or "
                        f"more; the training half has {len(np.unique(dataset.labels[halves.train]))}. Use select "
                        "'validation' or 'last', or add classes.")
    if np.bincount(dataset.labels[halves.validation]).max(initial=0) < 2:
        half = np.concatenate([halves.train, halves.validation])
        raise UserError(f"Selecting the epoch by validation holds out {VALIDATION_SHARE:.0%} of each class and needs "
                        f"two held-out images of one class; the largest class of the training half has "
                        f"{np.bincount(dataset.labels[half]).max()} images. Use select 'last', or add images.")
