"""A comparison, from two configs to one table."""

import copy
import statistics
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from thinc.api import Config

from .data import read_docs, write_share
from .folder import Folder
from .markdown import to_markdown
from .options import Options
from .plan import Pair, Run, make_runs
from .rows import find_metrics, make_rows
from .variants import VARIANTS, VECTORS, WHOLE, find_variants, share_variants
from .workers import Job, Workers


class Comparison:
    """Trains what is not there from an earlier call, and makes the table.

    pair (Pair): The configs.
    options (Options): How to compare.
    output (Path): The folder.
    say (Callable[[str], None]): Called with lines for people.
    """

    def __init__(
        self, pair: Pair, options: Options, output: Path, say: Callable[[str], None]
    ) -> None:
        self.pair = pair
        self.options = options
        self.folder = Folder(output)
        self.say = say
        names = options.variants
        if names is None:
            possible = {VECTORS: pair.has_vectors, WHOLE: pair.leaves_out}
            names = [name for name in VARIANTS if possible.get(name, True)]
        elif pair.gives_vectors:
            names = [*names, VECTORS]
        in_part = options.share_variants or share_variants(names)
        find_variants(in_part)  # or say what is wrong with them
        self.shares = sorted(options.shares, reverse=True)
        self.runs = make_runs(
            pair, find_variants(names), options.seeds, self.shares, in_part
        )
        if not self.runs:
            raise ValueError(
                "no variant was to run with these shares; expected --share-variants"
            )
        self.results: dict[str, dict[str, Any]] = {}

    def compare(self) -> dict[str, Any]:
        """RETURNS (dict[str, Any]): What is in compare.json."""
        for run in self.runs:
            result = self.folder.read(run)
            if result is not None:
                self.results[run.name] = result
        sizes = self._write_shares()
        todo = [run for run in self.runs if run.name not in self.results]
        if self.results:
            self.say(f"{len(self.results)} of {len(self.runs)} runs are there already")
        if todo:
            self._train(todo)
        compared = {
            "kind": "compare",
            "title": self.options.title or self.folder.path.resolve().name,
            "task": self.pair.task,
            "metrics": self._metrics(),
            "shares": self.shares,
            "data": sizes,
            "variants": make_rows(self.runs, self.results, self._measure_speed()),
        }
        text = to_markdown(compared)
        self.folder.write_table(compared, text)
        self.folder.clean_up(
            self.runs,
            self.pair.facts.fingerprint,
            keep_models=self.options.keep != "none",
        )
        self.say(f"\n{text}")
        return compared

    # Training

    def _train(self, todo: list[Run]) -> None:
        n_process = min(self.options.n_process, len(todo))
        gpu_id = self.options.gpu_id
        with Workers(n_process, self.folder.logs, gpu_id) as workers:
            self._compute_layers(workers, todo, n_process)
            jobs = [self._train_job(run) for run in todo]
            missing = list(todo)
            for number, result in workers.do(jobs):
                run = todo[number]
                missing.remove(run)
                self.results[run.name] = self.folder.write(run, result)
                self._report(run, missing, n_process)

    def _train_job(self, run: Run) -> Job:
        config, restore = self._prepare(run)
        keep = None
        # One of each is needed for its speed.
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

    def _prepare(self, run: Run) -> tuple[Config, dict[str, Any]]:
        """RETURNS (tuple): The config to train with, and those settings of components
        that are for this comparison only, as they were."""
        config = copy.deepcopy(run.config)
        if run.share < 1:
            section: Any = config
            for part in config["training"]["train_corpus"].split("."):
                section = section[part]
            section["path"] = str(self._share_path(run.share))
        if not self._has_cache(run):
            return config, {}
        settings = config["components"][self.pair.facts.name]
        restore = {
            "cache_layers": settings.get("cache_layers", "training"),
            "cache_folder": settings.get("cache_folder"),
        }
        settings["cache_layers"] = "always"
        if settings.get("cache_folder") is None:
            settings["cache_folder"] = str(self.folder.layers)
        return config, {self.pair.facts.name: restore}

    def _compute_layers(
        self, workers: Workers, todo: Sequence[Run], n_process: int
    ) -> None:
        """Once for all runs, whatever their number."""
        run = next((run for run in todo if self._has_cache(run)), None)
        if run is None:
            return
        self.say("Computing the layers of all texts ...")
        whole = Run(run.variant, 1.0, run.seed, run.config, run.key)
        config, _ = self._prepare(whole)
        config["components"][self.pair.facts.name]["cache_memory_mb"] = 0
        jobs = [
            Job(
                f"layers-{part}",
                "layers",
                {"config": config.to_str(), "part": part, "n_parts": n_process},
            )
            for part in range(n_process)
        ]
        n_words = sum(number for _, number in workers.do(jobs))
        self.say(f"Layers of {n_words:,} words are there")

    def _has_cache(self, run: Run) -> bool:
        return run.variant.where is not None and self.pair.facts.frozen

    def _report(self, run: Run, missing: Sequence[Run], n_process: int) -> None:
        result = self.results[run.name]
        scores = ", ".join(
            f"{metric} {100 * result['scores'][metric]:.2f}"
            for metric in find_metrics([result["scores"]])
        )
        done = len(self.runs) - len(missing)
        line = f"[{done}/{len(self.runs)}] {run}: {scores} ({clock(result['seconds'])})"
        if missing:
            left = sum(self._guess(other) for other in missing) / n_process
            line += f"; about {clock(left)} left"
        self.say(line)

    def _guess(self, run: Run) -> float:
        """RETURNS (float): Seconds, by the runs most like this one."""
        done = [other for other in self.runs if other.name in self.results]
        same_share = [other for other in done if other.share == run.share]
        same = [other for other in same_share if other.variant == run.variant]
        like = same or same_share or done
        return statistics.fmean(self.results[o.name]["seconds"] for o in like)

    # Speed

    def _measure_speed(self) -> dict[str, float]:
        """RETURNS (dict[str, float]): Words a second of one pipeline of each variant,
        by the name of the run. They are measured when nothing else of ours runs."""
        known = self.folder.read_speeds()
        runs = [
            run
            for run in self.runs
            if run.share == self.shares[0] and run.seed == self.options.seeds[0]
        ]
        if any(known.get(run.name, {}).get("key") != run.key for run in runs):
            present = [run for run in runs if self.folder.model(run).exists()]
            known = {}
            if present:
                self.say("Measuring the speed of the trained pipelines ...")
                arguments = {
                    "config": present[0].config.to_str(),
                    "models": [str(self.folder.model(run)) for run in present],
                }
                job = Job("speed", "speed", arguments)
                with Workers(1, self.folder.logs, self.options.gpu_id) as workers:
                    [(_, rates)] = workers.do([job])
                for run, rate in zip(present, rates):
                    known[run.name] = {"key": run.key, "words_per_second": rate}
                self.folder.write_speeds(known)
        return {name: entry["words_per_second"] for name, entry in known.items()}

    def _write_shares(self) -> list[dict[str, Any]]:
        """RETURNS (list[dict[str, Any]]): How much each share of the data is."""
        docs = read_docs(self.pair.train)
        sizes = []
        for share in self.shares:
            n_docs, n_words = write_share(docs, share, self._share_path(share))
            sizes.append({"share": share, "docs": n_docs, "words": n_words})
        return sizes

    def _share_path(self, share: float) -> Path:
        return self.folder.share(self.pair.digests[str(self.pair.train)], share)

    def _metrics(self) -> list[str]:
        return find_metrics([result["scores"] for result in self.results.values()])


def clock(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))
