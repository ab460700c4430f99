"""Sample result files with invented numbers, in the same format as real ones."""

import json
import math
from pathlib import Path

import numpy as np

SENSES = {
    "en": {
        "bank": {
            "river": "They sat on the {} and watched the barges.",
            "money": "The {} keeps a copy of each contract.",
        },
        "play": {
            "theatre": "The second act of the {} is too long.",
            "sport": "One late {} decided the match.",
            "do": 'Children {} with <b>anything</b> & "everything".',
        },
    },
    "ko": {
        "눈": {
            "eye": "{}이 아파서 안경을 벗었다.",
            "snow": "밤새 {}이 내려 길이 하얗다.",
        },
        "배": {
            "boat": "{}를 타고 섬으로 갔다.",
            "pear": "시장에서 {}를 세 개 샀다.",
            "belly": "점심을 많이 먹어 {}가 부르다.",
        },
    },
}
VARIANTS = {
    "baseline": "spaCy without ELMo",
    "vectors": "spaCy without ELMo, static vectors",
    "last": "ELMo, last layer",
    "average": "ELMo, plain average",
    "input": "ELMo at input",
    "both": "ELMo at input and output",
}


def write(path: Path, data: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data, ensure_ascii=False), encoding="utf-8")
    return path


def write_log(path: Path, n_steps: int = 40) -> Path:
    rows: list[dict] = [{"type": "config", "step": 0, "config": {"training": {}}}]
    rng = np.random.default_rng(1)
    for k in range(n_steps):
        noise = rng.normal(0, 0.05, 2)
        loss = 4.2 + 5 * math.exp(-k / (n_steps / 6))
        place = {"step": 20 * k + 1, "epoch": 0, "words": 12800 * (k + 1)}
        place["seconds"] = 6.1 * (k + 1)
        rows.append(
            {
                "type": "step",
                **place,
                "forward_loss": loss + noise[0],
                "backward_loss": loss + noise[1],
                "gradient_norm": 0.3,
                "learn_rate": 0.003 * min((k + 1) / 5, (n_steps - k) / n_steps),
                "words_per_second": 2100 + 300 * rng.random(),
            }
        )
        if k % 8 == 7:
            forward, backward = np.exp(loss + noise / 4)
            mean = (forward + backward) / 2
            rows.append({"type": "evaluation", **place, **perplexity(mean)})
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def perplexity(mean: float) -> dict:
    return {
        "forward": mean + 1.5,
        "backward": mean - 1.5,
        "mean": mean,
        "n_tokens": 18950,
        "unknown_rate": 0.047,
    }


def probe() -> dict:
    def task(name: str, scores: dict) -> dict:
        layers = {"layer 0": 0, "layer 1": 1, "layer 2": 2, "mix": "mix"}
        rows = [
            {"name": key, "layer": layers.get(key), "accuracy": value}
            for key, value in scores.items()
        ]
        return {"task": name, "train": 2431, "dev": 812, "rows": rows}

    pos = {"most frequent tag": 0.861, "layer 0": 0.883, "layer 1": 0.937}
    pos.update({"layer 2": 0.921, "mix": 0.934})
    senses = {"most frequent sense": 0.522, "layer 0": 0.522, "layer 1": 0.58}
    senses.update({"layer 2": 0.611, "mix": 0.604})
    tasks = [task("pos", pos), task("senses", senses)]
    return {
        "kind": "probe",
        "title": "Demo biLM",
        "bilm": "/home/me/run/model-best",
        "tasks": tasks,
    }


def senses(lang: str, n: int = 6) -> dict:
    """Make the result of `spacy elmo senses`.

    n (int): The number of occurrences of each sense.
    """
    rng = np.random.default_rng(2)
    words = []
    for word, sentences in SENSES[lang].items():
        occurrences, centres = [], []
        for place, (sense, pattern) in enumerate(sentences.items()):
            for k in range(n):
                text = f"({k + 1}) {pattern.format(word)}"
                start = text.index(word)
                span = {"start": start, "end": start + len(word)}
                occurrences.append({"text": text, **span, "sense": sense})
                centres.append([math.cos(2.1 * place), math.sin(2.1 * place)])
        layers = []
        for number, layer in enumerate(["0", "1", "2", "mix"]):
            points = number * np.array(centres) + rng.normal(0, 0.6, (len(centres), 2))
            accuracy = [0.5, 0.75, 0.875, 0.8125][number]
            layer_data = {"layer": layer, "accuracy": accuracy}
            layers.append({**layer_data, "points": points.tolist()})
        majority = 1 / len(sentences)
        words.append({"word": word, "majority": majority, "occurrences": occurrences})
        words[-1]["layers"] = layers
    title = {"en": "English words", "ko": "Korean words"}[lang]
    mean = [
        {"layer": layer, "accuracy": 0.5, "majority": 0.4}
        for layer in ("0", "1", "2", "mix")
    ]
    head = {"kind": "senses", "title": title, "lang": lang}
    return {**head, "words": words, "mean": mean}


def compare() -> dict:
    rng = np.random.default_rng(3)
    variants = []
    metrics = ["tag_acc", "dep_las", "ents_f"]
    for share in (0.01, 0.1, 1.0):
        first: dict = {}
        for place, (name, label) in enumerate(VARIANTS.items()):
            scores, reduction = {}, {}
            for metric, top in zip(metrics, (0.95, 0.83, 0.78)):
                mean = top - 0.09 * (2 + math.log10(1 / share)) + 0.012 * place
                values = [mean + rng.normal(0, 0.003) for _ in range(3)]
                mean = float(np.mean(values))
                first.setdefault(metric, mean)
                spread = float(np.std(values))
                scores[metric] = {"mean": mean, "spread": spread, "values": values}
                gain = (mean - first[metric]) / (1 - first[metric])
                reduction[metric] = gain if place else None
            mixes = []
            if name in ("input", "both"):
                for task in ("tagger (input)", "parser (input)", "ner (input)"):
                    s = rng.dirichlet([3, 5, 3]).tolist()
                    mixes.append({"task": task, "s": s, "gamma": 0.9 + rng.random()})
            if name == "last":
                mixes.append({"task": "tagger (input)", "s": [0, 0, 1], "gamma": 1.02})
            variants.append(
                {
                    "name": name,
                    "label": label,
                    "share": share,
                    "seeds": [0, 1, 2],
                    "scores": scores,
                    "error_reduction": reduction,
                    "mixes": mixes,
                    "words_per_second": 21000 - 3000 * place,
                }
            )
    head = {
        "kind": "compare",
        "title": "Sample treebank",
        "task": "tagger, parser, ner",
    }
    shares = [0.01, 0.1, 1.0]
    return {**head, "metrics": metrics, "variants": variants, "shares": shares}


def scores(**others: object) -> dict:
    """Make what `spacy evaluate` writes for a tagger and parser.

    others (object): Other scores, by spaCy's names.
    """
    per_type = {"nsubj": {"p": 0.5, "r": 0.5, "f": 0.5}}
    first = {"token_acc": 1.0, "dep_las": 0.785, "tag_acc": 0.9372, "ents_f": None}
    return {**first, "dep_las_per_type": per_type, "speed": 9120.4, **others}


def write_comparison(folder: Path) -> None:
    """Write the output folder of `spacy elmo compare`. A report shows only compare.json
    and ignores the other files."""
    write(folder / "compare.json", compare())
    run = {"fingerprint": "0a", "versions": {"spacy": "3.8.0"}, "variant": "baseline"}
    run.update({"share": 1.0, "seed": 0, "scores": {"tag_acc": 0.9}, "seconds": 3.5})
    run.update({"test_scores": None, "mixes": []})
    write(folder / "runs" / "baseline-1-0.json", run)
    speed = {"fingerprint": "0a", "words_per_second": 9000.0}
    write(folder / "speed.json", {"baseline-1-0": speed})
    write(folder / "models" / "baseline-1-0" / "meta.json", {})
    (folder / "logs").mkdir()
    (folder / "logs" / "baseline-1-0.log").write_text("...")


def neighbors() -> dict:
    def in_context(sentence: str, word: str, **more: object) -> dict:
        tokens = sentence.split(" ")
        return {
            "word": word,
            "sentence": sentence,
            "position": tokens.index(word),
            **more,
        }

    english = in_context("The play opened on a rainy Monday .", "play")
    near = [
        in_context("Her first play closed after nine nights .", "play", cosine=0.81),
        in_context('a < b & c in the drama "x"', "drama", cosine=0.52),
    ]
    static = [{"word": "playing", "cosine": 0.77}, {"word": "game", "cosine": 0.7}]
    layers = [{"layer": 1, "neighbors": near}, {"layer": 2, "neighbors": near[::-1]}]
    korean = in_context("어제 눈 이 많이 왔다 .", "눈")
    snow = [in_context("첫 눈 이 내렸다 .", "눈", cosine=0.9)]
    queries = [
        {**english, "layers": layers, "static": static},
        {**korean, "layers": [{"layer": 2, "neighbors": snow}], "static": []},
    ]
    return {"kind": "neighbors", "title": "Demo text", "queries": queries}


def write_all(folder: Path) -> Path:
    """Write result files of all kinds to a folder, and return the folder."""
    write_log(folder / "demo" / "log.jsonl")
    write(folder / "perplexity.json", perplexity(212.4))
    write(folder / "probe.json", probe())
    write(folder / "compare.json", compare())
    write(folder / "parser" / "metrics.json", scores())
    write(folder / "recogniser" / "metrics.json", {"ents_f": 0.389, "speed": 7500})
    write(folder / "senses" / "en.json", senses("en"))
    write(folder / "senses" / "ko.json", senses("ko"))
    write(folder / "neighbors.json", neighbors())
    return folder
