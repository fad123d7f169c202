"""Where a model looks while it translates: attention maps of a sentence, and alignments made of them.

Both re-read a finished translation, all positions at once, with the readable attention.
Knows models and ids, never text.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from transformer_mt.decoding.attention_maps import attention_maps
from transformer_mt.decoding.batches import last_cross_attention, pad
from transformer_mt.model.transformer import Transformer
from transformer_mt.text.vocabulary import BOS, EOS, PAD


def maps_of(model: Transformer, source: Sequence[int], target: Sequence[int]) -> dict[str, Tensor]:
    """All attention weights [H, Q, M] by module path; source with its end mark, target ids as they were produced.

    Query q of the decoder is the position that produced target[q]; keys are the tokens it had read by then.
    """
    device = next(model.parameters()).device
    with torch.inference_mode(), attention_maps(model) as maps:
        model(pad([source], device), pad([[BOS, *target[:-1]]], device))
    return {path: weights_BHQM[0].cpu() for path, weights_BHQM in maps.items()}


def align_pairs(
    models: Sequence[Transformer], sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
) -> list[list[int]]:
    """For each target id the source position that the last cross-attention looks at most, over heads and models.

    The source's end mark, where attention rests that has nowhere to go, is never the answer but for an empty source.
    """
    device = next(models[0].parameters()).device
    source_BS = pad(sources, device)
    read_BT = pad([[BOS, *target[:-1]] for target in targets], device)
    total_BTS = torch.zeros(len(sources), read_BT.shape[1], source_BS.shape[1], device=device)
    for model in models:
        last = last_cross_attention(model)
        with torch.inference_mode(), attention_maps(model, only=last) as maps:
            model(source_BS, read_BT)
        total_BTS += maps[last].mean(dim=1)
    words_B1S = ((source_BS != PAD) & (source_BS != EOS))[:, None, :]
    best_BT = total_BTS.masked_fill(~words_B1S, -1.0).argmax(dim=-1).tolist()
    return [row[: len(target)] for row, target in zip(best_BT, targets, strict=True)]
