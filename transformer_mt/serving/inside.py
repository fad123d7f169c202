"""What the page's tab "Inside" shows of a sentence: pieces, attention, the tree of the search, shapes, positions.

Everything is read from the model that is served, in its thread, because reading attention replaces parts of its
modules for a moment.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from typing_extensions import TypedDict

from transformer_mt.decoding.beam_tree import BeamTree, Fate
from transformer_mt.decoding.request import length_penalty
from transformer_mt.decoding.step import pad
from transformer_mt.decoding.translator import AttentionMaps, Translator
from transformer_mt.serving.answers import json_response
from transformer_mt.serving.limits import Limits, RequestError
from transformer_mt.serving.models import Models, ServedModel
from transformer_mt.serving.requests import Body, answered, read_json
from transformer_mt.text.codec import Codec
from transformer_mt.text.vocabulary import BOS, EOS
from transformer_mt.workflows.inspect import meaning, positional_encodings, walk_of_shapes

BEAM = 8  # widest beam that a tree shows
CHARACTERS = 2_000  # of a request
TOKENS = 120  # of a sentence: the maps of all heads grow with its square
POSITIONS = 96  # rows of the table of positional encodings
KINDS = {("encoder", "self_attention"): "encoder", ("decoder", "self_attention"): "decoder"}


Name = Annotated[str | None, Field(max_length=200)]


class InsideRequest(Body):
    """A sentence, and the model that translates it."""

    text: str = Field(max_length=CHARACTERS, description="one sentence; of several, the first one is shown")
    source: Name = None
    target: Name = None
    model: Name = None
    beam: int | None = Field(None, ge=1, le=BEAM, description="width of the beam search; null: that of the model")


class PieceAnswer(TypedDict):
    """A piece and its number in the vocabulary."""

    token: str
    id: int


class VocabularyAnswer(TypedDict):
    """Numbers of pieces."""

    source: int
    target: int


class AttentionAnswer(TypedDict):
    """An attention module. kind: encoder, decoder or cross; heads: weights [H, rows, columns]."""

    path: str
    kind: str
    layer: int
    rows: list[str]
    columns: list[str]
    heads: list[list[list[float]]]


class NodeAnswer(TypedDict):
    """A prefix that the search considered. parent: index of the prefix before it; null for the start token."""

    parent: int | None
    token: str
    step: int
    log_p: float
    log_probability: float
    fate: Fate
    score: float | None


class FoundAnswer(TypedDict):
    """A finished hypothesis. node, path: indices of nodes; penalty: what its log-probability is divided by."""

    node: int
    text: str
    tokens: list[str]
    path: list[int]
    log_probability: float
    penalty: float
    score: float
    stopped: bool


class TreeAnswer(TypedDict):
    """A search. nodes: step by step, the likeliest first; done: the finished hypotheses, best first."""

    beam: int
    length_penalty: float
    nodes: list[NodeAnswer]
    done: list[FoundAnswer]


class ShapeAnswer(TypedDict):
    """A tensor, and the module whose code makes it."""

    path: str
    meaning: str
    name: str
    letters: list[str]
    shape: list[int]


class SeenAnswer(TypedDict):
    """Everything about the translation of a sentence.

    sentences:  all of the text
    final_norm: whether each stack ends with a normalisation
    """

    sentence: str
    sentences: list[str]
    notes: list[str]
    source_pieces: list[PieceAnswer]
    target_pieces: list[PieceAnswer]
    text: str
    vocabulary: VocabularyAnswer
    attention: list[AttentionAnswer]
    tree: TreeAnswer
    greedy: FoundAnswer
    shapes: list[ShapeAnswer]
    final_norm: bool


class InsideAnswer(SeenAnswer):
    """The same, with the model and the time it took."""

    model: str
    source: str
    target: str
    seconds: float


class PositionsAnswer(TypedDict):
    """Positional encodings. values: a row for each position; null if the model adds none to its embeddings."""

    model: str
    kind: str
    width: int
    values: list[list[float]] | None


def routes(models: Models, limits: Limits) -> list[Route]:
    """What one sentence looks like inside a model, and the model's positional encodings."""

    async def inside(request: Request) -> Response:
        wanted = await read_json(request, InsideRequest, limits)
        start = time.perf_counter()
        model = await models.find_for(wanted.source, wanted.target, wanted.model, [wanted.text])
        translator = _translator(model)
        beam = wanted.beam or min(translator.decoding.beam, BEAM)
        work = model.batcher.run(lambda: look_inside(translator, wanted.text, beam))
        found = await answered(request, work, limits)
        seconds = round(time.perf_counter() - start, 4)
        named = {"model": model.name, "source": model.source, "target": model.target, "seconds": seconds}
        return json_response({**named, **found})

    async def positions(request: Request) -> Response:
        model = models.of_name(request.path_params["name"])
        translator = _translator(model)
        found = await model.batcher.run(lambda: describe_positions(translator))
        return json_response({"model": model.name, **found})

    return [
        Route("/v1/inside", inside, methods=["POST"]),
        Route("/v1/models/{name}/positions", positions, methods=["GET"]),
    ]


def _translator(model: ServedModel) -> Translator:
    """Raises RequestError if this model's engine does not show its inside."""
    if not isinstance(model.translator, Translator):
        raise RequestError(400, "this model runs with CTranslate2, which does not show what happens inside")
    return model.translator


def look_inside(translator: Translator, text: str, beam: int) -> SeenAnswer:
    """Everything about the translation of a sentence. If the text has several, the first one.

    Raises RequestError if the text has no words, or if the sentence is too long to be shown.
    """
    sentences = [one.strip() for one in translator.sentences(" ".join(text.split())) if one.strip()]
    sentence = sentences[0] if sentences else ""
    source = translator.read(sentence)
    if not source.tokens:
        raise RequestError(400, "the text has no words")
    if len(source.ids) > TOKENS:
        raise RequestError(413, f"the sentence has {len(source.ids)} tokens; at most {TOKENS} can be shown")
    tree, greedy = translator.beam_tree(sentence, beam), translator.beam_tree(sentence, 1)
    best = tree.nodes[tree.done[0]]
    ids = tree.ids(tree.done[0])
    ids = ids[:-1] if best.token == EOS else ids
    seen = translator.attention(sentence, target=translator.target.vocabulary.decode(ids))
    return {
        "sentence": sentence,
        "sentences": sentences,
        "notes": list(source.notes),
        "source_pieces": _pieces(translator.source, source.ids),
        "target_pieces": _pieces(translator.target, [*ids, EOS]),
        "text": translator.target.decode(ids),
        "vocabulary": {"source": len(translator.source), "target": len(translator.target)},
        "attention": _attention(seen),
        "tree": _tree(tree, translator.target),
        "greedy": _found(greedy, greedy.done[0], translator.target),
        "shapes": _shapes(translator, source.ids, ids),
        "final_norm": translator.models[0].config.has_final_norm,
    }


def describe_positions(translator: Translator) -> dict[str, Any]:
    """How the model knows the order of tokens: its table of encodings, or why it has none.

    `values` has a row for each position, and a column for each coordinate of the vector that is added.
    """
    model = translator.models[0]
    found = {"kind": model.config.positions, "width": model.config.d_model, "values": None}
    table_PD = positional_encodings(model, POSITIONS)
    if table_PD is None:
        return {**found, "width": model.config.d_model // model.config.n_heads}
    return {**found, "values": _rounded(table_PD, 3)}


def _pieces(codec: Codec, ids: Sequence[int]) -> list[PieceAnswer]:
    return [{"token": token, "id": index} for token, index in zip(codec.vocabulary.decode(ids), ids, strict=True)]


def _attention(seen: AttentionMaps) -> list[AttentionAnswer]:
    """One entry for each attention module, in the order in which the model computes them."""
    found = []
    for path, weights_HQM in seen.maps.items():
        stack, _, layer, kind = path.split(".")
        found.append(
            AttentionAnswer(
                path=path,
                kind=KINDS.get((stack, kind), "cross"),
                layer=int(layer) + 1,
                rows=list(seen.rows[path]),
                columns=list(seen.columns[path]),
                heads=_rounded(weights_HQM, 4),
            )
        )
    return found


def _tree(tree: BeamTree, target: Codec) -> TreeAnswer:
    nodes = [
        NodeAnswer(
            parent=node.parent,
            token=target.vocabulary.tokens[node.token],
            step=node.step,
            log_p=round(node.log_p, 5),
            log_probability=round(node.log_probability, 5),
            fate=node.fate,
            score=None if node.score is None else round(node.score, 5),
        )
        for node in tree.nodes
    ]
    done = [_found(tree, place, target) for place in tree.done]
    return TreeAnswer(beam=tree.beam, length_penalty=tree.alpha, nodes=nodes, done=done)


def _found(tree: BeamTree, place: int, target: Codec) -> FoundAnswer:
    """A result of the search. `penalty` divides its log-probability; a coverage penalty is also in its score."""
    node, ids = tree.nodes[place], tree.ids(place)
    assert node.score is not None
    return FoundAnswer(
        node=place,
        text=target.decode(ids),
        tokens=target.vocabulary.decode(ids),
        path=tree.path(place),
        log_probability=round(node.log_probability, 5),
        penalty=round(float(length_penalty(len(ids), tree.alpha)), 5),
        score=round(node.score, 5),
        stopped=node.token != EOS,
    )


def _shapes(translator: Translator, source: Sequence[int], target: Sequence[int]) -> list[ShapeAnswer]:
    """Every tensor between the ids of this sentence and the logits."""
    ids = pad([source], translator.device), pad([[BOS, *target]], translator.device)
    return [
        ShapeAnswer(
            path=row.path, meaning=meaning(row.path), name=row.name, letters=list(row.letters), shape=list(row.shape)
        )
        for row in walk_of_shapes(translator.models[0], *ids)
    ]


def _rounded(values: Any, digits: int) -> Any:
    """Nested lists of rounded numbers, from a tensor or an array of numpy."""
    listed = values.tolist()

    def short(one: Any) -> Any:
        return [short(part) for part in one] if isinstance(one, list) else round(one, digits)

    return short(listed)
