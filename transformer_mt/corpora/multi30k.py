"""Multi30k, German-English: download, verify and read the official raw files of task 1.

Elliott, Frank, Sima'an, Specia (2016). The files are for non-commercial research and education, and are not part of
this package.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator

from transformer_mt.config.corpus import CorpusConfig
from transformer_mt.config.section import FileName, Many
from transformer_mt.corpora.base import Corpus, Pair
from transformer_mt.corpora.text import read_parallel
from transformer_mt.files.lines import path_of

ADDRESS = "https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw"
TEST_SETS = ("test_2016_flickr", "test_2017_flickr", "test_2017_mscoco", "test_2018_flickr")
OPTIONAL = ("test_2017_mscoco", "test_2018_flickr")  # test sets that are not on every mirror
SUMS = {  # published sha256 of each file
    "train.de.gz": "726e39b2fa9eb9ffb6dc763fb35a179f80fae06ffc5d28b6ace5faa883de28a6",
    "train.en.gz": "d79cfa999dd4c51d2cb42499b6796d5a882c3a8a961923c25a898c90f8bbd56f",
    "val.de.gz": "f0cba2f995189cf5770f29a8a9a537a3ad3f51657ad873405082ff6863a5e75a",
    "val.en.gz": "14f7d25ddd868909a9213e361768460edcacdd6ab9d1e77b92560dc10c10dc28",
    "test_2016_flickr.de.gz": "9204244e408ccb38d2a55cfcd344df15005fc42a07a6e55ca6c52b6ababb8cc8",
    "test_2016_flickr.en.gz": "611d361c6334bc7246101d48097c13cf5c4413c5befc793cc629934359d532d9",
    "test_2017_flickr.de.gz": "a2c89666db00c495cd8513b9d708d5a3acc205d7de312ef2bf5fb7ebc1540aee",
    "test_2017_flickr.en.gz": "76a444ee25172e72695cddb13ae4a3bda59430617be88e0bb46b60504f054074",
    "test_2017_mscoco.de.gz": "799e4854c25d601cb6cb6be29eabe5667734c61ace2f495e03e429031a0bc338",
    "test_2017_mscoco.en.gz": "aab300bfb4427697987e02cd0aacd44bfe8aa50456231b6474c08038bbed2b58",
    "test_2018_flickr.de.gz": "ddd0130c7d97482dc5197a02141dae8dd79f20f03586c480d675c09a32daf608",
    "test_2018_flickr.en.gz": "ef4f4844037d4c5dea75c9a8ed5fd78905967a26f67c255e230cc9780032654d",
}


class Multi30kCorpus(Corpus):
    languages = ("de", "en")
    is_public = True

    @classmethod
    def download(cls, folder: Path, mirror: str | None = None) -> Iterator[tuple[str, str]]:
        """Download every file. An optional test set that the address does not have is left out."""
        from transformer_mt.files.receiving import MissingError

        for name in SUMS:
            try:
                done = "downloaded and verified" if fetch_file(folder, name, mirror) else "verified"
            except MissingError:
                if not name.startswith(OPTIONAL):
                    raise
                done = "left out: the address does not have this optional test set"
            yield name, done

    class Options(CorpusConfig):
        kind: Literal["multi30k"]
        directory: FileName = Field(
            "data/multi30k", description="folder of the .gz files; missing ones are downloaded into it"
        )
        mirror: FileName | None = Field(None, description="another address, or a local folder, with the files")
        test_sets: Many[str] = Field(
            ("test_2016_flickr", "test_2017_flickr"),
            min_length=1,
            description="names of the test sets to prepare",
        )

        @field_validator("test_sets")
        @classmethod
        def _known(cls, names: tuple[str, ...]) -> tuple[str, ...]:
            for name in names:
                if name not in TEST_SETS:
                    raise ValueError(f"unknown test set '{name}'; Multi30k has {', '.join(TEST_SETS)}")
            return names

    options: Options

    def __init__(self, options: Options, source: str, target: str) -> None:
        assert {source, target} == set(self.languages), "the config allows only these"
        super().__init__(options, source, target)

    def fetch(self) -> None:
        for file in self.sources():
            if fetch_file(file.parent, file.name, self.options.mirror):
                print(f"{file}: downloaded and verified", file=sys.stderr)

    def sources(self) -> list[Path]:
        return [file for split in self.splits() for file in self._files_of(split)]

    def splits(self) -> tuple[str, ...]:
        return ("train", "validation", *self.options.test_sets)

    def read(self, split: str) -> Iterator[Pair]:
        return read_parallel(*self._files_of(split))

    def _files_of(self, split: str) -> tuple[Path, Path]:
        folder, stem = path_of(self.options.directory), "val" if split == "validation" else split
        return folder / f"{stem}.{self.source}.gz", folder / f"{stem}.{self.target}.gz"


def fetch_file(folder: Path, name: str, mirror: str | None) -> bool:
    """Make sure that the file is in `folder`, with the official checksum; returns whether it was downloaded now.

    Raises MissingError if the address does not have the file, and TmtError if anything else fails.
    """
    from transformer_mt.files.download import fetch

    remedy = (
        "Download the files from another address, or copy them from a folder (in a config: the key mirror):\n"
        f"    tmt download multi30k --to {folder} --mirror URL"
    )
    return fetch(mirror or ADDRESS, folder / name, SUMS[name], remedy=remedy)
