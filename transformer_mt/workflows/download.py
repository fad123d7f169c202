"""Downloads a public corpus."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from pathlib import Path

from transformer_mt.config.choices import CHOICES, choice
from transformer_mt.errors import TmtError


def public_corpora() -> list[str]:
    """Kinds of corpora that `download` can fetch."""
    return [kind for kind in CHOICES["corpus"] if choice("corpus", kind).is_public]


def download(corpus: str, folder: Path, mirror: str | None = None) -> Iterator[tuple[str, str]]:
    """Download and verify every file; yields the name of each file and its result.

    mirror: another address or a local folder with the files.
    Raises TmtError if the corpus cannot be downloaded, or if a file differs from the official one.
    """
    kinds = {kind: choice("corpus", kind) for kind in CHOICES["corpus"]}
    if corpus in kinds and kinds[corpus].is_public:
        yield from kinds[corpus].download(folder, mirror)
        return
    if corpus in kinds and kinds[corpus].no_download is not None:
        message, remedy = kinds[corpus].no_download
        raise TmtError(message, remedy=remedy)
    known = [kind for kind, cls in kinds.items() if cls.is_public or cls.no_download]
    near = difflib.get_close_matches(corpus, known, n=1)
    hint = f"; did you mean '{near[0]}'?" if near else ""
    public = " or ".join(f"`tmt download {kind}`" for kind in public_corpora())
    *own, last = (kind for kind in kinds if kind not in known)
    raise TmtError(
        f"unknown corpus '{corpus}'{hint}",
        remedy=f"Use {public}. Your own files need no download; their kinds are {', '.join(own)} and {last}.",
    )
