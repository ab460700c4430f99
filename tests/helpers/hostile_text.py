"""Make text of any characters of Unicode, and judge the errors that it causes."""

# Characters on which programs that split text have failed before.
SPECIAL = (
    "\0\t\n\v\f\r\x1b \x7f\x80\x85\xa0\xad\u0300\u0345\u0600\u061c\u1160\u1680\u180e"
    "\u2000\u200b\u200d\u200e\u2028\u2029\u202e\u2060\u3000\u3164\ufe0f\ufeff\ufff9"
    "\ufffc\ufffd\uffff\U0001f468\U0001f3fb\U000e0001\U0010ffff.?!。؟\"'[](){}<>&\\/"
)


def is_one_sentence(error):
    """Return whether an error is one of ours, with a message on one line."""
    return isinstance(error, (ValueError, OSError)) and "\n" not in str(error)


def make_text(rng, *, surrogates=False):
    """Make a text of any characters of Unicode."""
    parts = []
    for _ in range(rng.randrange(1, 30)):
        kind = rng.randrange(7)
        if kind == 0:
            part = rng.choice(SPECIAL) * rng.choice((1, 1, 2, 50))
        elif kind == 1:
            part = "".join(chr(rng.randrange(0x110000)) for _ in range(9))
        elif kind == 2:
            part = rng.choice(
                ("Snow fell.", "눈이 내린다.", "It's 5 o'clock!", "a" * 3000)
            )
        elif kind == 3:
            part = chr(rng.randrange(0x3000)) * rng.randrange(1, 5)
        elif kind == 4:
            part = "\n" * rng.randrange(1, 4)
        elif kind == 5:
            start = rng.randrange(0x10000)
            part = "".join(map(chr, range(start, start + 8)))
        else:
            part = " ".join(
                rng.choices(["one", "두", "три", "四", "👩‍👩‍👧", "e\u0301"], k=5)
            )
        parts.append(part)
    text = rng.choice(("", " ", "\n")).join(parts)
    if surrogates:
        return text
    return text.encode("utf-8", "replace").decode("utf-8")
