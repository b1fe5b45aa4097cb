"""Encoders from images to pooled features, by name."""

from udml_core.data.encoders.encoder import (
    BACKBONES,
    DEFAULT_BACKBONE,
    Encoder,
    EncoderSpec,
    Precision,
    activation_bytes,
    check_backbone,
    check_compiler,
    check_divisible,
    check_reads_images,
    check_trainable,
    choose_spec,
    feature_width,
    image_seconds,
    late_share,
    needs_batches,
)
from udml_core.data.encoders.pooling import Pooling

__all__ = ["BACKBONES", "DEFAULT_BACKBONE", "Encoder", "EncoderSpec", "Pooling", "Precision",
           "activation_bytes", "check_backbone", "check_compiler", "check_divisible", "check_reads_images",
           "check_trainable", "choose_spec", "feature_width", "image_seconds", "late_share", "needs_batches"]
