"""The memory database: tables, statements, rows as values, vector spaces, the outbox, export and import."""
