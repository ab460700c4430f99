"""Count the problems of a text, and report them."""

from collections import Counter
from collections.abc import Callable, Mapping

Problems = Counter[str]  # how often each problem was found, by its description


def say_problems(problems: Mapping[str, int], say: Callable[[str], None]) -> None:
    """Report the problems of a text in one line, if there are any.

    problems (Mapping[str, int]): How often each problem was found.
    say (Callable[[str], None]): Called with the line.
    """
    found = [
        f"{count:,} {problem}" for problem, count in sorted(problems.items()) if count
    ]
    if found:
        say(f"Problems found in the text: {', '.join(found)}")
