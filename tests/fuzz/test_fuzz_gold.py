"""Damaged gold data: docs, or one sentence that names the file."""

import json
import random
import zlib
from pathlib import Path

import pytest
import spacy
import srsly
from helpers.fuzzing import mutate, mutate_json
from helpers.hostile_text import is_one_sentence, make_text
from spacy.tokens import Doc, DocBin

from spacy_elmo.analysis.sense_map import read_occurrences
from spacy_elmo.analysis.tagged_sentences import read_tagged
from spacy_elmo.analysis.wsd_files import read_keys, read_wsd
from spacy_elmo.gold.conversion import Conversion
from spacy_elmo.gold.gold_formats import get_format
from spacy_elmo.gold.prepare_corpus import count
from spacy_elmo.text.doc_files import save_docs

ASSETS = Path(__file__).parents[2] / "assets"
NLP = spacy.blank("en")
RECORDS = [
    {"text": "Ada met Grace.", "spans": [[0, 3, "PERSON"], [8, 13, "PERSON"]]},
    {"text": "Snow fell.", "cats": {"weather": 1.0, "sport": 0}},
    {"text": "Goal!", "label": "sport"},
    {"text": "Ada", "entities": [{"start": 0, "end": 3, "label": "PERSON"}]},
]
IOB = "-DOCSTART- X O\n\nAda NNP B-PERSON\nmet VBD O\n\nGrace NNP S-PERSON\n. . O\n" * 3
XML = """<?xml version="1.0" encoding="UTF-8"?>
<corpus lang="en"><text id="d0"><sentence id="d0.s0">
<wf lemma="the" pos="DET">The</wf>
<instance id="d0.s0.t0" lemma="bank" pos="NOUN">bank</instance>
<wf lemma="close" pos="VERB">&lt;closed&gt;</wf></sentence></text></corpus>"""
KEYS = "d0.s0.t0 bank%1:14:00:: bank%1:17:01::\nd0.s0.t1 x\n"


def conllu():
    """Return the first sentences of a treebank."""
    path = next((ASSETS / "treebank" / "en").glob("*train*.conllu"))
    blocks = path.read_text(encoding="utf-8").split("\n\n")
    return "\n\n".join(blocks[:5]) + "\n\n"


def doc_bin():
    """Return the bytes of a .spacy file before their compression."""
    words = ["Snow", "fell", "in", "Berlin", "."]
    doc = Doc(
        NLP.vocab,
        words=words,
        heads=[1, 1, 1, 2, 1],
        deps=["dep"] * 5,
        tags=["X"] * 5,
        ents=["O", "O", "O", "B-LOC", "O"],
    )
    doc.cats = {"weather": 1.0}
    doc.spans["sc"] = [doc[1:3]]
    docs = [doc, NLP("It did not stop.")]
    return zlib.decompress(DocBin(docs=docs, store_user_data=True).to_bytes())


def mutate_lines(rng, text):
    """Exchange, repeat or change columns and lines, or bytes."""
    if rng.random() < 0.4:
        return mutate(text.encode(), rng)
    lines = text.split("\n")
    for _ in range(rng.choice((1, 1, 3))):
        at = rng.randrange(len(lines))
        columns = lines[at].split("\t")
        columns[rng.randrange(len(columns))] = rng.choice(
            (
                "",
                "_",
                "0",
                "1",
                "99",
                "1-2",
                "2-1",
                "3.1",
                "-1",
                "B-",
                "I-X",
                "²",
                "A=B",
            )
            + (
                make_text(rng).replace("\n", " "),
                "9" * 5000,
                "a" * 10**5,
                "SpaceAfter=No",
            )
        )
        lines[at] = "\t".join(columns)
        if rng.random() < 0.3:
            lines.insert(rng.randrange(len(lines)), rng.choice(lines))
    return "\n".join(lines).encode()


def mutate_docs(rng, data):
    """Damage a .spacy file, or put wrong contents into it."""
    if rng.random() < 0.2:
        return mutate(zlib.compress(data), rng)
    if rng.random() < 0.4:
        return zlib.compress(mutate(data, rng))
    parts = srsly.msgpack_loads(data)
    key = rng.choice(list(parts))
    if isinstance(parts[key], bytes) and rng.random() < 0.7:
        parts[key] = mutate(parts[key], rng)
    else:
        parts[key] = rng.choice([None, 3, [], {}, "x", b"", [1], [b"\x90"], -1])
    return zlib.compress(srsly.msgpack_dumps(parts))


def check_file(read, path, data):
    """Read a file that may be damaged."""
    path.write_bytes(data)
    try:
        return read(path)
    except ValueError as error:
        assert is_one_sentence(error) and str(path) in str(error), error


def read_gold(path):
    conversion = Conversion(NLP, random.Random(0).choice([None, "sc"]))
    docs = list(get_format(path).read(path, conversion))
    count(docs)
    save_docs(docs, path.with_suffix(".out"))
    for doc in docs:
        [(token.head.i, token.pos_, str(token.morph)) for token in doc]


@pytest.mark.parametrize("suffix", [".conllu", ".iob"])
def test_any_lines_of_words(fuzz, tmp_path, suffix):
    text = conllu() if suffix == ".conllu" else IOB.replace(" ", "\t")

    for rng in fuzz.trials(60):
        data = mutate_lines(rng, text)
        check_file(read_gold, tmp_path / f"a{suffix}", data)
        if suffix == ".conllu":
            tagged = tmp_path / "tagged.conllu"
            check_file(lambda path: list(read_tagged(path)), tagged, data)


def test_any_jsonl(fuzz, tmp_path):
    for rng in fuzz.trials(60):
        lines = [
            mutate_json(json.dumps(rng.choice(RECORDS)).encode(), rng) for _ in range(3)
        ]
        data = b"\n".join(lines)
        data = mutate(data, rng) if rng.random() < 0.2 else data
        check_file(read_gold, tmp_path / "a.jsonl", data)


@pytest.mark.slow
def test_any_docs(fuzz, tmp_path):
    base = doc_bin()

    for rng in fuzz.trials(20):
        data = mutate_docs(rng, base)
        check_file(read_gold, tmp_path / "a.spacy", data)
        check_file(lambda path: list(read_tagged(path)), tmp_path / "t.spacy", data)


def test_any_senses(fuzz, tmp_path):
    lines = (ASSETS / "senses" / "en.jsonl").read_text(encoding="utf-8").splitlines()
    records = [line.encode() for line in lines[:4]]

    for rng in fuzz.trials(60):
        data = b"\n".join(mutate_json(record, rng) for record in records)
        data = mutate(data, rng) if rng.random() < 0.2 else data
        for occurrence in check_file(read_occurrences, tmp_path / "a", data) or []:
            NLP.make_doc(occurrence.text)


def test_any_xml_and_keys(fuzz, tmp_path):
    for rng in fuzz.trials(60):
        data = mutate(XML.encode(), rng)
        check_file(lambda path: list(read_wsd(path)), tmp_path / "a.xml", data)
        check_file(read_keys, tmp_path / "a.key", mutate(KEYS.encode(), rng))
