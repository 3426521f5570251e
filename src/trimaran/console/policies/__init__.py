"""What a console user may do, by the rules of the 16 services.

See ``answers`` for the questions, ``attributes`` for what the rules see,
``ruleset`` for the data.
"""
