"""Test the sample data in assets/, and the validator of the treebanks."""

import re
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

import pytest
import srsly
from helpers.ud_validator import Word, is_tree, validate

from spacy_elmo.text.tokenizers import RULES, load_language

ASSETS = Path(__file__).parents[2] / "assets"
TESTS = Path(__file__).parents[1]
LANGS = ("en", "ko")
PARTS = ("train", "dev")
FILES = [
    *(f"treebank/{lang}/{part}.conllu" for lang in LANGS for part in PARTS),
    *(f"senses/{lang}.jsonl" for lang in LANGS),
    "text/en.txt",
]


# The treebanks


@pytest.fixture(scope="module")
def treebanks():
    """Validate each treebank file, and return the reports by language and part."""
    return {
        lang: {
            part: validate([ASSETS / "treebank" / lang / f"{part}.conllu"], lang)
            for part in PARTS
        }
        for lang in LANGS
    }


@pytest.mark.parametrize("lang, expected", [("en", 240), ("ko", 120)])
def test_treebank_is_valid(lang, expected):
    paths = [ASSETS / "treebank" / lang / f"{part}.conllu" for part in PARTS]
    report = validate(paths, lang)
    assert not report.problems, "\n".join(report.problems)
    assert len(report.sentences) >= expected


@pytest.mark.parametrize("lang", LANGS)
def test_no_sentence_is_in_both_parts_or_twice(treebanks, lang):
    texts = [
        sentence.text for part in PARTS for sentence in treebanks[lang][part].sentences
    ]
    assert [text for text, n in Counter(texts).items() if n > 1] == []


@pytest.mark.parametrize("lang", LANGS)
def test_every_domain_is_in_both_parts(treebanks, lang):
    domains = [
        {sentence.sent_id.rpartition("-")[0] for sentence in report.sentences}
        for report in treebanks[lang].values()
    ]
    assert domains[0] == domains[1] and len(domains[0]) >= 4 and "" not in domains[0]


@pytest.mark.parametrize("lang", LANGS)
def test_dev_can_be_learned_from_train(treebanks, lang):
    for name in ("upos", "relation"):
        train, dev = (
            Counter(getattr(word, name) for word in treebanks[lang][part].words)
            for part in PARTS
        )
        common = {value for value, n in dev.items() if n >= 5}
        assert common <= set(train), name


@pytest.mark.parametrize("lang", LANGS)
def test_treebank_has_entities(treebanks, lang):
    for part in PARTS:
        tags = [word.misc.get("NE", "O") for word in treebanks[lang][part].words]
        labels = {tag[2:] for tag in tags if tag != "O"}
        assert len(labels) >= 6, labels


# Senses and text


def read_senses(lang):
    return list(srsly.read_jsonl(ASSETS / "senses" / f"{lang}.jsonl"))


def count_senses(lang, key):
    """Count the uses of each sense, for each key of a use."""
    counts = defaultdict(Counter)
    for record in read_senses(lang):
        assert set(record) == {"word", "sense", "text", "start", "end"}
        counts[key(record)][record["sense"]] += 1
    return counts


@pytest.mark.parametrize("lang", LANGS)
def test_words_have_enough_sentences_of_each_sense(lang):
    counts = count_senses(lang, lambda record: record["word"])
    assert len(counts) == 20
    for word, senses in counts.items():
        assert len(senses) >= 2 and min(senses.values()) >= 5, (word, senses)
        n_uses = sum(senses.values())
        assert n_uses >= 12 and max(senses.values()) <= 0.6 * n_uses, (word, senses)
    required = {"en": "play stick bank bat spring right", "ko": "눈 사과 손 배 말 다리"}
    assert set(required[lang].split()) <= set(counts)


@pytest.mark.parametrize("lang", LANGS)
def test_no_form_of_a_word_reveals_its_sense(lang):
    def get_form(record):
        form = re.match(r"\w+", record["text"][record["start"] :]).group().lower()
        return record["word"], form

    senses = count_senses(lang, lambda record: record["word"])
    for (word, form), counts in count_senses(lang, get_form).items():
        assert set(counts) == set(senses[word]), form
        assert len(set(counts.values())) == 1, (form, counts)


@pytest.mark.parametrize("lang", LANGS)
def test_sense_sentences_are_distinct(lang):
    texts = Counter(record["text"] for record in read_senses(lang))
    assert [text for text, n in texts.items() if n > 1] == []


@pytest.mark.parametrize("lang", LANGS)
def test_sense_spans_are_the_word_within_a_token(lang):
    nlp = load_language(lang, RULES)
    for record in read_senses(lang):
        start, end = record["start"], record["end"]
        marked = record["text"][start:end].lower()
        # In English the marked span is the inflected word, in Korean it is the word
        # without its particle.
        if lang == "en":
            assert marked.startswith(record["word"]), record
        else:
            assert marked == record["word"], record
        token = nlp(record["text"]).char_span(start, end, alignment_mode="expand")
        assert len(token) == 1, record
        if lang == "en":
            assert token.text.lower() == marked, record


def test_korean_words_begin_where_a_space_ends_and_are_morphemes():
    pytest.importorskip("mecab")
    nlp = load_language("ko", "spacy-elmo.MecabTokenizer.v1")
    for record in read_senses("ko"):
        assert f" {record['text']}"[record["start"]] == " ", record
        found = nlp(record["text"]).char_span(record["start"], record["end"])
        assert found is not None and len(found) == 1, record
        assert found[0].tag_ == "NNG", record


def test_text_is_long_enough_for_a_demo():
    text = (ASSETS / "text" / "en.txt").read_text(encoding="utf-8")
    documents = [block for block in text.split("\n\n") if block.strip()]
    assert len(documents) >= 20
    assert len(set(documents)) == len(documents)
    assert len(text.split()) >= 3000


def test_readme_of_the_assets_names_every_file():
    text = (ASSETS / "README.md").read_text(encoding="utf-8")
    for name in FILES:
        assert (ASSETS / name).is_file(), name
        assert f"`{name}`" in text, name
    assert "licen" in text.lower()


# The validator

FINITE = "Mood=Ind|Number=Sing|Person=3|Tense=Pres|VerbForm=Fin"
TREE = f"""\
# sent_id = x-1
# text = Ann Lee sees the two dogs, and she has paid.
1	Ann	Ann	PROPN	NNP	Number=Sing	3	nsubj	_	NE=B-PERSON
2	Lee	Lee	PROPN	NNP	Number=Sing	1	flat	_	NE=L-PERSON
3	sees	see	VERB	VBZ	{FINITE}	0	root	_	_
4	the	the	DET	DT	Definite=Def|PronType=Art	6	det	_	_
5	two	two	NUM	CD	NumForm=Word|NumType=Card	6	nummod	_	NE=U-CARDINAL
6	dogs	dog	NOUN	NNS	Number=Plur	3	obj	_	SpaceAfter=No
7	,	,	PUNCT	,	_	11	punct	_	_
8	and	and	CCONJ	CC	_	11	cc	_	_
9	she	she	PRON	PRP	Case=Nom|Number=Sing|Person=3|PronType=Prs	11	nsubj	_	_
10	has	have	AUX	VBZ	{FINITE}	11	aux	_	_
11	paid	pay	VERB	VBN	Tense=Past|VerbForm=Part	3	conj	_	SpaceAfter=No
12	.	.	PUNCT	.	_	3	punct	_	_

"""
KOREAN = """\
# sent_id = k-1
# text = 눈이 온다.
1	눈이	눈+이	NOUN	NNG+JKS	Case=Nom	2	nsubj	_	_
2	온다	오+ㄴ다	VERB	VV+EF	_	0	root	_	SpaceAfter=No
3	.	.	PUNCT	SF	_	2	punct	_	_

"""


@pytest.fixture
def check(tmp_path):
    def run(text, lang):
        path = tmp_path / "tree.conllu"
        path.write_text(text, encoding="utf-8")
        report = validate([path], lang)
        return [problem.removeprefix(f"{path}:") for problem in report.problems]

    return run


@pytest.mark.parametrize("text, lang", [(TREE, "en"), (KOREAN, "ko")])
def test_good_trees_pass(check, text, lang):
    assert check(text, lang) == []


@pytest.mark.parametrize(
    "old, new, expected",
    [
        ("\t3\tobj\t_", "\t3\tobj", "8: 9 columns"),
        ("\n6\t", "\n7\t", "8: ID 7, expected 6"),
        ("\n6\t", "\n6-7\tx\t_\t_\t_\t_\t_\t_\t_\t_\n6\t", "8: ID 6-7: ranges"),
        ("\n6\t", "\n5.1\tx\t_\t_\t_\t_\t_\t_\t_\t_\n6\t", "8: ID 5.1: ranges"),
        ("\tsee\t", "\t\t", "5: LEMMA is empty"),
        ("\tsee\t", "\t_\t", "5: sees: no LEMMA"),
        ("\tsee\t", "\te\u0301\t", "5: LEMMA is not in Unicode's NFC form"),
        ("\tsees\t", "\tse es\t", "5: space in FORM"),
        ("# sent_id", "# sent_id = x-0\n\n# sent_id", "1: sentence without words"),
        ("NE=B-PERSON", "NE=O|NE=O", "3: MISC NE=O|NE=O: a key twice"),
        ("_\n\n", "_\n", "14: no empty line after the last word"),
        ("# sent_id = x-1\n", "", "1: no # sent_id"),
        ("# text = Ann", "# text = Anne", "1: # text is"),
        ("SpaceAfter=No\n7", "_\n7", "1: # text is"),
        ("SpaceAfter=No\n7", "SpaceAfter=no\n7", "8: dogs: SpaceAfter=no"),
        ("SpaceAfter=No\n7", "Spaces=No\n7", "8: dogs: unknown MISC Spaces=No"),
        ("\t0\troot", "\t0\tdep", "5: sees: HEAD 0 with DEPREL dep"),
        ("\t3\tobj", "\t3\troot", "8: dogs: HEAD 3 with DEPREL root"),
        ("\t3\tobj", "\t0\troot", "1: heads are no tree"),
        ("\t3\tobj", "\t5\tobj", "1: heads are no tree"),
        ("\t3\tobj", "\t99\tobj", "1: heads are no tree"),
        ("\t3\tobj", "\tx\tobj", "8: HEAD x is not a number"),
        ("\tVERB\tVBZ", "\tVB\tVBZ", "5: sees: unknown UPOS VB"),
        ("\t3\tobj", "\t3\tdobj", "8: dogs: unknown DEPREL dobj"),
        ("\t3\tobj", "\t3\tobj:x", "8: dogs: unknown DEPREL obj:x"),
        ("\tNOUN\tNNS", "\tNOUN\tNNX", "8: dogs: unknown XPOS NNX"),
        ("\tNOUN\tNNS", "\tNOUN\tNN", "8: dogs: XPOS NN without Number=Sing"),
        ("\tNOUN\tNNS", "\tNOUN\tVB", "8: dogs: XPOS VB with UPOS NOUN"),
        ("Number=Plur", "Number=Many", "8: dogs: unknown feature Number=Many"),
        ("Number=Plur", "Nomber=Plur", "8: dogs: unknown feature Nomber=Plur"),
        ("Number=Plur", "Plur", "8: dogs: unknown feature Plur"),
        ("Definite=Def|PronType=Art", "PronType=Art|Definite=Def", "6: the: FEATS"),
        ("NE=L-PERSON", "NE=I-PERSON", "5: sees: NE=O cannot stand here"),
        ("NE=L-PERSON", "NE=L-ORG", "4: Lee: NE=L-ORG cannot stand here"),
        ("NE=L-PERSON", "_", "4: Lee: NE=O cannot stand here"),
        ("NE=U-CARDINAL", "NE=L-CARDINAL", "7: two: NE=L-CARDINAL cannot stand here"),
        ("NE=U-CARDINAL", "NE=U-ZAHL", "7: two: unknown NE=U-ZAHL"),
        ("\t_\t3\tpunct\t_\t_", "\t_\t3\tpunct\t_\tNE=B-ORG", "14: the sentence ends"),
        ("\t6\tdet", "\t6\tnummod", "6: the: nummod with UPOS DET, expected NUM"),
        ("\t6\tnummod", "\t6\tdet", "7: two: det with UPOS NUM"),
        ("\t11\taux", "\t11\tcase", "12: has: case with UPOS AUX"),
        ("\t11\tcc", "\t11\taux", "10: and: aux with UPOS CCONJ, expected AUX"),
        ("\t11\tpunct", "\t11\tmark", "9: ,: UPOS PUNCT with mark"),
        ("\t11\tcc", "\t11\tobj", "10: and: obj with UPOS CCONJ"),
        ("\t3\tnsubj", "\t3\tconj", "3: Ann: conj must point to a word before it"),
        ("\t3\tobj", "\t10\tobj", "8: dogs: obj below has, which is aux"),
        ("\t11\tcc", "\t9\tcc", None),
        ("\t_\t11\tpunct", "\t_\t1\tpunct", "9: ,: punct crosses another relation"),
        ("\t6\tnummod", "\t3\tobj", "5: sees: 2 dependents that are obj"),
        ("\t3\tobj", "\t3\tcsubj", "5: sees: 2 dependents that are subject"),
        ("\t3\tobj", "\t3\tnsubj:outer", None),
    ],
)
def test_each_fault_is_found(check, old, new, expected):
    assert TREE.count(old) >= 1
    found = check(TREE.replace(old, new, 1), "en")
    if expected is None:
        assert found == []
    else:
        assert any(problem.startswith(expected) for problem in found), found


@pytest.mark.parametrize(
    "old, new, expected",
    [
        ("NNG+JKS", "NNG+XYZ", "3: 눈이: unknown XPOS XYZ"),
        ("NNG+JKS", "NNG+NNG+JKS", "3: 눈이: LEMMA 눈+이 and XPOS"),
        (
            "눈이\t눈",
            "\u1102\u116e\u11ab이\t눈",
            "3: FORM is not in Unicode",
        ),
        ("Case=Nom", "Gender=X", "3: 눈이: unknown feature Gender=X"),
        ("2\tnsubj", "2\tcompound:prt", "3: 눈이: unknown DEPREL compound:prt"),
    ],
)
def test_faults_in_korean_are_found(check, old, new, expected):
    found = check(KOREAN.replace(old, new, 1), "ko")
    assert any(problem.startswith(expected) for problem in found), found


def test_a_second_sentence_with_an_id_is_found_across_files(tmp_path):
    paths = [tmp_path / "a.conllu", tmp_path / "b.conllu"]
    for path in paths:
        path.write_text(KOREAN, encoding="utf-8")
    assert validate(paths[:1], "ko").problems == []
    assert validate(paths, "ko").problems == [f"{paths[1]}:1: second 'k-1'"]


def test_crossing_relations_are_counted_and_allowed(tmp_path):
    path = tmp_path / "tree.conllu"
    path.write_text(TREE.replace("\t6\tnummod", "\t11\tnummod"), encoding="utf-8")
    report = validate([path], "en")
    assert report.problems == []
    assert (len(report.sentences), report.projective) == (1, 0)
    assert "1 sentences, 12 tokens, 0.0% projective, 0 problems" in report.summary()


def test_trees_by_their_heads():
    class Heads:
        def __init__(self, *heads):
            self.words = [Word(i, "", "", "", "", "_", h, "", {}) for i, h in
                          enumerate(heads)]  # fmt: skip

    assert is_tree(Heads(0)) and is_tree(Heads(2, 3, 0)) and is_tree(Heads(0, 1, 2, 1))
    for heads in [(1,), (0, 0), (2, 1), (0, 3, 2), (0, 2), (0, 5)]:
        assert not is_tree(Heads(*heads)), heads


@pytest.mark.slow
def test_validator_is_a_command(tmp_path):
    path = tmp_path / "tree.conllu"
    for text, code in [(TREE, 0), (TREE.replace("\tobj", "\tobject"), 1)]:
        path.write_text(text, encoding="utf-8")
        command = [sys.executable, "-m", "helpers.ud_validator", str(path)]
        command += ["--lang", "en"]
        done = subprocess.run(
            command, cwd=TESTS, capture_output=True, text=True, encoding="utf-8"
        )
        assert done.returncode == code, done.stderr
        assert "1 sentences, 12 tokens, 100.0% projective" in done.stdout
        assert ("unknown DEPREL object" in done.stdout) == bool(code)
