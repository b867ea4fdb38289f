"""The data directory: made for its owner alone, and refused in a sentence where it cannot be."""

import os
import tempfile
from pathlib import Path

from threadmark.user_error import UserError

__all__ = ["DataDirRefused", "make_data_dir", "writable_gap"]


class DataDirRefused(UserError, OSError):
    """The data directory cannot be made, or nothing can be written in it; nothing was started."""


def make_data_dir(path: Path) -> None:
    """Have the directory, with a file written in it as a proof. Raises DataDirRefused."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path, prefix=".written-"):
            pass
    except OSError as error:
        raise DataDirRefused(_sentence(path, error)) from error


def writable_gap(path: Path) -> str | None:
    """Why a start could not use the directory, a sentence; None if it could. Changes nothing."""
    existing = next(each for each in (path, *path.parents) if each.exists())
    if not existing.is_dir():
        return _sentence(path, NotADirectoryError(0, f"{existing} is a file"))
    if not os.access(existing, os.W_OK | os.X_OK):
        return _sentence(path, PermissionError(0, f"{existing} is closed to this user"))
    return None


def _sentence(path: Path, error: OSError) -> str:
    return (
        f"THREADMARK_DATA_DIR is {str(path)!r}, where nothing can be written ({error.strerror}); give the directory to "
        "the user that runs this, or choose another, for example THREADMARK_DATA_DIR=/var/lib/threadmark"
    )
