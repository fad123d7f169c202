"""The Transformer of "Attention Is All You Need" (Vaswani et al. 2017, arXiv:1706.03762), written by hand.

Read the files in this order: positions, embedding, masks, attention, feed_forward, normalization, layers,
transformer; then cache (decoding one token at a time), watch (looking inside) and inspect (counting, measuring). At
first take dropout and linear for PyTorch's, and pass over `start` and `step` (see cache) and `note` (it shows a tensor
to watch). A product x W of the paper is a `Linear`, which keeps W transposed: the first of a feed-forward is [F, D].

Letters for tensors. A tensor that lives longer than a line wears its shape, as in `scores_BHQM`:

    B  sentences of a batch            D  model width (d_model)
    S  source positions                F  feed-forward width (d_ff)
    T  target positions, or either's   V  vocabulary
    H  attention heads                 K  width of a head, D / H (the paper's d_k = d_v)
    W  beam width                      N  rows while decoding, B * W
    Q  positions that ask (queries)    M  positions that answer (keys and values)
    P  rows of a table or of a past    I  pairs of coordinates that turn together
    G  families of rows (see cache)    C  cells of a family, one for each position decoded

Masks are bool, and True means "may attend". Other letters are told where they stand. This package knows ids and
tensors; it never sees text or the optimizer, and files only in `weights`.
"""
