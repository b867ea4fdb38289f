"""What bounds a compaction: policies, named policies, money, paid replies, the breaker."""
