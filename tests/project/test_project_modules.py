"""Test the modules of spacy_elmo.project, which project.yml calls."""

import shutil

import spacy
import srsly
from helpers.command import call_module
from helpers.pipelines import save_bilm
from spacy.tokens import Doc

from spacy_elmo.fingerprints import fingerprint_path
from spacy_elmo.text.doc_files import load_docs, save_docs


def call(name, *args):
    return call_module(f"spacy_elmo.project.{name}", *args)


def fingerprint(tmp_path, source):
    out = tmp_path / "new" / "out.json"
    assert call("fingerprint_model", source, out) == (0, "")
    return out.read_bytes()


def test_fingerprint_of_a_folder_depends_on_names_and_contents(tmp_path):
    fingerprints = set()
    for name, text in (("a", "x"), ("a", "y"), ("b", "x")):
        folder = tmp_path / f"{name}{text}"
        folder.mkdir()
        (folder / name).write_text(text)
        shutil.copytree(folder, tmp_path / f"copy-{name}{text}")
        assert fingerprint_path(folder) == fingerprint_path(
            tmp_path / f"copy-{name}{text}"
        )
        fingerprints.add(fingerprint_path(folder))
    assert len(fingerprints) == 3


def test_fingerprint_of_a_bilm_changes_with_its_weights(tmp_path):
    folder = save_bilm(tmp_path / "bilm")
    first = fingerprint(tmp_path, folder)
    assert fingerprint(tmp_path, folder) == first
    save_bilm(folder, 1)
    assert fingerprint(tmp_path, folder) != first


def test_fingerprint_of_a_bundled_or_installed_model(tmp_path):
    english, korean, none = (
        fingerprint(tmp_path, name) for name in ("en_elmo_sm", "ko_elmo_sm", "null")
    )
    assert len({english, korean, none}) == 3
    assert str(tmp_path.anchor) not in english.decode()  # no absolute paths
    # Only the version of a package counts, because Python adds files to its folder.
    assert srsly.json_loads(fingerprint(tmp_path, "spacy"))["fingerprints"] == [
        spacy.__version__
    ]


def test_fingerprint_of_a_bilm_in_two_files_depends_on_both(tmp_path):
    paths = [tmp_path / f"x_{name}" for name in ("options.json", "weights.hdf5")]
    for path in paths:
        path.write_text("1")
    fingerprints = [fingerprint(tmp_path, path) for path in paths]
    for path in paths:
        path.write_text("2")
        fingerprints.append(fingerprint(tmp_path, paths[1]))
    assert len(set(fingerprints[1:])) == 3
    (tmp_path / "alone.txt").write_text("1")
    fingerprint(tmp_path, tmp_path / "alone.txt")


def test_fingerprint_of_a_missing_model_is_refused(tmp_path):
    code, said = call("fingerprint_model", "en_wiki_md", tmp_path / "out.json")
    assert code == 1 and "en_wiki_md: no such file" in said and "en_elmo_sm" in said
    code, said = call("fingerprint_model", "en_elmo_sm")
    assert code == 1 and "expected two arguments" in said


def test_clean_removes_the_given_folders_and_files(tmp_path):
    for name in ("one", "two", "three"):
        (tmp_path / name / "deeper").mkdir(parents=True)
        (tmp_path / name / "deeper" / "a.txt").write_text("a")
    names = ("one", "two", "four")
    assert call("clean", *(tmp_path / name for name in names)) == (0, "")
    assert [path.name for path in tmp_path.iterdir()] == ["three"]
    assert call("clean") == (0, "")
    assert call("clean", tmp_path / "three" / "deeper" / "a.txt") == (0, "")
    assert list(tmp_path.rglob("*")) == [tmp_path / "three", tmp_path / "three/deeper"]


def test_hold_out_divides_dev_unless_there_is_a_test_file(tmp_path):
    vocab = spacy.blank("en").vocab
    docs = [Doc(vocab, words=["a", str(n)], tags=["x", "y"]) for n in range(5)]
    source, out = tmp_path / "source", tmp_path / "new" / "out"
    source.mkdir()
    save_docs(docs, source / "dev.spacy")

    def words(name):
        return [doc[1].text for doc in load_docs(out / name, vocab)]

    assert call("hold_out", source, out) == (0, "")
    assert words("dev.spacy") == ["0", "2", "4"] and words("test.spacy") == ["1", "3"]
    assert load_docs(out / "test.spacy", vocab)[0][1].tag_ == "y"
    save_docs(docs[:1], source / "test.spacy")
    assert call("hold_out", source, out) == (0, "")
    assert words("dev.spacy") == list("01234") and words("test.spacy") == ["0"]
    code, said = call("hold_out", source, source)
    assert code == 1 and "found the folder that is read" in said
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (out / "dev.spacy").unlink()
    (out / "dev.spacy").symlink_to(victim)
    code, said = call("hold_out", source, out)
    assert code == 1 and "dev.spacy: found a link; expected a .spacy file" in said
    assert victim.read_text() == "mine"
    (out / "dev.spacy").unlink()
    (source / "test.spacy").unlink()
    save_docs(docs[:1], source / "dev.spacy")
    code, said = call("hold_out", source, out)
    assert code == 1 and "found 1 docs and no test.spacy beside it" in said
