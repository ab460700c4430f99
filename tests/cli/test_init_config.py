"""Write configs with `spacy elmo init-config`, check them and train with them."""

import os
from pathlib import Path

import pytest
import spacy
from helpers.command import call, refused, run_spacy, text
from spacy.cli.debug_config import debug_config
from spacy.tokens import DocBin
from spacy.util import load_config, load_model_from_config

from spacy_elmo.config_templates import TASKS
from spacy_elmo.layers.mix import get_mix
from spacy_elmo.pretrain.pretrain_config import load_config as load_pretrain_config

ROOT = Path(__file__).parents[2]
BOTH = [False, True]
TOKENIZERS = {
    "en": "spacy.Tokenizer.v1",
    "ko": "spacy.Tokenizer.v1",  # of the bundled Korean biLM
    "ja": "spacy.ja.JapaneseTokenizer",
    "fi": "spacy.Tokenizer.v1",
}


def write(tmp_path, task, *options):
    path = tmp_path / f"{task}.cfg"
    done = call("init-config", task, path, *options)
    assert done.exit_code == 0, done.output
    return path, text(done)


def flags(baseline):
    return ["--baseline"] if baseline else []


@pytest.mark.parametrize("baseline", BOTH)
@pytest.mark.parametrize("lang", ["en", "ko"])
@pytest.mark.parametrize("task", TASKS)
def test_configs_are_complete_and_have_the_settings_of_ours(
    task, lang, baseline, tmp_path
):
    path, printed = write(tmp_path, task, "--lang", lang, *flags(baseline))
    found = load_config(path)
    assert load_model_from_config(found, auto_fill=True).config == found
    kind = "baseline" if baseline else "elmo"
    ours = load_config(ROOT / "configs" / f"{task}_{kind}.cfg")
    ours["nlp"]["lang"] = lang
    assert found == ours
    command = f"python -m spacy train {path}"
    assert f"# {command}" in path.read_text("utf8") and command in printed
    assert path.read_text("utf8").count("\n# ") > 6
    debug_config(path, overrides={"paths.train": "x.spacy", "paths.dev": "x.spacy"})


def test_the_next_command_is_on_one_line_to_copy(tmp_path):
    path = tmp_path / "a.cfg"
    printed = call("init-config", "ner", path).output.splitlines()
    command = f"python -m spacy train {path} --output training/ner --paths.train"
    assert f"{command} train.spacy --paths.dev dev.spacy" in printed


@pytest.mark.parametrize(
    "task, variant",
    [(task, "fast") for task in ("tagging", "parsing", "ner")]
    + [("parsing", "accurate")],
)
def test_the_fast_and_the_accurate_configs_are_ours(task, variant, tmp_path):
    path, printed = write(tmp_path, task, f"--{variant}")
    found = load_config(path)
    assert load_model_from_config(found, auto_fill=True).config == found
    assert found == load_config(ROOT / "configs" / f"{task}_elmo_{variant}.cfg")
    assert f"python -m spacy train {path}" in printed


@pytest.mark.parametrize("lang", TOKENIZERS)
def test_tokenizer_is_that_of_the_bilm_or_the_language(lang, tmp_path):
    path, printed = write(tmp_path, "ner", "--lang", lang)
    config = load_config(path)
    assert config["nlp"]["tokenizer"]["@tokenizers"] == TOKENIZERS[lang]
    assert ("English one would be used" in printed) == (lang not in ("en", "ko"))


@pytest.mark.parametrize("baseline", BOTH)
def test_a_bilm_decides_about_the_tokenizer(bilm, tmp_path, baseline):
    # A tokenizer that no language has as its default.
    training = {"lang": "en", "tokenizer": "spacy-elmo.MecabTokenizer.v1"}
    bilm.config.training.update(training)
    bilm.save(tmp_path / "bilm" / "model-best")
    options = ["--lang", "en", "--bilm", tmp_path / "bilm", *flags(baseline)]
    config = load_config(write(tmp_path, "tagging", *options)[0])
    assert config["nlp"]["tokenizer"] == {"@tokenizers": training["tokenizer"]}
    if not baseline:
        assert config["elmo"]["bilm"] == str(tmp_path / "bilm")


@pytest.mark.parametrize(
    "text, found",
    [
        ('{"training": {"tokenizer": 3}}', "found a training.tokenizer that is no"),
        ('{"training": ' + "[" * 10**5, "found no JSON"),
        (None, "found a pipe; expected a file"),
    ],
)
def test_the_facts_of_a_bilm_are_checked(tmp_path, text, found):
    path = tmp_path / "config.json"
    os.mkfifo(path) if text is None else path.write_text(text)
    said = refused("init-config", "ner", "-", "--bilm", tmp_path)
    assert f"{path}: {found}" in said


def test_gpu_changes_the_sizes_of_batches(tmp_path):
    path, printed = write(tmp_path, "ner", "--gpu")
    plain = load_config(ROOT / "configs" / "ner_elmo.cfg")
    config = load_config(path)
    size = config["training"]["batcher"]["size"]
    assert size["start"] > plain["training"]["batcher"]["size"]["start"]
    assert config["system"]["gpu_allocator"] == "pytorch" and "--gpu-id 0" in printed


def test_pretraining_configs_have_every_setting(bilm, tmp_path):
    bilm.save(tmp_path / "bilm")
    options = ["--lang", "ko", "--bilm", tmp_path / "bilm", "--gpu"]
    path, printed = write(tmp_path, "pretrain", *options)
    assert f"python -m spacy elmo pretrain {path}" in printed
    found = load_pretrain_config(path, {"paths.raw_text": "x"})
    ours = load_pretrain_config(
        ROOT / "configs" / "pretrain_ko.cfg",
        {
            "paths.raw_text": "x",
            "paths.initialize_from": str(tmp_path / "bilm"),
            "training.batch_size": 128,
        },
    )
    assert found == ours
    lines = path.read_text("utf8").split("\n")
    for name in ("checkpoint_minutes", "weight_decay", "warmup_steps", "n_process"):
        (number,) = [n for n, x in enumerate(lines) if x.startswith(f"{name} = ")]
        assert lines[number - 1].startswith("# ")


def test_a_dash_prints_the_config_and_nothing_else():
    done = call("init-config", "tagging", "-")
    assert done.exit_code == 0 and "Wrote" not in done.output
    assert load_config(ROOT / "configs" / "tagging_elmo.cfg") == (
        spacy.util.load_config_from_str(done.output)
    )


def test_a_file_is_not_overwritten_silently(tmp_path):
    path, _ = write(tmp_path, "ner")
    before = path.read_bytes()
    assert "--force" in refused("init-config", "tagging", path)
    assert path.read_bytes() == before
    assert call("init-config", "tagging", path, "--force").exit_code == 0
    assert path.read_bytes() != before


@pytest.mark.parametrize(
    "options, message",
    [
        (["tagging", "--lang", "qq"], "found the language 'qq'"),
        (["pretrain", "--lang", "qq"], "found the language 'qq'"),
        (["ner", "--bilm", "nowhere"], "nowhere: no such file or folder"),
        (["ner", "--bilm", "a$b"], "found '$' in the biLM a$b"),
        (["pretrain", "--baseline"], "found --baseline with pretrain"),
        (["pretrain", "--fast"], "found --fast with pretrain"),
        (
            ["textcat", "--fast"],
            "found --fast with textcat; expected one of tagging, parsing, ner",
        ),
        (["ner", "--accurate"], "found --accurate with ner; expected one of parsing"),
        (["parsing", "--fast", "--baseline"], "found --baseline and --fast; expected"),
    ],
)
def test_bad_options_are_refused(options, message, tmp_path):
    task, *rest = options
    path = tmp_path / "out.cfg"
    assert message in refused("init-config", task, path, *rest)
    assert not path.exists()


# Training


@pytest.fixture(scope="module")
def corpora(tmp_path_factory):
    """Convert the sample treebanks, and add a category and a span to each doc."""
    folder = tmp_path_factory.mktemp("corpora")
    for lang in ("en", "ko"):
        done = call("prepare", ROOT / "assets" / "treebank" / lang, folder / lang)
        assert done.exit_code == 0, done.output
        for name in ("train", "dev"):
            path = folder / lang / f"{name}.spacy"
            docs = list(DocBin().from_disk(path).get_docs(spacy.blank("xx").vocab))
            for doc in docs[:40]:
                doc.cats = {"LONG": float(len(doc) > 9), "SHORT": float(len(doc) <= 9)}
                doc.spans["sc"] = [doc.char_span(0, len(doc[0]), label="FIRST")]
            DocBin(docs=docs[:40], store_user_data=True).to_disk(path)
    return folder


def train(config, corpora, lang, output, n_steps):
    paths = [
        x
        for name in ("train", "dev")
        for x in (f"--paths.{name}", corpora / lang / f"{name}.spacy")
    ]
    steps = ["--training.max_steps", n_steps, "--training.eval_frequency", n_steps]
    run_spacy("train", config, "--output", output, *paths, *steps)
    return spacy.load(output / "model-best")


@pytest.mark.slow
@pytest.mark.parametrize(
    "task, lang, baseline",
    [
        *((task, "en", False) for task in TASKS),
        *((task, "ko", True) for task in TASKS),
        ("parsing", "ko", False),
    ],
)
def test_training_starts(task, lang, baseline, corpora, tmp_path):
    path, _ = write(tmp_path, task, "--lang", lang, *flags(baseline))
    assert train(path, corpora, lang, tmp_path / "out", "2").lang == lang


@pytest.mark.slow
def test_the_fast_recognizer_has_elmo_at_the_input_of_one_layer(corpora, tmp_path):
    path, _ = write(tmp_path, "ner", "--fast")
    nlp = train(path, corpora, "en", tmp_path / "out", "2")
    tok2vec = nlp.get_pipe("ner").model.get_ref("tok2vec").layers[0]
    assert tok2vec.get_dim("nO") == 96  # without ELMo at the output
    assert get_mix(tok2vec.get_ref("input_mix"))[1] != 1.0  # gamma has learned


@pytest.mark.slow
@pytest.mark.parametrize(
    "variant, lang", [("fast", "en"), ("fast", "ko"), ("accurate", "en")]
)
def test_components_share_a_tok2vec_with_elmo(variant, lang, corpora, tmp_path):
    path, _ = write(tmp_path, "parsing", f"--{variant}", "--lang", lang)
    nlp = train(path, corpora, lang, tmp_path / "out", "30")
    width = nlp.get_pipe("tok2vec").model.get_dim("nO")
    assert nlp.meta["performance"]["tag_acc"] > 0.3
    mix = nlp.get_pipe("tok2vec").model.get_ref("input_mix")
    assert get_mix(mix)[1] != 1.0  # gamma has learned
    docs = DocBin().from_disk(corpora / lang / "dev.spacy").get_docs(nlp.vocab)
    texts = [doc.text for doc in docs]
    alone = spacy.blank(
        lang, config={"nlp": {"tokenizer": nlp.config["nlp"]["tokenizer"]}}
    )
    alone.add_pipe("elmo")
    for doc, same, plain in zip(
        nlp.pipe(texts), nlp.pipe(texts, n_process=2), alone.pipe(texts)
    ):
        assert [t.tag_ for t in doc] == [t.tag_ for t in same]
        assert [t.head.i for t in doc] == [t.head.i for t in same]
        assert doc._.elmo.layers == pytest.approx(plain._.elmo.layers, abs=1e-5)
        assert doc.tensor.shape == (len(doc), width)
