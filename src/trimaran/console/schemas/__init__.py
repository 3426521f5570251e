"""Bodies of requests and answers, one module a group of routes."""
