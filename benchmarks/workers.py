"""Start workers and send them requests. A worker is a process that runs a script of
`peers/` and answers one request at a time."""

import json
import subprocess
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

SCRIPTS = Path(__file__).resolve().parent / "peers"


class WorkerError(RuntimeError):
    """A worker failed or died; the message says how."""


class Worker:
    """A running script of `peers/`, to be used in a `with` statement.

    name (str): The name of the worker in messages and of its log file.
    python (str): The interpreter to run it with.
    script (str): The script's file name.
    logs (Path): Folder for the output of the worker and its libraries.
    """

    def __init__(self, name: str, *, python: str, script: str, logs: Path) -> None:
        self.name = name
        logs.mkdir(parents=True, exist_ok=True)
        self.log = logs / f"{name.replace(' ', '-')}.log"
        with self.log.open("w", encoding="utf8") as log:
            self.process = subprocess.Popen(
                [python, str(SCRIPTS / script)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                encoding="utf8",
            )

    def __enter__(self) -> "Worker":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the worker: kill it after an error, otherwise close its input."""
        assert self.process.stdin and self.process.stdout
        if error is not None:
            self.process.kill()
        with suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()

    def call(self, command: str, **arguments: Any) -> dict[str, Any]:
        """Send a request and wait for its answer.

        command (str): The name of a command of the worker.
        arguments (Any): The keyword arguments of the command.
        RETURNS (dict): The time of the command ("seconds"), the peak memory of the
            worker so far ("peak_mb") and what the command returned ("value").
        """
        assert self.process.stdin and self.process.stdout
        request = json.dumps({"command": command, **arguments})
        with suppress(BrokenPipeError):  # the missing answer is reported below
            self.process.stdin.write(request + "\n")
            self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise WorkerError(f"{self.name} died in '{command}':\n{self._end_of_log()}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise WorkerError(f"{self.name} failed in '{command}':\n{answer['error']}")
        return answer

    def _end_of_log(self) -> str:
        return "\n".join(self.log.read_text("utf8").splitlines()[-15:])
