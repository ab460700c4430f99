"""The state of one conversion of gold data, shared by the readers of all formats."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.util import filter_spans


@dataclass
class Conversion:
    """Holds the settings of a conversion, and collects facts about the data.

    nlp (Language): Its tokenizer splits raw texts, and docs get its vocab.
    spans_key (str | None): If given, all entities, including overlapping ones, are
        stored in doc.spans[spans_key].
    changes (Counter[str]): Descriptions of changes to the data, and how often each
        change was made.
    labels (set[str]): All labels that were given as {"text": ..., "label": ...}, where
        each text has exactly one label.
    """

    nlp: Language
    spans_key: str | None = None
    changes: "Counter[str]" = field(default_factory=Counter)
    labels: set[str] = field(default_factory=set)

    def set_entities(self, doc: Doc, spans: Iterable[Span]) -> None:
        """Set doc.ents and, if there is a spans_key, doc.spans.

        The spans in doc.ents cannot overlap, so only the longest ones are kept there.
        """
        distinct = list(dict.fromkeys(spans))
        kept = filter_spans(distinct)
        doc.ents = kept
        if len(distinct) > len(kept):
            change = "entities overlapped longer ones and were left out"
            self.changes[change] += len(distinct) - len(kept)
        if self.spans_key is not None:
            doc.spans[self.spans_key] = distinct
