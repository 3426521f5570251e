"""The moments at which jobs about images are disturbed, as docs/ec2-jobs.md tells of them.

Their words are those of `tests.support.ec2_victims`.
"""

from __future__ import annotations

#: Where a process is killed that makes an image of a running instance.
CREATE_IMAGE = (
    "before note stop",
    "after note stop",
    "before os-stop",
    "after os-stop",
    "after note snapshot",
    "before createImage",
    "after createImage",
    "after note link",
    "before note linked",
    "after note linked",
    "before os-start",
    "after os-start",
)
#: Where a process is killed that imports a bundle.
BUNDLE = (
    "after note downloading",
    "after set decrypting",
    "after note untarring",
    "before upload",
    "after upload",
    "after set available",
)
#: What goes away for a while, and when, while an image of a running instance is made.
OUTAGES = (
    ("compute", "before createImage"),
    ("compute", "before os-start"),
    ("database", "after os-stop"),
    ("database", "after createImage"),
)
