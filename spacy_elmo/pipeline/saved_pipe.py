"""Save a component with its biLM, and load it with errors that name the file."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import srsly
from spacy.pipeline import TrainablePipe
from spacy.util import load_config

from ..bilm.errors import SourceError
from ..bilm.extras import TorchError
from ..layers.elmo_model import get_shim
from ..layers.listener import BILM
from ..regular_files import check_regular
from .layer_source import LayerSource
from .listened import Listened

MODEL = "model"  # the file of the weights, and their key in bytes
CFG = "cfg"  # what spaCy saves of every component; there is nothing of ours in it
AGAIN = "the pipeline is not complete, so save, copy or install it again"


class SavedPipe(Listened, TrainablePipe):
    """A component that can be saved and loaded."""

    _source: LayerSource

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        self._tell_listeners()
        return super().to_bytes(exclude=exclude)

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        self._tell_listeners()
        super().to_disk(path, exclude=exclude)

    def from_bytes(
        self, bytes_data: bytes, *, exclude: Iterable[str] = ()
    ) -> "SavedPipe":
        def load() -> None:
            super(SavedPipe, self).from_bytes(bytes_data, exclude=[*exclude, CFG])

        self._load(load, f"the bytes of '{self.name}'", MODEL not in exclude)
        return self

    def from_disk(
        self, path: str | Path, *, exclude: Iterable[str] = ()
    ) -> "SavedPipe":
        def load() -> None:
            super(SavedPipe, self).from_disk(path, exclude=[*exclude, CFG, MODEL])
            if MODEL not in exclude:
                self._load_model(Path(path) / MODEL)

        self._load(load, str(Path(path) / MODEL), MODEL not in exclude)
        self._forget_saved_folder(Path(path).parent / "config.cfg")
        return self

    def _load_model(self, path: Path) -> None:
        """Load the model as spaCy does, but drop the contents of its file as soon as
        they are unpacked: those of a large biLM are hundreds of megabytes."""
        check_regular(path)
        self.model.from_dict(srsly.msgpack_loads(path.read_bytes()))

    def _tell_listeners(self) -> None:
        """Let listeners that learned together with the biLM store which biLM it is. In
        a pipeline, they are saved after this component."""
        shim = get_shim(self.model)
        for listener in self.listeners:
            if listener.attrs[BILM] is None and listener.has_dim("nL"):
                listener.attrs[BILM] = [shim.name, shim.identity]

    def _load(self, load: Callable[[], None], where: str, has_model: bool) -> None:
        """Load the component, or raise one sentence about what is damaged."""
        name = self.model.name
        try:
            load()
        except FileNotFoundError:
            raise SourceError(
                f"{where}: no such file; expected the biLM of '{self.name}' in it: "
                f"{AGAIN}"
            ) from None
        except (OSError, TorchError):  # nothing is damaged
            raise
        except SourceError as error:
            raise SourceError(f"{where}: {error}") from None
        except Exception as error:  # msgpack, JSON and Thinc raise many kinds of errors
            reason = f"{type(error).__name__}: {error}".split("\n")[0]
            raise SourceError(
                f"{where}: found damaged data ({reason}); expected what the component "
                f"'elmo' saves: {AGAIN}"
            ) from None
        if has_model:
            shim = get_shim(self.model)
            dims = (self.model.maybe_get_dim("nL"), self.model.maybe_get_dim("nO"))
            if (
                not shim.from_saved
                or self.model.name != name
                or dims not in ((None, None), shim.sizes)
            ):
                raise SourceError(
                    f"{where}: found damaged data; expected a biLM and its sizes: "
                    f"{AGAIN}"
                )

    def _forget_saved_folder(self, config: Path) -> None:
        """Do not use a cache_folder that a saved pipeline brings along: it would write
        to a place that the user has not chosen."""
        folder = self._source.storage.cache_folder
        if folder is not None and config.exists():
            saved: Any = folder
            try:
                settings = load_config(config, interpolate=True)["components"]
                saved = settings[self.name].get("cache_folder")
            except (KeyError, ValueError):
                pass  # the folder probably comes from this config
            if saved == folder:
                self._source.storage.cache_folder = None
                self._source.ignored_folder = folder
