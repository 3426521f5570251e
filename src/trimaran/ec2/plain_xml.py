"""XML that strangers sent: elements and text, nothing else.

A document type is refused before it is read, and with it every entity, so no
document grows while it is parsed.
"""

from __future__ import annotations

from xml.etree import ElementTree


class _Builder(ElementTree.TreeBuilder):
    def doctype(self, name: str, pubid: str | None, system: str | None) -> None:
        raise ValueError("the document has a document type")


def parse(data: bytes) -> ElementTree.Element:
    """The root of a document.

    Raises:
        ValueError: it is none, or has a document type.
    """
    parser = ElementTree.XMLParser(target=_Builder())  # noqa: S314 - no document types
    try:
        return ElementTree.fromstring(data, parser=parser)  # noqa: S314 - no document types
    except ElementTree.ParseError as error:
        raise ValueError("the document is not well formed") from error
