"""The folder of an output in parts: its manifest, and the parts that are usable."""

import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..files import explain_errors, is_temporary, one_writer, write_atomically
from ..fingerprints import fingerprint_data, has_checksum
from ..regular_files import open_regular, read_regular
from .part_tasks import Record

# Programs that read a folder of Parquet files leave out names that begin with "_".
MANIFEST, JOURNAL = "_manifest.json", "_parts.jsonl"
KIND = "spacy-elmo parts"
PART_NAME = f"{'[0-9]' * 8}-{'[0-9a-f]' * 16}.*"
CHECKSUM = "checksum"
MAX_MANIFEST = 2**31  # bytes: some ten million parts
MAX_ENTRY = 10_000  # bytes of a line in the journal


class PartFolder:
    """A folder with parts. Finished parts are noted in a journal; a run that reaches
    its end replaces the journal by a manifest.

    path (Path): The folder.
    records (dict[str, Record]): The usable parts by name.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.records: dict[str, Record] = {}

    def load(self, say: Callable[[str], None]) -> None:
        """Load the records of earlier runs, and check the parts themselves.

        say (Callable[[str], None]): Called with a sentence about each damaged part.
        """
        for record in [*self._read_manifest(say), *self._read_journal()]:
            self.records[record.name] = record
        for record in list(self.records.values()):
            path = self.path / record.name
            if not path.exists():
                del self.records[record.name]
            elif not has_checksum(path, record.checksum):
                say(f"{path}: the checksum does not match; computing this part again")
                del self.records[record.name]

    @contextmanager
    def journal(self) -> Iterator[Callable[[Record], None]]:
        """Open the journal. The function that is yielded notes a finished part."""
        path = self.path / JOURNAL
        with explain_errors(path), path.open("a", encoding="utf8") as file:

            def note(record: Record) -> None:
                # The line break before the record ends a line that was cut off when an
                # earlier run was killed.
                entry = _add_checksum({"part": record._asdict()})
                file.write(f"\n{json.dumps(entry)}\n")
                file.flush()
                self.records[record.name] = record

            yield note

    def finish(self, fingerprint: str, names: Iterable[str]) -> dict[str, Any]:
        """Write the manifest, then delete the journal and the parts of other inputs.

        fingerprint (str): That of the maker of the parts.
        names (Iterable[str]): The parts of this run.
        RETURNS (dict[str, Any]): The manifest.
        """
        parts = [self.records[name] for name in sorted(names)]
        manifest = {
            "kind": KIND,
            "source": fingerprint,
            "items": sum(part.items for part in parts),
            "rows": sum(part.rows for part in parts),
            "parts": [part._asdict() for part in parts],
        }
        manifest = _add_checksum(manifest)
        text = json.dumps(manifest, indent=1) + "\n"
        write_atomically(self.path / MANIFEST, lambda path: path.write_text(text))
        (self.path / JOURNAL).unlink(missing_ok=True)
        kept = {part.name for part in parts}
        for path in self.path.glob(PART_NAME):
            if path.name not in kept:
                path.unlink()
        return manifest

    def _read_manifest(self, say: Callable[[str], None]) -> list[Record]:
        path = self.path / MANIFEST
        if not path.exists():
            return []
        try:
            data = json.loads(read_regular(path, MAX_MANIFEST))
            if data["kind"] != KIND:
                raise ValueError
            if _is_whole(data):
                return [_to_record(part) for part in data["parts"]]
        except (ValueError, KeyError, TypeError, RecursionError):
            raise ValueError(
                f"{path}: found something other than a manifest of this command; "
                "delete it to compute all parts again, or choose another folder"
            ) from None
        say(f"{path}: the checksum does not match; computing all parts again")
        return []

    def _read_journal(self) -> Iterator[Record]:
        path = self.path / JOURNAL
        if not path.exists():
            return
        with open_regular(path) as file:
            while line := file.readline(MAX_ENTRY):
                try:
                    entry = json.loads(line)
                    if _is_whole(entry):
                        yield _to_record(entry["part"])
                # An empty line, the end of a killed run, or damage.
                except (ValueError, KeyError, TypeError, RecursionError):
                    continue


def _add_checksum(data: dict[str, Any]) -> dict[str, Any]:
    return {**data, CHECKSUM: fingerprint_data(data)}


def _is_whole(data: Any) -> bool:
    """Return whether data is what `_add_checksum` has returned."""
    if not isinstance(data, dict):
        return False
    return data == _add_checksum({k: v for k, v in data.items() if k != CHECKSUM})


def _to_record(data: Any) -> Record:
    record = Record(**data)
    numbers = (record.first, record.items, record.rows)
    if not all(type(number) is int and number >= 0 for number in numbers):
        raise ValueError(f"found the numbers {numbers} of a part")
    # A name leads to a file that is replaced, so it may not lead out of the folder.
    if not isinstance(record.name, str) or not Path(record.name).match(PART_NAME):
        raise ValueError(f"found the part {record.name!r}")
    if Path(record.name).name != record.name:
        raise ValueError(f"found the part {record.name!r}")
    return record


def check_part_folder(path: Path) -> None:
    """Raise ValueError if a path cannot be a folder for parts: it is a file, or a
    folder with other files. Call this first, because the work may take hours."""
    if os.path.lexists(path) and not path.is_dir():
        raise ValueError(f"{path}: found a file; expected a folder for the parts")
    if not path.exists() or (path / MANIFEST).exists() or (path / JOURNAL).exists():
        return
    others = [p.name for p in path.iterdir() if not is_temporary(p.name)]
    if others:
        raise ValueError(
            f"{path}: found a folder with other files, such as {min(others)}; expected "
            "parts of this command, an empty folder or none"
        )


@contextmanager
def open_part_folder(path: Path, say: Callable[[str], None]) -> Iterator[PartFolder]:
    """Make or open a folder, and be its only writer while the block runs.

    say (Callable[[str], None]): Called with a sentence about each damaged part.
    """
    check_part_folder(path)
    with explain_errors(path):
        path.mkdir(parents=True, exist_ok=True)
    with one_writer(path):
        folder = PartFolder(path)
        folder.load(say)
        yield folder
