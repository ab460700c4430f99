"""`spacy elmo embed` writes the vectors of a text to a file, and can be restarted."""

import os
import sys

import h5py
import numpy as np
import pytest
import torch
from helpers.command import call, text
from helpers.corpora import by_spacy
from helpers.full_disk import full_disk
from helpers.pretraining import write_text
from pyarrow import parquet

from spacy_elmo.bilm import BiLM, BiLMConfig, BytesConfig, LSTMConfig, load_bilm
from spacy_elmo.bilm.fingerprint import fingerprint
from spacy_elmo.embedding import embed_file as embed_module
from spacy_elmo.embedding.embed_file import embed_file
from spacy_elmo.files import WriteError, one_writer

SENTENCES = [[f"w{n}", "눈", "x" * 60][: 1 + n % 3] for n in range(23)]
ENDINGS = ["hdf5", "h5", "parquet"]


def make_bilm(seed=0):
    torch.manual_seed(seed)
    encoder = BytesConfig(char_dim=3, filters=[[1, 4], [3, 5]])
    return BiLM(BiLMConfig(encoder, LSTMConfig(8, 5), training={"lang": "en"}))


@pytest.fixture
def bilm():
    return make_bilm()


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    monkeypatch.setattr(embed_module, "PART", 5)


def read(path):
    """Read the layers of all sentences, in order."""
    if path.suffix == ".parquet":
        return read_parquet(path)[1]
    with h5py.File(path) as file:
        assert sorted(file, key=int) == [str(n) for n in range(len(file))]
        return [file[str(n)][()] for n in range(len(file))]


def read_parquet(path):
    """Read the words and layers of all sentences."""
    words, layers = {}, {}
    for row in parquet.read_table(path).to_pylist():
        assert row["token"] == len(words.setdefault(row["sentence"], []))
        words[row["sentence"]].append(row["word"])
        layers.setdefault(row["sentence"], []).append(
            [row[f"layer_{j}"] for j in range(len(row) - 3)]
        )
    assert list(words) == list(range(len(words)))
    arrays = [np.array(part, np.float32).swapaxes(0, 1) for part in layers.values()]
    return list(words.values()), arrays


def assert_same(found, expected):
    assert len(found) == len(expected)
    for a, b in zip(found, expected):
        assert a.dtype == b.dtype == np.float32
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7)


@pytest.mark.skipif(sys.platform != "linux", reason="names must be Unicode there")
def test_the_name_of_a_parquet_file_may_have_any_bytes(bilm, tmp_path):
    path = tmp_path / os.fsdecode(b"caf\xe9.parquet")
    assert embed_file(bilm, SENTENCES[:3], path) == 3
    with path.open("rb") as file:
        assert len(parquet.read_table(file)) == sum(map(len, SENTENCES[:3]))


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("n", [1, 5, 23])
def test_all_layers_of_all_sentences(bilm, tmp_path, ending, n):
    path = tmp_path / f"vectors.{ending}"
    told = []
    assert embed_file(bilm, SENTENCES[:n], path, on_progress=told.append) == n
    assert told[-1] == n
    assert_same(read(path), bilm.embed(SENTENCES[:n]))
    assert read(path)[0].shape == (3, 1, 10)
    assert [p.name for p in tmp_path.iterdir()] == [path.name]
    if ending == "parquet":
        assert read_parquet(path)[0] == SENTENCES[:n]


def interrupt(bilm, path, monkeypatch, *, after, sentences=SENTENCES):
    """Start embed_file and interrupt it after some parts."""
    real, parts = bilm.embed, []

    def embed(part):
        if len(parts) == after:
            raise KeyboardInterrupt
        parts.append(part)
        return real(part)

    monkeypatch.setattr(bilm, "embed", embed)
    with pytest.raises(KeyboardInterrupt):
        embed_file(bilm, sentences, path)
    monkeypatch.setattr(bilm, "embed", real)
    assert not path.exists()


def watched(bilm, monkeypatch):
    """Return a list to which each call of embed adds its sentences."""
    real, seen = bilm.embed, []

    def embed(part):
        seen.extend(part)
        return real(part)

    monkeypatch.setattr(bilm, "embed", embed)
    return seen


@pytest.mark.parametrize("ending", ENDINGS)
def test_interrupted_run_goes_on(bilm, tmp_path, monkeypatch, ending):
    whole, path = tmp_path / f"whole.{ending}", tmp_path / f"parts.{ending}"
    embed_file(bilm, SENTENCES, whole)
    interrupt(bilm, path, monkeypatch, after=2)
    interrupt(bilm, path, monkeypatch, after=1)
    seen = watched(bilm, monkeypatch)
    assert embed_file(bilm, iter(SENTENCES), path) == 23
    assert seen == SENTENCES[15:]
    assert path.read_bytes() == whole.read_bytes()
    assert sorted(p.name for p in tmp_path.iterdir()) == [path.name, whole.name]


DAMAGES = {
    "zeros": lambda data: data[:-40] + bytes(40),
    "all zeros": lambda data: bytes(len(data)),
    "a bit": lambda data: data[:-9] + bytes([data[-9] ^ 4]) + data[-8:],
    "a word": lambda data: data.replace(b'"w', b'"v', 1),
    "half": lambda data: data[: len(data) // 2],
    "empty": lambda data: b"",
    "text": lambda data: b"text\n" * 9,
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
@pytest.mark.parametrize("ending", ["hdf5", "parquet"])
def test_a_damaged_part_is_made_again(bilm, tmp_path, monkeypatch, ending, damage):
    whole, path = tmp_path / f"whole.{ending}", tmp_path / f"parts.{ending}"
    embed_file(bilm, SENTENCES, whole)
    interrupt(bilm, path, monkeypatch, after=3)
    part = sorted((tmp_path / f"{path.name}.parts").iterdir())[1]
    part.write_bytes(damage(part.read_bytes()))
    seen, said = watched(bilm, monkeypatch), []
    assert embed_file(bilm, SENTENCES, path, say=said.append) == 23
    expected = f"{part}: the checksum does not match; computing this part again"
    assert said == [expected]
    assert seen == SENTENCES[5:10] + SENTENCES[15:]
    assert path.read_bytes() == whole.read_bytes()


def test_a_pipe_or_folder_in_place_of_a_part_is_not_read(bilm, tmp_path, monkeypatch):
    path = tmp_path / "parts.hdf5"
    interrupt(bilm, path, monkeypatch, after=2)
    pipe, folder = sorted((tmp_path / f"{path.name}.parts").iterdir())
    said = []
    for part, make in ((pipe, os.mkfifo), (folder, os.mkdir)):
        part.unlink()
        make(part)
    with pytest.raises(ValueError, match=f"^{folder}: found a folder; expected"):
        embed_file(bilm, SENTENCES, path)
    folder.rmdir()
    assert embed_file(bilm, SENTENCES, path, say=said.append) == 23
    expected = f"{pipe}: found a pipe; expected a file; computing this part again"
    assert said == [expected]


@pytest.mark.parametrize("ending", ["hdf5", "parquet"])
@pytest.mark.parametrize("n_bytes", [0, 100, 3000, 6000, 9000])
def test_a_full_disk_is_one_sentence(bilm, tmp_path, ending, n_bytes):
    whole, path = tmp_path / f"whole.{ending}", tmp_path / f"full.{ending}"
    embed_file(bilm, SENTENCES, whole)
    assert whole.stat().st_size > 9000
    with full_disk(n_bytes), pytest.raises(WriteError, match="the disk is full"):
        embed_file(bilm, SENTENCES, path)
    assert not path.exists()
    embed_file(bilm, SENTENCES, path)
    assert path.read_bytes() == whole.read_bytes()
    assert sorted(p.name for p in tmp_path.iterdir()) == [path.name, whole.name]


def test_parts_of_another_bilm_are_not_used(bilm, tmp_path, monkeypatch):
    path = tmp_path / "vectors.hdf5"
    interrupt(make_bilm(1), path, monkeypatch, after=3)
    folder = tmp_path / "vectors.hdf5.parts"
    left = {part.name for part in folder.iterdir()}
    assert len(left) == 3
    interrupt(bilm, path, monkeypatch, after=3)
    assert len(list(folder.iterdir())) == 3  # the parts of the other biLM are gone
    assert not left & {part.name for part in folder.iterdir()}
    embed_file(bilm, SENTENCES, path)
    assert_same(read(path), bilm.embed(SENTENCES))


def test_parts_of_another_precision_are_not_used(bilm, tmp_path, monkeypatch):
    path = tmp_path / "vectors.hdf5"
    interrupt(bilm, path, monkeypatch, after=2)
    bilm.precision = "int8"
    embed_file(bilm, SENTENCES, path)
    assert_same(read(path), bilm.embed(SENTENCES))


def test_parts_of_another_text_are_not_used(bilm, tmp_path, monkeypatch):
    path = tmp_path / "vectors.hdf5"
    other = [*SENTENCES[:6], ["another"], *SENTENCES[7:]]
    interrupt(bilm, path, monkeypatch, after=3, sentences=other)
    seen = watched(bilm, monkeypatch)
    embed_file(bilm, SENTENCES, path)
    assert seen == [*SENTENCES[5:10], *SENTENCES[15:]]  # parts 1 and 3 are used
    monkeypatch.undo()
    assert_same(read(path), bilm.embed(SENTENCES))


def test_fingerprint_is_that_of_the_weights(bilm, tmp_path):
    assert fingerprint(make_bilm(0)) == fingerprint(bilm) != fingerprint(make_bilm(1))
    bilm.save(tmp_path)
    assert fingerprint(load_bilm(tmp_path)) == fingerprint(bilm)
    with torch.no_grad():
        bilm.backward_layers[1].bias[3] += 1e-6
    assert fingerprint(load_bilm(tmp_path)) != fingerprint(bilm)


# The command


@pytest.fixture
def source(bilm, tmp_path):
    bilm.save(tmp_path / "bilm")
    return tmp_path / "bilm"


@pytest.mark.parametrize("ending", ENDINGS)
def test_command_reads_text(bilm, source, tmp_path, ending):
    path = write_text(tmp_path / "a.txt", n_documents=4)
    out = tmp_path / f"out.{ending}"
    done = call("embed", source, path, out)
    assert done.exit_code == 0, done.output
    assert "12 sentences" in text(done)
    sentences = by_spacy(path.read_text().split("\n"))
    assert_same(read(out), bilm.embed(sentences))


def test_command_reads_tokenized_text(bilm, source, tmp_path):
    (tmp_path / "a.txt").write_text("Don't stop. Now!\nx\n")
    out = tmp_path / "out.hdf5"
    assert call("embed", source, tmp_path / "a.txt", out, "--tokenized").exit_code == 0
    assert_same(read(out), bilm.embed([["Don't", "stop.", "Now!"], ["x"]]))


@pytest.mark.parametrize(
    "name, data, expected",
    [
        ("out.npz", "Words.", "found the suffix '.npz'; expected one of .hdf5, .h5"),
        ("out.hdf5", "", "found no sentences; expected some text"),
        ("out.parquet", " \n", "found no sentences; expected some text"),
    ],
)
def test_refusals_are_one_sentence(source, tmp_path, name, data, expected):
    (tmp_path / "a.txt").write_text(data)
    done = call("embed", source, tmp_path / "a.txt", tmp_path / name)
    assert done.exit_code == 1
    assert expected in text(done) and "Traceback" not in done.output
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.txt", "bilm"]


def test_missing_text_is_named(source, tmp_path):
    done = call("embed", source, tmp_path / "nowhere.txt", tmp_path / "out.hdf5")
    assert done.exit_code == 1 and "nowhere.txt: no such file" in text(done)


def test_broken_text_is_told(source, tmp_path):
    (tmp_path / "a.txt").write_bytes(b"one\n" * 20 + b"\xff\xfe two\n")
    done = call("embed", source, tmp_path / "a.txt", tmp_path / "out.hdf5")
    assert done.exit_code == 0, done.output
    assert "Problems found in the text: 1 lines with invalid UTF-8" in text(done)


@pytest.mark.parametrize("module, ending", [("h5py", "hdf5"), ("pyarrow", "parquet")])
def test_missing_packages_are_found_before_the_work(
    source, tmp_path, monkeypatch, module, ending
):
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setattr(BiLM, "embed", None)
    (tmp_path / "a.txt").write_text("Words.")
    done = call("embed", source, tmp_path / "a.txt", tmp_path / f"out.{ending}")
    assert done.exit_code == 1
    assert f"this needs {module}: pip install 'spacy-elmo[{ending}]'" in text(done)


def test_folder_in_the_way_is_found_before_the_work(source, tmp_path, monkeypatch):
    monkeypatch.setattr(BiLM, "embed", None)
    (tmp_path / "a.txt").write_text("Words.")
    (tmp_path / "out.hdf5").mkdir()
    done = call("embed", source, tmp_path / "a.txt", tmp_path / "out.hdf5")
    assert done.exit_code == 1
    assert "found a folder; expected the name of a file" in text(done)
    assert not list((tmp_path / "out.hdf5").iterdir())


def hdf5_of(fill):
    def write(path):
        with h5py.File(path, "w") as file:
            fill(file)

    return write


def add_facts(file):
    file["0"] = np.zeros((3, 2, 4), np.float32)
    file.attrs["mine"] = 1


OTHERS = {
    "text": lambda path: path.write_text("mine"),
    "weights": hdf5_of(lambda file: file.update({"CNN/W": np.zeros(3)})),
    "nothing": hdf5_of(lambda file: None),
    "only facts": hdf5_of(lambda file: file.attrs.update(mine=np.arange(100))),
    "more facts": hdf5_of(add_facts),
    "years": hdf5_of(lambda file: file.update({"2024/data": np.zeros(3)})),
    "rows": hdf5_of(lambda file: file.update({"0": np.zeros((3, 4), np.float32)})),
    "doubles": hdf5_of(lambda file: file.update({"0": np.zeros((3, 2, 4))})),
    "a dead link": hdf5_of(lambda file: file.update({"0": h5py.SoftLink("/x")})),
    "damaged": lambda path: path.write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(900)),
    "pipe": os.mkfifo,
}


@pytest.mark.parametrize("write", OTHERS.values(), ids=OTHERS)
def test_a_file_of_something_else_is_not_overwritten(
    source, tmp_path, monkeypatch, write
):
    monkeypatch.setattr(BiLM, "embed", None)
    (tmp_path / "a.txt").write_text("Words.")
    out = tmp_path / "out.hdf5"
    write(out)
    before = out.read_bytes() if out.is_file() else None
    done = call("embed", source, tmp_path / "a.txt", out)
    assert done.exit_code == 1 and "found a file of something else" in text(done)
    assert before == (out.read_bytes() if out.is_file() else None)


@pytest.mark.parametrize("ending", ["hdf5", "parquet"])
def test_earlier_vectors_are_replaced(bilm, tmp_path, ending):
    path = tmp_path / f"out.{ending}"
    path.touch()
    embed_file(bilm, SENTENCES[:7], path)
    embed_file(bilm, SENTENCES[:3], path)
    assert len(read(path)) == 3


def test_what_others_put_into_the_folder_of_parts_stays(bilm, tmp_path):
    folder = tmp_path / "out.hdf5.parts"
    folder.mkdir()
    (folder / "mine.txt").write_text("mine")
    embed_file(bilm, SENTENCES, tmp_path / "out.hdf5")
    assert [path.name for path in folder.iterdir()] == ["mine.txt"]
    (tmp_path / "linked.h5.parts").symlink_to(tmp_path / "out.hdf5.parts")
    with pytest.raises(ValueError, match="found a file or a link; expected a folder"):
        embed_file(bilm, SENTENCES, tmp_path / "linked.h5")


def test_one_writer_at_a_time(source, tmp_path):
    (tmp_path / "a.txt").write_text("Words.")
    out = tmp_path / "out.hdf5"
    with one_writer(out):
        done = call("embed", source, tmp_path / "a.txt", out)
    assert done.exit_code == 1
    assert f"out.hdf5: process {os.getpid()} on" in text(done)
    assert call("embed", source, tmp_path / "a.txt", out).exit_code == 0
