"""The XML of deletions, copies and multipart uploads, in both directions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from xml.etree.ElementTree import Element

from trimaran.ec2 import plain_xml
from trimaran.ec2.protocol.errors import xml_text
from trimaran.ec2.protocol.render import timestamp
from trimaran.ec2.s3.errors import S3Error
from trimaran.ec2.s3.listing import document
from trimaran.ec2.s3.store import Entry
from trimaran.ec2.s3.uploads import MOST_PARTS, Begun

#: Bytes of a document that is taken.
LARGEST = 2 << 20
MOST_KEYS = 1000


def wanted_keys(data: bytes) -> tuple[list[str], bool]:
    """(keys, quiet) of a Delete document.

    Raises:
        S3Error: ``MalformedXML``.
    """
    root = _parsed(data, "Delete")
    keys = [_text(row, "Key") for row in _children(root, "Object")]
    if not keys or len(keys) > MOST_KEYS or "" in keys:
        raise _malformed()
    return keys, _text(root, "Quiet") == "true"


def wanted_parts(data: bytes) -> list[tuple[int, str]]:
    """(number, ETag) of a CompleteMultipartUpload document.

    Raises:
        S3Error: ``MalformedXML``.
    """
    root = _parsed(data, "CompleteMultipartUpload")
    found = []
    for row in _children(root, "Part"):
        number, etag = _text(row, "PartNumber"), _text(row, "ETag").strip('"').lower()
        if not (number.isascii() and number.isdigit() and len(number) < 6):
            raise _malformed()
        found.append((int(number), etag))
    if not 0 < len(found) <= MOST_PARTS:
        raise _malformed()
    return found


def deleted(gone: Iterable[str], errors: Iterable[tuple[str, S3Error]]) -> bytes:
    """``DeleteResult``."""
    rows = "".join(f"<Deleted><Key>{xml_text(key)}</Key></Deleted>" for key in gone)
    rows += "".join(
        f"<Error><Key>{xml_text(key)}</Key><Code>{xml_text(error.code)}</Code>"
        f"<Message>{xml_text(error.message)}</Message></Error>"
        for key, error in errors
    )
    return document("DeleteResult", rows)


def copied(entry: Entry, *, part: bool) -> bytes:
    """``CopyObjectResult`` or ``CopyPartResult``."""
    root = "CopyPartResult" if part else "CopyObjectResult"
    return document(root, f"<LastModified>{_when(entry)}</LastModified>{_etag(entry)}")


def begun(bucket: str, key: str, upload_id: str) -> bytes:
    """``InitiateMultipartUploadResult``."""
    inner = f"{_place(bucket, key)}<UploadId>{upload_id}</UploadId>"
    return document("InitiateMultipartUploadResult", inner)


def completed(bucket: str, key: str, entry: Entry) -> bytes:
    """``CompleteMultipartUploadResult``."""
    return document("CompleteMultipartUploadResult", _place(bucket, key) + _etag(entry))


def parts(bucket: str, key: str, upload_id: str, found: Sequence[tuple[int, Entry]]) -> bytes:
    """``ListPartsResult``; all of them, since there are 10,000 at most."""
    rows = "".join(
        f"<Part><PartNumber>{number}</PartNumber><LastModified>{_when(entry)}</LastModified>"
        f"{_etag(entry)}<Size>{entry.size}</Size></Part>"
        for number, entry in found
    )
    head = f"{_place(bucket, key)}<UploadId>{upload_id}</UploadId>"
    head += f"<MaxParts>{MOST_PARTS}</MaxParts><IsTruncated>false</IsTruncated>"
    return document("ListPartsResult", head + rows)


def uploads(bucket: str, found: Sequence[Begun]) -> bytes:
    """``ListMultipartUploadsResult``."""
    rows = "".join(
        f"<Upload><Key>{xml_text(each.key)}</Key><UploadId>{each.id}</UploadId>"
        f"<Initiated>{timestamp(each.since)}</Initiated></Upload>"
        for each in found
    )
    head = f"<Bucket>{xml_text(bucket)}</Bucket><IsTruncated>false</IsTruncated>"
    return document("ListMultipartUploadsResult", head + rows)


def location(region: str) -> bytes:
    """``LocationConstraint``."""
    return document("LocationConstraint", xml_text(region))


def no_tags() -> bytes:
    """``Tagging`` of an object: there are none."""
    return document("Tagging", "<TagSet></TagSet>")


def _place(bucket: str, key: str) -> str:
    return f"<Bucket>{xml_text(bucket)}</Bucket><Key>{xml_text(key)}</Key>"


def _etag(entry: Entry) -> str:
    return f"<ETag>&quot;{entry.etag}&quot;</ETag>"


def _when(entry: Entry) -> str:
    return timestamp(datetime.fromtimestamp(entry.modified, UTC))


def _parsed(data: bytes, name: str) -> Element:
    try:
        root = plain_xml.parse(data)
    except ValueError:
        raise _malformed() from None
    if _name(root) != name:
        raise _malformed()
    return root


def _name(element: Element) -> str:
    # Clients send S3's namespace or none.
    return element.tag.rpartition("}")[2]


def _children(element: Element, name: str) -> list[Element]:
    return [child for child in element if _name(child) == name]


def _text(element: Element, name: str) -> str:
    return next((child.text or "" for child in element if _name(child) == name), "")


def _malformed() -> S3Error:
    return S3Error("MalformedXML", "The XML you provided was not well-formed.", 400)
