"""Run a whole comparison with the real command, and check its files and output."""

import numpy as np
import pytest
import spacy
import srsly
from helpers.command import run_spacy
from helpers.comparing import SEEDS, VARIANTS, compare, load_runs, make_command
from helpers.pipelines import TEXTS, get_bilm, make_docs

from spacy_elmo import load_bilm
from spacy_elmo.compare.jobs import JOBS
from spacy_elmo.compare.shares import choose_docs, load_training_docs
from spacy_elmo.pipeline.mixes import find_mixes

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def compared(data, tmp_path_factory):
    """Run the command, and return its output folder and the text that it printed."""
    output = tmp_path_factory.mktemp("compared")
    options = ["--variants", ",".join(reversed(VARIANTS)), "--seeds", "3,5"]
    options += ["--shares", "0.5,1", "--n-process", "2", "--title", "A_title"]
    test = {"paths.test": str(data / "test.spacy")}
    text = run_spacy("elmo", *make_command(data, output, **test), *options)
    return output, text


def test_every_run_has_a_result(compared):
    runs = load_runs(compared[0])
    full = {f"{name}-1-{seed}" for name in VARIANTS for seed in SEEDS}
    half = {f"{n}-0.5-{seed}" for n in ("baseline", "mix-0.001") for seed in SEEDS}
    assert runs.keys() == full | half
    assert len({run["fingerprint"] for run in runs.values()}) == len(runs)
    assert len({run["scores"]["ents_f"] for run in runs.values()}) > 1


def test_table_has_the_numbers_of_the_runs(compared):
    runs = list(load_runs(compared[0]).values())
    table = srsly.read_json(compared[0] / "compare.json")
    assert (table["kind"], table["title"], table["task"]) == (
        "compare",
        "A title",
        "ner",
    )
    assert table["metrics"] == ["ents_f"]
    assert table["shares"] == [1.0, 0.5]
    assert [(row["name"], row["share"]) for row in table["variants"]] == [
        *((name, 1.0) for name in VARIANTS),
        ("baseline", 0.5),
        ("mix-0.001", 0.5),
    ]

    def values(kind, name, share):
        chosen = [r for r in runs if (r["variant"], r["share"]) == (name, share)]
        chosen.sort(key=lambda run: run["seed"])
        return np.array([run[kind]["ents_f"] for run in chosen])

    for row in table["variants"]:
        assert row["seeds"] == SEEDS
        for kind, reduction in (
            ("scores", "error_reduction"),
            ("test_scores", "test_error_reduction"),
        ):
            found = values(kind, row["name"], row["share"])
            score = row[kind]["ents_f"]
            np.testing.assert_allclose(score["values"], found)
            np.testing.assert_allclose(score["mean"], found.mean())
            np.testing.assert_allclose(score["spread"], found.std(ddof=1), atol=1e-9)
            if row["name"] == "baseline":
                assert row[reduction]["ents_f"] is None
            else:
                base = values(kind, "baseline", row["share"]).mean()
                errors = 1 - found.mean()
                expected = 1 - errors / (1 - base)
                np.testing.assert_allclose(row[reduction]["ents_f"], expected)
        assert (row["words_per_second"] is not None) == (row["share"] == 1.0)


def test_table_has_the_sizes_of_the_data(compared, data):
    table = srsly.read_json(compared[0] / "compare.json")
    docs = make_docs() * 2
    n_words = sum(len(doc) for doc in docs)
    assert table["data"][0] == {"share": 1.0, "docs": 10, "words": n_words}
    [path] = compared[0].glob("data/*-0.5.spacy")
    half = load_training_docs(path)
    assert table["data"][1]["docs"] == len(half) == 5
    assert table["data"][1]["words"] == sum(len(doc) for doc in half)
    chosen = [docs[number].to_json() for number in choose_docs(10, 0.5)]
    assert [doc.to_json() for doc in half] == chosen
    for share, expected in (("1", data / "train.spacy"), ("0.5", path)):
        nlp = spacy.load(compared[0] / "models" / f"baseline-{share}-3")
        config = nlp.config.interpolate()
        assert config["corpora"]["train"]["path"] == str(expected)


def test_mixes_are_means_of_what_was_learned(compared):
    runs = load_runs(compared[0])
    rows = srsly.read_json(compared[0] / "compare.json")["variants"]
    mixes = {row["name"]: row["mixes"] for row in rows if row["share"] == 1.0}
    assert mixes["baseline"] == []
    assert [mix["s"] for mix in mixes["last"]] == [[0.0, 0.0, 1.0]]
    assert [mix["task"] for mix in mixes["both"]] == ["ner (input)", "ner (output)"]
    for number, mix in enumerate(mixes["both"]):
        found = [runs[f"both-1-{seed}"]["mixes"][number] for seed in SEEDS]
        assert found[0] != found[1]
        np.testing.assert_allclose(mix["s"], np.mean([m["s"] for m in found], axis=0))
        np.testing.assert_allclose(mix["gamma"], np.mean([m["gamma"] for m in found]))


def test_markdown_is_printed_and_written(compared):
    folder, printed = compared
    text = (folder / "compare.md").read_text(encoding="utf-8")
    assert text in printed
    row = srsly.read_json(folder / "compare.json")["variants"][3]
    [line] = [
        line for line in text.split("\n") if "| ELMo at input and output" in line
    ][:1]
    score = row["scores"]["ents_f"]
    fewer = row["error_reduction"]["ents_f"]
    cell = (
        f"{100 * score['mean']:.2f} ± {100 * score['spread']:.2f} ({100 * fewer:.1f})"
    )
    assert f"| {cell} " in line
    assert "[12/12] " in printed and "left" in printed


def test_pipelines_of_the_first_seed_are_kept(compared, data):
    folder = compared[0]
    runs = load_runs(folder)
    names = {path.name for path in folder.glob("models/*")}
    assert names == {name for name in runs if name.endswith("-3")}
    bilm = load_bilm(data / "bilm")
    for name in names:
        nlp = spacy.load(folder / "models" / name)
        examples = list(spacy.training.Corpus(data / "dev.spacy")(nlp))
        assert nlp.evaluate(examples)["ents_f"] == pytest.approx(
            runs[name]["scores"]["ents_f"]
        )
        learned = [[mix["s"], mix["gamma"]] for mix in runs[name]["mixes"]]
        assert [list(mix[1:]) for mix in find_mixes(nlp)] == [
            [pytest.approx(s), pytest.approx(gamma)] for s, gamma in learned
        ]
        if "elmo" in nlp.pipe_names:
            settings = nlp.config["components"]["elmo"]
            assert settings["cache_layers"] == "training"
            assert settings["cache_folder"] is None
            assert get_bilm(nlp).state_dict().keys() == bilm.state_dict().keys()
        list(nlp.pipe(TEXTS))
    assert not (folder / "layers").exists() and not (folder / "work").exists()


def test_files_of_the_user_in_the_folder_stay(data, in_process, tmp_path, monkeypatch):
    monkeypatch.setitem(JOBS, "speed", lambda **arguments: [1.0])
    theirs = [tmp_path / name / "mine.txt" for name in ("work", "layers", "models")]
    theirs.append(tmp_path / "models" / "baseline-1-7" / "meta.json")
    for path in theirs:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("mine")
    wanted = {"variants": ["mix-1"], "seeds": [0], "shares": [1.0], "keep": "none"}
    compare(data, tmp_path, wanted)
    assert (tmp_path / "compare.json").exists()
    for path in theirs:
        assert path.read_text() == "mine"
    for name in ("work", "layers", "models"):
        left = {path for path in (tmp_path / name).rglob("*") if path.is_file()}
        assert left <= set(theirs)
    other = tmp_path / "other"
    compare(data, other, wanted)
    assert not any((other / name).exists() for name in ("work", "layers", "models"))


def test_another_order_in_one_process_gives_the_same(
    compared, data, in_process, tmp_path
):
    wanted = {"variants": ["mix-0.001", "baseline"], "seeds": [5], "shares": [1.0]}
    test = {"paths.test": str(data / "test.spacy")}
    compare(data, tmp_path, wanted, **test)
    for name, run in load_runs(tmp_path).items():
        other = load_runs(compared[0])[name]
        for result in run, other:
            del result["seconds"], result["checksum"]  # the time is in both
        assert run == other
