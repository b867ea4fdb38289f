"""The shapes of the SDK dialect: domain values to JSON, and JSON to domain values or a refusal. Pure."""
