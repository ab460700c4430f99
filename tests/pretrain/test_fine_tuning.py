"""Start training from another biLM, and choose the vocabulary of the softmax."""

import pytest
import torch
from helpers.command import call, text
from helpers.corpora import build
from helpers.manylangs_models import write_model
from helpers.pretraining import train, write_config, write_text

from spacy_elmo import load_bilm
from spacy_elmo.bilm.formats.sources import save_bilm
from spacy_elmo.pretrain import initial_bilm
from spacy_elmo.pretrain.corpus import Corpus
from spacy_elmo.pretrain.initial_bilm import make_bilm, make_softmax_config
from spacy_elmo.pretrain.pretrain_config import VocabConfig, load_config
from spacy_elmo.pretrain.vocab import choose_words

SPECIAL = ["<S>", "</S>", "<UNK>"]
NEW = "zog zog zog zig zag zig zog. zig zog zag. zeg.\n\n"


@pytest.fixture
def config_path(tmp_path):
    """Write a config whose text has words that the biLM of `pretrained` lacks."""
    path = write_text(tmp_path / "text.txt")
    path.write_text(path.read_text() + "\n\n" + NEW * 5)
    return write_config(tmp_path / "config.cfg", path)


def pretrained(tmp_path, **overrides):
    """Train a biLM on a text without the new words, and return its folder."""
    config = write_config(tmp_path / "first.cfg", write_text(tmp_path / "first.txt"))
    settings = {"training__max_steps": 2, **overrides}
    train(config, tmp_path / "first", **settings)
    return tmp_path / "first" / "model-last"


def without_softmax(source, folder, format="native"):
    bilm = load_bilm(source)
    bilm.drop_softmax()
    save_bilm(bilm, folder, format)
    return folder


def start(config_path, tmp_path, source=None, **overrides):
    """Return the biLM before training starts, and whether its softmax is new."""
    named = {key.replace("__", "."): value for key, value in overrides.items()}
    if source is not None:
        named["paths.initialize_from"] = str(source)
    config = load_config(config_path, named)
    folder = tmp_path / "corpus"
    build(folder, config.paths.raw_text, dev_share=config.corpus.dev_share)
    return make_bilm(config, Corpus(folder))


# A softmax that is missing


@pytest.mark.parametrize("softmax", ["full", "sampled", "adaptive"])
@pytest.mark.parametrize("format", ["native", "hdf5"])
@pytest.mark.slow
def test_new_softmax_is_warmed_up_alone(config_path, tmp_path, format, softmax):
    source = without_softmax(pretrained(tmp_path), tmp_path / "source", format)
    old = load_bilm(source).state_dict()
    settings = {
        "paths__initialize_from": str(source),
        "training__warmup_softmax_steps": 3,
        "training__optimizer__weight_decay": 0.1,
        "vocab__softmax": softmax,
        "vocab__n_samples": 20,
    }
    softmaxes = []
    for n_steps in (1, 3, 4):
        out = tmp_path / str(n_steps)
        train(config_path, out, training__max_steps=n_steps, **settings)
        new = load_bilm(out / "model-last")
        assert new.config.softmax.type == softmax
        assert new.vocab[:3] == SPECIAL and "zog" in new.vocab
        found = new.state_dict()
        moved = {name for name, tensor in old.items() if not found[name].equal(tensor)}
        if n_steps <= 3:
            assert not moved
        else:
            assert moved >= {n for n in old if n.endswith(("layers.0.weight", "bias"))}
        softmaxes.append(next(new.softmax.parameters()).detach())
    assert not softmaxes[0].equal(softmaxes[1])


@pytest.mark.slow
def test_known_softmax_needs_no_warm_up(config_path, tmp_path):
    source = pretrained(tmp_path)
    train(
        config_path,
        tmp_path / "run",
        paths__initialize_from=str(source),
        training__max_steps=1,
    )
    found = load_bilm(tmp_path / "run" / "model-last").state_dict()
    old = load_bilm(source).state_dict()
    assert found.keys() == old.keys()
    assert not any(found[name].equal(old[name]) for name in old if "layers" in name)


def test_known_softmax_is_trained_as_told(config_path, tmp_path):
    source = pretrained(tmp_path)
    old = load_bilm(source)
    assert old.config.softmax.type == "full"
    told = {"vocab__softmax": "sampled", "vocab__n_samples": 20}
    bilm, new = start(config_path, tmp_path, source, **told)
    assert not new and bilm.config.softmax.type == "sampled"
    assert bilm.config.softmax.n_samples == 20
    assert bilm.vocab == old.vocab
    for name, tensor in old.softmax.state_dict().items():
        assert bilm.softmax.state_dict()[name].equal(tensor)
    bilm, _ = start(config_path, tmp_path, source)  # vocab.softmax is "auto"
    assert bilm.config.softmax == old.config.softmax
    with pytest.raises(ValueError, match="expected the same, or 'auto'"):
        start(config_path, tmp_path, source, vocab__softmax="adaptive")


def test_models_of_elmoformanylangs(config_path, tmp_path):
    source = write_model(tmp_path / "cnn")
    bilm, new = start(config_path, tmp_path, source)
    assert new and bilm.vocab[:3] == SPECIAL
    train(
        config_path,
        tmp_path / "run",
        paths__initialize_from=str(source),
        training__max_steps=2,
    )
    assert load_bilm(tmp_path / "run" / "model-last").lexicon == bilm.lexicon


def test_encoder_that_mixes_words_is_refused(config_path, tmp_path):
    source = write_model(tmp_path / "lstm", token__name="lstm")
    assert not load_bilm(source).word_ids.fixed_boundaries
    with pytest.raises(
        ValueError, match="lstm: found an encoder whose vector of a word"
    ):
        start(config_path, tmp_path, source)


# A vocabulary that is kept or extended


def test_vocabulary_is_kept(config_path, tmp_path):
    source = pretrained(tmp_path)
    old = load_bilm(source)
    bilm, new = start(config_path, tmp_path, source)
    assert not new and bilm.vocab == old.vocab and "zog" not in bilm.vocab
    for name, tensor in old.state_dict().items():
        assert bilm.state_dict()[name].equal(tensor)


@pytest.mark.parametrize("softmax", ["full", "sampled"])
@pytest.mark.slow
def test_vocabulary_is_extended(config_path, tmp_path, softmax):
    settings = {"vocab__softmax": softmax, "vocab__n_samples": 20}
    source = pretrained(tmp_path, **settings)
    old = load_bilm(source)
    assert old.config.softmax.type == softmax
    settings.update(vocab__extend=True, vocab__max_words=150)
    bilm, new = start(config_path, tmp_path, source, **settings)
    assert not new and bilm.config.softmax.type == softmax
    n = len(old.vocab)
    assert bilm.vocab[:n] == old.vocab
    assert {"zog", "zig", "zag", "zeg"} <= set(bilm.vocab[n:])
    assert len(set(bilm.vocab)) == len(bilm.vocab) == bilm.softmax.n_words > n
    for name, tensor in old.state_dict().items():
        found = bilm.state_dict()[name]
        assert found[: len(tensor)].equal(tensor), name
        assert len(found) == (len(bilm.vocab) if "softmax" in name else len(tensor))
    assert bilm.softmax.weight[n:].abs().min() > 0
    assert bilm.softmax.bias[n:].unique().tolist() == [old.softmax.bias.median().item()]
    said, _ = train(
        config_path,
        tmp_path / "run",
        paths__initialize_from=str(source),
        **settings,
    )
    assert f"knows {len(bilm.vocab)} words; 0.00%" in said
    assert load_bilm(tmp_path / "run" / "model-last").vocab == bilm.vocab


def test_nothing_to_extend(config_path, tmp_path):
    source = pretrained(tmp_path)
    settings = {"vocab__extend": True, "vocab__max_words": 4}
    bilm, _ = start(config_path, tmp_path, source, **settings)
    known = load_bilm(source).vocab
    assert bilm.vocab[: len(known)] == known and len(bilm.vocab) <= len(known) + 1


@pytest.mark.parametrize("kinds", [("adaptive", "full"), ("full", "adaptive")])
def test_adaptive_softmax_cannot_be_extended(config_path, tmp_path, kinds):
    source = pretrained(tmp_path, vocab__softmax=kinds[0])
    settings = {"vocab__extend": True, "vocab__softmax": kinds[1]}
    with pytest.raises(ValueError, match="found an adaptive softmax"):
        start(config_path, tmp_path, source, **settings)


# A vocabulary that is given, and one that is chosen


@pytest.mark.slow
def test_vocabulary_is_given(config_path, tmp_path):
    words = ["</S>", "zog", "눈", "<UNK>", "ban", "<S>"]
    path = tmp_path / "vocab.txt"
    path.write_text("".join(word + "\n" for word in words))
    given = {"paths__output_vocab": str(path)}
    bilm, _ = start(config_path, tmp_path, **given)
    assert bilm.vocab == words and bilm.softmax.n_words == 6
    source = pretrained(tmp_path)
    bilm, new = start(config_path, tmp_path, source, **given)
    known = load_bilm(source).vocab
    assert not new and bilm.vocab[: len(known)] == known
    assert bilm.vocab[len(known) :] == [w for w in words if w not in known]
    train(config_path, tmp_path / "run", **given)
    assert load_bilm(tmp_path / "run" / "model-last").vocab == words


def test_given_vocabulary_without_boundaries(config_path, tmp_path):
    (tmp_path / "vocab.txt").write_text("zog\n<S>\n<UNK>\n")
    args = ["--paths.output_vocab", tmp_path / "vocab.txt"]
    done = call("pretrain", config_path, "--output", tmp_path / "run", *args)
    assert done.exit_code == 1
    assert "found no </S>; expected it among the words" in text(done)


def test_chosen_words(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("a a a a b b b <S> <S> c c d\n")
    corpus, _ = build(tmp_path / "corpus", path, tokenized=True)
    for max_words, min_count, expected in [
        (100, 1, ["a", "b", "c", "d"]),
        (100, 2, ["a", "b", "c"]),
        (5, 1, ["a", "b"]),
        (1, 1, []),
    ]:
        settings = VocabConfig(max_words=max_words, min_count=min_count)
        assert choose_words(corpus, settings) == SPECIAL + expected


@pytest.mark.parametrize(
    "kind, n_words, n_samples, expected",
    [
        ("auto", 100, 10, "full"),
        ("auto", initial_bilm.FULL_UP_TO + 1, 8192, "sampled"),
        ("full", initial_bilm.FULL_UP_TO + 1, 8192, "full"),
        ("sampled", 100, 10, "sampled"),
        ("sampled", 100, 100, "full"),
        ("sampled", 100, 8192, "full"),
        ("adaptive", 100, 8192, "adaptive"),
    ],
)
def test_kind_of_softmax(kind, n_words, n_samples, expected):
    settings = VocabConfig(softmax=kind, n_samples=n_samples)
    assert make_softmax_config(n_words, settings).type == expected


@pytest.mark.slow
def test_large_samples_train_a_full_softmax(config_path, tmp_path):
    train(config_path, tmp_path / "run", vocab__softmax="sampled")
    bilm = load_bilm(tmp_path / "run" / "model-last")
    assert bilm.config.softmax.type == "full"
    assert torch.isfinite(bilm.softmax.weight).all()


# Facts about the training


@pytest.mark.slow
def test_words_of_all_rounds_are_added_up(config_path, tmp_path):
    source, total = pretrained(tmp_path), 0
    for number in (1, 2):
        training = load_bilm(source).config.training
        total += training["words"]
        assert training["total_words"] == total > 0
        given = {"paths__initialize_from": str(source), "training__max_steps": 2}
        train(config_path, tmp_path / str(number), **given)
        source = tmp_path / str(number) / "model-last"
    # A run that is resumed counts the words before it once.
    train(
        config_path, tmp_path / "2", resume=True, **{**given, "training__max_steps": 3}
    )
    training = load_bilm(source).config.training
    assert training["total_words"] == total + training["words"]


def test_words_are_counted_once_in_a_run_that_starts_from_its_own_output(
    config_path, tmp_path
):
    run = tmp_path / "run"
    train(config_path, run, training__max_steps=2)
    source = run / "model-best"
    total = load_bilm(source).config.training["words"]
    given = {"paths__initialize_from": str(source), "training__max_steps": 2}
    train(config_path, run, overwrite=True, **given)
    train(config_path, run, resume=True, **{**given, "training__max_steps": 4})
    training = load_bilm(run / "model-last").config.training
    assert training["total_words"] == total + training["words"]
