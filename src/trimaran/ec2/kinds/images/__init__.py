"""Images: described, made from instances and bundles, shared, copied."""
