from pathlib import Path
from typing import Any

from typer import Argument, Option
from wasabi import msg

from . import app
from .common_options import GPU_ID, LANG, TITLE, TOKENIZER


@app.command("senses")
def senses_cli(
    source: Path = Argument(..., help="A biLM of any kind"),
    path: Path = Argument(
        ..., metavar="FILE", help="JSON lines with word, sense, text, start, end"
    ),
    lang: str | None = LANG,
    tokenizer: str | None = TOKENIZER,
    title: str | None = TITLE,
    output: Path | None = Option(None, "--output", "-o", help="JSON to write"),
    gpu_id: int = GPU_ID,
) -> None:
    """See whether occurrences of a word lie together by sense.

    For each word and layer: how often the nearest other occurrence has the same sense,
    beside the share of the most frequent sense, and a map in two dimensions. "context"
    is what the words next to it say of it, "sentence" what all others do, both without
    the word itself.
    """
    from ..analysis.sense_map import map_senses, read_occurrences
    from ..bilm.errors import SourceError
    from ..results import Senses, write_result
    from .common_options import get_tokenization, load_on_device

    try:
        occurrences = read_occurrences(path)
        bilm = load_on_device(source, gpu_id)
        tokenization = get_tokenization(bilm, lang, tokenizer, False)
        found = map_senses(bilm, tokenization.load(), occurrences)
        if output is not None:
            head = {
                "kind": "senses",
                "title": title or f"{source.name}: {path.name}",
                "lang": tokenization.lang,
            }
            write_result(output, Senses.model_validate({**head, **found}))
    except (SourceError, ValueError, OSError) as error:
        msg.fail(str(error), exits=1)
    print_words(found)


def print_words(found: dict[str, Any]) -> None:
    names = [item["layer"] for item in found["mean"]]
    rows = [
        (
            word["word"],
            len(word["occurrences"]),
            f"{word['majority']:.0%}",
            *(f"{layer['accuracy']:.0%}" for layer in word["layers"]),
        )
        for word in found["words"]
    ]
    mean = found["mean"]
    n_occurrences = sum(len(word["occurrences"]) for word in found["words"])
    rows.append(
        (
            "mean of words",
            n_occurrences,
            f"{mean[0]['majority']:.1%}",
            *(f"{item['accuracy']:.1%}" for item in mean),
        )
    )
    labels = [f"layer {name}" if name.isdigit() else name for name in names]
    header = ("word", "n", "majority", *labels)
    msg.table(
        rows, header=header, divider=True, aligns=["l"] + ["r"] * (len(header) - 1)
    )
