"""Run the code cells of a notebook without Jupyter."""

import ast
import contextlib
import io
from typing import Any, NamedTuple


class Output(NamedTuple):
    """What a cell has printed, and the value of its last line; None if that has no
    value."""

    printed: str
    value: Any


def run_cells(notebook):
    """Run the code cells of a notebook one after the other, in one namespace.

    notebook (dict): The notebook, as its JSON file has it.
    RETURNS (list[Output]): The output of each code cell.
    """
    names: dict[str, Any] = {"__name__": "__main__"}
    outputs = []
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            continue
        tree = ast.parse("".join(cell["source"]))
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        printed, value = io.StringIO(), None
        with contextlib.redirect_stdout(printed):
            exec(compile(tree, "<cell>", "exec"), names)
            if last is not None:
                expression = ast.Expression(last.value)
                value = eval(compile(expression, "<cell>", "eval"), names)
        outputs.append(Output(printed.getvalue(), value))
    return outputs
