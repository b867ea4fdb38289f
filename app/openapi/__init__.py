"""The OpenAPI document: what the routes take and answer, as generators of clients and people read it."""
