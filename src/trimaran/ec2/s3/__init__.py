"""A small S3: enough to hold image bundles where there is no object store.

Upstream's stub took anybody's bytes under any name; this one checks signatures
through Keystone, keeps projects apart and never uses a client's text as a path
(spec ec2.md section 7, F68).
"""
