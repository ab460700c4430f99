"""`python -m spacy elmo compare`."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import spacy
import srsly
from helpers.comparing import PAIR, command, overrides, save_data
from helpers.pipelines import TEXTS, get_bilm, make_docs, run_spacy, save_bilm
from helpers.tasks import count_encoded_docs
from spacy.tokens import DocBin
from spacy.util import dot_to_object, load_config, load_model_from_config

import spacy_elmo.compare.comparison
from spacy_elmo import load_bilm
from spacy_elmo.compare import jobs
from spacy_elmo.compare.comparison import Comparison
from spacy_elmo.compare.data import choose, read_docs
from spacy_elmo.compare.jobs import JOBS
from spacy_elmo.compare.options import Options
from spacy_elmo.compare.plan import Pair
from spacy_elmo.compare.workers import Job, Workers
from spacy_elmo.pipeline.mixes import find_mixes

VARIANTS = ["baseline", "last", "mix-0.001", "both"]
SEEDS = [3, 5]
SHARES = [1.0, 0.5]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return save_data(tmp_path_factory.mktemp("data"))


class Here:
    """In place of Workers: jobs are done in this process, the last one first."""

    def __init__(self, n_process, logs, gpu_id=-1):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def do(self, jobs):
        for number in reversed(range(len(jobs))):
            yield number, JOBS[jobs[number].do](**jobs[number].arguments)


@pytest.fixture
def here(monkeypatch):
    monkeypatch.setattr(spacy_elmo.compare.comparison, "Workers", Here)


class Fake:
    """In place of training.

    trained (list[str]): The names of the runs it was asked for.
    failing (set[str]): Those that it fails.
    """

    def __init__(self):
        self.trained = []
        self.failing = set()

    def __call__(self, *, folder, **rest):
        name = Path(folder).name
        self.trained.append(name)
        if name in self.failing:
            raise ValueError("no luck")
        score = int.from_bytes(name.encode(), "big") % 97 / 100
        scores = {"ents_f": score, "token_acc": 1.0}
        return {"scores": scores, "test_scores": None, "mixes": [], "seconds": 2.0}

    def forget(self):
        """RETURNS (list[str]): What was trained since the last time."""
        trained, self.trained = self.trained, []
        return trained


@pytest.fixture
def fake(here, monkeypatch):
    fake = Fake()
    monkeypatch.setitem(JOBS, "train", fake)
    monkeypatch.setitem(JOBS, "layers", lambda **arguments: 0)
    return fake


def compare(data, output, options=None, lines=None, **given):
    pair = Pair(*PAIR, overrides(data, **given))
    say = [].append if lines is None else lines.append
    options = {
        "variants": VARIANTS,
        "seeds": SEEDS,
        "shares": SHARES,
        **(options or {}),
    }
    return Comparison(pair, Options(**options), output, say).compare()


def runs_in(folder):
    return {path.stem: srsly.read_json(path) for path in folder.glob("runs/*.json")}


# The whole, with the real command


@pytest.fixture(scope="module")
def compared(data, tmp_path_factory):
    """A folder of results, and what was printed."""
    output = tmp_path_factory.mktemp("compared")
    options = ["--variants", ",".join(reversed(VARIANTS)), "--seeds", "3,5"]
    options += ["--shares", "0.5,1", "--n-process", "2", "--title", "A_title"]
    test = {"paths.test": str(data / "test.spacy")}
    text = run_spacy("elmo", *command(data, output, **test), *options)
    return output, text


@pytest.mark.slow
def test_runs_are_there(compared):
    runs = runs_in(compared[0])
    full = {f"{name}-1-{seed}" for name in VARIANTS for seed in SEEDS}
    half = {f"{n}-0.5-{seed}" for n in ("baseline", "mix-0.001") for seed in SEEDS}
    assert runs.keys() == full | half
    assert len({run["key"] for run in runs.values()}) == len(runs)
    assert len({run["scores"]["ents_f"] for run in runs.values()}) > 1


@pytest.mark.slow
def test_table_is_what_the_runs_say(compared):
    runs = list(runs_in(compared[0]).values())
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


@pytest.mark.slow
def test_data_of_the_table(compared, data):
    table = srsly.read_json(compared[0] / "compare.json")
    docs = make_docs() * 2
    n_words = sum(len(doc) for doc in docs)
    assert table["data"][0] == {"share": 1.0, "docs": 10, "words": n_words}
    [path] = compared[0].glob("data/*-0.5.spacy")
    half = read_docs(path)
    assert table["data"][1]["docs"] == len(half) == 5
    assert table["data"][1]["words"] == sum(len(doc) for doc in half)
    chosen = [docs[number].to_json() for number in choose(10, 0.5)]
    assert [doc.to_json() for doc in half] == chosen
    for share, expected in (("1", data / "train.spacy"), ("0.5", path)):
        nlp = spacy.load(compared[0] / "models" / f"baseline-{share}-3")
        config = nlp.config.interpolate()
        assert config["corpora"]["train"]["path"] == str(expected)


@pytest.mark.slow
def test_mixes_are_means_of_what_was_learned(compared):
    runs = runs_in(compared[0])
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


@pytest.mark.slow
def test_text_is_printed_and_written(compared):
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


@pytest.mark.slow
def test_pipelines_of_the_first_seed_are_kept(compared, data):
    folder = compared[0]
    runs = runs_in(folder)
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


@pytest.mark.slow
def test_what_others_put_into_the_folder_stays(data, here, tmp_path, monkeypatch):
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


@pytest.mark.slow
def test_another_order_in_one_process_gives_the_same(compared, data, here, tmp_path):
    wanted = {"variants": ["mix-0.001", "baseline"], "seeds": [5], "shares": [1.0]}
    test = {"paths.test": str(data / "test.spacy")}
    compare(data, tmp_path, wanted, **test)
    for name, run in runs_in(tmp_path).items():
        other = runs_in(compared[0])[name]
        del run["seconds"], other["seconds"]
        assert run == other


# Layers


@pytest.mark.slow
def test_layers_are_computed_once(data, here, tmp_path, monkeypatch):
    encoded = count_encoded_docs(monkeypatch)
    before = []

    def train_run(**arguments):
        before.append(sum(encoded))
        return original(**arguments)

    original = JOBS["train"]
    monkeypatch.setitem(JOBS, "train", train_run)
    monkeypatch.setitem(JOBS, "speed", lambda **arguments: [1.0])
    wanted = {"variants": ["mix-1"], "seeds": [0, 1], "shares": [1.0], "keep": "all"}
    compare(data, tmp_path, wanted)
    assert before == [5, 5] and sum(encoded) == 5  # the different docs of all corpora
    assert len(list(tmp_path.glob("models/*"))) == 2


def test_layers_are_the_same_for_any_number_of_processes(data, tmp_path, monkeypatch):
    monkeypatch.setattr(jobs, "BATCH", 2)
    encoded = count_encoded_docs(monkeypatch)
    layers = []
    for n_parts in (1, 2, 3):
        given = {
            "components.elmo.cache_layers": "always",
            "components.elmo.cache_folder": str(tmp_path / str(n_parts)),
        }
        config = load_config(PAIR[1], {})
        for key, value in overrides(data, **given).items():
            if key != "components.tok2vec.model.embed.rows":
                section, _, name = key.rpartition(".")
                dot_to_object(config, section)[name] = value
        text = config.to_str()
        parts = [
            jobs.compute_layers(text, k, n_parts) for k in reversed(range(n_parts))
        ]
        assert sum(parts) == sum(len(doc) for doc in make_docs())
        assert sum(encoded) == 5
        encoded.clear()
        elmo = load_model_from_config(config.interpolate()).get_pipe("elmo")
        outputs = elmo.predict(make_docs())
        layers.append(np.concatenate([output.layers for output in outputs]))
        assert encoded == []  # all from the cache
    for other in layers[1:]:
        np.testing.assert_array_equal(layers[0], other)


@pytest.mark.slow
def test_unfrozen_bilm_is_trained_and_not_cached(data, here, tmp_path, monkeypatch):
    monkeypatch.delitem(JOBS, "layers")
    wanted = {"variants": ["mix-1"], "seeds": [0], "shares": [1.0]}
    compare(data, tmp_path, wanted, **{"components.elmo.frozen": False})
    nlp = spacy.load(tmp_path / "models" / "mix-1-1-0")
    before = load_bilm(data / "bilm").state_dict()
    after = get_bilm(nlp).state_dict()
    assert any(not before[name].equal(after[name]) for name in after)


# Going on


def test_goes_on_after_a_failed_run(data, fake, tmp_path):
    fake.failing.add("last-1-3")
    with pytest.raises(ValueError, match="no luck"):
        compare(data, tmp_path)
    *done, _ = fake.forget()
    assert 0 < len(done) < 12 and runs_in(tmp_path).keys() == set(done)
    assert not (tmp_path / "compare.json").exists()
    fake.failing.clear()
    lines = []
    compare(data, tmp_path, lines=lines)
    rest = fake.forget()
    assert len(rest) == 12 - len(done) and not set(rest) & set(done)
    assert f"{len(done)} of 12 runs are there already" in lines
    compare(data, tmp_path)
    assert fake.forget() == []


def test_broken_results_are_made_anew(data, fake, tmp_path):
    table = compare(data, tmp_path)
    fake.forget()
    names = ["both-1-3", "last-1-5", "baseline-1-3"]
    for name, text in zip(names, ['{"key":', "[]", '{"key": "x"}']):
        (tmp_path / "runs" / f"{name}.json").write_text(text)
    assert compare(data, tmp_path) == table
    assert sorted(fake.forget()) == sorted(names)


def test_more_seeds_and_variants_are_added(data, fake, tmp_path):
    compare(data, tmp_path, {"variants": ["baseline"], "seeds": [3]})
    assert sorted(fake.forget()) == ["baseline-0.5-3", "baseline-1-3"]
    compare(data, tmp_path)
    assert len(fake.forget()) == 10


def test_changes_are_noticed(data, fake, tmp_path):
    copied, output = tmp_path / "data", tmp_path / "output"
    shutil.copytree(data, copied)
    compare(data, output)
    fake.forget()

    def rerun(**given):
        compare(copied, output, **given)
        return len(fake.forget())

    assert rerun() == 0  # the same data in another place
    assert rerun(**{"components.elmo.cache_folder": str(tmp_path)}) == 0
    assert rerun(**{"training.dropout": 0.2}) == 12
    assert rerun(**{"training.dropout": 0.2}) == 0
    assert rerun() == 12
    assert rerun(**{"elmo.layer_norm": False}) == 8  # those with ELMo
    assert rerun() == 8
    save_bilm(copied / "bilm", seed=1)
    assert rerun() == 8
    for name in ("train", "dev"):
        DocBin(docs=make_docs()[1:]).to_disk(copied / f"{name}.spacy")
        assert rerun() == 12
        assert rerun() == 0


@pytest.mark.slow
def test_goes_on_after_it_was_killed(data, here, tmp_path):
    args = [*command(data, tmp_path), "--variants", "baseline", "--seeds", "0,1,2"]
    process = subprocess.Popen([sys.executable, "-m", "spacy", "elmo", *map(str, args)])
    while process.poll() is None and not runs_in(tmp_path):
        time.sleep(0.05)
    process.kill()
    process.wait()
    done = {path: path.read_bytes() for path in tmp_path.glob("runs/*.json")}
    assert 0 < len(done) < 3
    compare(
        data, tmp_path, {"variants": ["baseline"], "seeds": range(3), "shares": [1]}
    )
    assert len(runs_in(tmp_path)) == 3
    for path, content in done.items():
        assert path.read_bytes() == content


# Processes


@pytest.mark.slow
def test_worker_ends_with_its_parent(tmp_path):
    log = str(tmp_path / "log")
    job = {"do": "speed", "arguments": {}, "gpu_id": -1, "log": log}
    done = subprocess.run(
        [sys.executable, "-m", "spacy_elmo.compare.worker"],
        input=json.dumps(job) + "\n",
        capture_output=True,
        encoding="utf-8",
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (1, "")


@pytest.mark.slow
def test_errors_of_workers(tmp_path):
    job = Job("name", "speed", {"config": "", "models": [str(tmp_path / "nowhere")]})
    with Workers(1, tmp_path / "logs") as workers:
        with pytest.raises(ValueError, match=r"name: .*nowhere.* \(see .*name.log\)"):
            list(workers.do([job]))
    assert "Traceback" in (tmp_path / "logs" / "name.log").read_text()
    with Workers(2, tmp_path / "logs") as workers:
        for process in workers._processes:
            os.kill(process.pid, signal.SIGTERM)
        with pytest.raises(ValueError, match="name: its process has died"):
            list(workers.do([job] * 5))
