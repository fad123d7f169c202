"""Starting from the weights of another model: rows for new tokens, and parts that do not change."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from transformer_mt.errors import TmtError
from transformer_mt.model.transformer import Transformer

EMBEDDINGS = "embeddings"  # both, as a name in training.freeze
TABLES = {"source": ("source_embedding.tokens.",), "target": ("target_embedding.tokens.", "generator.")}


def with_new_rows(
    weights: Mapping[str, Tensor], model: Transformer, parts: Mapping[str, Sequence[Sequence[int]]]
) -> dict[str, Tensor]:
    """The weights with a row for each new token in all tables of the vocabularies; old rows keep their values.

    A new row is the mean of the rows of the old tokens that spell it, so that the model begins with what it knows of
    them; without such tokens it is the mean of all rows, with which a new token disturbs the old ones least (Hewitt
    2021, "Initializing new word embeddings for pretrained language models").

    model: with the new sizes; parts: by side, the ids that spell each new token, in the order of the new ids
    """
    grown = dict(weights)
    names = dict(model.named_parameters(remove_duplicate=False))
    stored = {id(parameter): name for name, parameter in model.named_parameters()}  # a tied tensor once
    for side, prefixes in TABLES.items():
        for name in {stored[id(names[name])] for name in names if name.startswith(prefixes)}:
            if name in weights and parts[side]:
                grown[name] = torch.cat([weights[name], _means(weights[name], parts[side])])
    return grown


def _means(table: Tensor, parts: Sequence[Sequence[int]]) -> Tensor:
    """The new rows of a table [V, D] or of a bias [V]."""
    of_all = table.mean(dim=0)
    return torch.stack([table[list(ids)].mean(dim=0) if ids else of_all for ids in parts])


def freeze(model: Transformer, names: Sequence[str]) -> list[str]:
    """Parts of the model do not change in training; returns the names of their parameters, a tied one once.

    names: of modules, such as encoder or decoder.layers.0, or `embeddings`. A tensor that two modules share is frozen
    with each of them. Raises TmtError for unknown names, and if nothing is left to train.
    """
    modules = {name: module for name, module in model.named_modules() if name and list(module.parameters())}
    both: list[nn.Module] = [model.source_embedding, model.target_embedding]
    chosen = {**{name: [module] for name, module in modules.items()}, EMBEDDINGS: both}
    unknown = [name for name in names if name not in chosen]
    if unknown:
        raise TmtError(_unknown(unknown, list(chosen)), place="training.freeze", remedy=_known(list(modules)))
    for name in names:
        for module in chosen[name]:
            module.requires_grad_(False)
    if not any(parameter.requires_grad for parameter in model.parameters()):
        problem = "all parts of the model are frozen, so nothing is trained"
        raise TmtError(problem, place="training.freeze", remedy="Name fewer parts.")
    return [name for name, parameter in model.named_parameters() if not parameter.requires_grad]


def require_new_rows_trained(model: Transformer, new: Mapping[str, int]) -> None:
    """Raises TmtError if rows of new tokens are frozen: tags would stay equal. new: their number on each side"""
    for side, prefixes in TABLES.items():
        for name, parameter in model.named_parameters(remove_duplicate=False):
            if new[side] and name.startswith(prefixes) and not parameter.requires_grad:
                part = name.rpartition(".")[0]
                raise TmtError(
                    f"new tokens add rows to {part}, which training.freeze keeps as it is",
                    place="training.freeze",
                    remedy="Freeze other parts, or remove what adds tokens: tokenizer.extend, or tags of directions or"
                    " of a corpus.",
                )


def _unknown(names: Sequence[str], known: Sequence[str]) -> str:
    problems = []
    for name in names:
        near = difflib.get_close_matches(name, known, n=1)
        problems.append(f"the model has no part '{name}'" + (f"; did you mean '{near[0]}'?" if near else ""))
    return "; ".join(problems)


def _known(modules: Sequence[str]) -> str:
    """The parts of the first two levels, layers as a range."""
    top = [name for name in modules if "." not in name]
    layers = {stack: [name for name in modules if name.rpartition(".")[0] == f"{stack}.layers"] for stack in top}
    ranges = [f"{some[0]} to {some[-1]}" for some in layers.values() if some]
    return f"The parts are {', '.join([EMBEDDINGS, *top, *ranges])}, and modules inside them; `tmt inspect` lists them."
