"""The memory database: tables, statements, rows as values, vector spaces, the outbox, imports under way, receipts."""
