"""Count what is wrong with a text, and say it."""

from collections import Counter
from collections.abc import Callable, Mapping

Problems = Counter[str]  # how often each problem was found, by its description


def say_problems(problems: Mapping[str, int], say: Callable[[str], None]) -> None:
    """Say in one line what was wrong with a text, if anything was."""
    found = [
        f"{count:,} {problem}" for problem, count in sorted(problems.items()) if count
    ]
    if found:
        say(f"Problems found in the text: {', '.join(found)}")
