"""Trains a small model of Marian with Hugging Face's transformers, converts it, and compares the translations of both.

    pip install transformers
    python scripts/check_marian.py [--steps 900] [--folder FOLDER]

The sentences are those of the phrasebook, German to English, in training and test. Prints, for greedy search and for a
beam of 4, how many of 300 translations are equal, the BLEU of both, and sentences per second with one thread. Hugging
Face translates 32 sentences at once. With --folder, its model and the converted one are kept there.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import sacrebleu
import sentencepiece
import torch

import transformer_mt as tmt
from transformer_mt.phrasebook import generate

LONGEST = 119  # tokens of a translation
BATCH = 32


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--steps", type=int, default=900, help="updates of the training")
    parser.add_argument("--folder", type=Path, help="where the models are kept; default: a temporary folder")
    options = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        model, tokenizer = _train(folder / "marian", options.steps)
        print(tmt.convert(folder / "marian", folder / "converted"))
        _compare(model, tokenizer, folder / "converted")


def _train(folder: Path, steps: int) -> tuple[Any, Any]:
    """A model of Marian and its tokenizer, saved in a folder as OPUS-MT is."""
    from transformers import MarianConfig, MarianMTModel, MarianTokenizer

    torch.manual_seed(1)
    random.seed(1)
    folder.mkdir(parents=True)
    pairs = list(generate("de", "en", "train", 3_000, 1))
    numbers = _write_pieces(folder, pairs)
    files = {"source_spm": str(folder / "source.spm"), "target_spm": str(folder / "target.spm")}
    tokenizer = MarianTokenizer(**files, vocab=str(folder / "vocab.json"), source_lang="de", target_lang="en")
    tokenizer.save_pretrained(folder)
    padding = numbers["<pad>"]
    sizes = {"d_model": 64, "encoder_layers": 2, "decoder_layers": 2, "encoder_ffn_dim": 128, "decoder_ffn_dim": 128}
    heads = {"encoder_attention_heads": 4, "decoder_attention_heads": 4, "activation_function": "swish"}
    ends = {"pad_token_id": padding, "decoder_start_token_id": padding, "eos_token_id": 0, "bad_words_ids": [[padding]]}
    length = {"vocab_size": len(numbers), "scale_embedding": True, "max_position_embeddings": 128}
    model = MarianMTModel(MarianConfig(**sizes, **heads, **ends, **length)).train()
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = 2e-3 * min(1.0, (step + 1) / 100, 3 * (steps - step) / steps)
        some = random.sample(pairs, 48)
        batch = tokenizer(
            [one for one, _ in some], text_target=[one for _, one in some], return_tensors="pt", padding=True
        )
        batch["labels"][batch["labels"] == padding] = -100
        loss = model(**batch).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            print(f"update {step}: loss {loss.item():.2f}", flush=True)
    model.eval().save_pretrained(folder)
    return model, tokenizer


def _write_pieces(folder: Path, pairs: Sequence[tuple[str, str]]) -> dict[str, int]:
    numbers = {"</s>": 0, "<unk>": 1}
    for side, size, texts in (("source", 400, [one for one, _ in pairs]), ("target", 300, [one for _, one in pairs])):
        prefix = str(folder / side)
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(texts), model_prefix=prefix, vocab_size=size, model_type="unigram", minloglevel=2
        )
        Path(f"{prefix}.model").rename(f"{prefix}.spm")
        pieces = sentencepiece.SentencePieceProcessor()
        pieces.load(f"{prefix}.spm")
        for index in range(3, pieces.get_piece_size()):
            numbers.setdefault(pieces.id_to_piece(index), len(numbers))
    numbers["<pad>"] = len(numbers)
    (folder / "vocab.json").write_text(json.dumps(numbers, ensure_ascii=False), encoding="utf-8")
    return numbers


def _compare(model: Any, tokenizer: Any, converted: Path) -> None:
    pairs = list(generate("de", "en", "test", 300, 5))
    lines, references = [one for one, _ in pairs], [[one for _, one in pairs]]
    limits = {"max_length_ratio": 0.0, "max_length_offset": LONGEST - 1}
    print(f"{'beam':>4} {'equal':>7} {'BLEU: this program':>19} {'theirs':>7} {'sentences/s':>12} {'theirs':>7}")
    for beam in (1, 4):
        translator = tmt.load(converted, beam=beam, length_penalty=0.0, threads=1, **limits)
        begin = time.perf_counter()
        ours = [one.text for one in translator.translate(lines)]
        between = time.perf_counter()
        theirs: list[str] = []
        search = {"num_beams": beam, "do_sample": False, "max_length": LONGEST + 1}
        search |= {"length_penalty": 0.0, "early_stopping": False} if beam > 1 else {}
        for first in range(0, len(lines), BATCH):
            batch = tokenizer(lines[first : first + BATCH], return_tensors="pt", padding=True)
            theirs += tokenizer.batch_decode(model.generate(**batch, **search), skip_special_tokens=True)
        seconds = between - begin, time.perf_counter() - between
        equal = sum(one == other for one, other in zip(ours, theirs, strict=True))
        scores = [sacrebleu.corpus_bleu(texts, references).score for texts in (ours, theirs)]
        speeds = [len(lines) / one for one in seconds]
        print(f"{beam:4} {equal:7} {scores[0]:19.2f} {scores[1]:7.2f} {speeds[0]:12.0f} {speeds[1]:7.0f}")


if __name__ == "__main__":
    main()
