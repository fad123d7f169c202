"""The whole model (figure 1): embeddings, encoder, decoder, and the generator, which is the figure's last "Linear"."""

from __future__ import annotations

import math

import torch.nn.functional as F
from torch import Tensor, nn

from transformer_mt.config.model import ModelConfig
from transformer_mt.errors import TmtError
from transformer_mt.model.attention import KeyValue
from transformer_mt.model.cache import DecoderCache
from transformer_mt.model.embedding import Embedding
from transformer_mt.model.layers import Decoder, Encoder
from transformer_mt.model.linear import Linear
from transformer_mt.model.masks import padding_mask
from transformer_mt.model.positions import LearnedPositions, SinusoidalPositions
from transformer_mt.model.watch import note

PIECE = 1536  # source tokens, padding included, that a CPU encodes at once when it decodes


class Transformer(nn.Module):
    """Source ids and a target prefix to hidden states, of which `generate_logits` makes logits of each next token.

    padding:       the id that fills up short sentences; it is never attended to.
    max_positions: length of the tables of positions; a hard limit where positions are learned.
    Raises TmtError where all embeddings are tied and the vocabularies differ in size.
    """

    def __init__(
        self, config: ModelConfig, source_vocab: int, target_vocab: int, padding: int = 0, max_positions: int = 128
    ) -> None:
        super().__init__()
        if config.tie_embeddings == "all" and source_vocab != target_vocab:
            raise TmtError(
                f"tied embeddings need one vocabulary, not two of {source_vocab} and {target_vocab} tokens",
                place="model.tie_embeddings",
                remedy="Give both sides the same size, or set tie_embeddings to decoder or none.",
            )
        self.config = config
        self.padding = padding
        self.max_positions = max_positions if config.positions == "learned" else None
        self.source_embedding = _embedding(config, source_vocab, max_positions)
        self.target_embedding = _embedding(config, target_vocab, max_positions)
        self.encoder = Encoder(config)
        self.decoder = Decoder(config)
        self.generator = Linear(config.d_model, target_vocab, config.output_bias)
        if config.tie_embeddings in ("decoder", "all"):  # section 3.4; the paper ties all three
            self.generator.weight = self.target_embedding.tokens.weight
        if config.tie_embeddings == "all":
            self.source_embedding.tokens.weight = self.target_embedding.tokens.weight
        self._initialize()

    def forward(self, source_BS: Tensor, target_BT: Tensor) -> Tensor:
        """Hidden states [B, T, D] of the target prefix; `generate_logits` makes them logits.

        target_BT: the start mark, then the target: figure 1's "shifted right" (`data.batching`).
        The loss needs the generator apart from the rest, so it is not applied here.
        """
        memory_BSD, mask_B11S = self.encode(source_BS)
        return self.decode(target_BT, memory_BSD, mask_B11S)

    def encode(self, source_BS: Tensor) -> tuple[Tensor, Tensor]:
        """The encoder's output [B, S, D] and which of its positions are real [B, 1, 1, S]."""
        mask_B11S = padding_mask(source_BS, self.padding)
        note(source_BS=source_BS, padding_mask_B11S=mask_B11S)
        return self.encoder(self.source_embedding(source_BS), mask_B11S), mask_B11S

    def decode(self, target_BT: Tensor, memory_BSD: Tensor, memory_mask_B11S: Tensor | None) -> Tensor:
        """Hidden states [B, T, D] of all positions of a target prefix.

        Padding stands on the right, so the causal mask already hides it from real positions.
        """
        note(target_BT=target_BT)
        return self.decoder(self.target_embedding(target_BT), memory_BSD, memory_mask_B11S)

    def generate_logits(self, hidden_BTD: Tensor) -> Tensor:
        """The generator: logits [B, T, V] of the next token (section 3.4; softmax is left to the caller)."""
        logits_BTV = self.generator(hidden_BTD)
        note(logits_BTV=logits_BTV)
        return logits_BTV

    def start(self, source_BS: Tensor) -> DecoderCache:
        """The cache of an empty target: sources encoded, and turned into keys and values, once.

        A CPU takes them in pieces that stay in its cache.
        """
        n_sources, width = source_BS.shape
        n_rows = max(PIECE // width, 1) if source_BS.device.type == "cpu" else n_sources
        return DecoderCache.empty(self._remembered(source_BS, n_rows), padding_mask(source_BS, self.padding))

    def step(self, previous_N: Tensor, cache: DecoderCache) -> tuple[Tensor, DecoderCache]:
        """Read one more target token a row; logits [N, V] of the next, and the longer cache."""
        x_N1D = self.target_embedding(previous_N[:, None], start=cache.length)
        hidden_N1D, cache = self.decoder.step(x_N1D, cache)
        return self.generate_logits(hidden_N1D)[:, 0], cache

    def _remembered(self, source_BS: Tensor, n_rows: int) -> tuple[KeyValue, ...]:
        """Keys and values of the sources, so many at a time; a head's lie in one piece, since every step reads them.

        Each time without the padding, on the right, that none of the sentences needs.
        """
        n_sources, width = source_BS.shape
        whole: tuple[KeyValue, ...] = ()
        for first in range(0, n_sources, n_rows):
            rows = slice(first, first + n_rows)
            longest = int((source_BS[rows] != self.padding).sum(dim=1).max())
            memory_BSD = F.pad(self.encode(source_BS[rows, :longest])[0], (0, 0, 0, width - longest))
            layers = self.decoder.project_memory(memory_BSD)
            whole = whole or tuple(KeyValue(*(x.new_empty(n_sources, *x.shape[1:]) for x in layer)) for layer in layers)
            for place, layer in zip(whole, layers, strict=True):
                place.key_BHMK[rows], place.value_BHMK[rows] = layer
        return whole

    def _initialize(self) -> None:
        """Xavier-uniform matrices (Glorot & Bengio 2010), W^Q, W^K, W^V each for itself; biases zero; embeddings from
        N(0, 1/D), so that sqrt(D) times them has variance 1, unless the config says otherwise."""
        for name, parameter in self.named_parameters():
            if parameter.dim() < 2:
                if name.endswith("bias"):
                    nn.init.zeros_(parameter)
            elif name.endswith("query_key_value.weight"):
                for matrix_DD in parameter.chunk(3):
                    nn.init.xavier_uniform_(matrix_DD)
            elif self.config.embedding_init == "normal" and _is_table(name):
                nn.init.normal_(parameter, std=1 / math.sqrt(self.config.d_model))
            else:
                nn.init.xavier_uniform_(parameter)


def _embedding(config: ModelConfig, vocab_size: int, max_positions: int) -> Embedding:
    positions: SinusoidalPositions | LearnedPositions | None = None
    if config.positions == "sinusoidal":
        positions = SinusoidalPositions(config.d_model, max_positions)
    elif config.positions == "learned":
        positions = LearnedPositions(max_positions, config.d_model)
    return Embedding(vocab_size, config.d_model, positions, config.scale_embeddings, config.dropout)


def _is_table(name: str) -> bool:
    return name.endswith(("tokens.weight", "positions.table.weight"))
