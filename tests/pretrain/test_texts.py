"""Check where the texts of a pretraining lie."""

import pytest
from helpers.pretraining import train, write_text


def test_texts_and_what_is_written_lie_apart(config_path, tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    write_text(folder / "a.txt")
    for text, overrides in (
        (folder, {}),
        (folder, {"corpus__folder": str(folder / "corpus")}),
        (folder / "run", {}),
        (folder / "**" / "*.txt", {}),
    ):
        run = tmp_path / "run" if overrides else folder / "run"
        train(config_path, run, overwrite=True, training__max_steps=1)
        with pytest.raises(ValueError, match="expected --output and corpus.folder out"):
            train(config_path, run, resume=True, paths__raw_text=str(text), **overrides)
    # A text in the output folder is not written by the training.
    write_text(folder / "run" / "text.txt")
    given = {"paths__raw_text": str(folder / "run" / "*.txt"), "overwrite": True}
    train(config_path, folder / "run", training__max_steps=1, **given)


def test_held_out_text_that_is_trained_on_is_said(config_path, tmp_path):
    dev = write_text(tmp_path / "dev.txt", seed=1)
    for raw, is_said in (("text.txt", False), ("*.txt", True)):
        said, _ = train(
            config_path,
            tmp_path / "run",
            overwrite=True,
            training__max_steps=1,
            paths__raw_text=str(tmp_path / raw),
            paths__dev_text=str(dev),
        )
        assert ("has 1 of the files of paths.dev_text" in said) == is_said
