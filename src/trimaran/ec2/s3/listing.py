"""S3's XML answers: the list of buckets, and both versions of the list of objects."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from urllib.parse import quote

from trimaran.ec2.protocol.errors import xml_text
from trimaran.ec2.protocol.render import timestamp
from trimaran.ec2.s3.errors import S3Error
from trimaran.ec2.s3.store import Entry

_NAMESPACE = "http://s3.amazonaws.com/doc/2006-03-01/"
_MOST_KEYS = 50_000


def buckets(found: Iterable[tuple[str, datetime]], owner: str) -> bytes:
    """``ListAllMyBucketsResult``."""
    rows = "".join(
        f"<Bucket><Name>{xml_text(name)}</Name>"
        f"<CreationDate>{timestamp(made)}</CreationDate></Bucket>"
        for name, made in found
    )
    return document(
        "ListAllMyBucketsResult",
        f"<Owner><ID>{xml_text(owner)}</ID></Owner><Buckets>{rows}</Buckets>",
    )


def objects(bucket: str, found: Sequence[Entry], query: Mapping[str, str]) -> bytes:
    """``ListBucketResult`` of version 1, or 2 with ``list-type=2``.

    Args:
        bucket: its name.
        found: all objects, by key.
        query: ``prefix``, ``marker``, ``max-keys`` or their version 2 names.

    Raises:
        S3Error: ``InvalidArgument``.
    """
    second = query.get("list-type") == "2"
    prefix = query.get("prefix", "")
    if second:
        after = _from_token(query["continuation-token"]) if "continuation-token" in query else ""
        after = after or query.get("start-after", "")
    else:
        after = query.get("marker", "")
    limit = _limit(query.get("max-keys", str(_MOST_KEYS)))
    delimiter = query.get("delimiter", "")
    matching = _rolled(found, prefix, delimiter, after)
    page = matching[:limit]
    truncated = len(page) < len(matching) and limit > 0
    encode = query.get("encoding-type") == "url"
    head = (
        f"<Name>{xml_text(bucket)}</Name><Prefix>{_key(prefix, encode)}</Prefix>"
        f"<MaxKeys>{limit}</MaxKeys><IsTruncated>{str(truncated).lower()}</IsTruncated>"
    )
    if delimiter:
        head += f"<Delimiter>{_key(delimiter, encode)}</Delimiter>"
    if encode:
        head += "<EncodingType>url</EncodingType>"
    if second:
        head += f"<KeyCount>{len(page)}</KeyCount>"
        if truncated:
            token = _to_token(_name(page[-1]))
            head += f"<NextContinuationToken>{token}</NextContinuationToken>"
    else:
        head += f"<Marker>{_key(after, encode)}</Marker>"
        if truncated:
            head += f"<NextMarker>{_key(_name(page[-1]), encode)}</NextMarker>"
    return document("ListBucketResult", head + "".join(_row(each, encode) for each in page))


def _rolled(found: Sequence[Entry], prefix: str, delimiter: str, after: str) -> list[Entry | str]:
    """Objects behind ``after``; those with the delimiter behind the prefix as their common part."""
    made: list[Entry | str] = []
    for entry in found:
        if not entry.key.startswith(prefix) or entry.key <= after:
            continue
        end = entry.key.find(delimiter, len(prefix)) if delimiter else -1
        if end < 0:
            made.append(entry)
            continue
        common = entry.key[: end + len(delimiter)]
        if common != after and (not made or made[-1] != common):
            made.append(common)
    return made


def _name(row: Entry | str) -> str:
    return row if isinstance(row, str) else row.key


def _row(entry: Entry | str, encode: bool) -> str:
    if isinstance(entry, str):
        return f"<CommonPrefixes><Prefix>{_key(entry, encode)}</Prefix></CommonPrefixes>"
    return (
        f"<Contents><Key>{_key(entry.key, encode)}</Key>"
        f"<LastModified>{timestamp(datetime.fromtimestamp(entry.modified, UTC))}</LastModified>"
        f"<ETag>&quot;{entry.etag}&quot;</ETag><Size>{entry.size}</Size>"
        "<StorageClass>STANDARD</StorageClass></Contents>"
    )


def _key(text: str, encode: bool) -> str:
    return quote(text, safe="/") if encode else xml_text(text)


def _limit(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise S3Error("InvalidArgument", "max-keys is not a number.", 400)
    return min(int(text), _MOST_KEYS)


def _to_token(key: str) -> str:
    return base64.urlsafe_b64encode(key.encode()).decode()


def _from_token(token: str) -> str:
    try:
        return base64.b64decode(token.encode("ascii"), altchars=b"-_", validate=True).decode()
    except (ValueError, binascii.Error):
        raise S3Error("InvalidArgument", "The continuation token is not valid.", 400) from None


def document(root: str, inner: str) -> bytes:
    """One of S3's documents."""
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<{root} xmlns="{_NAMESPACE}">{inner}</{root}>'
    ).encode("ascii", "xmlcharrefreplace")
