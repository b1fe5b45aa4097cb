"""Networks divide into early and late blocks whose composition is the network."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from udml_core.base.errors import UserError
from udml_core.data.encoders import Encoder, EncoderSpec, activation_bytes, check_divisible
from udml_core.data.encoders.division import divide

SIZES = {"efficientnet-lite0": 64, "squeezenet": 64, "cnn": 16, "lenet": 28, "cifar-quick": 32, "resnet18-small": 16}


@pytest.mark.parametrize(("backbone", "early_blocks", "activations"), [
    ("efficientnet-lite0", 12, (112, 4, 4)), ("squeezenet", 7, (384, 4, 4)), ("cnn", 11, (128, 4, 4)),
    ("lenet", 5, (50, 4, 4)), ("cifar-quick", 6, (32, 8, 8)), ("resnet18-small", 9, (256, 4, 4))])
def test_late_blocks_continue_from_the_early_activations(backbone: str, early_blocks: int,
                                                         activations: tuple[int, ...]) -> None:
    size = SIZES[backbone]
    encoder = Encoder(EncoderSpec(backbone=backbone, size=size))
    images = torch.randint(256, (3, 1 if backbone == "lenet" else 3, size, size), dtype=torch.uint8)
    with torch.no_grad():
        early = encoder.early(images)
        torch.testing.assert_close(encoder.late(early), encoder(images), rtol=1e-6, atol=1e-6)
    assert early.shape == (3, *activations)
    assert activation_bytes(encoder.spec) == pytest.approx(2 * early[0].numel(), rel=0.01 if size == 28 else 1e-9)
    assert len(divide(encoder.network)[0]) == early_blocks


def test_the_last_blocks_of_efficientnet_are_its_residuals_11_to_15_and_the_last_convolution() -> None:
    encoder = Encoder(EncoderSpec(backbone="efficientnet-lite0", size=64))
    encoder.freeze_early()
    trained = {name.split(".")[3] if "_blocks" in name else name.split(".")[2]
               for name, parameter in encoder.named_parameters() if parameter.requires_grad}
    assert trained == {"11", "12", "13", "14", "15", "_conv_head", "_bn1"}


def test_another_sequence_is_divided_before_the_shortest_end_with_half_of_the_parameters() -> None:
    """The parameters are 4, 8, 12 and 20; the end of 20 is too small and that of 32 is not."""
    layers = [nn.Linear(size, 1, bias=False) for size in (4, 8, 12, 20)]
    network = nn.Sequential(layers[0], nn.Sequential(layers[1], nn.ReLU()), layers[2], nn.ReLU(), layers[3])
    early, late = divide(network)
    assert [*early] == [layers[0], layers[1], network[1][1]]
    assert [*late] == [layers[2], network[3], layers[3]]


def test_networks_that_cannot_be_divided_are_rejected() -> None:
    with pytest.raises(UserError, match=r"The network Conv2d is not a sequence of blocks, .* 'head' or 'all'"):
        divide(nn.Conv2d(3, 3, 1))
    with pytest.raises(UserError, match="The last blocks of 'timm:resnet18' cannot be trained alone"):
        check_divisible(EncoderSpec(backbone="timm:resnet18"))
    with pytest.raises(UserError, match="with the pooling 'rmac'"):
        check_divisible(EncoderSpec(pooling="rmac"))
    check_divisible(EncoderSpec(backbone="squeezenet"))
