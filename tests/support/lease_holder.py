"""A process that holds a worker's lease on a SQLite database and does nothing else: for tests that stop and kill it.

    python -m tests.support.lease_holder URL FOLDER WORKER_ID TTL_S

It prints `enrolled`, and `lost` when it found that its lease had ended.
"""

import sys
import threading
from pathlib import Path

from threadmark.state import FileLocks, open_engine
from threadmark.workers.fleet.lease import Lease


def main() -> None:
    """Renew until killed."""
    url, folder, worker_id, ttl_s = sys.argv[1:]
    engine = open_engine(url, write=True, synchronous="NORMAL")
    lease = Lease(engine, FileLocks(Path(folder)), worker_id, ttl_s=float(ttl_s), heartbeat_s=float(ttl_s) / 10)
    lease.begin("{}", lambda: print("lost", flush=True))
    print("enrolled", flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main()
