"""A loaded model or ensemble: translates and scores lines, returns attention maps and the tree of a search.

`interpreter` turns text into ids and back; `batches` runs the search.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor

from transformer_mt.config.decoding import MOST_HYPOTHESES, DecodingConfig
from transformer_mt.decoding.attention_maps import attention_maps
from transformer_mt.decoding.batches import in_parts, search
from transformer_mt.decoding.beam_tree import BeamTree, RecordedBeam
from transformer_mt.decoding.budget import budget_of_given
from transformer_mt.decoding.computing import BFLOAT16
from transformer_mt.decoding.ensemble import mean_log_probability
from transformer_mt.decoding.finding import find_model
from transformer_mt.decoding.forced import Forced
from transformer_mt.decoding.given import checked_text
from transformer_mt.decoding.incremental import require_same_steps
from transformer_mt.decoding.interpreter import GPU_CHUNK, Computing, Interpreter
from transformer_mt.decoding.model_directory import ModelDirectory, load_model_directory
from transformer_mt.decoding.pair_scorer import CHUNK
from transformer_mt.decoding.request import Request, SearchResult, batched
from transformer_mt.decoding.step import pad
from transformer_mt.decoding.translation import Source
from transformer_mt.errors import TmtError, checked_number, named
from transformer_mt.files.lines import paths_of
from transformer_mt.kernels.linear import store_by_columns
from transformer_mt.kernels.narrow import round_to_bfloat16
from transformer_mt.model.transformer import Transformer
from transformer_mt.runtime.device import allow_tf32, keep_freed_memory, keep_to_quota, pick_device, set_up_cuda
from transformer_mt.text.vocabulary import BOS, EOS, MARKS

DEFAULT = Computing()


@dataclass(frozen=True)
class AttentionMaps:
    """Attention weights of every module for one sentence, with the tokens of their rows and columns; by module path.

    maps:    numpy [H, Q, M]
    rows:    Q tokens: the source in the encoder, the tokens written in the decoder
    columns: M tokens: the source, or in decoder self-attention the tokens read (from the start token on)
    """

    maps: Mapping[str, Any]
    rows: Mapping[str, tuple[str, ...]]
    columns: Mapping[str, tuple[str, ...]]

    def __repr__(self) -> str:
        shapes = ", ".join(f"{path} {list(map_HQM.shape)}" for path, map_HQM in self.maps.items())
        return f"AttentionMaps({shapes})"


class Translator(Interpreter):
    """One model, or an ensemble with equal vocabularies, ready to translate."""

    constrains = True
    _rounds_products: ClassVar[bool] = True  # TF32 on GPUs, for all models of a process: until one is loaded without

    def __init__(
        self,
        directories: Sequence[ModelDirectory],
        decoding: DecodingConfig | None = None,
        computing: Computing = DEFAULT,
    ) -> None:
        """Raises TmtError if the models differ in direction or vocabularies."""
        first = directories[0]
        for other in directories[1:]:
            _require_alike(first, other)
        super().__init__(first.config, first.source, first.target, decoding)
        self.max_length = min(directory.config.data.max_length for directory in directories)
        self.models: list[Transformer] = [directory.model for directory in directories]
        self._unchecked = [model.config for model in self.models]  # before the first search; shared by copies
        self.device = next(self.models[0].parameters()).device
        self.seed, self.scored = computing.seed, computing.scored
        self.folders = [directory.folder for directory in directories]
        self.fingerprint = first.fingerprint if len(directories) == 1 else None

    @classmethod
    def load(
        cls,
        folders: str | Path | Sequence[str | Path],
        decoding: DecodingConfig | None = None,
        computing: Computing = DEFAULT,
    ) -> Translator:
        """Load a model, or several as an ensemble.

        folders:  model directories, or runs that made them
        decoding: how to search; None: as the first model's config says
        Raises TmtError if a folder contains no model, or if the models differ in direction or vocabularies.
        """
        if computing.threads is not None:
            torch.set_num_threads(computing.threads)
        else:
            keep_to_quota()
        keep_freed_memory()
        device = pick_device(computing.device)
        several = paths_of(folders)
        if not several:
            raise TmtError("no model is named", remedy="Give the folder of a model or of a run.")
        if device.type == "cuda":
            set_up_cuda(device, Translator._rounds_products)  # before the first tensor
        models = [load_model_directory(find_model(folder), device) for folder in several]
        if device.type == "cuda":
            if not all(directory.config.runtime.tf32 for directory in models):
                Translator._rounds_products = False
            allow_tf32(Translator._rounds_products)
        for directory in models:
            if computing.weights == BFLOAT16:
                _round(directory)
            elif device.type == "cpu":
                store_by_columns(directory.model)
        return cls(models, decoding, computing)

    @property
    def chunk(self) -> int:
        """Number of lines that are best translated together: on a GPU, enough for several batches."""
        return max(CHUNK, GPU_CHUNK // max(1, self.search.rows // 5)) if self.device.type == "cuda" else CHUNK

    @property
    def weights(self) -> str:
        """The number format of the weights, such as float32."""
        return str(self.models[0].generator.weight.dtype).removeprefix("torch.")

    def attention(self, line: str, target: Sequence[str] | None = None, prefix: str = "") -> AttentionMaps:
        """The attention maps of the first model while it translates `line`.

        target: tokens of the translation; None: the model's own best translation, which begins with `prefix`
        """
        if target is not None and (isinstance(target, str) or not isinstance(target, Sequence)):
            problem = "the target is one str" if isinstance(target, str) else f"{named(target)} is no list of tokens"
            raise TmtError(problem, place="target", remedy="Give the tokens of a translation, as a list.")
        source = self._read(checked_text(line), checked_text(prefix))
        tokens = [checked_text(token, "target") for token in target or ()]
        produced: Sequence[int] = (*self.target.vocabulary.encode(tokens), EOS)
        if target is None and source.tokens:
            (found,) = self._search([Request(source.ids, source.prefix)])
            produced = self.search.choose(found, self.target.decode)[0].ids
        written = tuple(self.target.vocabulary.decode(produced))
        with torch.inference_mode(), attention_maps(self.models[0]) as maps:
            self.models[0](pad([source.ids], self.device), pad([[BOS, *produced[:-1]]], self.device))
        weights = {path: weights_BHQM[0].cpu().numpy() for path, weights_BHQM in maps.items()}
        read = (*self.config.data.request_tags, *source.tokens, MARKS[EOS])
        before = (MARKS[BOS], *written[:-1])
        return AttentionMaps(
            weights,
            {path: read if path.startswith("encoder") else written for path in weights},
            {path: before if path.startswith("decoder") and "self" in path else read for path in weights},
        )

    def read(self, line: str) -> Source:
        """What the model reads of a line: its tokens, their ids and the end token, and notes of what is lost."""
        return self._read(checked_text(line), "")

    def beam_tree(self, line: str, beam: int | None = None) -> BeamTree:
        """What a beam search considers while it translates `line`, which is not split into sentences.

        beam: its width; 1: greedy search; None: that of the settings. Other settings, such as penalties, stay.
        Raises TmtError if the line has no words, or if the beam is too wide.
        """
        source = self.read(line)
        if not source.tokens:
            raise TmtError("the line has no words", remedy="Give a sentence.")
        width = self.decoding.beam if beam is None else checked_number(beam, "beam")
        if width > MOST_HYPOTHESES:
            raise TmtError(f"a beam of {width} is too wide", place="beam", remedy=f"Use at most {MOST_HYPOTHESES}.")
        decoding = self.decoding.model_copy(update={"method": "beam", "beam": width, "n_best": 1})
        method = RecordedBeam(decoding)
        search(self.models, [self._request(source)], decoding, method=method, first_tag=self.target.first_tag)
        return method.tree

    def _search(self, requests: Sequence[Request]) -> list[list[SearchResult]]:
        for config in [*self._unchecked]:
            require_same_steps(config)
        self._unchecked.clear()
        first_tag = self.target.first_tag
        return search(self.models, requests, self.decoding, self.seed, self.scored, first_tag=first_tag)

    def _force(
        self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]], scored: bool, attentive: bool
    ) -> Iterator[tuple[int, Forced]]:
        """One forward pass for all positions of a batch. Raises TmtError if memory runs out in a single pair."""

        def force(batch: Sequence[int]) -> list[Forced]:
            source_BS = pad([sources[index] for index in batch], self.device)
            out_BT = pad([targets[index] for index in batch], self.device)
            in_BT = pad([[BOS, *targets[index][:-1]] for index in batch], self.device)
            logits, weights_BTS = [], torch.zeros(*in_BT.shape, source_BS.shape[1], device=self.device)
            for model in self.models:
                path = f"decoder.layers.{len(model.decoder.layers) - 1}.cross_attention"
                recorder: AbstractContextManager[dict[str, Tensor]] = nullcontext({})
                if attentive:
                    recorder = attention_maps(model, only=path)
                with torch.inference_mode(), recorder as maps:
                    hidden_BTD = model(source_BS, in_BT)
                    if scored:
                        logits.append(model.generate_logits(hidden_BTD))
                    if attentive:
                        weights_BTS += maps[path].mean(dim=1) / len(self.models)
            log_p_BT = _of_tokens(logits, out_BT) if scored else []
            attention = weights_BTS.cpu().numpy() if attentive else None
            found = []
            for row, index in enumerate(batch):
                n_source, n_target = len(sources[index]), len(targets[index])
                weights_TS = None if attention is None else attention[row, :n_target, :n_source]
                found.append(Forced(log_p_BT[row][:n_target] if scored else None, weights_TS))
            return found

        lengths = [max(len(source), len(target)) for source, target in zip(sources, targets, strict=True)]
        limits = budget_of_given(self.models, scored, attentive)
        for batch, found in in_parts(batched(lengths, 1, limits.tokens, most=limits.sentences), force):
            yield from zip(batch, found, strict=True)


@torch.inference_mode()
def _of_tokens(logits: Sequence[Tensor], out_BT: Tensor) -> list[list[float]]:
    """The log-probabilities of the tokens under one model or an ensemble."""
    log_p_BT = mean_log_probability(logits).gather(-1, out_BT[..., None])[..., 0]
    return log_p_BT.cpu().double().tolist()  # an Apple GPU has no float64


def _round(directory: ModelDirectory) -> None:
    """Round the weights to bfloat16. Raises TmtError if the model does not support it."""
    if not directory.config.model.has_fused_norms:
        raise TmtError(
            "bfloat16 weights need model.norm_kernel: fused and model.epsilon_on: variance",
            place=directory.folder,
            remedy="Leave out --weights bfloat16.",
        )
    round_to_bfloat16(directory.model)


def _require_alike(first: ModelDirectory, other: ModelDirectory) -> None:
    """Raises TmtError if two models differ in direction or vocabularies."""
    wanted, found = first.config.data.direction, other.config.data.direction
    if wanted != found:
        raise TmtError(
            f"this model translates {found}, but {first.folder} translates {wanted}",
            place=other.folder,
            remedy="An ensemble needs models of the same direction.",
        )
    for side in ("source", "target"):
        if getattr(first, side).vocabulary != getattr(other, side).vocabulary:
            raise TmtError(
                f"the {side} vocabulary differs from that of {first.folder}",
                place=other.folder,
                remedy="An ensemble needs models trained on the same prepared data.",
            )
