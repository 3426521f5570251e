"""The EC2 query protocol: what every action shares and no action knows.

``model`` holds botocore's service description, ``parse`` turns parameters into
a typed request by it, ``render`` turns a result into XML by it; ``errors``,
``filters`` and ``paging`` are the rules that all Describe calls have in common.
"""
