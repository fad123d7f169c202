"""The Transformer of "Attention Is All You Need" (Vaswani et al. 2017, arXiv:1706.03762), written by hand.

Read the files in this order, with the paper beside them: positions, embedding, masks, attention, feed_forward,
normalization, layers, transformer, label_smoothing. `parts` names the pieces that all of them are built from; programs
that need speed hand in faster pieces that compute the same up to rounding (`transformer_mt.kernels`).

Letters for tensors. A tensor that lives longer than a line wears its shape, as in `scores_BHQM`:

    B  sentences of a batch            D  model width (d_model)
    S  source positions                F  feed-forward width (d_ff)
    T  target positions, or either's   V  vocabulary
    H  attention heads                 K  width of a head, D / H (the paper's d_k = d_v)
    Q  positions that ask (queries)    M  positions that answer (keys and values)
    P  rows of a table of positions    I  pairs of coordinates that turn together
    N  rows of a batch of tokens       E  outputs of a linear map
    W  translations of a sentence that are alive at once while it is decoded

Masks are bool, and True means "may attend". A product x W of the paper is a `Linear`, which keeps W transposed: the
first matrix of a feed-forward network is [F, D]. This package knows ids and tensors, nothing of text or training.
"""
