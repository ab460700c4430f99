"""Parse HTML into a tree of elements."""

from html.parser import HTMLParser

VOID = {"meta", "link", "input", "br"}


class Element:
    def __init__(self, name, attrs, parent):
        self.name, self.attrs, self.parent = name, dict(attrs), parent
        self.parts = []

    @property
    def text(self):
        parts = (p if isinstance(p, str) else p.text for p in self.parts)
        return " ".join("".join(parts).split())

    def find(self, name=None, **attrs):
        """Return all elements inside this one with this name and these attributes."""
        found = []
        for part in self.parts:
            if isinstance(part, Element):
                wanted = all(part.attrs.get(k) == v for k, v in attrs.items())
                if wanted and name in (None, part.name):
                    found.append(part)
                found += part.find(name, **attrs)
        return found

    def lang(self):
        """Return the `lang` of this element, or of the nearest parent that has one."""
        here = self
        while here is not None and "lang" not in here.attrs:
            here = here.parent
        return here.attrs["lang"] if here is not None else None


class Parser(HTMLParser):
    """Builds a tree of elements. Raises AssertionError if tags do not match."""

    def __init__(self, html):
        super().__init__()
        self.root = self.here = Element("", {}, None)
        self.feed(html)
        self.close()
        assert self.here is self.root

    def handle_starttag(self, name, attrs):
        element = Element(name, attrs, self.here)
        self.here.parts.append(element)
        if name not in VOID:
            self.here = element

    def handle_endtag(self, name):
        assert self.here.name == name, (self.here.name, name)
        self.here = self.here.parent

    def handle_data(self, data):
        self.here.parts.append(data)


def parse(html):
    """Parse HTML, and return the root of the tree."""
    return Parser(html).root
