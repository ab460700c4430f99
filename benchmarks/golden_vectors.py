"""Compute the expected vectors of the golden models in tests/fixtures/.

A golden model is a tiny model made by this script, with vectors that other programs
computed from it. tests/bilm/test_golden.py compares the vectors of spacy_elmo with
them, so that every clone can check that they are equal without those programs.

| folder of tests/fixtures | model | programs |
|---|---|---|
| bilm | pretrained on assets/text/en.txt, in HDF5 | AllenNLP, simple_elmo |
| manylangs | random, in the format of ELMoForManyLangs | elmoformanylangs |

Each folder holds the model, `sentences.json` (batches of tokenized sentences, written
by hand) and one `vectors-PROGRAM.npz` per program. The vectors of a sentence are
float32 of shape (n_layers + 1, n_tokens, width). Each program computes them twice:

* `stateless/BATCH/ROW`: all sentences are one batch, the first after loading, so that
  every sentence starts from zero states;
* `stateful/BATCH/ROW`: the batches follow each other, so that every row starts from
  the final states of the same row in the last batch that had this row.

AllenNLP and simple_elmo need separate virtual environments: see "Environments for
the other programs" in benchmarks/README.md. elmoformanylangs is part of the extra
"dev". From the root of the checkout, in an environment with the extra "dev":

    python benchmarks/golden_vectors.py --allennlp-python allennlp-env/bin/python \\
        --tensorflow-python tensorflow-env/bin/python

computes all vectors again. Do so after you changed a `sentences.json`. With
--new-models the two models are made again first, which takes about a minute; their
weights, and therefore the vectors, may differ from one machine to another.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from workers import Worker

ROOT = Path(__file__).resolve().parents[1]
FIXTURES = ROOT / "tests" / "fixtures"
BILM, MANYLANGS = FIXTURES / "bilm", FIXTURES / "manylangs"
TEXT = ROOT / "assets" / "text" / "en.txt"

Batch = list[list[str]]

# The clips are so low that they take effect, and there are two highway layers and
# filters of several widths, so that the vectors depend on every part of the model.
PRETRAIN_CONFIG = """
[paths]
raw_text = "{text}"

[model]

[model.encoder]
type = "bytes"
char_dim = 6
filters = [[1, 4], [2, 8], [3, 8], [5, 4]]
n_highway = 2

[model.lstm]
dim = 24
projection_dim = 8
n_layers = 2
cell_clip = 1.5
proj_clip = 1.0

[corpus]
lang = "en"
n_process = 1
dev_share = 0.1

[vocab]
max_words = 500

[training]
seed = 0
max_steps = 300
max_epochs = 0
batch_size = 16
window = 10
carry_state = true
eval_frequency = 100

[training.optimizer]
name = "adamw"
learn_rate = 0.01
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--allennlp-python", help="interpreter that has AllenNLP")
    parser.add_argument("--tensorflow-python", help="interpreter that has simple_elmo")
    parser.add_argument(
        "--new-models", action="store_true", help="make both models again first"
    )
    args = parser.parse_args()
    peers = {"allennlp": args.allennlp_python, "simple_elmo": args.tensorflow_python}
    if args.new_models and None in peers.values():
        parser.error("--new-models needs both interpreters: no vectors would fit")
    if args.new_models:
        make_bilm()
        make_manylangs()
    for program, python in peers.items():
        if python is None:
            print(f"{program}: vectors left as they are, no interpreter given")
        else:
            write_vectors(BILM, program, PeerProgram(program, python).embed_batches)
    write_vectors(MANYLANGS, "elmoformanylangs", embed_manylangs_batches)


def make_bilm() -> None:
    """Pretrain the model of tests/fixtures/bilm and write it as HDF5."""
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        (work / "tiny.cfg").write_text(PRETRAIN_CONFIG.format(text=TEXT), "utf8")
        elmo = [sys.executable, "-m", "spacy", "elmo"]
        pretrain = [*elmo, "pretrain", work / "tiny.cfg", "--output", work / "output"]
        subprocess.run(pretrain, cwd=ROOT, check=True)
        trained = work / "output" / "model-best"
        convert = [*elmo, "convert", trained, work / "hdf5", "--to", "hdf5"]
        subprocess.run([*convert, "--no-softmax"], cwd=ROOT, check=True)
        shutil.copy(work / "hdf5" / "weights.hdf5", BILM)
        # Keep only the sizes: the options also describe the training, with local paths.
        options = json.loads((work / "hdf5" / "options.json").read_text("utf8"))
        sizes = {name: options[name] for name in ("lstm", "char_cnn")}
        text = json.dumps(sizes, indent=2) + "\n"
        (BILM / "options.json").write_text(text, "utf8")


def make_manylangs() -> None:
    """Write the random model of tests/fixtures/manylangs."""
    from helpers.manylangs_models import write_model

    clips = {"lstm__cell_clip": 0.8, "lstm__proj_clip": 0.5}
    write_model(MANYLANGS, seed=0, token__word_dim=5, token__n_highway=2, **clips)


class PeerProgram:
    """AllenNLP or simple_elmo, run by a script in benchmarks/peers.

    name (str): "allennlp" or "simple_elmo".
    python (str): The Python interpreter of an environment with this program.
    """

    def __init__(self, name: str, python: str) -> None:
        self.name = name
        self.python = python

    def embed_batches(self, batches: list[Batch]) -> Iterator[list[np.ndarray]]:
        """Load the model in a new process and yield the vectors of each batch: one
        array (n_layers + 1, n_tokens, width) per sentence."""
        with tempfile.TemporaryDirectory() as folder:
            text, arrays = Path(folder, "sentences.json"), Path(folder, "arrays.npz")
            sentences = [sentence for batch in batches for sentence in batch]
            text.write_text(json.dumps(sentences), "utf8")
            with Worker(
                self.name,
                python=self.python,
                script=f"{self.name}_worker.py",
                logs=Path(folder),
            ) as worker:
                largest = max(map(len, batches))
                worker.call("load", folder=str(BILM), text=str(text), max_batch=largest)
                start = 0
                for batch in batches:
                    worker.call(
                        "save_batch", start=start, count=len(batch), path=str(arrays)
                    )
                    start += len(batch)
                    with np.load(arrays) as saved:
                        yield [saved[f"arr_{row}"] for row in range(len(batch))]


def embed_manylangs_batches(batches: list[Batch]) -> Iterator[list[np.ndarray]]:
    """Load the model in elmoformanylangs and yield the vectors of each batch: one array
    (n_layers + 1, n_tokens, width) per sentence.

    The program sorts each batch from the longest sentence to the shortest. The batches
    in sentences.json already have this order, so that each sentence keeps its row.
    """
    import torch
    from helpers.manylangs_models import import_package

    largest = max(map(len, batches))
    embedder = import_package().Embedder(str(MANYLANGS), batch_size=largest)
    for batch in batches:
        with torch.no_grad():
            yield embedder.sents2elmo(batch, output_layer=-2)


def write_vectors(
    folder: Path,
    program: str,
    embed_batches: Callable[[list[Batch]], Iterator[list[np.ndarray]]],
) -> None:
    """Let a program compute the vectors of a folder's sentences and store them.

    folder (Path): A folder of tests/fixtures.
    program (str): The name of the program, for the file name.
    embed_batches (Callable): A function that loads the folder's model into the program
        and yields the vectors of each batch.
    """
    batches: list[Batch] = json.loads((folder / "sentences.json").read_text("utf8"))
    places = [(n, row) for n, batch in enumerate(batches) for row in range(len(batch))]
    together = [sentence for batch in batches for sentence in batch]
    (stateless,) = embed_batches([together])
    stateful = [vectors for batch in embed_batches(batches) for vectors in batch]
    arrays = {}
    for place, one, other in zip(places, stateless, stateful, strict=True):
        name = "{}/{}".format(*place)
        arrays[f"stateless/{name}"] = one.astype(np.float32)
        arrays[f"stateful/{name}"] = other.astype(np.float32)
    path = folder / f"vectors-{program}.npz"
    np.savez_compressed(path, **arrays)  # type: ignore[arg-type]
    print(f"Wrote the vectors of {len(places)} sentences to {path.relative_to(ROOT)}")


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "tests"))  # for helpers.manylangs_models
    main()
