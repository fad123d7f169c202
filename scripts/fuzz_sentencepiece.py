"""Gives damaged models to the installed SentencePiece itself: does it crash, or take memory?

    python scripts/fuzz_sentencepiece.py --each 25000

Children load the models, so that a crash is noticed. Damage: of bytes; of fields; of both; of the rules that replace
characters, whose tables are binary. docs/security.md says what came out.
"""

from __future__ import annotations

import argparse
import io
import os
import random
import resource
import struct
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

import sentencepiece
from sentencepiece import sentencepiece_model_pb2 as messages

CHILD = 500  # models in a child process
MEMORY = 3 << 30  # bytes of address space of a child
SENTENCES = [
    "The cat sleeps.",
    "A small dog eats the bread.",
    "I don't know (yet).",
    'She said: "no"!',
    "고양이가 작아요",
]
PIECES = ["", " ", "\x00", "▁", "<unk>", "a" * 100_000, "é" * 300, "<0x41>", "<0xFF>", "<0xZZ>", "a", "▁the"]
TEXTS = [
    "The cat 고양이 sleeps. ﬁ İ ß \U0001f600 x",
    "",
    " ",
    "\x00a",
    "▁▁",
    "a" * 3000,
    "<unk></s><0x41>",
    "ㄱ\u0301" * 50,
]
NUMBERS = [-1, 0, 1, 5, 10**9, -(2**31), 2**31 - 1]
FLOATS = [float("nan"), float("inf"), -float("inf"), 1e38, -1e38]


def train(**settings: Any) -> bytes:
    made = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(SENTENCES * 20),
        model_writer=made,
        num_threads=1,
        minloglevel=4,
        **{"vocab_size": 46, "pad_id": 0, "unk_id": 1, "bos_id": 2, "eos_id": 3, **settings},
    )
    return made.getvalue()


def models() -> list[bytes]:
    plain = {"normalization_rule_name": "identity"}
    return [
        train(model_type="unigram"),  # the first one, with rules that replace characters
        train(model_type="bpe", **plain),
        train(model_type="unigram", **plain),
        train(model_type="bpe", vocab_size=330, byte_fallback=True, **plain),
        train(model_type="char", vocab_size=40),
    ]


def changed_bytes(draw: random.Random, model: bytes) -> bytes:
    data = bytearray(model)
    for _ in range(draw.choice([1, 1, 2, 4, 16])):
        place = draw.randrange(len(data)) if data else 0
        kind = draw.randrange(6) if data else 1
        if kind == 0:
            data[place] ^= 1 << draw.randrange(8)
        elif kind == 1:
            data[place:place] = draw.choice([b"\xff" * 9 + b"\x01", b"\x00", b"\xff", b"\x80" * 10, draw.randbytes(8)])
        elif kind == 2:
            del data[place : place + draw.choice([1, 2, 4, 40, 400, 1 << 20])]
        elif kind == 3:
            data[place:place] = data[place : place + draw.choice([8, 40, 400, 4000])] * draw.choice([1, 3, 30])
        elif kind == 4:
            data[place] = draw.choice([0, 1, 127, 128, 255])
        else:
            data[place : place + 4] = struct.pack("<f", draw.choice(FLOATS))
    return bytes(data)


def changed_fields(draw: random.Random, model: bytes) -> bytes:
    message = messages.ModelProto.FromString(model)
    pieces, trainer, rules = message.pieces, message.trainer_spec, message.normalizer_spec
    numbers = ["unk_id", "bos_id", "eos_id", "pad_id", "vocab_size", "max_sentencepiece_length"]
    flags = [(rules, "add_dummy_prefix"), (rules, "remove_extra_whitespaces"), (rules, "escape_whitespaces")]
    flags += [(trainer, "byte_fallback"), (trainer, "treat_whitespace_as_suffix")]
    changes: list[Callable[[], Any]] = [
        lambda: setattr(draw.choice(pieces), "score", draw.choice(FLOATS)),
        lambda: setattr(draw.choice(pieces), "type", draw.randint(1, 6)),
        lambda: setattr(draw.choice(pieces), "piece", draw.choice(PIECES)),
        lambda: pieces.pop(),
        lambda: pieces.add(piece=draw.choice(PIECES), score=0, type=draw.randint(1, 6)),
        lambda: setattr(trainer, draw.choice(numbers), draw.choice(NUMBERS)),
        lambda: setattr(trainer, "model_type", draw.randint(1, 4)),
        lambda: setattr(trainer, "unk_surface", draw.choice(PIECES)),
        lambda: setattr(*draw.choice(flags), bool(draw.randrange(2))),
        lambda: setattr(rules, "precompiled_charsmap", draw.randbytes(draw.choice([0, 1, 4, 8, 100, 5000]))),
        lambda: setattr(message.denormalizer_spec, "precompiled_charsmap", draw.randbytes(draw.choice([4, 100, 2000]))),
    ]
    for _ in range(draw.choice([1, 2, 5, 20])):
        if pieces:
            draw.choice(changes)()
    return bytes(message.SerializeToString())


def changed_rules(draw: random.Random, model: bytes) -> bytes:
    """With some units of the trie that finds the characters to replace changed."""
    message = messages.ModelProto.FromString(model)
    table = bytearray(message.normalizer_spec.precompiled_charsmap)
    if not table:
        table = bytearray(struct.pack("<I", 1024) + draw.randbytes(1024) + b"a\0")
    (size,) = struct.unpack("<I", table[:4])
    for _ in range(draw.choice([1, 5, 50, 1000])):
        place = 4 + 4 * draw.randrange(min(size // 4, draw.choice([256, 600, 1 << 30])))
        table[place : place + 4] = draw.randbytes(4)
    message.normalizer_spec.precompiled_charsmap = bytes(table)
    return bytes(message.SerializeToString())


DAMAGE: dict[str, Callable[[random.Random, bytes], bytes]] = {
    "bytes": changed_bytes,
    "fields": changed_fields,
    "both": lambda draw, model: changed_bytes(draw, changed_fields(draw, model)),
    "rules": changed_rules,
}


def use(model: bytes) -> None:
    pieces = sentencepiece.SentencePieceProcessor()
    pieces.load_from_serialized_proto(model)
    inventory = [pieces.id_to_piece(index) for index in range(pieces.get_piece_size())]
    for text in TEXTS:
        pieces.decode_pieces(pieces.encode(text, out_type=str))
    pieces.decode_pieces([*inventory[:50], "<0xFF>", "zz"])


def attack(kind: str, first: int, last: int, seed: int, bases: list[bytes], answers: int) -> None:
    """In a child. Writes `read` or `refused` and the growth of its memory, in KiB, for each model."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    for number in range(first, last):
        draw = random.Random(f"{seed} {kind} {number}")
        model = DAMAGE[kind](draw, draw.choice(bases))
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        try:
            use(model)
            said = "read"
        except (RuntimeError, MemoryError, ValueError, OSError, IndexError):
            said = "refused"
        os.write(answers, f"{said} {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before}\n".encode())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--each", type=int, default=25_000, help="models of each kind of damage (25000)")
    parser.add_argument("--seed", type=int, default=1, help="other seeds, other damage (1)")
    given = parser.parse_args()
    sentencepiece.set_min_log_level(4)
    bases, crashed = models(), False
    for kind in DAMAGE:
        counts, most, number = Counter[str](), 0, 0
        while number < given.each:
            inside, outside = os.pipe()
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    attack(kind, number, min(number + CHILD, given.each), given.seed, bases, outside)
                    code = 0
                finally:
                    os._exit(code)
            os.close(outside)
            with os.fdopen(inside, encoding="ascii") as stream:
                answers = [line.split() for line in stream]
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            counts.update(said for said, _ in answers)
            most = max([most, *(int(grown) for _, grown in answers)])
            number += len(answers)
            if code != 0:
                print(f"{kind}, model {number}: ended with {code}")
                counts["crashed"] += 1
                number, crashed = number + 1, True
        said = ", ".join(f"{count:,} {name}" for name, count in sorted(counts.items()))
        print(f"{kind}: {said}; at most {most / 1024:.1f} MiB for one", flush=True)
    return int(crashed)


if __name__ == "__main__":
    sys.exit(main())
