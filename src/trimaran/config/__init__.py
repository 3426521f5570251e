"""Options: ``skyline.yaml`` by pydantic, ``ec2api.conf`` and ``magnum.conf`` by oslo.config.

An operator brings the files of the upstream services; their names, types and
defaults are kept.  What only we have lives in a group of its own, ``trimaran``,
with the same names in all three files.  A file is read once per process and
mistakes in it end the start with one sentence.
"""
