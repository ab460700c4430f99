"""Make configs for training and pretraining from the templates that a wheel carries.

The templates are the configs that the project itself uses. Only what the user chooses
is changed in them, line by line, so that their comments stay.
"""

import json
import re
from pathlib import Path
from typing import Any

from .text.tokenizers import MECAB, RULES, find_language

FOLDER = Path(__file__).parent / "configs"
PRETRAIN = "pretrain"
TASKS = ("tagging", "parsing", "ner", "textcat", "spancat")
# A config without ELMo, and the variants with ELMo. Not all tasks have all of these.
BASELINE = "baseline"
VARIANTS = (BASELINE, "elmo", "elmo_fast", "elmo_accurate")
# The second tokenizer makes the same morphemes, with a package that pip installs.
TOKENIZERS = {"spacy.ko.KoreanTokenizer": MECAB}
# Batches that are large enough to keep a GPU busy.
GPU_VALUES = {"training.batcher.size.start": 1000, "training.batcher.size.stop": 2000}
COMMAND = re.compile(r"^# python -m spacy .*\n", re.M)


def read_template(name: str) -> str:
    return (FOLDER / f"{name}.cfg").read_text(encoding="utf-8")


def tasks_with(variant: str) -> list[str]:
    """Return the tasks that have a config of this variant."""
    return [task for task in TASKS if (FOLDER / f"{task}_{variant}.cfg").exists()]


def read_pretrain_template(lang: str) -> str:
    """Return the pretraining config that is recommended for a language: the smallest
    published size, for Korean with wider filters."""
    text = read_template("pretrain_ko" if lang == "ko" else "pretrain_small")
    return set_value(text, "corpus.lang", lang)


def make_training_config(
    task: str,
    command: str,
    *,
    lang: str = "en",
    bilm: str | None = None,
    gpu: bool = False,
    variant: str = "elmo",
) -> str:
    """Make a config for `spacy train`.

    task (str): One of TASKS.
    command (str): The command that trains with the config, for its first lines.
    lang (str): The code of a language of spaCy.
    bilm (str | None): A biLM; None for the bundled one of the language. Its tokenizer
        is used, also without ELMo, so that both can be compared.
    gpu (bool): Choose sizes for a GPU.
    variant (str): One of VARIANTS that the task has.
    """
    if bilm is not None and "$" in bilm:
        raise ValueError(
            f"found '$' in the biLM {bilm}; expected a path without it, because it "
            "marks variables in configs"
        )
    text = read_template(f"{task}_{variant}")
    text = COMMAND.sub(lambda _: f"# {command}\n", text)
    values: dict[str, Any] = {"nlp.lang": lang, **(GPU_VALUES if gpu else {})}
    if bilm is not None and variant != BASELINE:
        values["elmo.bilm"] = bilm
    for name, value in values.items():
        text = set_value(text, name, value)
    return _set_tokenizer(text, choose_tokenizer(lang, bilm))


def set_value(text: str, name: str, value: Any) -> str:
    """Set a value in the text of a config.

    name (str): The dotted name of the setting, such as "nlp.lang". It must exist.
    """
    section, _, key = name.rpartition(".")
    begin, end = _find_section(text, section)
    line = re.compile(rf"^{re.escape(key)} = .*$", re.M)
    new = f"{key} = {json.dumps(value, ensure_ascii=False)}"
    changed, n_lines = line.subn(lambda _: new, text[begin:end])
    if n_lines != 1:
        raise ValueError(f"found {n_lines} lines for {name}; expected one")
    return text[:begin] + changed + text[end:]


def _set_tokenizer(text: str, tokenizer: dict[str, Any]) -> str:
    begin, end = _find_section(text, "nlp.tokenizer")
    comments = [x for x in text[begin:end].split("\n") if x.startswith("#")]
    lines = [f"{key} = {json.dumps(value)}" for key, value in tokenizer.items()]
    return text[:begin] + "\n".join(["", *comments, *lines, "", ""]) + text[end:]


def _find_section(text: str, name: str) -> tuple[int, int]:
    """Return where the lines of a section begin and end, its name not included."""
    head = f"[{name}]\n"
    begin = text.index(head) + len(head) - 1
    end = text.find("\n[", begin)
    return begin, len(text) if end < 0 else end + 1


def choose_tokenizer(lang: str, bilm: str | None) -> dict[str, Any]:
    """Return the section of a config for the tokenizer that a biLM was trained with. If
    it was trained on another language, or this is not known, return the one of the
    language's default tokenizer.

    bilm (str | None): A biLM; None for the bundled one of the language.
    """
    facts = read_training_facts(bilm, lang)
    name = facts.get("tokenizer")
    if name is not None and facts.get("lang") == lang:
        return {"@tokenizers": name}
    default = dict(_get_default_tokenizer(lang))
    name = default.get("@tokenizers", RULES)
    return {**default, "@tokenizers": TOKENIZERS.get(name, name)}


def _get_default_tokenizer(lang: str) -> dict[str, Any]:
    config = find_language(lang).Defaults.config
    return config.get("nlp", {}).get("tokenizer", {"@tokenizers": RULES})


def read_training_facts(bilm: str | None, lang: str) -> dict[str, Any]:
    """Return what a biLM says about its training; an empty dict if it says nothing.

    bilm (str | None): A biLM; None for the bundled one of the language.
    """
    from .bilm.formats.bundled import LANGUAGES, bundled_names, find_bundled
    from .bilm.formats.small_files import read_json

    source = LANGUAGES.get(lang) if bilm is None else bilm
    if source is None:
        return {}
    path = Path(source)
    if not path.exists():
        path = find_bundled(source) or path
    if not path.exists():
        raise ValueError(
            f"{source}: no such file or folder; expected a biLM, or "
            + ", ".join(bundled_names())
        )
    for file in (path / "config.json", path / "model-best" / "config.json"):
        if not file.exists():
            continue  # another format, which has no such facts
        config = read_json(file)
        facts = config.get("training") if isinstance(config, dict) else None
        if isinstance(facts, dict):
            if not isinstance(facts.get("tokenizer"), str | None):
                raise ValueError(
                    f"{file}: found a training.tokenizer that is no string; expected "
                    "the name of a tokenizer"
                )
            return facts
    return {}


def has_bundled_bilm(lang: str) -> bool:
    from .bilm.formats.bundled import LANGUAGES

    return lang in LANGUAGES
