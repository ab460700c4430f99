"""Measure how long a biLM takes to load with and without the check of its checksums,
what the check costs by itself, and how long the first vectors take. See README.md in
this folder."""

import argparse
import json
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np

from spacy_elmo import load_bilm
from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.data import BiLMData
from spacy_elmo.bilm.formats.bundled import find_bundled
from spacy_elmo.bilm.formats.native import CHECKSUMS, CONFIG
from spacy_elmo.bilm.formats.sources import save_data
from spacy_elmo.bilm.lexicon import Lexicon
from spacy_elmo.bilm.shapes import expected_shapes
from spacy_elmo.fingerprints import checksum_file

ORIGINAL = Path(__file__).parents[1] / "configs" / "bilm_original.json"
SENTENCE = "Let 's stick to improvisation in this skit .".split()
CHECKSUM, LOAD, FIRST = "checksums", "load_bilm", "load and first vectors"
UNCHECKED = "load_bilm, unchecked"


def write_random(config: Path, folder: Path) -> Path:
    """Write a native folder with random weights, unless an earlier run left it there.

    config (Path): The sizes, such as configs/bilm_original.json.
    RETURNS (Path): The folder.
    """
    if (folder / CONFIG).exists():
        return folder
    sizes = BiLMConfig.from_dict(json.loads(config.read_text("utf8")))
    random = np.random.default_rng(0)
    arrays = {
        name: random.standard_normal(shape, dtype=np.float32) * np.float32(0.02)
        for name, shape in expected_shapes(sizes, Lexicon()).items()
    }
    save_data(BiLMData(sizes, arrays), folder)
    return folder


def checksum_files(folder: Path) -> None:
    """Compute and compare the checksums of a folder, as loading it does."""
    config = json.loads((folder / CONFIG).read_text("utf8"))
    for name, expected in config[CHECKSUMS].items():
        if name != CONFIG and checksum_file(folder / name) != expected:
            sys.exit(f"{folder / name}: the checksum does not match")


def copy_without_checksums(folder: Path, workdir: Path) -> Path:
    """Copy a native folder, except for its checksums, so that loading checks nothing.

    RETURNS (Path): The copy.
    """
    copy = workdir / f"{folder.name}-unchecked"
    shutil.copytree(folder, copy, dirs_exist_ok=True)
    config = json.loads((copy / CONFIG).read_text("utf8"))
    del config[CHECKSUMS]
    (copy / CONFIG).write_text(json.dumps(config), encoding="utf8")
    return copy


def measure(
    folder: Path, unchecked: Path, engine: str, rounds: int
) -> dict[str, dict[str, list]]:
    """Measure the seconds of each kind of work, in alternation, after a first round
    that is not counted.

    RETURNS (dict): For each kind of work, the processor time of all threads together
        ("cpu") and the elapsed time ("wall") of each round, in seconds.
    """
    work: dict[str, Callable[[], object]] = {
        CHECKSUM: lambda: checksum_files(folder),
        LOAD: lambda: load_bilm(folder, engine=engine),
        UNCHECKED: lambda: load_bilm(unchecked, engine=engine),
        FIRST: lambda: load_bilm(folder, engine=engine).embed([SENTENCE]),
    }
    seconds: dict[str, dict[str, list]] = {n: {"cpu": [], "wall": []} for n in work}
    for number in range(1 + rounds):
        for name, do in work.items():
            wall, cpu = time.perf_counter(), time.process_time()
            do()
            if number:
                seconds[name]["cpu"].append(time.process_time() - cpu)
                seconds[name]["wall"].append(time.perf_counter() - wall)
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--bilm", default="en_elmo_sm", help="a bundled biLM, measured first")
    add("--config", type=Path, default=ORIGINAL, help="the sizes of random weights")
    add("--workdir", type=Path, default=Path("benchmark-models"))
    add("--engines", nargs="+", default=["torch", "numpy"])
    add("--rounds", type=int, default=5)
    add("--json", type=Path, help="write the raw figures here")
    args = parser.parse_args()
    bundled = find_bundled(args.bilm)
    if bundled is None:
        sys.exit(f"{args.bilm}: no bundled biLM has that name")
    folder = write_random(args.config, args.workdir / f"{args.config.stem}-native")
    results: dict = {}
    for source in (bundled, folder):
        unchecked = copy_without_checksums(source, args.workdir)
        n_bytes = sum(p.stat().st_size for p in source.glob("*.safetensors"))
        for engine in args.engines:
            title = f"{source.name}, {engine}"
            results[title] = seconds = measure(source, unchecked, engine, args.rounds)
            print(f"\n{title}: {n_bytes / 1e6:.1f} MB, {args.rounds} rounds")
            for name, figures in seconds.items():
                for clock, values in figures.items():
                    raw = " ".join(f"{value:.4f}" for value in values)
                    print(f"{name:>23} {clock:>5} {median(values):9.4f} s   raw: {raw}")
            cost = median(seconds[LOAD]["wall"]) / median(seconds[UNCHECKED]["wall"])
            print(f"the check makes loading take {cost:.3f} times as long")
    if args.json:
        args.json.write_text(json.dumps(results, indent=2) + "\n", encoding="utf8")


if __name__ == "__main__":
    main()
