"""Fingerprint the files and installed packages that a config names."""

from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from thinc.api import Config

from ..fingerprints import fingerprint_data, fingerprint_path

# These settings of spaCy may name a file, a folder or an installed package, and so may
# all settings of [paths].
SOURCE_KEYS = ("init_tok2vec", "path", "source", "vectors", "vocab_data")


def fingerprint_sources(config: Config) -> dict[str, str]:
    """Fingerprint all files, folders and installed packages that a config names.

    The fingerprint of a path depends only on the contents, so that data may be moved.
    The fingerprint of an installed package, such as en_core_web_md, depends on its
    version and the checksums of its files, because packages that users build themselves
    often keep the version 0.0.0.

    config (Config): A config without variables.
    RETURNS (dict[str, str]): Fingerprints, by the path or name in the config. Values
        that are neither a path nor a package are left out.
    """
    values = {*config.get("paths", {}).values(), *_find_sources(config)}
    found = {
        value: _fingerprint(value)
        for value in values
        if value and isinstance(value, str)
    }
    return {value: text for value, text in found.items() if text is not None}


def get_versions(*names: str) -> dict[str, str]:
    """Return the versions of those packages that are installed."""
    packages = {name: _find_package(name) for name in names}
    return {name: each.version for name, each in packages.items() if each is not None}


def _find_sources(section: dict[str, Any]) -> Iterator[str]:
    for key, value in section.items():
        if isinstance(value, dict):
            yield from _find_sources(value)
        elif key in SOURCE_KEYS and isinstance(value, str):
            yield value


def _fingerprint(value: str) -> str | None:
    # If a package and a folder have the same name, it depends on the setting which of
    # them spaCy uses. So the fingerprint covers both.
    parts: list[Any] = []
    package = _find_package(value)
    if package is not None:
        parts.append([package.version, _checksums(package)])
    if Path(value).exists():
        parts.append(fingerprint_path(Path(value)))
    return fingerprint_data(parts) if parts else None


def _find_package(name: str) -> Distribution | None:
    try:
        return distribution(name)
    except (PackageNotFoundError, ValueError):  # ValueError: the name is empty
        return None


def _checksums(package: Distribution) -> list[tuple[str, str]]:
    """List the files of a package with their checksums. Metadata are left out, because
    they say where the package was installed from."""
    return sorted(
        (file.as_posix(), file.hash.value)
        for file in package.files or []
        if file.hash is not None and not file.parts[0].endswith(".dist-info")
    )
