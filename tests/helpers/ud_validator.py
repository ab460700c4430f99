"""Check the sample treebanks against the guidelines of Universal Dependencies.

Run as `python -m helpers.ud_validator FILE... --lang en` in tests/.
"""

import argparse
import re
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from helpers import ud_inventories as known

COLUMNS = "ID FORM LEMMA UPOS XPOS FEATS HEAD DEPREL DEPS MISC".split()


@dataclass
class Word:
    line: int
    form: str
    lemma: str
    upos: str
    xpos: str
    feats: str
    head: int
    deprel: str
    misc: dict[str, str]

    @property
    def relation(self) -> str:
        return self.deprel.split(":")[0]


@dataclass
class Sentence:
    line: int
    sent_id: str = ""
    text: str = ""
    words: list[Word] = field(default_factory=list)

    def children(self, head: int) -> list[Word]:
        return [word for word in self.words if word.head == head]


@dataclass
class Report:
    """The results of checking a treebank.

    problems (list[str]): Messages that begin with "file:line: ".
    sentences (list[Sentence]): All sentences of the treebank.
    projective (int): The number of sentences without crossing relations.
    """

    problems: list[str] = field(default_factory=list)
    sentences: list[Sentence] = field(default_factory=list)
    projective: int = 0

    @property
    def words(self) -> list[Word]:
        return [word for sentence in self.sentences for word in sentence.words]

    def summary(self) -> str:
        n = len(self.sentences)
        lines = [
            f"{n} sentences, {len(self.words)} tokens, "
            f"{self.projective / max(n, 1):.1%} projective, "
            f"{len(self.problems)} problems"
        ]
        for name in ("upos", "deprel"):
            counts = Counter(getattr(word, name) for word in self.words).most_common()
            lines.append(
                f"{name.upper()}: " + ", ".join(f"{x} {count}" for x, count in counts)
            )
        return "\n".join(lines)


Complaint = tuple[int, str]


def validate(paths: list[Path], lang: str) -> Report:
    """Check the files of one treebank. A sentence id may occur only once in them."""
    report = Report()
    seen: set[str] = set()
    for path in paths:
        complaints: list[Complaint] = []
        text = path.read_text(encoding="utf-8")
        if not text.endswith("\n\n"):
            complaints.append((text.count("\n"), "no empty line after the last word"))
        for sentence in parse_sentences(text, complaints):
            if sentence.sent_id in seen:
                complaints.append((sentence.line, f"second {sentence.sent_id!r}"))
            seen.add(sentence.sent_id)
            report.sentences.append(sentence)
            complaints.extend(check_sentence(sentence, lang))
            report.projective += is_tree(sentence) and not crossing(sentence)
        complaints.sort()
        report.problems += [f"{path}:{line}: {what}" for line, what in complaints]
    return report


def parse_sentences(text: str, complaints: list[Complaint]) -> Iterator[Sentence]:
    """Parse CoNLL-U. Skip lines that cannot be parsed, and add a complaint for each."""
    sentence = None
    for number, line in enumerate(text.split("\n"), start=1):
        if not line:
            if sentence is not None:
                yield sentence
            sentence = None
            continue
        if sentence is None:
            sentence = Sentence(number)
        if line.startswith("#"):
            name, _, value = line[1:].partition("=")
            if name.strip() in ("sent_id", "text"):
                setattr(sentence, name.strip(), value.strip())
        else:
            try:
                sentence.words.append(parse_word(number, line, len(sentence.words) + 1))
            except ValueError as error:
                complaints.append((number, f"{error}"))
    if sentence is not None:
        yield sentence


def parse_word(number: int, line: str, expected: int) -> Word:
    columns = line.split("\t")
    if len(columns) != len(COLUMNS):
        raise ValueError(f"{len(columns)} columns, expected {len(COLUMNS)}")
    for name, value in zip(COLUMNS, columns):
        if not value or value != value.strip():
            raise ValueError(f"{name} is empty or has spaces around it")
        if unicodedata.normalize("NFC", value) != value:
            raise ValueError(f"{name} is not in Unicode's NFC form")
    id_, form, lemma, upos, xpos, feats, head, deprel, _, misc = columns
    if not id_.isdecimal():
        raise ValueError(f"ID {id_}: ranges and empty nodes are not used here")
    if int(id_) != expected:
        raise ValueError(f"ID {id_}, expected {expected}")
    if not head.isdecimal():
        raise ValueError(f"HEAD {head} is not a number")
    if " " in form:
        raise ValueError("space in FORM")
    pairs = [] if misc == "_" else [x.partition("=")[::2] for x in misc.split("|")]
    if len(dict(pairs)) != len(pairs):
        raise ValueError(f"MISC {misc}: a key twice")
    return Word(number, form, lemma, upos, xpos, feats, int(head), deprel, dict(pairs))


def check_sentence(sentence: Sentence, lang: str) -> Iterator[Complaint]:
    if not sentence.words:
        yield sentence.line, "sentence without words"
        return
    if not sentence.sent_id:
        yield sentence.line, "no # sent_id"
    pieces = [
        word.form + ("" if word.misc.get("SpaceAfter") == "No" else " ")
        for word in sentence.words
    ]
    if (joined := "".join(pieces).rstrip()) != sentence.text:
        yield sentence.line, f"# text is {sentence.text!r}, the words are {joined!r}"
    for word in sentence.words:
        for what in [*check_columns(word, lang), *check_features(word, lang)]:
            yield word.line, f"{word.form}: {what}"
    yield from check_entities(sentence)
    if is_tree(sentence):
        for i, word in enumerate(sentence.words, start=1):
            for what in check_relation(sentence, i, word, lang):
                yield word.line, f"{word.form}: {what}"
    else:
        yield (
            sentence.line,
            "heads are no tree with a single root: "
            + " ".join(str(word.head) for word in sentence.words),
        )


def check_columns(word: Word, lang: str) -> Iterator[str]:
    """Check that the columns of a word have known values that fit together."""
    if word.upos not in known.UPOS:
        yield f"unknown UPOS {word.upos}"
    if word.deprel not in known.RELATIONS | known.SUBTYPES[lang]:
        yield f"unknown DEPREL {word.deprel}"
    if word.lemma == "_" and word.form != "_":
        yield "no LEMMA"
    tags = word.xpos.split("+") if lang == "ko" else [word.xpos]
    for tag in tags:
        if tag not in known.XPOS[lang]:
            yield f"unknown XPOS {tag}"
    if lang == "ko" and "+" in word.lemma and len(word.lemma.split("+")) != len(tags):
        yield f"LEMMA {word.lemma} and XPOS {word.xpos} differ in length"
    for key, value in word.misc.items():
        if key not in known.MISC or not value:
            yield f"unknown MISC {key}={value}"
        if key == "SpaceAfter" and value != "No":
            yield f"SpaceAfter={value}, expected No"
    if lang == "en" and "Typo" not in word.feats and word.upos != "X":
        yield from check_penn_tag(word)


def check_penn_tag(word: Word) -> Iterator[str]:
    allowed = known.PENN_UPOS.get(word.xpos, word.upos).split()
    if word.upos not in allowed:
        yield f"XPOS {word.xpos} with UPOS {word.upos}, expected {' or '.join(allowed)}"
    required = known.PENN_FEATURES.get(word.xpos, "").split()
    if word.upos == allowed[0] and required:
        if not set(required) & set(word.feats.split("|")):
            yield f"XPOS {word.xpos} without {' or '.join(required)}"


def check_features(word: Word, lang: str) -> Iterator[str]:
    if word.feats == "_":
        return
    features = word.feats.split("|")
    names = [feature.partition("=")[0] for feature in features]
    if names != sorted(set(names), key=str.lower):
        yield f"FEATS {word.feats} not sorted, or twice the same"
    for feature in features:
        name, _, value = feature.partition("=")
        values = known.FEATURES[lang].get(name, "").split()
        if not set(value.split(",")) <= set(values):
            yield f"unknown feature {feature}"


def check_entities(sentence: Sentence) -> Iterator[Complaint]:
    """Check the entity tags of a sentence. An entity of several words has the tags B,
    any number of I, and L, all with one label. An entity of one word has the tag U. A
    word without NE is in no entity."""
    inside = ""  # the label of the entity that this word continues
    for word in sentence.words:
        tag = word.misc.get("NE", "O")
        found = re.fullmatch(r"O|([BILU])-(\w+)", tag)
        if found is None or found[2] not in known.ENTITIES | {None}:
            yield word.line, f"{word.form}: unknown NE={tag}"
            return
        place, label = (found[1] or "O"), found[2]
        if (place in "IL") != bool(inside) or (inside and label != inside):
            yield word.line, f"{word.form}: NE={tag} cannot stand here"
            return
        inside = label if place in "BI" else ""
    if inside:
        yield sentence.words[-1].line, f"the sentence ends inside of a {inside}"


def check_relation(sentence: Sentence, i: int, word: Word, lang: str) -> Iterator[str]:
    """Check a word's relation, together with its head and its dependents.

    i (int): The word's ID, counted from 1.
    """
    relation, words = word.relation, sentence.words
    if (word.head == 0) != (word.deprel == "root"):
        yield f"HEAD {word.head} with DEPREL {word.deprel}"
    # The first word of a fixed expression has the UPOS of the whole in ExtPos.
    upos = dict(x.partition("=")[::2] for x in word.feats.split("|")).get(
        "ExtPos", word.upos
    )
    has_fixed = any(
        child.relation in ("fixed", "goeswith") for child in sentence.children(i)
    )
    allowed = known.UPOS_OF[lang].get(relation, upos).split()
    if upos not in allowed and not has_fixed:
        yield f"{word.deprel} with UPOS {upos}, expected {' or '.join(allowed)}"
    if word.upos == "PUNCT" and relation not in ("punct", "root"):
        yield f"UPOS PUNCT with {word.deprel}"
    if relation in known.NOMINAL and upos in known.NOT_NOMINAL:
        yield f"{word.deprel} with UPOS {upos}"
    if relation in known.HEAD_FIRST and word.head > i:
        yield f"{word.deprel} must point to a word before it"
    if word.head and (parent := words[word.head - 1]).relation in known.LEAVES:
        if relation not in known.LEAVES[parent.relation].split():
            yield f"{word.deprel} below {parent.form}, which is {parent.deprel}"
    if relation == "punct" and i in crossing(sentence):
        yield "punct crosses another relation"
    below = Counter(
        "subject" if child.relation in ("nsubj", "csubj") else child.deprel
        for child in sentence.children(i)
        if not child.deprel.endswith(":outer")
    )
    for name in ("subject", "obj", "iobj"):
        if below[name] > 1:
            yield f"{below[name]} dependents that are {name}"


def is_tree(sentence: Sentence) -> bool:
    """Return whether there is exactly one root, and each word depends on it directly or
    indirectly."""
    heads = [word.head for word in sentence.words]
    if heads.count(0) != 1 or any(head > len(heads) for head in heads):
        return False
    reached = {0}
    for _ in heads:
        reached |= {i for i, head in enumerate(heads, start=1) if head in reached}
    return len(reached) == len(heads) + 1


def crossing(sentence: Sentence) -> set[int]:
    """Return the IDs of all words whose relation crosses another one. This is so if a
    word between the word and its head does not depend on the head, not even indirectly.
    """
    heads = [0] + [word.head for word in sentence.words]
    found = set()
    for i, head in enumerate(heads[1:], start=1):
        for between in range(min(i, head) + 1, max(i, head)):
            while between not in (0, head):
                between = heads[between]
            if between != head:
                found.add(i)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description="Check CoNLL-U files")
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--lang", choices=sorted(known.XPOS), required=True)
    args = parser.parse_args()
    report = validate(args.files, args.lang)
    print("\n".join([*report.problems, report.summary()]))
    return 1 if report.problems else 0


if __name__ == "__main__":
    sys.exit(main())
