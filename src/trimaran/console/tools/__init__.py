"""The command line tools, with upstream's names and arguments (spec/skyline.md section 6).

Each is a module with a click command and ``main``, the entry point.
"""
