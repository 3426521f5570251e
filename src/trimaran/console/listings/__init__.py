"""The extension listings: rows of one OpenStack service, joined with names from others.

One module a listing.  ``view`` is what the caller may see, ``joins`` asks for
the names: all rows at once and in parallel, so the number of calls does not
grow with the rows, and a name that cannot be had is null, not an error.
"""
