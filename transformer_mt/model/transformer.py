"""The whole model (figure 1): embeddings, encoder, decoder, and the generator, the figure's last "Linear"."""

from __future__ import annotations

import math

from torch import Tensor, nn

from transformer_mt.config.model import ModelConfig
from transformer_mt.errors import TmtError
from transformer_mt.model.embedding import Embedding
from transformer_mt.model.layers import Decoder, Encoder
from transformer_mt.model.masks import padding_mask
from transformer_mt.model.parts import READABLE, Parts
from transformer_mt.model.positions import LearnedPositions, SinusoidalPositions


class Transformer(nn.Module):
    """The Transformer of figure 1, from ids to hidden states; `generate_logits` turns these into logits.

    padding:       the id that fills up short sentences; it is never attended to
    max_positions: rows of the position tables; no sentence can be longer if positions are learned
    parts:         the pieces that the model is built from
    Raises TmtError if all embeddings are tied and the vocabularies differ in size.
    """

    def __init__(
        self,
        config: ModelConfig,
        source_vocab: int,
        target_vocab: int,
        padding: int = 0,
        max_positions: int = 128,
        parts: Parts = READABLE,
    ) -> None:
        super().__init__()
        if config.tie_embeddings == "all" and source_vocab != target_vocab:
            raise TmtError(
                f"tied embeddings need one vocabulary size, not {source_vocab} and {target_vocab} tokens",
                place="model.tie_embeddings",
                remedy="Set tokenizer.shared to true, or model.tie_embeddings to decoder or none.",
            )
        self.config = config
        self.padding = padding
        self.max_positions = max_positions if config.positions == "learned" else None
        self.source_embedding = _embedding(config, source_vocab, max_positions, parts)
        self.target_embedding = _embedding(config, target_vocab, max_positions, parts)
        self.encoder = Encoder(config, parts)
        self.decoder = Decoder(config, parts)
        self.generator = parts.linear(config.d_model, target_vocab, config.output_bias)
        if config.tie_embeddings in ("decoder", "all"):  # section 3.4; the paper ties all three
            self.generator.weight = self.target_embedding.tokens.weight
        if config.tie_embeddings == "all":
            self.source_embedding.tokens.weight = self.target_embedding.tokens.weight
        self._initialize()

    def forward(self, source_BS: Tensor, target_BT: Tensor) -> Tensor:
        """Source ids [B, S] and target ids [B, T] to hidden states [B, T, D].

        target: the start token, then the target without its end token (figure 1: "shifted right").
        The generator is not applied here, because training computes it together with the loss.
        """
        memory_BSD, padding_mask_B11S = self.encode(source_BS)
        return self.decode(target_BT, memory_BSD, padding_mask_B11S)

    def encode(self, source_BS: Tensor) -> tuple[Tensor, Tensor]:
        """Source ids [B, S] to the memory [B, S, D] and its mask [B, 1, 1, S], True at real positions."""
        padding_mask_B11S = padding_mask(source_BS, self.padding)
        return self.encoder(self.source_embedding(source_BS), padding_mask_B11S), padding_mask_B11S

    def decode(self, target_BT: Tensor, memory_BSD: Tensor, memory_mask_B11S: Tensor) -> Tensor:
        """Hidden states [B, T, D] of all positions, from target ids [B, T] and the results of `encode`.

        Padding is on the right, so the causal mask already hides it from real positions.
        """
        return self.decoder(self.target_embedding(target_BT), memory_BSD, memory_mask_B11S)

    def generate_logits(self, hidden_BTD: Tensor) -> Tensor:
        """Hidden states [B, T, D] to logits [B, T, V] of the next token (section 3.4), before the softmax."""
        logits_BTV = self.generator(hidden_BTD)
        return logits_BTV

    def _initialize(self) -> None:
        """Draw the initial weights, which the paper does not specify.

        Matrices are Xavier-uniform (Glorot & Bengio 2010), W^Q, W^K and W^V one by one. Biases are zero. Embeddings are
        drawn from N(0, 1/D), so that sqrt(D) times them has variance 1, unless the config says otherwise.
        """
        for name, parameter in self.named_parameters():
            if parameter.dim() < 2:
                if name.endswith("bias"):
                    nn.init.zeros_(parameter)
            elif name.endswith("query_key_value.weight"):
                for matrix_DD in parameter.chunk(3):
                    nn.init.xavier_uniform_(matrix_DD)
            elif self.config.embedding_init == "normal" and name.endswith(("tokens.weight", "positions.table.weight")):
                nn.init.normal_(parameter, std=1 / math.sqrt(self.config.d_model))
            else:
                nn.init.xavier_uniform_(parameter)


def _embedding(config: ModelConfig, vocab_size: int, max_positions: int, parts: Parts) -> Embedding:
    """The embedding of one side, with the positions that the config names."""
    positions: SinusoidalPositions | LearnedPositions | None = None
    if config.positions == "sinusoidal":
        positions = SinusoidalPositions(config.d_model, max_positions)
    elif config.positions == "learned":
        positions = LearnedPositions(max_positions, config.d_model)
    return Embedding(vocab_size, config.d_model, positions, config.scale_embeddings, config.dropout, parts)
