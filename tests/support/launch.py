"""Become a server that does not outlive the tests: `python launch.py PARENT SIGNAL UID GID COMMAND [ARGUMENT…]`.

A program of its own and not a `preexec_fn`: code run between fork and exec may deadlock when the parent has threads.
"""

import ctypes
import os
import sys

PR_SET_PDEATHSIG = 1


def main() -> None:
    """Take the user's identity, tie this process to its parent, and turn into the command."""
    parent, death_signal, uid, gid = (int(word) for word in sys.argv[1:5])
    command = sys.argv[5:]
    if os.geteuid() != uid:
        os.setgroups([])
        os.setgid(gid)
        os.setuid(uid)
    if sys.platform == "linux":
        # After the change of user: the kernel forgets the death signal when a process changes its identity.
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, death_signal)
    if os.getppid() != parent:
        sys.exit("the tests ended before their server began")
    os.execv(command[0], command)


if __name__ == "__main__":
    main()
