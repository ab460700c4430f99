"""Pretrain a biLM as a config says."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import spacy
import torch
from spacy.util import dict_to_dot

from ..about import __version__
from ..bilm.formats.native import VOCAB
from ..files import explain_errors, one_writer
from ..fingerprints import fingerprint_data
from ..results import LOG_NAME
from ..text.problems import say_problems
from ..text.text_files import find_files
from ..text.tokenizers import Tokenization
from .corpus import Corpus, build_corpus
from .corpus_writer import WORDS
from .initial_bilm import load_initial_bilm, make_bilm
from .perplexity import Perplexity
from .pretrain_config import PretrainConfig, Texts
from .progress import Console, JsonLog
from .ranks import Ranks
from .run_folder import RunFolder
from .spacy_logger import SpacyLogger, find_logger
from .trainer import Trainer
from .training_progress import Progress, StepReport
from .vocab import load_given_words, softmax_numbers


def pretrain(
    config: PretrainConfig,
    output: Path,
    *,
    device: str = "cpu",
    resume: bool = False,
    overwrite: bool = False,
    say: Callable[[str], None] = print,
) -> bool:
    """Train a biLM. Raise ValueError if the output folder holds an earlier run, unless
    that is to be resumed or overwritten.

    config (PretrainConfig): The config.
    output (Path): The folder for model-best, model-last, checkpoints and log.jsonl.
    device (str): The device to train on, as torch names it.
    resume (bool): Continue from the last checkpoint, if there is one.
    overwrite (bool): Replace an earlier run as soon as this one has a checkpoint.
    say (Callable[[str], None]): Prints a line for the user.
    RETURNS (bool): Whether training has finished and was not stopped by a signal.
    """
    ranks = Ranks(torch.device(device))
    run = RunFolder(output)
    with ranks.together():
        check_precision(config.training.precision, device)
        if config.training.compile:
            check_compiler(device)
        check_inputs(config)
        check_places(config, output)
        facts = describe_inputs(config)
    ranks.check_same(facts)
    with ExitStack() as stack:
        with ranks.together():
            if ranks.first:
                resume = stack.enter_context(open_output(run, ranks, resume, overwrite))
        return run_training(config, run, ranks, resume, say if ranks.first else ignore)


@contextmanager
def open_output(
    run: RunFolder, ranks: Ranks, resume: bool, overwrite: bool
) -> Iterator[bool]:
    """Be the only run that writes to an output folder. Return whether to continue from
    its last checkpoint. The arguments are those of `pretrain`."""
    # torchrun starts processes again after an error: go on from what they have saved.
    again = ranks.attempt > 0
    output = run.output
    if output.exists() and not output.is_dir():
        raise ValueError(f"{output}: found a file; expected a folder to write to")
    with explain_errors(output):
        output.mkdir(parents=True, exist_ok=True)
    with one_writer(output):
        unfinished = again and overwrite and run.has_new_run()
        run.repair()
        run.check(resume=resume or again, overwrite=overwrite and not again)
        yield (resume or again) and not unfinished


def run_training(
    config: PretrainConfig,
    run: RunFolder,
    ranks: Ranks,
    resume: bool,
    say: Callable[[str], None],
) -> bool:
    """Train a biLM in a folder that has been checked. The arguments are those of
    `pretrain`. Only the `resume` of the first process counts."""
    corpus = open_corpus(config, run.output, ranks, say)
    check_patience(config, len(corpus.dev.tokens) > 0)
    torch.manual_seed(config.training.seed)
    bilm, new_softmax = make_bilm(config, corpus)
    ranks.check_same({"vocabulary of fingerprint": fingerprint_data(bilm.vocab)})
    bilm = bilm.to(ranks.device)
    say(describe_vocab(corpus, bilm.vocab or []))
    torch.manual_seed(config.training.seed + 1 + ranks.rank)
    log = JsonLog(None)
    to_spacy = config.logger and ranks.first
    shown = SpacyLogger(config) if to_spacy else Console(say)

    def on_step(report: StepReport) -> None:
        log.step(report)
        if ranks.first:
            shown.step(report)

    def on_evaluation(progress: Progress, result: Perplexity) -> None:
        log.evaluation(progress, result)
        if ranks.first:
            shown.evaluation(progress, result)

    def write_to_folder() -> None:
        trainer.output = run.path
        if ranks.first:
            log.path = run.path / LOG_NAME

    def on_checkpoint() -> None:
        log.save()
        run.replace(keep=config.paths.initialize_from)
        write_to_folder()

    trainer = Trainer(
        config,
        bilm,
        corpus,
        run.path,
        ranks,
        new_softmax=new_softmax,
        on_step=on_step,
        on_evaluation=on_evaluation,
        on_checkpoint=on_checkpoint,
    )
    if ranks.of_first(resume) and trainer.resume(say):
        say(f"Continuing from step {trainer.progress.step:,}")
    else:
        if resume:
            say(f"Found no checkpoint in {run.output}: starting from the beginning")
        if ranks.first and run.begin_new_run():
            say(f"The earlier run in {run.output} stays until this one is saved")
    write_to_folder()
    log.begin(trainer.progress.step, config)
    trainer.run()
    ranks.close()
    shown.close()
    if trainer.stopping:
        say(f"Stopped at step {trainer.progress.step:,}; --resume continues from here")
    else:
        say(f"Done: {run.output / 'model-last'}")
    return not trainer.stopping


def ignore(line: str) -> None:
    """Print nothing."""


def check_inputs(config: PretrainConfig) -> None:
    """Raise ValueError if files or settings are wrong. This is checked first, because
    tokenizing a text may take hours."""
    find_files(as_list(config.paths.raw_text))
    dev_files = find_files(as_list(config.paths.dev_text))
    check_patience(config, bool(dev_files or config.corpus.dev_share))
    load_given_words(config)
    if config.paths.initialize_from is not None:
        load_initial_bilm(config, config.paths.initialize_from)
    if config.logger:
        find_logger(config)


def check_places(config: PretrainConfig, output: Path) -> None:
    """Raise ValueError if files that a training writes would be read as text when it is
    resumed."""
    folders = [output.resolve()]
    if config.corpus.folder:
        folders.append(Path(config.corpus.folder).resolve())
    for text in as_list(config.paths.raw_text) + as_list(config.paths.dev_text):
        place = Path(text).resolve()
        around = any(place in (folder, *folder.parents) for folder in folders)
        written = (
            file
            for file in find_files([text])
            if file.name in (LOG_NAME, VOCAB, WORDS)
            and any(folder in file.resolve().parents for folder in folders)
        )
        if around or next(written, None):
            raise ValueError(
                f"{text}: found texts and a folder that the training writes to in one "
                "folder; expected --output and corpus.folder outside of it"
            )


def describe_inputs(config: PretrainConfig) -> dict[str, Any]:
    """Return what all processes of a run must have in common, by names for the user.
    The paths may differ, and the processes that tokenize."""
    facts = {
        "version of spacy-elmo": __version__,
        "version of torch": torch.__version__,
        "version of spaCy": spacy.__version__,
    }
    settings = json.loads(config.model_dump_json(exclude={"paths", "logger"}))
    facts.update(dict_to_dot(settings))
    del facts["corpus.n_process"], facts["corpus.folder"]
    for name in ("raw_text", "dev_text"):
        files = find_files(as_list(getattr(config.paths, name)))
        sizes = [[path.name, path.stat().st_size] for path in files]
        n_bytes = sum(path.stat().st_size for path in files)
        fingerprint = fingerprint_data(sizes)
        facts[f"paths.{name}"] = (
            f"{len(files)} files of {n_bytes:,} bytes (fingerprint {fingerprint})"
        )
    return facts


def check_patience(config: PretrainConfig, has_dev_text: bool) -> None:
    """Raise ValueError if training would never end.

    has_dev_text (bool): Whether there is text to evaluate on.
    """
    if not has_dev_text and not config.training.has_hard_limit:
        raise ValueError(
            "training.patience is the only limit, and there is no text to evaluate on; "
            "set paths.dev_text, or another limit such as training.max_epochs"
        )


def open_corpus(
    config: PretrainConfig, output: Path, ranks: Ranks, say: Callable[[str], None]
) -> Corpus:
    """Open the corpus of a config, which the processes write if necessary."""
    settings = config.corpus
    folder = Path(settings.folder) if settings.folder else output / "corpus"
    tokenization = Tokenization(
        settings.lang, settings.tokenizer, settings.tokenized, settings.encoding
    )
    tokenization = tokenization.or_rules(say)
    settings.tokenizer = tokenization.tokenizer  # to be saved with the model

    raw_text, dev_text = as_list(config.paths.raw_text), as_list(config.paths.dev_text)
    files = {path.resolve() for path in find_files(raw_text)}
    n_both = len(files & {path.resolve() for path in find_files(dev_text)})
    if n_both:
        say(
            f"paths.raw_text has {n_both} of the files of paths.dev_text: perplexities "
            "will be too low, because the text is also trained on"
        )
    n_local = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    n_process = (settings.n_process or os.cpu_count() or 1) // n_local
    corpus, new = build_corpus(
        raw_text,
        folder,
        tokenization=tokenization,
        dev_text=dev_text,
        dev_share=settings.dev_share,
        n_process=max(1, n_process),
        ranks=ranks,
        say=say,
    )
    ranks.check_same({"corpus of fingerprint": corpus.meta["fingerprint"]})
    meta = corpus.meta
    say(
        f"{'Tokenized' if new else 'Found the tokenized text'}: "
        f"{meta['train']['n_words']:,} words to train on in "
        f"{meta['train']['n_documents']:,} documents, {meta['dev']['n_words']:,} "
        f"words held out, {meta['n_distinct']:,} distinct words"
    )
    say_problems(corpus.problems, say)
    return corpus


def as_list(texts: Texts) -> list[str]:
    """Return names of texts as a list."""
    if not texts:
        return []
    return [texts] if isinstance(texts, str) else texts


def describe_vocab(corpus: Corpus, vocab: list[str]) -> str:
    """Return a sentence about how much of the text the softmax knows."""
    outputs, _, unknown = softmax_numbers(corpus.words, vocab)
    n_unknown = int(corpus.counts[outputs[1:] == unknown].sum())
    share = n_unknown / max(1, int(corpus.counts.sum()))
    return (
        f"The softmax knows {len(vocab):,} words; {share:.2%} of the words of the text "
        "are unknown"
    )


def check_precision(precision: str, device: str) -> None:
    """Raise ValueError if the device is slow or fails in this precision."""
    fits = precision == "float32"
    if device.startswith("cuda"):
        fits = fits or precision == "float16" or torch.cuda.is_bf16_supported()
    elif precision == "bfloat16":
        fits = torch.cpu._is_avx512_bf16_supported()
    if not fits:
        raise ValueError(
            f"training.precision is {precision} and the device, {device}, has no fast "
            "arithmetic for it; expected float32"
        )
    if precision == "bfloat16" and device == "cpu" and not survives_bfloat16():
        raise ValueError(
            "training.precision is bfloat16 and this machine kills programs that use "
            "its AMX unit, as some virtual machines do; set the environment variable "
            "ONEDNN_MAX_CPU_ISA to AVX512_CORE_BF16, or use float32"
        )


def survives_bfloat16() -> bool:
    """Return whether a product in bfloat16 works. Another process tries it, because a
    process that tries it may be killed."""
    code = "import torch; x = torch.ones(64, 64, dtype=torch.bfloat16); x @ x"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True)
    return done.returncode == 0


def check_compiler(device: str) -> None:
    """Raise ValueError if torch cannot compile for the device."""
    try:
        torch.compile(lambda x: x * 2 + 1)(torch.ones(2, device=device))
    except Exception as error:  # depends on what is missing
        reason = str(error).splitlines()[0]
        raise ValueError(
            f"training.compile is true and torch cannot compile for the device, "
            f"{device} ({reason}); set it to false"
        ) from None
