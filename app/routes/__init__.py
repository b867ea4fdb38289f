"""HTTP in, HTTP out: routes translate, delegate and translate back. No rule lives here."""
