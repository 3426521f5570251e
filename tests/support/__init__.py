"""Helpers of the tests: the sandbox cloud, processes of ours, signing."""
