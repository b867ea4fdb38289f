"""Listings over HTTP: cursors, pages, query parameters, preconditions."""
