"""`tmt serve`: models behind HTTP, and a page in the browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from transformer_mt.cli.options import DeviceOption, EngineOption, ThreadsOption, model_option
from transformer_mt.serving.limits import Limits

_USUAL = Limits()
_MODELS = "Run or model folder; repeat it to serve several directions. Default: the newest finished run."
_HOST = "Address to listen on. 0.0.0.0: all networks of this machine."
_KEYS = "File with one API key on each line; requests without one are refused."
_CHARACTERS = "Characters of a request."
_QUEUE = "Sentences of all clients that may wait, for each model."
_ORIGIN = "Address of another site whose pages may use this server, such as https://example.com; repeatable."
_NAME = "Host name that this server is reached by, if it listens on this machine only; repeatable."


def serve(
    model: Annotated[list[Path] | None, model_option(help=_MODELS)] = None,
    host: Annotated[str, typer.Option(metavar="ADDRESS", help=_HOST)] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65_535, metavar="N", help="Port; 0: any free one.")] = 5000,
    engine: EngineOption = "tmt",
    device: DeviceOption = "auto",
    threads: ThreadsOption = None,
    api_key_file: Annotated[Path | None, typer.Option(metavar="FILE", help=_KEYS)] = None,
    max_body: Annotated[int, typer.Option(min=1, metavar="BYTES", help="Bytes of a request.")] = _USUAL.body,
    max_characters: Annotated[int, typer.Option(min=1, metavar="N", help=_CHARACTERS)] = _USUAL.characters,
    max_sentences: Annotated[int, typer.Option(min=1, metavar="N", help="Sentences of a request.")] = _USUAL.sentences,
    max_queue: Annotated[int, typer.Option(min=1, metavar="N", help=_QUEUE)] = _USUAL.queue,
    timeout: Annotated[
        float, typer.Option(min=0.1, max=86_400, metavar="SECONDS", help="Time of a request.")
    ] = _USUAL.seconds,
    allow_origin: Annotated[list[str] | None, typer.Option(metavar="ORIGIN", help=_ORIGIN)] = None,
    allow_host: Annotated[list[str] | None, typer.Option(metavar="NAME", help=_NAME)] = None,
) -> None:
    """Serve models over HTTP, with a page that translates in the browser."""
    from transformer_mt.serving.start import Address, Computing
    from transformer_mt.serving.start import serve as work

    limits = Limits(max_body, max_characters, max_sentences, max_queue, timeout)
    work(
        model or (),
        engine,
        Computing(device, threads),
        Address(host, port, tuple(allow_host or ()), tuple(allow_origin or ())),
        limits,
        api_key_file,
    )
