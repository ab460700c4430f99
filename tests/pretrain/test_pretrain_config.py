"""The config of a pretraining: defaults, errors, and the configs of the repository."""

import math
from pathlib import Path

import pytest

from spacy_elmo.pretrain.pretrain_config import PretrainConfig, Section, load_config

CONFIGS = sorted((Path(__file__).parents[2] / "configs").glob("pretrain_*.cfg"))


@pytest.mark.parametrize(
    "key, value, expected",
    [
        ("training.step", 3, "training.step is not a setting; expected one of"),
        ("extra.key", 3, "extra is not a setting"),
        ("training.optimizer.lr", 0.1, "training.optimizer.lr is not a setting"),
        ("training.max_steps", "many", "training.max_steps is 'many'; expected int"),
        ("training.max_steps", 1.5, "training.max_steps is 1.5; expected int"),
        ("training.dropout", "0.1", "training.dropout is '0.1'; expected float"),
        ("training.carry_state", 1, "training.carry_state is 1; expected bool"),
        ("paths.raw_text", 3, "paths.raw_text is 3; expected str or"),
        ("paths.dev_text", ["a", 3], "paths.dev_text is"),
        ("training.optimizer", 3, "training.optimizer is 3; expected a section"),
        (
            "training.optimizer.name",
            "sgd",
            "training.optimizer.name is 'sgd'",
        ),
        ("training.schedule.decay", "steep", "training.schedule.decay is 'steep'"),
        ("training.precision", "int8", "training.precision is 'int8'; expected one of"),
        ("vocab.softmax", "half", "vocab.softmax is 'half'; expected one of auto"),
        ("training.batch_size", 0, "training.batch_size is 0; expected 1 or more"),
        ("training.window", -1, "training.window is -1; expected 1 or more"),
        ("vocab.n_samples", 0, "vocab.n_samples is 0; expected 1 or more"),
        ("training.max_steps", -1, "training.max_steps is -1; expected 0 or more"),
        ("training.dropout", 1.0, "training.dropout is 1.0; expected"),
        ("training.clip_norm", -1.0, "training.clip_norm is -1.0; expected 0 or more"),
        ("training.seed", -1, "training.seed is -1; expected 0 or more"),
        ("training.checkpoint_minutes", -1.0, "training.checkpoint_minutes is -1.0;"),
        ("training.warmup_softmax_steps", -1, "training.warmup_softmax_steps is -1;"),
        *[
            (f"training.optimizer.{key}", value, f"training.optimizer.{key} is {value}")
            for key, value in [
                ("learn_rate", 0.0),
                ("learn_rate", -0.1),
                ("learn_rate", math.nan),
                ("beta1", 1.0),
                ("beta2", -0.1),
                ("epsilon", 0.0),
                ("initial_accumulator", 0.0),
                ("weight_decay", -0.1),
            ]
        ],
        *[
            (
                f"training.optimizer.{key}",
                1e300,
                f"training.optimizer.{key} is 1e+300; expected more than 0 and at most "
                "1e+30",
            )
            for key in ("learn_rate", "initial_accumulator")
        ],
        ("training.schedule.final_share", 1.5, "training.schedule.final_share is 1.5"),
        ("training.schedule.warmup_steps", -1, "training.schedule.warmup_steps is -1"),
        ("corpus.n_process", -1, "corpus.n_process is -1; expected 0 to 1024"),
        ("corpus.n_process", 10**18, "corpus.n_process is 1000000000000000000;"),
        ("training.accumulate", 10**18, "training.accumulate is 1000000000000000000;"),
        *[
            (key, math.inf, f"{key} is inf; expected a finite number")
            for key in [
                "training.max_minutes",
                "training.checkpoint_minutes",
                "training.clip_norm",
                "training.optimizer.weight_decay",
            ]
        ],
        ("vocab.max_words", 0, "vocab.max_words is 0; expected 1 or more"),
        ("vocab.min_count", -1, "vocab.min_count is -1; expected 0 or more"),
        ("corpus.dev_share", -0.1, "corpus.dev_share is -0.1; expected"),
        ("training.max_steps", 0, "training has no limit; set one of max_steps"),
        ("paths.raw_text", None, "paths.raw_text is not set"),
        ("paths.raw_text", [], "paths.raw_text is not set"),
        ("model.lstm.dim", 0, "model: 'dim' is 0; expected a whole number"),
        ("model.lstm.width", 3, "model: "),
    ],
)
def test_errors_name_the_key(config_path, key, value, expected):
    with pytest.raises(ValueError) as caught:
        load_config(config_path, {key: value})
    assert str(caught.value).startswith(expected)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("key", ["training.dropout", "model.encoder.activation"])
def test_a_long_value_is_shortened(config_path, key):
    with pytest.raises(ValueError) as caught:
        load_config(config_path, {key: 10**300})
    assert len(str(caught.value)) < 200


def test_every_setting_is_explained():
    def check(section):
        for field in section.model_fields.values():
            if isinstance(field.annotation, type) and issubclass(
                field.annotation, Section
            ):
                check(field.annotation)
            else:
                assert field.description

    check(PretrainConfig)


def test_an_int_is_taken_for_a_float(config_path):
    config = load_config(config_path, {"training.clip_norm": 5})
    assert type(config.training.clip_norm) is float


def test_null_is_what_the_config_says(config_path):
    """A spaCy project passes null for variables that are not set."""
    given = load_config(config_path, {"training.max_minutes": 7})
    null = dict.fromkeys(["training.max_minutes", "model.lstm.dim"])
    assert given.training.max_minutes == 7
    assert load_config(config_path, null) == load_config(config_path, {})


def test_config_that_cannot_be_read(tmp_path):
    for name, data in (("nowhere.cfg", None), ("broken.cfg", "no section")):
        if data is not None:
            (tmp_path / name).write_text(data)
        with pytest.raises(ValueError, match=f"{name}: cannot be read as a config"):
            load_config(tmp_path / name, {})


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_config_of_the_repository(path):
    with pytest.raises(ValueError, match=r"^paths\.raw_text is not set"):
        load_config(path, {})
    config = load_config(path, {"paths.raw_text": "text.txt"})
    assert config.bilm_config().softmax is None
    assert len(CONFIGS) >= 4


def test_recipe_of_the_paper():
    path = next(path for path in CONFIGS if "original" in path.name)
    config = load_config(path, {"paths.raw_text": "text.txt"})
    training, sizes = config.training, config.bilm_config()
    assert (sizes.lstm.dim, sizes.lstm.projection_dim, sizes.lstm.n_layers) == (
        (4096, 512, 2)
    )
    assert (sizes.encoder.n_features, sizes.encoder.n_highway) == (2048, 2)
    assert (training.optimizer.name, training.optimizer.learn_rate) == ("adagrad", 0.2)
    assert (training.batch_size, training.window, training.dropout) == (128, 20, 0.1)
    assert (training.clip_norm, training.max_epochs) == (10.0, 10)
    assert (config.vocab.softmax, config.vocab.n_samples) == ("sampled", 8192)
    assert training.sum_over_window and training.carry_state


def test_values_of_sections_that_the_file_leaves_out(config_path):
    config = load_config(config_path, {"training.schedule.decay": "linear"})
    assert config.training.schedule.decay == "linear"
    assert config.training.max_steps == 12


# Without a config


@pytest.mark.parametrize(("lang", "name"), [("fi", "small"), ("ko", "ko")])
def test_defaults_suit_the_language(lang, name):
    given = {"paths.raw_text": "x", "corpus.lang": lang, "training.seed": 3}
    (path,) = (path for path in CONFIGS if path.stem == f"pretrain_{name}")
    assert load_config(None, given) == load_config(path, given)
    assert load_config(None, {"paths.raw_text": "x"}).corpus.lang == "xx"
    with pytest.raises(ValueError, match="paths.raw_text is not set"):
        load_config(None, {})
