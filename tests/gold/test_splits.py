"""Test which files are used for training, for development and for testing."""

import pytest
from helpers.command import call, text
from helpers.gold import TREE, TREES, load, write_files

from spacy_elmo.gold.splits import splits_in_name


@pytest.mark.parametrize(
    "name, splits",
    [
        ("train", ["train"]),
        ("en_ewt-ud-train", ["train"]),
        ("wnut17train", ["train"]),
        ("emerging.dev", ["dev"]),
        ("Validation", ["dev"]),
        ("testing_2", ["test"]),
        ("constrained", []),
        ("device", []),
        ("latest", []),
        ("train-test", ["train", "test"]),
    ],
)
def test_splits_by_file_name(name, splits):
    assert splits_in_name(name) == splits


def test_every_tenth_doc_is_for_dev_if_there_is_no_dev_file(prepare):
    records = [{"text": f"text {i}", "label": "a"} for i in range(25)]
    docs, output = prepare({"train.jsonl": records})
    assert [doc.text for doc in docs["dev"]] == ["text 9", "text 19"]
    assert len(docs["train"]) == 23
    assert "2 of the docs, every 10th, were moved" in output


def test_one_of_few_docs_is_for_dev_and_a_single_doc_is_refused(prepare, tmp_path):
    docs, _ = prepare({"train.jsonl": [{"text": x, "label": x} for x in "abc"]})
    assert [doc.text for doc in docs["dev"]] == ["c"]
    single = write_files(tmp_path / "single", {"train.conllu": TREES})
    done = call("prepare", single, tmp_path / "other")
    assert done.exit_code == 1 and "found a single doc" in text(done)


def test_limit_counts_all_training_files_and_no_others(prepare):
    content = "".join(TREE.format(f"n{i}") for i in range(5))
    names = ("train-a", "train-b", "train-c", "dev")
    files = {f"{name}.conllu": content for name in names}
    files["dev.conllu"] += content
    docs, output = prepare(files, "--limit", 7, "-n", 2)
    assert [len(list(doc.sents)) for doc in docs["train"]] == [2, 2, 1, 2]
    assert sum(len(list(doc.sents)) for doc in docs["dev"]) == 10
    assert "train 4 7 21 3 0 0" in output and "dev 5 10 30 3 0 0" in output


def test_files_given_by_options_replace_those_of_the_folder(tmp_path):
    trees = {"train.conllu": TREES, "dev.conllu": TREES}
    folder = write_files(tmp_path / "folder", {**trees, "x.tsv": "w\tO"})
    output = tmp_path / "output"
    done = call("prepare", folder, output, "--dev", folder / "x.tsv")
    assert done.exit_code == 0, done.output
    assert load(output / "dev.spacy")[0].text.strip() == "w"
    done = call(
        "prepare", "--train", folder / "x.tsv", "--dev", folder / "dev.conllu", output
    )
    assert done.exit_code == 0, done.output
    assert len(load(output / "train.spacy")) == 1
    assert (
        call("prepare", folder / "x.tsv", output, "--dev", folder / "x.tsv").exit_code
        == 0
    )
