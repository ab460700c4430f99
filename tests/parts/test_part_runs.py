"""An output in parts can be continued: what is there and undamaged is not repeated."""

import json
import os
from collections import Counter
from functools import partial

import pytest

from spacy_elmo.files import WriteError, one_writer
from spacy_elmo.fingerprints import fingerprint_data
from spacy_elmo.parts.part_runs import make_parts

ITEMS = [f"item {n}" for n in range(11)]


class Maker:
    """Writes a line for each item, and remembers the numbers of the parts it made."""

    suffix = ".txt"

    def __init__(self, fingerprint="maker", stop_before=None):
        self.fingerprint = fingerprint
        self.stop_before = stop_before
        self.made = []

    def write(self, first, items, path):
        if first == self.stop_before:
            raise KeyboardInterrupt
        self.made.append(first)
        lines = [f"{n} {item}\n" for n, item in enumerate(items, first)]
        path.write_text("".join(lines))
        return len(lines)


def load(items, problems):
    problems["bad items"] += 1
    yield from items


def run(maker, folder, items=ITEMS, say=print):
    return make_parts(
        maker, partial(load, items), folder, 3, problems=Counter(), say=say
    )


def read(folder):
    manifest = json.loads((folder / "_manifest.json").read_text())
    return "".join((folder / part["name"]).read_text() for part in manifest["parts"])


EXPECTED = "".join(f"{n} item {n}\n" for n in range(11))


def test_all_items_in_order_and_a_manifest(tmp_path):
    out = tmp_path / "new" / "out"
    problems, told = Counter(), []
    found = make_parts(
        Maker(),
        partial(load, ITEMS),
        out,
        3,
        problems=problems,
        on_progress=told.append,
    )
    assert read(out) == EXPECTED
    assert found == json.loads((out / "_manifest.json").read_text())
    assert (found["items"], found["rows"], found["source"]) == (11, 11, "maker")
    assert [part["first"] for part in found["parts"]] == [0, 3, 6, 9]
    names = {part["name"] for part in found["parts"]}
    assert {path.name for path in out.iterdir()} == {*names, "_manifest.json"}
    assert problems == {"bad items": 1} and told == [3, 6, 9, 11]


def test_interrupted_run_goes_on(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        run(Maker(stop_before=6), tmp_path)
    assert not (tmp_path / "_manifest.json").exists()
    maker = Maker()
    run(maker, tmp_path)
    assert maker.made == [6, 9] and read(tmp_path) == EXPECTED
    maker = Maker()
    run(maker, tmp_path)
    assert maker.made == [] and read(tmp_path) == EXPECTED


def test_a_line_that_was_cut_off_costs_one_part(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        run(Maker(stop_before=6), tmp_path)
    journal = tmp_path / "_parts.jsonl"
    journal.write_bytes(journal.read_bytes()[:-20])
    with pytest.raises(KeyboardInterrupt):
        run(Maker(stop_before=9), tmp_path)
    maker = Maker()
    run(maker, tmp_path)
    assert maker.made == [9] and read(tmp_path) == EXPECTED


@pytest.mark.parametrize("finished", [True, False])
@pytest.mark.parametrize("data", [b"", b"3 item X\n4 item 4\n5 item 5\n"])
def test_a_damaged_part_is_made_again(tmp_path, finished, data):
    if finished:
        run(Maker(), tmp_path)
    else:
        with pytest.raises(KeyboardInterrupt):
            run(Maker(stop_before=9), tmp_path)
    (part,) = tmp_path.glob("00000001-*")
    part.write_bytes(data)
    maker, said = Maker(), []
    run(maker, tmp_path, say=said.append)
    assert maker.made == ([3] if finished else [3, 9])
    sentence = "the checksum does not match; computing this part again"
    assert said == [f"{part}: {sentence}"]
    assert read(tmp_path) == EXPECTED


def test_a_lost_part_is_made_again(tmp_path):
    run(Maker(), tmp_path)
    (part,) = tmp_path.glob("00000002-*")
    part.unlink()
    maker = Maker()
    run(maker, tmp_path)
    assert maker.made == [6] and read(tmp_path) == EXPECTED


def test_parts_of_other_inputs_are_made_anew_and_deleted(tmp_path):
    run(Maker(), tmp_path)
    maker = Maker()
    run(maker, tmp_path, [*ITEMS[:4], "another", *ITEMS[5:]])
    assert maker.made == [3]
    maker = Maker()
    run(maker, tmp_path, ITEMS[:5])
    assert maker.made == [3]
    assert read(tmp_path) == "".join(f"{n} item {n}\n" for n in range(5))
    maker = Maker("other weights")
    run(maker, tmp_path, ITEMS[:5])
    assert maker.made == [0, 3]
    assert len(list(tmp_path.iterdir())) == 3


def test_nothing_to_do_is_one_sentence(tmp_path):
    with pytest.raises(ValueError, match="found no text; expected some"):
        run(Maker(), tmp_path, [])


def test_a_folder_of_something_else_is_refused(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(ValueError, match="found a folder with other files, such as mi"):
        run(Maker(), tmp_path)
    with pytest.raises(ValueError, match="found a file; expected a folder"):
        run(Maker(), tmp_path / "mine.txt")
    assert (tmp_path / "mine.txt").read_text() == "mine"


@pytest.mark.parametrize(
    "text", ["", "[1]", "[" * 10**5, '{"kind": "other", "parts": []}']
)
def test_a_manifest_of_something_else_is_refused(tmp_path, text):
    (tmp_path / "_manifest.json").write_text(text)
    with pytest.raises(ValueError, match="found something other than a manifest"):
        run(Maker(), tmp_path)


@pytest.mark.parametrize("name", ["rows", "items", "first", "checksum", "name"])
@pytest.mark.parametrize("value", [7, "7", None, 10**400, float("nan")])
def test_a_damaged_manifest_is_not_believed(tmp_path, name, value):
    expected = run(Maker(), tmp_path)
    path = tmp_path / "_manifest.json"
    damaged = json.loads(path.read_text())
    damaged["parts"][1][name] = value
    path.write_text(json.dumps(damaged))
    maker, said = Maker(), []
    assert run(maker, tmp_path, say=said.append) == expected
    assert maker.made == [0, 3, 6, 9] and read(tmp_path) == EXPECTED
    assert said == [f"{path}: the checksum does not match; computing all parts again"]


def test_a_damaged_line_of_the_journal_costs_one_part(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        run(Maker(stop_before=9), tmp_path)
    journal = tmp_path / "_parts.jsonl"
    text = journal.read_text().replace('"rows": 3', '"rows": 5', 1)
    journal.write_text("[" * 10**5 + "\n" + text)
    maker = Maker()
    assert run(maker, tmp_path)["rows"] == 11
    assert maker.made == [0, 9] and read(tmp_path) == EXPECTED


@pytest.mark.parametrize("change", [{"name": "../x"}, {"rows": "3"}, {"more": 1}])
def test_a_manifest_with_a_right_checksum_is_checked_too(tmp_path, change):
    found = run(Maker(), tmp_path / "out")
    del found["checksum"]
    if "name" in change:
        change = {"name": "../" + found["parts"][0]["name"]}
    found["parts"][0].update(change)
    found["checksum"] = fingerprint_data(found)
    (tmp_path / "out" / "_manifest.json").write_text(json.dumps(found))
    with pytest.raises(ValueError, match="found something other than a manifest"):
        run(Maker(), tmp_path / "out")


def test_one_writer_at_a_time(tmp_path):
    with one_writer(tmp_path), pytest.raises(WriteError, match=f"{os.getpid()} on"):
        run(Maker(), tmp_path)
    assert run(Maker(), tmp_path)["rows"] == 11
