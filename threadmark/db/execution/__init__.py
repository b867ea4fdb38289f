"""Who runs units of work: the writer with group commit, readers with snapshots, pools in which tenants take turns."""
