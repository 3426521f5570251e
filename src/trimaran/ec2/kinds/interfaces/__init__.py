"""Network interfaces and elastic addresses."""
