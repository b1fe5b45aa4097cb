"""The speed of an encoder that was never used on this machine, measured on a few images before the first pass."""

from __future__ import annotations

import logging
import time

from udml_core.base.arrays import evenly_spaced
from udml_core.data.dataset import Dataset
from udml_core.data.encoders import Encoder, EncoderSpec
from udml_core.data.features import PreparedImages, features_path
from udml_core.data.inference import inference_of
from udml_core.data.speed import measured_speed, record_speed
from udml_core.work.jobs import resolve_device
from udml_core.work.jobs.estimate import image_kind

CALIBRATED = 20
"""Images that are measured."""
WORTH = 10
"""How many times more images a pass must have, so that measuring takes a small part of it."""
log = logging.getLogger("udml")


def calibrate(dataset: Dataset, spec: EncoderSpec, device: str, encoder: Encoder | None = None) -> None:
    """Measure and store the seconds that an image takes, from its file to its features.

    Nothing is done if the encoder was measured on this machine before, or if the features are stored or soon computed.

    Args:
        dataset: The data set with the images.
        spec: A single encoder.
        device: The device as a run names it, such as `auto`.
        encoder: The encoder on its device; built if None.
    """
    kind = image_kind(spec, device)
    if not spec.reads_images or len(dataset) < WORTH * CALIBRATED or measured_speed(kind) is not None or (
            features_path(dataset, spec).exists()):
        return
    encoder = encoder or Encoder(spec).to(resolve_device(device))
    rows = inference_of(encoder, dataset, len(dataset)).rows
    some = evenly_spaced(len(dataset), CALIBRATED + 1)
    rows(PreparedImages(dataset, encoder, indices=some[:1])[0:1])  # the first pass prepares the engine
    pixels = PreparedImages(dataset, encoder, indices=some[1:])
    began = time.monotonic()
    rows(pixels[0:CALIBRATED])
    seconds = (time.monotonic() - began) / CALIBRATED
    record_speed(kind, seconds)
    log.info("%s: %d images take %.4f seconds each on this machine", spec.words, CALIBRATED, seconds)
