"""The routes, one module a group; which of them are public is said in ``public``."""
