"""`spacy elmo senses`: see whether the occurrences of a word lie together by sense."""

from pathlib import Path
from typing import Any

from typer import Argument
from wasabi import msg

from . import app
from .common_options import (
    BILM,
    GPU_ID,
    LANG,
    OUTPUT_JSON,
    TITLE,
    TOKENIZER,
    exit_on_error,
    get_tokenization,
    load_on_device,
)


@app.command("senses")
def senses_cli(
    source: Path = BILM,
    path: Path = Argument(
        ...,
        metavar="FILE",
        help="A .jsonl file: each line has word, sense, text, and the characters start "
        "and end between which the word stands in the text",
    ),
    lang: str | None = LANG,
    tokenizer: str | None = TOKENIZER,
    title: str | None = TITLE,
    output: Path | None = OUTPUT_JSON,
    gpu_id: int = GPU_ID,
) -> None:
    """See whether the occurrences of ambiguous words lie together by sense.

    For each word and layer, it prints how often the nearest other occurrence has the
    same sense. Compare this with the share of the most frequent sense. "context" is
    the vector from which the biLM predicts the word, "sentence" the mean of all other
    words; both leave out the word itself. The JSON file also has a map of the
    occurrences in two dimensions.
    """
    from ..analysis.sense_map import map_senses, read_occurrences
    from ..results import Senses, write_result

    with exit_on_error():
        occurrences = read_occurrences(path)
        bilm = load_on_device(source, gpu_id)
        tokenization = get_tokenization(bilm, lang, tokenizer)
        results = map_senses(bilm, tokenization.load(), occurrences)
        if output is not None:
            head = {
                "kind": "senses",
                "title": title or f"{source.name}: {path.name}",
                "lang": tokenization.lang,
            }
            write_result(output, Senses.model_validate({**head, **results}))
    print_words(results)


def print_words(results: dict[str, Any]) -> None:
    mean = results["mean"]
    rows = [
        (
            word["word"],
            len(word["occurrences"]),
            f"{word['majority']:.0%}",
            *(f"{layer['accuracy']:.0%}" for layer in word["layers"]),
        )
        for word in results["words"]
    ]
    rows.append(
        (
            "mean of all words",
            sum(len(word["occurrences"]) for word in results["words"]),
            f"{mean[0]['majority']:.1%}",
            *(f"{item['accuracy']:.1%}" for item in mean),
        )
    )
    names = [item["layer"] for item in mean]
    labels = [f"layer {name}" if name.isdigit() else name for name in names]
    header = ("word", "occurrences", "most frequent sense", *labels)
    msg.table(
        rows, header=header, divider=True, aligns=["l"] + ["r"] * (len(header) - 1)
    )
