"""Notes on text that a model should not learn from as it is: words that are cut already, lines about a talk."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from transformer_mt.corpora.base import Pair
from transformer_mt.data.doctor import Outliers
from transformer_mt.data.reading import PIECES, TOKENIZED, unusual
from transformer_mt.errors import number_of
from transformer_mt.reporting.notes import note
from transformer_mt.text.batches import Batch
from transformer_mt.workflows.data_remarks import outlier_remarks

_METADATA = re.compile(
    r"\s*</?(?:url|talkid|title|description|keywords|speaker|reviewer|translator|doc|srcset|refset)\b"
)


def note_tokenized(pairs: Sequence[Pair]) -> None:
    """Say if another program has cut the text into words or pieces of words."""
    sides = [Batch([pair.source for pair in pairs]), Batch([pair.target for pair in pairs])]
    kinds = {PIECES: Batch.in_pieces, TOKENIZED: Batch.tokenized}
    rows = {kind: {row for side in sides for row in rows_of(side)} for kind, rows_of in kinds.items()}
    told = unusual(Counter({kind: len(some) for kind, some in rows.items()}), len(pairs))
    for kind, count in told.items():
        for remark in outlier_remarks({kind: Outliers(count, [])}):
            note(f"{pairs[min(rows[kind])].place}: the first of {remark.text}. {remark.remedy}")


def note_metadata(pairs: Sequence[Pair]) -> None:
    """Say if lines are about a talk, as in IWSLT's files of training."""
    about = [one for one in pairs if _METADATA.match(one.source) and _METADATA.match(one.target)]
    if about:
        found = number_of(len(about), "pair")
        note(
            f"{about[0].place}: the first of {found} that are no sentences, but say something of a talk or a document:"
            f" {about[0].source[:60].strip()}. Remove them from both files:  grep -v '^ *<' OLD > NEW"
        )
