"""Compare ELMo with what a user would pick instead, on one data set and one machine.

    python benchmarks/alternatives.py TASK --train train.spacy --dev dev.spacy
        --output OUT [--systems cnn,pretrained,elmo,fast,accurate,transformer]
        [--raw-text text.txt.gz --pretrain-minutes M] [--transformer FOLDER]

TASK is `parsing` or `ner`. The systems are trained one after another on one thread,
until they stop improving or for --minutes:

- cnn: spaCy's CNN;
- pretrained: the same after `spacy pretrain` on the raw text;
- elmo, fast, accurate: the configs of this package, with the bundled biLM;
- transformer: a transformer in a folder, fine-tuned by spacy-transformers.

A system that has been trained in OUT before is not trained again. Then all systems
are measured by `trained_pipelines.py`, with one thread and with two.
"""

import argparse
import gzip
import json
import os
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import srsly
from spacy.language import DEFAULT_CONFIG_PRETRAIN_PATH
from spacy.util import load_config
from thinc.api import Config

ROOT = Path(__file__).parent.parent
SYSTEMS = ("cnn", "pretrained", "elmo", "fast", "accurate", "transformer")
SUFFIXES = {"elmo": "elmo", "fast": "elmo_fast", "accurate": "elmo_accurate"}
EVERY = 1000  # batches between two files of `spacy pretrain`


def make_config(system: str, args: argparse.Namespace) -> Config:
    """Return the config of `spacy train` for a system."""
    suffix = SUFFIXES.get(system, "baseline")
    config = load_config(ROOT / "configs" / f"{args.task}_{suffix}.cfg")
    config["paths"]["train"], config["paths"]["dev"] = str(args.train), str(args.dev)
    config["training"].update(args.training)
    if system == "pretrained":
        weights = find_pretrained(args.output / system / "weights")
        config["paths"]["init_tok2vec"] = str(weights)
        add_pretraining(config)
    elif system == "transformer":
        use_transformer(config, args.transformer)
    return config


def add_pretraining(config: Config) -> None:
    """Add the default settings of `spacy pretrain`."""
    config["pretraining"] = load_config(DEFAULT_CONFIG_PRETRAIN_PATH)["pretraining"]
    config["pretraining"]["n_save_every"] = EVERY
    config["paths"]["raw_text"] = None
    config["corpora"]["pretrain"] = {
        "@readers": "spacy.JsonlCorpus.v1",
        "path": "${paths.raw_text}",
        "min_length": 5,
        "max_length": 500,
        "limit": 0,
    }


def use_transformer(config: Config, folder: Path) -> None:
    """Put a transformer in the place of the CNN, with the settings that spaCy's
    quickstart recommends for it."""
    config["nlp"]["pipeline"][0] = "transformer"
    components = config["components"]
    del components["tok2vec"]
    components["transformer"] = {
        "factory": "transformer",
        "max_batch_items": 4096,
        "model": {
            "@architectures": "spacy-transformers.TransformerModel.v3",
            "name": str(folder),
            "tokenizer_config": {"use_fast": True},
            "get_spans": {
                "@span_getters": "spacy-transformers.strided_spans.v1",
                "window": 128,
                "stride": 96,
            },
        },
    }
    for name in config["nlp"]["pipeline"][1:]:
        components[name]["model"]["tok2vec"] = {
            "@architectures": "spacy-transformers.TransformerListener.v1",
            "grad_factor": 1.0,
            "pooling": {"@layers": "reduce_mean.v1"},
        }
    config["training"]["optimizer"]["learn_rate"] = {
        "@schedules": "warmup_linear.v1",
        "warmup_steps": 250,
        "total_steps": 20000,
        "initial_rate": 5e-5,
    }
    config["training"]["batcher"] = {
        "@batchers": "spacy.batch_by_padded.v1",
        "discard_oversize": True,
        "size": 2000,
        "buffer": 256,
        "get_length": None,
    }


def run(arguments: list[str], log: Path, minutes: float) -> float:
    """Run a command of spaCy on one thread, and stop it after some minutes.

    RETURNS (float): The minutes that it took.
    """
    one = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    start = time.monotonic()
    with log.open("ab") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "spacy", *arguments],
            stdout=file,
            stderr=file,
            env=os.environ | one,
        )
        try:
            code = process.wait(60 * minutes)
        except subprocess.TimeoutExpired:
            code = 0
            process.send_signal(signal.SIGKILL)
            process.wait()
    if code:
        raise SystemExit(f"spacy {arguments[0]} failed: see {log}")
    return (time.monotonic() - start) / 60


def pretrain(args: argparse.Namespace, folder: Path) -> float:
    """Run `spacy pretrain` on the raw text, and return its minutes."""
    if not args.raw_text or not args.pretrain_minutes:
        raise SystemExit("pretrained: expected --raw-text and --pretrain-minutes")
    texts = folder / "raw_text.jsonl"
    opened = gzip.open if args.raw_text.suffix == ".gz" else open
    with opened(args.raw_text, "rt", encoding="utf8") as file:
        srsly.write_jsonl(texts, ({"text": line} for line in file if line.strip()))
    config = load_config(ROOT / "configs" / f"{args.task}_baseline.cfg")
    add_pretraining(config)
    config["paths"]["raw_text"] = str(texts)
    config.to_disk(folder / "pretrain.cfg")
    command = ["pretrain", str(folder / "pretrain.cfg"), str(folder / "weights")]
    minutes = run(command, folder / "pretrain.log", args.pretrain_minutes)
    texts.unlink()
    return minutes


def find_pretrained(folder: Path) -> Path:
    """Return the newest file of weights of `spacy pretrain`."""
    found = sorted(folder.glob("model*.bin"), key=lambda path: path.stat().st_mtime)
    if not found:
        raise SystemExit(f"{folder}: no weights; expected more --pretrain-minutes")
    return found[-1]


def train(system: str, args: argparse.Namespace) -> dict[str, Any]:
    """Train a system, unless that has been done. Return its facts."""
    folder = args.output / system
    facts = folder / "facts.json"
    if not facts.exists():
        folder.mkdir(parents=True, exist_ok=True)
        found = {"pretrain": 0.0}
        if system == "pretrained":
            found["pretrain"] = pretrain(args, folder)
        make_config(system, args).to_disk(folder / "config.cfg")
        command = ["train", str(folder / "config.cfg"), "--output", str(folder)]
        found["train"] = run(command, folder / "train.log", args.minutes)
        best = folder / "model-best"
        files = (path for path in best.rglob("*") if path.is_file())
        found["mb"] = sum(path.stat().st_size for path in files) / 1e6
        facts.write_text(json.dumps(found), encoding="utf8")
    return json.loads(facts.read_text(encoding="utf8"))


def measure(systems: list[str], args: argparse.Namespace, threads: int) -> Any:
    """Measure the scores and the speed of all systems."""
    path = args.output / f"measured_{threads}.json"
    folders = [str(args.output / system / "model-best") for system in systems]
    program = ROOT / "benchmarks" / "trained_pipelines.py"
    options = ["--dev", args.dev, "--threads", threads, "--json", path]
    command = [sys.executable, program, *folders, *options]
    subprocess.run(list(map(str, command)), check=True, stdout=subprocess.DEVNULL)
    found = json.loads(path.read_text(encoding="utf8"))
    return {system: found[folder] for system, folder in zip(systems, folders)}


def words_per_second(result: Any, n_words: int) -> float:
    totals = [sum(seconds.values()) for seconds in result["seconds"]]
    return n_words / statistics.median(totals)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("task", choices=("parsing", "ner"))
    parser.add_argument("--train", type=Path, required=True)
    parser.add_argument("--dev", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--systems", default="cnn,elmo,fast")
    parser.add_argument("--raw-text", type=Path)
    parser.add_argument("--pretrain-minutes", type=float, default=0.0)
    parser.add_argument("--transformer", type=Path, help="a folder with a model")
    parser.add_argument("--minutes", type=float, default=180.0, help="of a training")
    parser.add_argument("--training", type=json.loads, default={}, help="settings")
    args = parser.parse_args()
    systems = args.systems.split(",")
    if unknown := set(systems) - set(SYSTEMS):
        parser.error(f"found systems {sorted(unknown)}; expected some of {SYSTEMS}")
    if "transformer" in systems and not args.transformer:
        parser.error("transformer: expected --transformer")
    args.output.mkdir(parents=True, exist_ok=True)
    facts = {}
    for system in systems:
        facts[system] = train(system, args)
        print(f"{system}: trained in {facts[system]['train']:.1f} minutes", flush=True)
    one, two = (measure(systems, args, threads) for threads in (1, 2))
    n_words = one[systems[0]]["n_words"]
    names = list(one[systems[0]]["scores"])
    head = [*names, "words/s, 1 thread", "2 threads", "MB", "minutes"]
    print("| |", " | ".join(head), "|")
    print("|---" * (len(head) + 1) + "|")
    for system in systems:
        cells = [f"{one[system]['scores'][name]:.1f}" for name in names]
        cells += [f"{words_per_second(r[system], n_words):,.0f}" for r in (one, two)]
        minutes = f"{facts[system]['train']:.0f}"
        if facts[system]["pretrain"]:
            minutes = f"{facts[system]['pretrain']:.0f} + {minutes}"
        print(
            "|",
            " | ".join([system, *cells, f"{facts[system]['mb']:.1f}", minutes]),
            "|",
        )


if __name__ == "__main__":
    main()
