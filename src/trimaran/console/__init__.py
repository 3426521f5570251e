"""The console hull: the wire of skyline-apiserver, for the Skyline console front end.

``app`` builds the application, ``token_stage`` decides who calls, ``routers``
answer.  spec/skyline.md is what all of it must look like from outside.
"""
