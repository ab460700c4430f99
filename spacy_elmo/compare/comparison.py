"""Run a comparison: train all variants, and write the table."""

import copy
import statistics
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from thinc.api import Config

from ..results import (
    METRICS,
    ComparisonResult,
    DataSize,
    RunResult,
    Speed,
    find_metrics,
)
from .config_pair import ConfigPair
from .markdown import format_markdown
from .options import Options
from .output_folder import OutputFolder
from .shares import load_training_docs, write_share
from .summarize import summarize_runs
from .training_run import TrainingRun, plan_runs
from .variants import (
    VARIANTS,
    VECTORS,
    WHOLE,
    default_share_variants,
    find_variants,
)
from .worker_pool import Job, WorkerPool


class Comparison:
    """Trains all variants and writes the table. A result of an earlier call is used
    again if the fingerprint of its run has not changed (see `training_run`).

    pair (ConfigPair): The configs.
    options (Options): The options of the `compare` command.
    output (Path): The output folder.
    say (Callable[[str], None]): Prints a line.
    """

    def __init__(
        self,
        pair: ConfigPair,
        options: Options,
        output: Path,
        say: Callable[[str], None],
    ) -> None:
        self.pair = pair
        self.options = options
        self.folder = OutputFolder(output, say)
        self.say = say
        names = options.variants
        if names is None:
            possible = {VECTORS: pair.has_vectors, WHOLE: pair.has_smaller_cnn}
            names = [name for name in VARIANTS if possible.get(name, True)]
        elif pair.gives_vectors:
            names = [*names, VECTORS]
        share_variants = options.share_variants or default_share_variants(names)
        find_variants(share_variants)  # raises an error if a name is unknown
        others = [name for name in share_variants if name not in names]
        if others:
            raise ValueError(
                f"found {others[0]!r} among --share-variants; expected some of the "
                f"variants that are trained: {', '.join(names)}"
            )
        self.shares = sorted(options.shares, reverse=True)
        self.runs = plan_runs(
            pair, find_variants(names), options.seeds, self.shares, share_variants
        )
        if not self.runs:
            raise ValueError(
                "found no variant to train with these shares; expected --share-variants"
            )
        self.results: dict[str, RunResult] = {}

    def compare(self) -> ComparisonResult:
        """Run the comparison, and return the table as it is in compare.json. Raise
        WriteError if another process runs a comparison in the same folder."""
        with self.folder.written_by_one():
            return self._compare()

    def _compare(self) -> ComparisonResult:
        self._load_results()
        sizes = self._write_shares()
        remaining = [run for run in self.runs if run.name not in self.results]
        if remaining:
            self._train(remaining)
        table = ComparisonResult(
            kind="compare",
            title=self.options.title or self.folder.path.resolve().name,
            task=self.pair.task,
            metrics=self._find_metrics(),
            shares=self.shares,
            data=sizes,
            variants=summarize_runs(self.runs, self.results, self._measure_speed()),
        )
        markdown = format_markdown(table)
        self.folder.write_table(table, markdown)
        self.folder.clean_up(
            self.runs,
            self.pair.elmo_info.fingerprint,
            keep_models=self.options.keep != "none",
        )
        self.say(f"\n{markdown}")
        return table

    def _load_results(self) -> None:
        """Load the results of earlier calls. Print which versions have changed, because
        the user may not expect that trainings are repeated."""
        changed: set[str] = set()
        for run in self.runs:
            result = self.folder.load_result(run)
            if result is None:
                continue
            if result.fingerprint == run.fingerprint:
                self.results[run.name] = result
                continue
            changed.update(
                f"{name} {old or 'missing'} -> {new or 'missing'}"
                for name in {**result.versions, **run.versions}
                if (old := result.versions.get(name)) != (new := run.versions.get(name))
            )
        if changed:
            self.say(
                "Repeating trainings that were done with other versions "
                f"({', '.join(sorted(changed))})"
            )
        if self.results:
            self.say(
                f"{len(self.results)} of {len(self.runs)} runs are already trained"
            )

    def _find_metrics(self) -> list[str]:
        """Return the names of the scores to compare. Raise ValueError if there are
        none, as soon as the first training has finished."""
        metrics = find_metrics([result.scores for result in self.results.values()])
        if not metrics:
            raise ValueError(
                f"{self.pair.dev}: found none of the scores that are compared, in all "
                f"pipelines; expected one of {', '.join(METRICS.values())}"
            )
        return metrics

    # Training

    def _train(self, runs: list[TrainingRun]) -> None:
        n_process = min(self.options.n_process, len(runs))
        gpu_id = self.options.gpu_id
        with WorkerPool(n_process, self.folder.logs, gpu_id) as pool:
            self._compute_layers(pool, runs, n_process)
            jobs = [self._make_training_job(run) for run in runs]
            remaining = list(runs)
            for index, trained in pool.do_jobs(jobs):
                run = runs[index]
                remaining.remove(run)
                result = RunResult(
                    fingerprint=run.fingerprint,
                    versions=run.versions,
                    variant=run.variant.name,
                    share=run.share,
                    seed=run.seed,
                    **trained,
                )
                self.results[run.name] = self.folder.write_result(run, result)
                self._find_metrics()
                self._print_progress(run, remaining, n_process)

    def _make_training_job(self, run: TrainingRun) -> Job:
        config, restore = self._prepare_config(run)
        keep = None
        # The speed of each variant is measured with the pipeline of the first seed.
        if self.options.keep == "all" or run.seed == self.options.seeds[0]:
            keep = str(self.folder.model(run))
        arguments = {
            "config": config.to_str(),
            "folder": str(self.folder.work(run)),
            "keep": keep,
            "restore": restore,
            "gpu_id": self.options.gpu_id,
        }
        return Job(run.name, "train", arguments)

    def _prepare_config(
        self, run: TrainingRun, *, all_data: bool = False
    ) -> tuple[Config, dict[str, Any]]:
        """Copy the config of a run, and set the path of the training data and the cache
        of layers in the copy.

        all_data (bool): Whether to use all data instead of the share of the run.
        RETURNS (tuple): The config to train with, and the original values of the cache
            settings, by component, for the pipeline that is kept.
        """
        config = copy.deepcopy(run.config)
        if run.share < 1 and not all_data:
            section: Any = config
            for part in config["training"]["train_corpus"].split("."):
                section = section[part]
            section["path"] = str(self._share_path(run.share))
        if not self._uses_cache(run):
            return config, {}
        name = self.pair.elmo_info.name
        settings = config["components"][name]
        restore = {
            "cache_layers": settings.get("cache_layers", "training"),
            "cache_folder": settings.get("cache_folder"),
        }
        settings["cache_layers"] = "always"
        if settings.get("cache_folder") is None:
            settings["cache_folder"] = str(self.folder.layers)
        return config, {name: restore}

    def _compute_layers(
        self, pool: WorkerPool, runs: Sequence[TrainingRun], n_process: int
    ) -> None:
        """Compute the layers of all texts once, for all runs."""
        run = next((run for run in runs if self._uses_cache(run)), None)
        if run is None:
            return
        self.say("Computing the layers of all texts ...")
        config, _ = self._prepare_config(run, all_data=True)
        config["components"][self.pair.elmo_info.name]["cache_memory_mb"] = 0
        jobs = [
            Job(
                f"layers-{part}",
                "layers",
                {"config": config.to_str(), "part": part, "n_parts": n_process},
            )
            for part in range(n_process)
        ]
        n_words = sum(number for _, number in pool.do_jobs(jobs))
        self.say(f"Computed the layers of {n_words:,} words")

    def _uses_cache(self, run: TrainingRun) -> bool:
        return run.variant.where is not None and self.pair.elmo_info.frozen

    def _print_progress(
        self, run: TrainingRun, remaining: Sequence[TrainingRun], n_process: int
    ) -> None:
        result = self.results[run.name]
        scores = ", ".join(
            f"{metric} {100 * result.scores[metric]:.2f}"
            for metric in find_metrics([result.scores])
        )
        n_done = len(self.runs) - len(remaining)
        time = format_time(result.seconds)
        line = f"[{n_done}/{len(self.runs)}] {run}: {scores} ({time})"
        if remaining:
            left = sum(self._estimate_seconds(other) for other in remaining)
            line += f"; about {format_time(left / n_process)} left"
        self.say(line)

    def _estimate_seconds(self, run: TrainingRun) -> float:
        """Estimate the seconds that a run will take, from the finished runs that are
        most similar to it."""
        finished = [other for other in self.runs if other.name in self.results]
        same_share = [other for other in finished if other.share == run.share]
        same = [other for other in same_share if other.variant == run.variant]
        similar = same or same_share or finished
        return statistics.fmean(self.results[other.name].seconds for other in similar)

    # Speed

    def _measure_speed(self) -> dict[str, float]:
        """Measure the speed of each variant, with one trained pipeline, when all
        trainings are finished.

        RETURNS (dict[str, float]): Words per second, by the name of the run.
        """
        speeds = self.folder.load_speeds()
        runs = [
            run
            for run in self.runs
            if run.share == self.shares[0] and run.seed == self.options.seeds[0]
        ]
        known = {
            run.name
            for run in runs
            if run.name in speeds and speeds[run.name].fingerprint == run.fingerprint
        }
        if len(known) < len(runs):
            speeds = {}
            kept = [run for run in runs if self.folder.model(run).exists()]
            if kept:
                self.say("Measuring the speed of the trained pipelines ...")
                arguments = {
                    "config": kept[0].config.to_str(),
                    "models": [str(self.folder.model(run)) for run in kept],
                }
                job = Job("speed", "speed", arguments)
                with WorkerPool(1, self.folder.logs, self.options.gpu_id) as pool:
                    [(_, rates)] = pool.do_jobs([job])
                for run, rate in zip(kept, rates):
                    speeds[run.name] = Speed(
                        fingerprint=run.fingerprint, words_per_second=rate
                    )
                self.folder.write_speeds(speeds)
        return {name: speed.words_per_second for name, speed in speeds.items()}

    # Data

    def _write_shares(self) -> list[DataSize]:
        docs = load_training_docs(self.pair.train)
        sizes = []
        for share in self.shares:
            n_docs, n_words = write_share(docs, share, self._share_path(share))
            sizes.append(DataSize(share=share, docs=n_docs, words=n_words))
        return sizes

    def _share_path(self, share: float) -> Path:
        return self.folder.share(self.pair.train_fingerprint, share)


def format_time(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))
