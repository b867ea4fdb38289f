"""The values and rules of memory: assertions, provenance, scopes, time axes, admission, filters, questions. Pure."""
