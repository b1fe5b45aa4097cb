"""The two networks of CLIP and SigLIP: one from images and one from words to vectors that are compared by their cosine.

The names of modules are the names of the tensors in published files. `tests/data/encoders/test_words.py` compares the
networks with the package transformers.

References:
    A. Radford et al., "Learning transferable visual models from natural language supervision", ICML 2021 (CLIP).
    X. Zhai et al., "Sigmoid loss for language image pre-training", ICCV 2023 (SigLIP).
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, interpolate, scaled_dot_product_attention

from udml_core.data.encoders.text_folder import ImageConfig, TextConfig, TowerConfig

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "quick_gelu": lambda values: values * torch.sigmoid(1.702 * values),
    "gelu": gelu,
    "gelu_pytorch_tanh": lambda values: gelu(values, approximate="tanh"),
}


class _Attention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.q_proj, self.k_proj, self.v_proj, self.out_proj = (nn.Linear(width, width) for _ in range(4))

    def forward(self, rows: Tensor, is_causal: bool) -> Tensor:
        queries, keys, values = (layer(rows).unflatten(-1, (self.heads, -1)).transpose(1, 2)
                                 for layer in (self.q_proj, self.k_proj, self.v_proj))
        mixed = scaled_dot_product_attention(queries, keys, values, is_causal=is_causal)
        out: Tensor = self.out_proj(mixed.transpose(1, 2).flatten(2))
        return out


class _Mlp(nn.Module):
    def __init__(self, config: TowerConfig) -> None:
        super().__init__()
        self.fc1 = nn.Linear(config.hidden_size, config.intermediate_size)
        self.fc2 = nn.Linear(config.intermediate_size, config.hidden_size)
        self.activation = ACTIVATIONS[config.hidden_act]

    def forward(self, rows: Tensor) -> Tensor:
        out: Tensor = self.fc2(self.activation(self.fc1(rows)))
        return out


class _Layer(nn.Module):
    def __init__(self, config: TowerConfig) -> None:
        super().__init__()
        self.self_attn = _Attention(config.hidden_size, config.num_attention_heads)
        self.layer_norm1 = _norm(config)
        self.mlp = _Mlp(config)
        self.layer_norm2 = _norm(config)

    def forward(self, rows: Tensor, is_causal: bool) -> Tensor:
        rows = rows + self.self_attn(self.layer_norm1(rows), is_causal)
        out: Tensor = rows + self.mlp(self.layer_norm2(rows))
        return out


class _Layers(nn.Module):
    def __init__(self, config: TowerConfig) -> None:
        super().__init__()
        self.layers = nn.ModuleList(_Layer(config) for _ in range(config.num_hidden_layers))

    def forward(self, rows: Tensor, is_causal: bool = False) -> Tensor:
        for layer in self.layers:
            rows = layer(rows, is_causal)
        return rows


class _Patches(nn.Module):
    """Tokens of an image: its patches with their positions, in CLIP after a token for the whole image."""

    def __init__(self, config: ImageConfig) -> None:
        super().__init__()
        self.side = config.image_size // config.patch_size
        self.patch_embedding = nn.Conv2d(3, config.hidden_size, config.patch_size, config.patch_size,
                                         bias=not config.is_clip)
        self.position_embedding = nn.Embedding(self.side**2 + config.is_clip, config.hidden_size)
        if config.is_clip:
            self.class_embedding = nn.Parameter(torch.zeros(config.hidden_size))

    def forward(self, images: Tensor) -> Tensor:
        maps = self.patch_embedding(images)
        tokens = maps.flatten(2).mT
        if hasattr(self, "class_embedding"):
            tokens = torch.cat([self.class_embedding.expand(len(images), 1, -1), tokens], 1)
        return tokens + self._positions(maps.shape[-1])

    def _positions(self, side: int) -> Tensor:
        """Return the positions of a square of patches; of another number they are interpolated."""
        weight = self.position_embedding.weight
        if side == self.side:
            return weight
        first = len(weight) - self.side**2
        grid = weight[first:].mT.reshape(1, -1, self.side, self.side)
        scaled = interpolate(grid, size=(side, side), mode="bicubic", align_corners=False)
        return torch.cat([weight[:first], scaled[0].flatten(1).mT])


class _ProbedMean(nn.Module):
    """SigLIP's pooling: attention of a learned probe to all patches, then a layer of its own."""

    def __init__(self, config: TowerConfig) -> None:
        super().__init__()
        self.probe = nn.Parameter(torch.zeros(1, 1, config.hidden_size))
        self.attention = nn.MultiheadAttention(config.hidden_size, config.num_attention_heads, batch_first=True)
        self.layernorm = _norm(config)
        self.mlp = _Mlp(config)

    def forward(self, rows: Tensor) -> Tensor:
        pooled = self.attention(self.probe.expand(len(rows), 1, -1), rows, rows, need_weights=False)[0]
        out: Tensor = (pooled + self.mlp(self.layernorm(pooled)))[:, 0]
        return out


class _ImageTransformer(nn.Module):
    def __init__(self, config: ImageConfig) -> None:
        super().__init__()
        self.embeddings = _Patches(config)
        if config.is_clip:
            self.pre_layrnorm = _norm(config)  # so misspelled in every published file
        else:
            self.head = _ProbedMean(config)
        self.encoder = _Layers(config)
        self.post_layernorm = _norm(config)

    def forward(self, images: Tensor) -> Tensor:
        rows = self.embeddings(images)
        if hasattr(self, "pre_layrnorm"):
            out: Tensor = self.post_layernorm(self.encoder(self.pre_layrnorm(rows))[:, 0])
        else:
            out = self.head(self.post_layernorm(self.encoder(rows)))
        return out


class ImageTower(nn.Module):
    """The network of images: normalized images (b, 3, s, s) to features (b, l, 1, 1).

    Args:
        config: Its sizes.
    """

    def __init__(self, config: ImageConfig) -> None:
        super().__init__()
        self.vision_model = _ImageTransformer(config)
        if config.is_clip:
            self.visual_projection = nn.Linear(config.hidden_size, config.projection, bias=False)

    def forward(self, images: Tensor) -> Tensor:
        pooled = self.vision_model(images)
        features: Tensor = self.visual_projection(pooled) if hasattr(self, "visual_projection") else pooled
        return features[:, :, None, None]


class _Tokens(nn.Module):
    def __init__(self, config: TextConfig) -> None:
        super().__init__()
        self.token_embedding = nn.Embedding(config.vocab_size, config.hidden_size)
        self.position_embedding = nn.Embedding(config.max_position_embeddings, config.hidden_size)

    def forward(self, tokens: Tensor) -> Tensor:
        out: Tensor = self.token_embedding(tokens) + self.position_embedding.weight[:tokens.shape[1]]
        return out


class _TextTransformer(nn.Module):
    def __init__(self, config: TextConfig) -> None:
        super().__init__()
        self.config = config
        self.embeddings = _Tokens(config)
        self.encoder = _Layers(config)
        self.final_layer_norm = _norm(config)
        if not config.is_clip:
            self.head = nn.Linear(config.hidden_size, config.projection)

    def forward(self, tokens: Tensor) -> Tensor:
        rows = self.final_layer_norm(self.encoder(self.embeddings(tokens), is_causal=self.config.is_clip))
        if not self.config.is_clip:
            out: Tensor = self.head(rows[:, -1])
            return out
        end = self.config.eos_token_id
        # Early files name the token 2, which no text ends with; its number is the largest of the vocabulary.
        last = (tokens if end == 2 else (tokens == end).int()).argmax(1)
        return rows[torch.arange(len(rows)), last]


class TextTower(nn.Module):
    """The network of words: numbers of tokens (b, t) to features (b, l).

    Args:
        config: Its sizes.
    """

    def __init__(self, config: TextConfig) -> None:
        super().__init__()
        self.text_model = _TextTransformer(config)
        if config.is_clip:
            self.text_projection = nn.Linear(config.hidden_size, config.projection, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        pooled = self.text_model(tokens)
        features: Tensor = self.text_projection(pooled) if hasattr(self, "text_projection") else pooled
        return features


def _norm(config: TowerConfig) -> nn.LayerNorm:
    return nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
