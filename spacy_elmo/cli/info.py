from pathlib import Path

from typer import Argument
from wasabi import msg

from . import app


@app.command("info")
def info_cli(
    source: Path = Argument(..., help="A biLM of any kind: a folder, or an HDF5 file"),
) -> None:
    """Print the sizes of a biLM and what is known of its training."""
    from ..bilm.errors import SourceError
    from ..bilm.sources import load_bilm

    try:
        bilm = load_bilm(source)
    except SourceError as error:
        msg.fail(str(error), exits=1)
    config = bilm.config.to_dict()
    n_weights = sum(weight.numel() for weight in bilm.parameters())
    msg.divider(str(source))
    msg.table(
        {
            "weights": f"{n_weights:,}",
            "layers": f"{bilm.config.lstm.n_layers} + 1",
            "width": bilm.config.width,
            "characters": len(bilm.lexicon.characters) or "-",
            "words in the encoder": len(bilm.lexicon.words) or "-",
            "words in the softmax": (config["softmax"] or {}).get("n_words", "-"),
        }
    )
    for section in ("encoder", "lstm", "softmax", "training"):
        if config[section]:
            msg.divider(section)
            msg.table({key: str(value) for key, value in config[section].items()})
