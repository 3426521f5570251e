"""Handlers, one module a resource.

A handler reads like its specification: authorise, validate, ask the cloud and
the database, answer.
"""
