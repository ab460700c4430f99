"""`spacy elmo annotate` runs a pipeline over a corpus, part by part."""

import json
import sys

import pytest
import spacy
import srsly
from helpers.command import call, refused, text
from pyarrow import Table, parquet
from spacy.tokens import Doc, DocBin, Token
from spacy.tokens.underscore import Underscore
from spacy.vocab import Vocab

from spacy_elmo.annotation.doc_rows import check_attributes, make_rows, write_rows

TEXTS = ["Ann saw Bob. He left!", "Tea", "눈이 온다."]


@pytest.fixture
def pipeline(tmp_path):
    nlp = spacy.blank("xx")
    nlp.add_pipe("sentencizer")
    ruler = nlp.add_pipe("entity_ruler")
    ruler.add_patterns([{"label": "PER", "pattern": name} for name in ("Ann", "Bob")])
    nlp.to_disk(tmp_path / "pipeline")
    return tmp_path / "pipeline"


def write(path):
    """Write TEXTS in the format that the suffix names."""
    if path.suffix == ".txt":
        path.write_text("\n".join(TEXTS), "utf8")
    elif path.suffix == ".jsonl":
        srsly.write_jsonl(path, [{"text": text} for text in TEXTS])
    elif path.suffix == ".parquet":
        parquet.write_table(Table.from_pydict({"id": [1, 2, 3], "text": TEXTS}), path)
    else:
        nlp = spacy.blank("xx")
        DocBin(docs=map(nlp.make_doc, TEXTS)).to_disk(path)
    return path


def load(out):
    """Load the docs that the manifest of a folder names."""
    vocab = spacy.blank("xx").vocab
    parts = json.loads((out / "_manifest.json").read_text())["parts"]
    bins = [DocBin().from_disk(out / part["name"]) for part in parts]
    return [doc for found in bins for doc in found.get_docs(vocab)]


def facts(doc):
    return doc.text, [t.is_sent_start for t in doc], [e.label_ for e in doc.ents]


@pytest.mark.parametrize("suffix", ["txt", "jsonl", "parquet", "spacy"])
def test_docs_of_every_format(pipeline, tmp_path, suffix):
    out = tmp_path / "out"
    done = call("annotate", pipeline, write(tmp_path / f"a.{suffix}"), out)
    assert done.exit_code == 0, done.output
    assert "Wrote 3 docs" in text(done)
    nlp = spacy.load(pipeline)
    assert [facts(doc) for doc in load(out)] == [facts(nlp(text)) for text in TEXTS]
    assert [len(doc.ents) for doc in load(out)] == [2, 0, 0]


def test_given_tokens_are_kept(pipeline, tmp_path):
    doc = Doc(spacy.blank("xx").vocab, words=["Ann", "sawBob", "."])
    DocBin(docs=[doc]).to_disk(tmp_path / "a.spacy")
    assert (
        call("annotate", pipeline, tmp_path / "a.spacy", tmp_path / "out").exit_code
        == 0
    )
    (found,) = load(tmp_path / "out")
    assert [token.text for token in found] == ["Ann", "sawBob", "."]
    assert [ent.text for ent in found.ents] == ["Ann"]


@pytest.mark.parametrize("kind", ["parquet", "jsonl"])
def test_attributes_of_tokens(pipeline, tmp_path, kind):
    out = tmp_path / "out"
    args = ["--attributes", "ent_type,is_sent_start", "--format", kind]
    done = call("annotate", pipeline, write(tmp_path / "a.txt"), out, *args)
    assert done.exit_code == 0, done.output
    (path,) = out.glob(f"*.{kind}")
    if kind == "parquet":
        rows = parquet.read_table(path).to_pylist()
    else:
        rows = list(srsly.read_jsonl(path))
    nlp = spacy.load(pipeline)
    expected = [
        {
            "doc": number,
            "token": token.i,
            "word": token.text,
            "ent_type": token.ent_type_,
            "is_sent_start": token.is_sent_start,
        }
        for number, doc in enumerate(nlp.pipe(TEXTS))
        for token in doc
    ]
    assert rows == expected


@pytest.fixture
def rows_of():
    """Return a function that writes an attribute of one token, and returns what the
    file has. The attribute is an extension with the given value."""

    def run(value, path):
        Token.set_extension("test", default=value, force=True)
        names = ["_.test"]
        check_attributes(names)
        kind = path.suffix.removeprefix(".")
        rows = make_rows(Doc(Vocab(), words=["a"]), 0, names)
        write_rows(rows, names, path, kind)
        if kind == "parquet":
            return parquet.read_table(path)["_.test"].to_pylist()
        return [json.loads(line)["_.test"] for line in path.open(encoding="utf8")]

    yield run
    Token.remove_extension("test")


@pytest.mark.parametrize("kind", ["parquet", "jsonl"])
@pytest.mark.parametrize("value", [1e-12, 1 / 3, [1, 2], (1, 2), "눈\n", None])
def test_values_are_kept_exactly(rows_of, tmp_path, value, kind):
    expected = list(value) if isinstance(value, tuple) else value
    assert rows_of(value, tmp_path / f"a.{kind}") == [expected]


@pytest.mark.parametrize("kind", ["parquet", "jsonl"])
def test_tokens_are_stored_as_text(rows_of, tmp_path, kind):
    doc = Doc(Vocab(), words=["a", "b"])
    assert rows_of(doc[1], tmp_path / f"a.{kind}") == ["b"]
    assert rows_of((doc[0], doc[1:]), tmp_path / f"b.{kind}") == [["a", "b"]]


@pytest.mark.parametrize(
    "value, kind",
    [
        (float("nan"), "jsonl"),
        (float("inf"), "jsonl"),
        (2**70, "parquet"),
        ([1, "a"], "parquet"),
        ("\ud800", "parquet"),
        (object(), "jsonl"),
        (iter([1]), "parquet"),
        ([object()], "jsonl"),
        ({"a": 1}, "jsonl"),
    ],
)
def test_values_that_cannot_be_stored_name_their_attribute(
    rows_of, tmp_path, value, kind
):
    with pytest.raises(ValueError, match="^found the attribute '_.test' [^\n]*$"):
        rows_of(value, tmp_path / f"a.{kind}")


@pytest.mark.parametrize("name", ["rank", "sent_start", "sent", "children", "vocab"])
def test_attributes_that_cannot_be_stored_are_named(tmp_path, name):
    doc = Doc(Vocab(), words=["a", "b"])
    with pytest.raises(ValueError, match=f"^found the attribute '{name}' [^\n]*$"):
        write_rows(make_rows(doc, 0, [name]), [name], tmp_path / "a", "parquet")


def test_methods_are_no_attributes():
    for name in ("nbor", "similarity"):
        with pytest.raises(ValueError, match=f"found the attribute '{name}', which"):
            check_attributes([name])


def test_parts_have_the_same_columns(tmp_path):
    names = ["lemma", "is_sent_start", "i", "prob"]
    parts = [Doc(Vocab()), Doc(Vocab(), words=["a", "b"])]
    parts.append(Doc(Vocab(), words=["a"], sent_starts=[True]))
    for number, doc in enumerate(parts):
        path = tmp_path / f"{number}.parquet"
        write_rows(make_rows(doc, number, names), names, path, "parquet")
    table = parquet.read_table(tmp_path)
    assert table.column_names == ["doc", "token", "word", *names]
    assert table["is_sent_start"].to_pylist() == [True, None, True]
    assert table["word"].to_pylist() == ["a", "b", "a"]


@pytest.mark.parametrize("name, value", [("other", 1.5), ("elmo", [1.5, 2.5])])
def test_parts_without_values_fit_to_the_others(tmp_path, monkeypatch, name, value):
    monkeypatch.setitem(Underscore.token_extensions, name, (None, None, None, None))
    parts = [Doc(Vocab()), Doc(Vocab(), words=["a"])]
    parts[1][0]._.set(name, value)
    for number, doc in enumerate(parts):
        path, names = tmp_path / f"{number}.parquet", [f"_.{name}"]
        write_rows(make_rows(doc, number, names), names, path, "parquet")
    assert parquet.read_table(tmp_path)[f"_.{name}"].to_pylist() == [value]


def test_only_missing_parts_are_computed(pipeline, tmp_path, monkeypatch):
    lines = write(tmp_path / "a.txt")
    out = tmp_path / "out"
    assert call("annotate", pipeline, lines, out).exit_code == 0
    before = {path.name: path.stat().st_mtime_ns for path in out.glob("*.spacy")}
    assert call("annotate", pipeline, lines, out).exit_code == 0
    after = {path.name: path.stat().st_mtime_ns for path in out.glob("*.spacy")}
    assert after == before and len(after) == 1
    nlp = spacy.load(pipeline)
    nlp.get_pipe("entity_ruler").add_patterns([{"label": "DRINK", "pattern": "Tea"}])
    nlp.to_disk(pipeline)
    assert call("annotate", pipeline, lines, out).exit_code == 0
    assert [len(doc.ents) for doc in load(out)] == [2, 1, 0]


@pytest.mark.parametrize(
    "args, sentence",
    [
        (["--attributes", "lema"], "found the attribute 'lema'"),
        (["--attributes", "_.nothing"], "found the attribute '_.nothing'"),
        (["--attributes", "pos,pos"], "found the column 'pos' twice"),
        (["--format", "csv"], "found the format 'csv'; expected one of parquet, jsonl"),
        (["--workers", "2"], "found --workers without --cluster"),
        (["--cluster", ""], "found an empty --cluster"),
    ],
)
def test_mistakes_are_one_sentence(pipeline, tmp_path, args, sentence):
    lines, out = write(tmp_path / "a.txt"), tmp_path / "out"
    assert sentence in refused("annotate", pipeline, lines, out, *args)
    assert not out.exists()


@pytest.mark.parametrize("package", ["spacy", "srsly"])
def test_packages_that_are_no_pipelines_are_one_sentence(tmp_path, package):
    said = refused("annotate", package, write(tmp_path / "a.txt"), tmp_path / "out")
    assert f"{package}: cannot be loaded as a pipeline: " in said


def test_bad_input_is_one_sentence(pipeline, tmp_path):
    out = tmp_path / "out"
    (tmp_path / "a.jsonl").write_text('{"text": "one"}\n' * 20 + "{broken\n")
    done = call("annotate", pipeline, tmp_path / "a.jsonl", out)
    assert done.exit_code == 0 and "1 lines that are not JSON" in text(done)
    (tmp_path / "a.jsonl").write_text("{broken\n" * 20)
    assert "broken" in refused("annotate", pipeline, tmp_path / "a.jsonl", out)
    (tmp_path / "b.parquet").write_bytes(b"none")
    said = refused("annotate", pipeline, tmp_path / "b.parquet", out)
    assert "b.parquet: cannot be read as Parquet" in said
    parquet.write_table(Table.from_pydict({"body": ["a"]}), tmp_path / "c.parquet")
    said = refused("annotate", pipeline, tmp_path / "c.parquet", out)
    assert "c.parquet: found the columns body; expected a column 'text'" in said
    (tmp_path / "d.jsonl").write_text(json.dumps({"text": "a b " * 300_000}))
    said = refused("annotate", pipeline, tmp_path / "d.jsonl", tmp_path / "other")
    assert "found an error in docs 0 to 0" in said


@pytest.mark.parametrize("command", ["annotate", "embed"])
def test_a_missing_extra_is_named(pipeline, source, tmp_path, monkeypatch, command):
    monkeypatch.setitem(sys.modules, "ray.data", None)
    lines, out = write(tmp_path / "a.txt"), tmp_path / "out"
    first = pipeline if command == "annotate" else source
    said = refused(command, first, lines, out, "--cluster", "local")
    assert "pip install 'spacy-elmo[cluster]'" in said and not out.exists()
