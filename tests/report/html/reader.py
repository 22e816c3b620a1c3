"""Reads a page as a strict browser would: every element closed, every id once, nothing fetched."""

import base64
from html.parser import HTMLParser

VOID = {"meta", "input", "br", "hr", "link", "img"}


class Reader(HTMLParser):
    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.ids, self.links = [], [], [], []
        self.texts, self.attributes, self.scripts, self.images = [], [], 0, []

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.tags.append(tag)
        self.attributes += [name for name, _ in attrs]
        self.scripts += tag == "script"
        if "id" in found:
            self.ids.append(found["id"])
        if tag == "a":
            self.links.append(found["href"])
        for name in ("src", "srcset", "data", "action", "xlink:href"):
            here = tag == "img" and found.get(name, "").startswith("data:image/png;base64,")
            assert name not in found or here, f"{tag} fetches {found[name]}"
        if tag == "img":
            assert found["alt"]
            self.images.append(base64.b64decode(found["src"].partition(",")[2]))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, f"</{tag}> closes {self.open[-3:]}"
        self.open.pop()

    def handle_data(self, data):
        if not self.open or self.open[-1] not in ("script", "style"):
            self.texts.append(data)

    @property
    def text(self):
        return " ".join("".join(self.texts).split())


def read(page):
    """The page, taken apart; whatever makes it unsound is an error."""
    reader = Reader()
    reader.feed(page)
    reader.close()
    assert reader.open == []
    assert len(set(reader.ids)) == len(reader.ids), "an id is there twice"
    assert reader.scripts == 1
    assert not [name for name in reader.attributes if name.startswith("on")]
    for link in reader.links:
        assert link.startswith("#")
        assert link[1:] in reader.ids
    return reader
