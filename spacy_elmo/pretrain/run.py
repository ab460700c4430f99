"""From a config to a trained biLM."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from ..files import restore_folder
from ..text.text_files import find_files
from ..text.tokenizers import Tokenization
from .checkpoints import Checkpoints
from .corpus import Corpus, build_corpus, tell_troubles
from .perplexity import Perplexity, output_numbers
from .pretrain_config import PretrainConfig, Texts
from .progress import Console, JsonLog
from .ranks import Ranks
from .spacy_logger import SpacyLogger, find_logger
from .trainer import Progress, StepReport, Trainer
from .vocab import given_words, load_source, make_bilm


def pretrain(
    config: PretrainConfig,
    output: Path,
    *,
    device: str = "cpu",
    resume: bool = False,
    say: Callable[[str], None] = print,
) -> bool:
    """Train a biLM.

    output (Path): Gets model-best, model-last, checkpoints and log.jsonl.
    device (str): Where to train.
    resume (bool): Go on from the last checkpoint, if there is one.
    say (Callable[[str], None]): For what a person should know.
    RETURNS (bool): Whether it came to its end, and was not asked to stop before.
    """
    ranks = Ranks(torch.device(device))
    tell = say if ranks.first else (lambda text: None)
    check_precision(config.training.precision, device)
    check_inputs(config)
    resume = resume or ranks.attempt > 0
    corpus = open_corpus(config, output, ranks, tell)
    check_patience(config, len(corpus.dev.tokens) > 0)
    torch.manual_seed(config.training.seed)
    bilm, new_softmax = make_bilm(config, corpus)
    bilm = bilm.to(device)
    tell(describe_vocab(corpus, bilm.vocab or []))
    torch.manual_seed(config.training.seed + 1 + ranks.rank)
    log = JsonLog(output / "log.jsonl" if ranks.first else None)
    shown: Console | SpacyLogger = Console(tell)
    if config.logger and ranks.first:
        shown = SpacyLogger(config)

    def on_step(report: StepReport) -> None:
        log.step(report)
        if ranks.first:
            shown.step(report)

    def on_evaluation(progress: Progress, result: Perplexity) -> None:
        log.evaluation(progress, result)
        if ranks.first:
            shown.evaluation(progress, result)

    trainer = Trainer(
        config,
        bilm,
        corpus,
        output,
        ranks,
        new_softmax=new_softmax,
        on_step=on_step,
        on_evaluation=on_evaluation,
    )
    if ranks.first:
        clear(output, resume, config.paths.initialize_from, tell)
    ranks.wait()
    if resume and trainer.resume(tell):
        tell(f"Going on from step {trainer.progress.step:,}")
    elif resume:
        tell(f"Found no checkpoint in {output}: starting from the beginning")
    log.begin(trainer.progress.step, config)
    trainer.run()
    ranks.close()
    shown.close()
    if trainer.stopping:
        tell(f"Stopped at step {trainer.progress.step:,}; --resume goes on from here")
    else:
        tell(f"Done: {output / 'model-last'}")
    return not trainer.stopping


def check_inputs(config: PretrainConfig) -> None:
    """Find what is wrong before the text is read, which may take hours."""
    find_files(as_list(config.paths.raw_text))
    dev_files = find_files(as_list(config.paths.dev_text))
    check_patience(config, bool(dev_files or config.corpus.dev_share))
    given_words(config)
    if config.paths.initialize_from is not None:
        load_source(config, config.paths.initialize_from)
    if config.logger:
        find_logger(config)


def check_patience(config: PretrainConfig, holds_out: bool) -> None:
    if not holds_out and not config.training.has_hard_limit:
        raise ValueError(
            "training.patience is the only limit and no text is held out to measure "
            "on; set paths.dev_text, or another limit such as training.max_epochs"
        )


def clear(
    output: Path, resume: bool, source: str | None, tell: Callable[[str], None]
) -> None:
    """Remove what must not be taken for something of this run.

    source (str | None): A biLM to go on from, which is left alone.
    """
    checkpoints = Checkpoints(output / "checkpoints")
    checkpoints.clear_parts()
    models = [output / name for name in ("model-best", "model-last")]
    for model in models:
        restore_folder(model)
    if resume:
        return
    if checkpoints.steps():
        tell(f"Starting anew: the checkpoints of an earlier run in {output} are gone")
        checkpoints.clear()
    path = Path(source or "").resolve()
    for model in models:
        if model.resolve() not in (path, *path.parents):
            shutil.rmtree(model, ignore_errors=True)


def open_corpus(
    config: PretrainConfig, output: Path, ranks: Ranks, tell: Callable[[str], None]
) -> Corpus:
    settings = config.corpus
    folder = Path(settings.folder) if settings.folder else output / "corpus"
    tokenization = Tokenization(settings.lang, settings.tokenizer, settings.tokenized)
    tokenization = tokenization.or_rules(tell)
    settings.tokenizer = tokenization.tokenizer  # the model is to know it

    def build() -> Corpus:
        corpus, new = build_corpus(
            as_list(config.paths.raw_text),
            folder,
            tokenization=tokenization,
            dev_text=as_list(config.paths.dev_text),
            dev_share=settings.dev_share,
            n_process=settings.n_process or os.cpu_count() or 1,
        )
        meta = corpus.meta
        tell(
            f"{'Prepared' if new else 'Found prepared'}: {meta['train']['n_words']:,} "
            f"words to train on in {meta['train']['n_documents']:,} documents, "
            f"{meta['dev']['n_words']:,} held out, {meta['n_distinct']:,} distinct"
        )
        tell_troubles(meta["troubles"], tell)
        return corpus

    # The first process writes it, then the others find it.
    corpus = build() if ranks.first else None
    ranks.wait()
    return corpus or Corpus(folder)


def as_list(texts: Texts) -> list[str]:
    if not texts:
        return []
    return [texts] if isinstance(texts, str) else texts


def describe_vocab(corpus: Corpus, vocab: list[str]) -> str:
    outputs, _, unknown = output_numbers(corpus.words, vocab)
    n_unknown = int(corpus.counts[outputs[1:] == unknown].sum())
    share = n_unknown / max(1, int(corpus.counts.sum()))
    return f"The softmax knows {len(vocab):,} words; {share:.2%} of the text is unknown"


def check_precision(precision: str, device: str) -> None:
    """One sentence where the device has no arithmetic of this kind."""
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


def read_log(path: Path) -> list[dict[str, Any]]:
    """RETURNS (list[dict[str, Any]]): The entries of a log.jsonl."""
    return [json.loads(line) for line in path.read_text("utf8").splitlines()]
