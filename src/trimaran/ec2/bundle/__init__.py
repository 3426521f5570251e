"""AMI bundles: an image as Amazon's tools wrap it, unwrapped without trusting a byte of it.

A bundle is a manifest and the parts of an encrypted, compressed tar in S3
(spec ec2.md 5.2).  Everything here streams: what is held at once is a piece of
at most `PIECE` bytes, whatever the bundle claims to be.
"""

from __future__ import annotations

from trimaran.errors import TrimaranError

#: Bytes handled at a time.
PIECE = 1 << 16


class BundleError(TrimaranError):
    """The bundle is broken, or not what it says; asking again would not help."""
