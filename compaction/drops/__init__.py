"""What compactions took away: searched, listed, expanded, restored, and the log of such recalls."""
