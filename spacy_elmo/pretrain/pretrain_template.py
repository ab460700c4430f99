"""Write a pretraining config in which every setting has its value and a comment."""

import json
import textwrap
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel
from thinc.api import Config

from ..config_templates import read_pretrain_template
from ..text.tokenizers import find_language
from .pretrain_config import PretrainConfig, Section

WIDTH = 88
# PretrainConfig has no fields for the parts of the biLM, and so no descriptions.
MODEL = {
    "model.encoder": "How the vector of a word is computed from its bytes: a CNN.",
    "model.lstm": "The sizes of the LSTMs. ELMo vectors are twice as wide as "
    "projection_dim.",
}


def make_pretrain_config(
    command: str, *, lang: str = "en", bilm: str | None = None, gpu: bool = False
) -> str:
    """Make the text of a config that has all settings, with the values recommended for
    a language.

    command (str): The command that pretrains with the config, for its first lines.
    bilm (str | None): A biLM whose weights training starts from.
    gpu (bool): Choose the batch size for a GPU.
    """
    find_language(lang)
    text = read_pretrain_template(lang)
    data = Config().from_str(text)
    data["paths"].update(raw_text="-", initialize_from=bilm)
    if gpu:
        data["training"]["batch_size"] = 128  # as in the paper
    filled = PretrainConfig.model_validate(dict(data))
    filled.paths.raw_text = None
    head = [line for line in text.split("\n[")[0].split("\n") if line]
    parts = [*head, f"# {command}"]
    for name, section in _walk(filled):
        parts += ["", *section] if not name else ["", f"[{name}]", *section]
    return "\n".join(parts) + "\n"


def _walk(config: PretrainConfig) -> Iterator[tuple[str, list[str]]]:
    """Yield the name and the lines of each section."""
    for name, part in config:
        if isinstance(part, Section):
            yield from _walk_section(name, part)
        elif part:  # the model
            yield name, []
            for key, values in part.items():
                lines = [f"{k} = {json.dumps(v)}" for k, v in values.items()]
                yield f"{name}.{key}", [*_comment(MODEL.get(f"{name}.{key}")), *lines]


def _walk_section(name: str, section: BaseModel) -> Iterator[tuple[str, list[str]]]:
    lines: list[str] = []
    inner: list[tuple[str, BaseModel]] = []
    for key, value in section:
        if isinstance(value, BaseModel):
            inner.append((f"{name}.{key}", value))
        else:
            field = type(section).model_fields[key]
            lines += _comment(field.description)
            lines.append(f"{key} = {_to_json(value)}")
    yield name, lines
    for inner_name, value in inner:
        yield from _walk_section(inner_name, value)


def _comment(description: str | None) -> list[str]:
    return [f"# {line}" for line in textwrap.wrap(description or "", WIDTH - 2)]


def _to_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
