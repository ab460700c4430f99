"""Resume from a checkpoint that was written with another config."""

from dataclasses import replace

import pytest
from helpers.pretraining import (
    CONFIG,
    change_facts,
    run_training,
)

from spacy_elmo.pretrain.pretrain_config import load_config
from spacy_elmo.pretrain.trainer import Trainer

FILES = ("weights.safetensors", "softmax.safetensors")


def forget_run(output):
    """Remove the facts of checkpoints that older versions did not store."""
    for path in output.glob("checkpoints/*/facts.json"):
        change_facts(path, lambda facts: facts.pop("run"))


@pytest.mark.parametrize("old", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "key, found, other",
    [
        ("model.lstm.dim", 16, 32),
        ("model.lstm.n_layers", 2, 3),
        ("model.encoder.n_highway", 1, 2),
        ("training.optimizer.name", "adamw", "adagrad"),
        ("vocab.softmax", "full or sampled", "adaptive"),
    ],
)
def test_another_model_or_optimizer_is_refused(
    config_path, tmp_path, key, found, other, old
):
    run_training(config_path, tmp_path / "run", training__max_steps=2)
    if old:
        forget_run(tmp_path / "run")
    with pytest.raises(ValueError) as caught:
        run_training(config_path, tmp_path / "run", resume=True, **{key: other})
    said = str(caught.value)
    assert "\n" not in said and "expected" in said
    expected = f"found a checkpoint with {key} = {found!r}; expected {other!r}"
    assert ("another model or optimizer" if old else expected) in said


@pytest.mark.parametrize("softmax", ["full", "sampled"])
def test_full_and_sampled_softmax_go_on_from_each_other(config_path, tmp_path, softmax):
    other = {"full": "sampled", "sampled": "full"}[softmax]
    settings = {"vocab__n_samples": 20, "training__max_steps": 2}
    run_training(config_path, tmp_path / "run", vocab__softmax=other, **settings)
    settings["training__max_steps"] = 3
    said = run_training(
        config_path, tmp_path / "run", resume=True, vocab__softmax=softmax, **settings
    )
    assert "Continuing from step 2" in said


@pytest.fixture
def resumed(monkeypatch):
    """Return a list that gets the resumed trainer, and its progress and LSTM states
    at that moment."""
    found = []
    real = Trainer.resume

    def resume(trainer, say):
        done = real(trainer, say)
        found.extend([trainer, replace(trainer.progress), trainer.state.h.clone()])
        return done

    monkeypatch.setattr(Trainer, "resume", resume)
    return found


@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize(
    "key, found, other",
    [
        ("training.batch_size", 4, 8),
        ("training.batch_size", 4, 2),
        ("training.window", 6, 12),
        ("training.window", 6, 3),
    ],
)
@pytest.mark.slow
def test_other_streams_go_on_at_the_same_place(
    config_path, tmp_path, resumed, key, found, other, old
):
    run_training(config_path, tmp_path / "run", training__max_steps=11)
    if old:
        forget_run(tmp_path / "run")
    settings = {key: other, "training.max_steps": 60}
    said = run_training(config_path, tmp_path / "run", resume=True, **settings)
    trainer, progress, h = resumed
    n_read = 11 * 4 * 6
    n_window = trainer.config.batch_size * trainer.config.window
    assert (progress.step, progress.epoch) == (11, 0)
    if old and key == "training.window":  # the old window is unknown
        assert progress.window == 11
    else:
        assert progress.window == n_read // n_window
        assert not h.any()
        assert (
            f"written with {key} = {found} and this run has {other}: LSTM "
            "states start from zero" in said
        )
    assert trainer.progress.epoch > 0
    assert trainer.progress.window < trainer.epochs.n_windows


@pytest.mark.slow
def test_a_place_after_the_end_of_an_epoch_is_its_end(config_path, tmp_path, resumed):
    """If the window was smaller before, a checkpoint of an older version can name a
    window that the epoch no longer has."""
    run_training(config_path, tmp_path / "run", training__max_steps=11)
    forget_run(tmp_path / "run")
    for path in (tmp_path / "run").glob("checkpoints/*/facts.json"):
        change_facts(path, lambda facts: facts["progress"].update(window=10**6))
    run_training(config_path, tmp_path / "run", resume=True)
    trainer, progress, _ = resumed
    assert progress.window == trainer.epochs.n_windows - 1
    assert (trainer.progress.epoch, trainer.progress.window) == (1, 0)
    trainer.progress.window = 10**6
    trainer.advance()
    assert (trainer.progress.epoch, trainer.progress.window) == (2, 0)


@pytest.mark.slow
def test_another_vocabulary_is_refused(config_path, tmp_path):
    run_training(config_path, tmp_path / "run")
    with pytest.raises(ValueError, match="another vocabulary"):
        run_training(config_path, tmp_path / "run", resume=True, vocab__max_words=30)


def test_config_for_tests_is_complete(config_path):
    assert CONFIG.strip()
    assert load_config(config_path, {}).training.max_steps == 12
