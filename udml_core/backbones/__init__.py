"""Named encoders behind one class: images in, pooled features out."""

from udml_core.backbones.encoder import (
    BACKBONES,
    Encoder,
    EncoderSpec,
    check_backbone,
    choose_spec,
    feature_width,
    image_seconds,
)

__all__ = ["BACKBONES", "Encoder", "EncoderSpec", "check_backbone", "choose_spec", "feature_width", "image_seconds"]
