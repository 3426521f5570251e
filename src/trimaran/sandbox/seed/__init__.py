"""Fills a cloud with what the demo and the tests expect; finds before it makes."""
