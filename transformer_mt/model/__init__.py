"""The Transformer of "Attention Is All You Need" (Vaswani et al. 2017, arXiv:1706.03762), written by hand.

Read the files in this order, with the paper beside them: positions, embedding, masks, attention, multi_head_attention,
feed_forward, normalization, layers, transformer, label_smoothing. `parts` has the small pieces they are built from.
`transformer_mt.kernels` has faster pieces that compute the same up to rounding.

The name of a tensor ends with its shape: `scores_BHQM` is [B, H, Q, M]. The letters:

    B  sentences in a batch            D  model width (the paper's d_model)
    S  source positions                F  feed-forward width (d_ff)
    T  target positions, or of either  V  vocabulary size
    H  attention heads                 K  width of a head, D / H (d_k = d_v)
    Q  query positions                 M  key and value positions
    P  rows of a position table        I  pairs of coordinates that share an angle
    N  rows of a flattened batch       E  outputs of a linear map
    W  candidate translations of a sentence, during a search; X and R are others of them, such as 2W extensions

`memory` is the encoder's output. Masks are bool; True means "may attend". The paper's product x W is a `Linear`, which
stores W transposed: the first matrix of a feed-forward network is [F, D]. Nothing here knows of text or training.
"""

from transformer_mt.config.model import ModelConfig
from transformer_mt.model.transformer import Transformer

__all__ = ["ModelConfig", "Transformer"]
