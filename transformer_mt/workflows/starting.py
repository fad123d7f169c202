"""The weights of a new model that starts from another one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import torch
from torch import Tensor

from transformer_mt.config.runs import WEIGHTS
from transformer_mt.config.schema import Config
from transformer_mt.data.parent import Parent
from transformer_mt.data.store import SIDES, SOURCE, TARGET
from transformer_mt.decoding.model_directory import (
    read_model_weights,
    require_weights_fit,
    vocabularies_digest,
)
from transformer_mt.errors import TmtError
from transformer_mt.kernels.build import build_model
from transformer_mt.model.transformer import Transformer
from transformer_mt.runtime.weights import load_weights, require_finite
from transformer_mt.text.codec import Codec
from transformer_mt.text.vocabulary import MARKS
from transformer_mt.training.run_directory import FRESH
from transformer_mt.training.starting import freeze, require_new_rows_trained, with_new_rows
from transformer_mt.workflows.candidates import Scorer
from transformer_mt.workflows.parents import find_parent


def require_trainable(config: Config, new: Mapping[str, int] | None = None) -> None:
    """Check training.freeze. Raises TmtError as `freeze` and `require_new_rows_trained` do.

    new: the number of new tokens of each side; before the data is prepared, only `tokenizer.extend` is known
    """
    if config.training.freeze:
        with torch.device("meta"):
            model = build_model(config, len(MARKS), len(MARKS), "meta")
        freeze(model, config.training.freeze)
        extended = {SOURCE: config.source_tokenizer.extend, TARGET: config.target_tokenizer.extend}
        require_new_rows_trained(model, extended if new is None else new)


def new_tokens(parent: Parent, codecs: tuple[Codec, Codec]) -> dict[str, int]:
    """How many tokens of each side the parent does not have, tags included."""
    return {side: len(new) - len(old) for side, new, old in zip(SIDES, codecs, parent.codecs, strict=True)}


def load_parent(model: Transformer, config: Config, parent: Parent, codecs: tuple[Codec, Codec]) -> None:
    """Give a model the weights of its parent, and rows for new tokens. codecs: of the new model.

    Raises TmtError if the weights are missing or damaged, or if the parent has changed since the run began.
    """
    folder = find_parent(config)
    if vocabularies_digest(folder) != vocabularies_digest(parent.folder):
        raise TmtError(
            "the model that this run started from has other vocabularies now",
            place=folder,
            remedy=f"Start again with {FRESH}, or bring the old model back.",
        )
    require_weights_fit(folder, config, *map(len, parent.codecs))
    weights, file = read_model_weights(folder), folder / WEIGHTS
    require_finite(weights, file)
    parts = {
        side: [_ids_of_parts(old, token) for token in new.vocabulary.tokens[len(old) :]]
        for side, old, new in zip(SIDES, parent.codecs, codecs, strict=True)
    }
    load_weights(model, with_new_rows(weights, model, parts), file)


def own_bleu(scorer: Scorer, parent: Parent, weights: Mapping[str, Tensor]) -> float | None:
    """BLEU of the parent without the new tokens, on the sentences that the candidates are compared on.

    weights: of step 0. None if BLEU is off, or if the parent lacks the tag of a direction, so that it cannot read its
    sentences: those of validation have no other tags. Every process must call this.
    """
    data = scorer.config.data
    if data.directions is not None and not {one.tag for one in data.all_directions} <= {*parent.codecs[0].tags}:
        return None
    corpora = [one.model_copy(update={"tag": None}) for one in data.corpus]  # the parent has no such tags
    config = scorer.config.model_copy(update={"data": data.model_copy(update={"corpus": corpora})})
    validation = replace(scorer, config=config).final(parent.codecs)
    if validation.bleu_of is None:
        return None
    source, target = parent.codecs
    model = build_model(scorer.config, len(source), len(target), scorer.machine.device).eval()
    own = {name: weights[name][: len(parameter)] for name, parameter in model.named_parameters()}
    load_weights(model, own, parent.folder)
    return validation.bleu_of(model).bleu


def _ids_of_parts(codec: Codec, token: str) -> list[int]:
    """The ids of the old tokens that spell a new one; none if there are none."""
    return codec.vocabulary.encode(codec.segmenter.tokenizer.parts(token))
