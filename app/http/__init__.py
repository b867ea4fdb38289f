"""HTTP as every room of the API reads it: addresses, notes on a request, strict JSON, ids, refused bodies, problems."""
