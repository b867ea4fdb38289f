"""What several benches share: histories, threads, stores and how figures are taken from them; none is run alone."""
