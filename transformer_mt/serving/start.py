"""What `tmt serve` does, step by step: check, listen, load, say where, serve."""

from __future__ import annotations

import importlib.util
import ipaddress
import json
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from transformer_mt.decoding.computing import Computing as Computing
from transformer_mt.errors import TmtError
from transformer_mt.reporting.notes import note
from transformer_mt.serving.limits import Limits

if TYPE_CHECKING:
    from transformer_mt.serving.models import Models, ServedModel

PACKAGES = ("starlette", "uvicorn", "httptools", "prometheus_client")  # the extra `serve`
_EVERYWHERE = ("0.0.0.0", "::", "")
_SAMPLES = {  # a sentence for the first try
    "de": "Die Katze ist klein.",
    "en": "The cat is small.",
    "es": "El gato es pequeño.",
    "fr": "Le chat est petit.",
    "it": "Il gatto è piccolo.",
    "ja": "その猫は小さいです。",
    "ko": "그 고양이는 작아요.",
    "nl": "De kat is klein.",
    "pl": "Kot jest mały.",
    "pt": "O gato é pequeno.",
    "ru": "Кошка маленькая.",
    "zh": "这只猫很小。",
}


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


@dataclass(frozen=True)
class Address:
    """Where the server listens, and who may use it.

    hosts:   more names by which it is reached; if it does not listen on loopback, none: by any
    origins: of other sites whose pages may use it
    """

    host: str = "127.0.0.1"
    port: int = 5000
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()

    @property
    def is_loopback(self) -> bool:
        if _is_address(self.host):
            return ipaddress.ip_address(self.host).is_loopback
        return self.host == "localhost"

    def known_hosts(self) -> set[str] | None:
        """The names in the header Host that are answered; None: all. Raises TmtError if a host is no name.

        On loopback, or if names are given, only these and those of this machine are: a page of another site could lead
        its own name here, and its scripts could then read the answers.
        """
        for host in self.hosts:
            if not _is_address(host) and not re.fullmatch(r"[\w.-]+", host):
                remedy = "Give the name alone, such as translate.example.com."
                raise TmtError(f"'{host}' is not the name of a machine", place="--allow-host", remedy=remedy)
        named = (host.lower() for host in (self.host, *self.hosts))
        return {"localhost", "127.0.0.1", "::1", *named} if self.is_loopback or self.hosts else None

    def known_origins(self) -> list[str]:
        """The origins as a browser sends them. Raises TmtError if one is none: it would never be the same."""
        return [origin if origin in ("*", "null") else _checked_origin(origin) for origin in self.origins]


def _checked_origin(origin: str) -> str:
    """An origin as a browser writes it: in small letters, without a path and without the usual port of its scheme."""
    try:
        parts = urlsplit(origin.lower())
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    rest, usual = f"{parts.path}{parts.query}{parts.fragment}", {"http": 80, "https": 443}.get(parts.scheme)
    if not parts.scheme or not re.fullmatch(r"[a-z0-9.:\[\]-]+", parts.netloc) or rest not in ("", "/"):
        remedy = "Give its scheme, name and port, without a path, such as https://example.com."
        raise TmtError(f"'{origin}' is not an origin", place="--allow-origin", remedy=remedy)
    return f"{parts.scheme}://{parts.netloc.removesuffix(f':{port}') if port == usual else parts.netloc}"


def require_packages() -> None:
    """Raises TmtError unless the extra `serve` is installed."""
    missing = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        raise TmtError(
            f"`tmt serve` needs packages that are not installed: {', '.join(missing)}",
            remedy="pip install starlette uvicorn httptools prometheus-client   or in a clone of the repository:"
            "  pip install -c scripts/constraints.txt -e '.[serve]'",
        )


def serve(
    folders: Sequence[Path], engine: str, computing: Computing, address: Address, limits: Limits, key_file: Path | None
) -> None:
    """Serve models until SIGTERM or Ctrl-C. Prints the address and a first request.

    folders: of the models; empty: of the run that finished last
    Raises TmtError if a package is missing, if the address cannot be used, or if there is no key or model.
    """
    require_packages()
    from transformer_mt.serving.app import make_app
    from transformer_mt.serving.keys import read_keys
    from transformer_mt.serving.models import load_models
    from transformer_mt.serving.run import open_socket, run

    keys, hosts, origins = read_keys(key_file), address.known_hosts(), address.known_origins()
    with open_socket(address.host, address.port) as listening:  # before the models, which take seconds
        models = load_models(folders, limits, computing, engine)
        for one in models.served:
            one.translator.translate(sample_of(one))  # what is loaded at the first sentence
        app = make_app(models, limits, keys, hosts, origins)
        if not address.is_loopback and not keys:
            note(f"{address.host} can be reached from other machines, and there is no --api-key-file: all may use it")
        print(greeting(models, address.host, listening.getsockname()[1], key_file), flush=True)
        run(app, listening, limits)


def greeting(models: Models, host: str, port: int, key_file: Path | None) -> str:
    """The address, the directions, and a first request that can be pasted into a shell."""
    host = "127.0.0.1" if host in _EVERYWHERE else f"[{host}]" if ":" in host else host
    url = f"http://{host}:{port}"
    first_key = f"$(grep -m1 '^[[:space:]]*[^#[:space:]]' {shlex.quote(str(key_file))})"
    key = f' -H "Authorization: Bearer {first_key}"' if key_file else ""
    first = models.served[0]
    body = json.dumps({"text": sample_of(first)} | _direction(models), ensure_ascii=False)
    lines = [f"serving    {one.source_name} to {one.target_name}   {one.name} ({one.engine})" for one in models.served]
    lines += [f"page       {url}", "stop       Ctrl-C; requests under way are answered first"]
    lines += [f"try        curl{key} -H 'Content-Type: application/json' -d '{body}' {url}/v1/translate"]
    return "\n".join(lines)


def sample_of(model: ServedModel) -> str:
    """A short sentence in the source language of a model."""
    return _SAMPLES.get(model.source, "Hello.")


def _direction(models: Models) -> dict[str, str]:
    first = models.served[0]
    return {} if len(models.served) == 1 else {"source": first.source, "target": first.target}
