"""Make all imports of torch fail in this process. Where torch is installed, Thinc would
import it, so this module must be imported before Thinc."""

import sys


class Block:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ImportError(f"{name} is blocked")


sys.meta_path.insert(0, Block())
