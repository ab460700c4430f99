"""Measure the cost of ELMo inside a spaCy pipeline: `elmo` in nlp.pipe against the bare
biLM, training with the layer cache against training without it, and memory over a long
stream. See README.md in this folder."""

import argparse
import itertools
import json
import resource
import sys
import time
from pathlib import Path
from statistics import median

import spacy
import torch
from corpus import read_sentences, read_tagged
from random_models import SIZES, write_model
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.training.batchers import minibatch_by_words

TOK2VECS = {
    "ELMo alone": {
        "@architectures": "spacy-elmo.ElmoTok2Vec.v1",
        "elmo": {"@architectures": "spacy-elmo.ElmoListener.v1"},
        "mix": {"@architectures": "spacy-elmo.ElmoMix.v1"},
    },
    "spaCy's CNN with ELMo at its input": {
        "@architectures": "spacy-elmo.Tok2VecWithElmo.v1",
        "embed": {
            "@architectures": "spacy.MultiHashEmbed.v2",
            "width": 96,
            "attrs": ["NORM", "PREFIX", "SUFFIX", "SHAPE"],
            "rows": [5000, 1000, 2500, 2500],
            "include_static_vectors": False,
        },
        "encode": {
            "@architectures": "spacy.MaxoutWindowEncoder.v2",
            "width": 96,
            "depth": 4,
            "window_size": 1,
            "maxout_pieces": 3,
        },
        "elmo": {"@architectures": "spacy-elmo.ElmoListener.v1"},
        "mix": {"@architectures": "spacy-elmo.ElmoMix.v1"},
    },
}


def make_pipeline(bilm_folder: Path, **settings: object) -> Language:
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config={"bilm": str(bilm_folder), **settings})
    return nlp


def timed(work) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def measure_overhead(args: argparse.Namespace, folder: Path) -> dict:
    """Measure words/s of nlp.pipe with only `elmo` and of BiLM.embed, in turns. Both
    begin with an empty word cache and compute all layers of all words in float32."""
    sentences = read_sentences(
        args.text, count=args.sentences, min_length=10, max_length=40
    )
    n_words = sum(map(len, sentences))
    nlp = make_pipeline(folder)
    bilm = nlp.get_pipe("elmo").model.shims[0].bilm

    def core() -> None:
        bilm.clear_cache()
        bilm.embed(sentences)

    def pipeline() -> None:
        bilm.clear_cache()
        docs = (Doc(nlp.vocab, words=words) for words in sentences)
        for _ in nlp.pipe(docs):
            pass

    core()
    pipeline()
    seconds: dict[str, list[float]] = {"core": [], "pipeline": []}
    for _ in range(args.rounds):
        seconds["core"].append(timed(core))
        seconds["pipeline"].append(timed(pipeline))
    rates = {name: n_words / median(times) for name, times in seconds.items()}
    return {
        "words": n_words,
        "seconds": seconds,
        "words_per_second": rates,
        "overhead": rates["core"] / rates["pipeline"] - 1,
    }


def measure_training(args: argparse.Namespace, folder: Path, tok2vec: dict) -> dict:
    """Measure the words/s of training a tagger with and without the layer cache, one
    epoch of each in turn.

    tok2vec (dict): The config of the tagger's tok2vec layer.
    """
    tagged = read_tagged(args.text, count=args.train_sentences)
    n_words = sum(len(words) for words, _ in tagged)
    epochs = {}
    for cache in ("training", "none"):
        spacy.util.fix_random_seed(0)
        nlp = make_pipeline(folder, cache_layers=cache)
        model = {"@architectures": "spacy.Tagger.v2", "tok2vec": tok2vec}
        nlp.add_pipe("tagger", config={"model": model})
        examples = [
            Example.from_dict(Doc(nlp.vocab, words=words), {"tags": tags})
            for words, tags in tagged
        ]
        optimizer = nlp.initialize(lambda examples=examples: examples)
        epochs[cache] = training_epoch(nlp, examples, optimizer, args.batch_words)
    seconds: dict[str, list[float]] = {cache: [] for cache in epochs}
    for _ in range(1 + args.rounds):
        for cache, epoch in epochs.items():
            seconds[cache].append(timed(epoch))
    later = {cache: median(times[1:]) for cache, times in seconds.items()}
    return {
        "words": n_words,
        "seconds": seconds,
        "words_per_second_from_epoch_2": {c: n_words / t for c, t in later.items()},
        "times_faster": later["none"] / later["training"],
    }


def training_epoch(nlp: Language, examples: list, optimizer: object, words: int):
    batches = list(minibatch_by_words(examples, size=words))

    def epoch() -> None:
        for batch in batches:
            nlp.update(batch, sgd=optimizer)

    return epoch


def measure_memory(args: argparse.Namespace, folder: Path) -> dict:
    """Measure the peak memory of this process after every 100,000 words of a stream."""
    sentences = read_sentences(args.text, count=10**9, min_length=1, max_length=10**9)
    nlp = make_pipeline(folder, store_layers="none")
    docs = (Doc(nlp.vocab, words=words) for words in itertools.cycle(sentences))
    peaks = {}
    n_words = 0
    for doc in nlp.pipe(docs):
        before = n_words // 100_000
        n_words += len(doc)
        if n_words // 100_000 > before:
            peaks[n_words // 100_000 * 100_000] = peak_mb()
        if n_words >= args.stream_words:
            break
    return {"peak_mb": peaks}


def peak_mb() -> float:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--text", type=Path, required=True, help="CoNLL-U")
    parser.add_argument("--size", default="small", choices=SIZES)
    parser.add_argument("--workdir", type=Path, default=Path("benchmark-models"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sentences", type=int, default=1000)
    parser.add_argument("--train-sentences", type=int, default=500)
    parser.add_argument("--batch-words", type=int, default=1000)
    parser.add_argument("--stream-words", type=int, default=1_000_000)
    parser.add_argument("--json", type=Path, help="write the raw figures here")
    args = parser.parse_args()
    folder = write_model(args.size, args.workdir)
    n_threads = torch.get_num_threads()
    print(f"size {args.size}, torch {torch.__version__}, {n_threads} threads")

    # Memory is measured first, because the peak of a process never falls.
    results: dict = {"size": args.size}
    if args.stream_words:
        results["memory"] = measure_memory(args, folder)
        print("\npeak MB of a stream, store_layers = none")
        for n_words, peak in results["memory"]["peak_mb"].items():
            print(f"{n_words:>12,} words {peak:10.0f}")
    results["overhead"] = overhead = measure_overhead(args, folder)
    print(f"\nwords/s over {overhead['words']:,} words, median of {args.rounds} rounds")
    for name, rate in overhead["words_per_second"].items():
        seconds = " ".join(f"{s:.2f}" for s in overhead["seconds"][name])
        print(f"{name:>12} {rate:10.0f}   seconds: {seconds}")
    print(f"{'overhead':>12} {overhead['overhead']:10.1%}")
    results["training"] = {}
    for name, tok2vec in TOK2VECS.items():
        done = measure_training(args, folder, tok2vec)
        results["training"][name] = done
        print(f"\ntraining words/s of a tagger, {done['words']:,} words: {name}")
        for cache, rate in done["words_per_second_from_epoch_2"].items():
            seconds = " ".join(f"{s:.2f}" for s in done["seconds"][cache])
            print(f"{'cache ' + cache:>16} {rate:10.0f}   seconds per epoch: {seconds}")
        print(f"{'times faster':>16} {done['times_faster']:10.1f}   (epoch 2 on)")
    if args.json:
        args.json.write_text(json.dumps(results, indent=2) + "\n", encoding="utf8")


if __name__ == "__main__":
    main()
