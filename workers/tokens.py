"""Exact token counts of the encoding o200k_base, without a network.

The vocabulary lies beside this module, compressed (`vocabulary/NOTICE` has its origin and licence). It is read at the
first count, checked against its hash, and kept for the life of the process.
"""

import base64
import gzip
import hashlib
import re
import threading
from importlib import resources

import tiktoken

__all__ = ["ENCODING", "VOCABULARY_SHA256", "VocabularyDamaged", "count_tokens", "load"]

ENCODING = "o200k_base"
VOCABULARY_SHA256 = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"
#: How the encoding splits text before it merges bytes; the order of the alternatives matters.
PATTERN = "|".join(
    (
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    )
)
SPECIAL_TOKENS = {"<|endoftext|>": 199999, "<|endofprompt|>": 200018}

#: A run of blanks this long is counted apart: the splitter panics at a million and takes the process down.
BLANK_RUN_MAX = 100_000
_BLANKS = r"\t\x0b\x0c \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_LONG_RUN = re.compile(f"[{_BLANKS}]{{{BLANK_RUN_MAX},}}")

#: Counts that are kept, about 100 bytes each, of texts that take longer to count than to look up.
COUNTS_KEPT_MAX = 65_536
_SHORT_LENGTH = 24
_counts: dict[bytes, int] = {}

_lock = threading.Lock()
_loaded: tiktoken.Encoding | None = None


class VocabularyDamaged(Exception):
    """The vocabulary file is not the one that was published; nothing can be counted."""

    def __init__(self, found: str) -> None:
        super().__init__(
            f"the vocabulary of {ENCODING} has SHA-256 {found}, not {VOCABULARY_SHA256}: install Threadmark again"
        )


def count_tokens(text: str) -> int:
    """The number of tokens of `text`; what looks like a special token is counted as the text it is."""
    if len(text) < _SHORT_LENGTH:
        return _count(text)
    # The same transcript is counted at every call of a model. By digest: no word stays here that was erased elsewhere.
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
    count = _counts.get(digest)
    if count is None:
        if len(_counts) >= COUNTS_KEPT_MAX:
            _counts.clear()
        count = _counts[digest] = _count(text)
    return count


def _count(text: str) -> int:
    encoding = load()
    if len(text) < BLANK_RUN_MAX:
        return len(encoding.encode_ordinary(text))
    return sum(len(tokens) for tokens in _encode_long(encoding, text))


def load() -> tiktoken.Encoding:
    """The encoding, read once whichever thread comes first (about half a second of CPU).

    Raises VocabularyDamaged, at every call, when the file is not the published one.
    """
    global _loaded  # noqa: PLW0603 - one vocabulary a process: 200,000 ranks are not read twice
    with _lock:
        if _loaded is None:
            _loaded = _read()
        return _loaded


def _read() -> tiktoken.Encoding:
    packed = (resources.files("threadmark.workers") / "vocabulary" / f"{ENCODING}.tiktoken.gz").read_bytes()
    return tiktoken.Encoding(
        ENCODING, pat_str=PATTERN, mergeable_ranks=parse_ranks(gzip.decompress(packed)), special_tokens=SPECIAL_TOKENS
    )


def parse_ranks(vocabulary: bytes) -> dict[bytes, int]:
    """Rank by token. Raises VocabularyDamaged unless `vocabulary` is the published file."""
    found = hashlib.sha256(vocabulary).hexdigest()
    if found != VOCABULARY_SHA256:
        raise VocabularyDamaged(found)
    ranks: dict[bytes, int] = {}
    for line in vocabulary.splitlines():
        token, _, rank = line.partition(b" ")
        ranks[base64.b64decode(token)] = int(rank)
    return ranks


def _encode_long(encoding: tiktoken.Encoding, text: str) -> list[list[int]]:
    """Tokens of a long text, part by part; the parts join to what the splitter would have made of the whole."""
    parts: list[list[int]] = []
    start = 0
    for run in _LONG_RUN.finditer(text):
        if text[run.end() : run.end() + 1] in ("\r", "\n"):
            continue  # blanks before a line end are matched, with it, by an alternative that does not panic
        # The run is one piece, less its last blank where a word follows: that one belongs to the word.
        end = run.end() if run.end() == len(text) else run.end() - 1
        parts.append(encoding.encode_ordinary(text[start : run.start()]))
        parts.append(encoding._encode_single_piece(text[run.start() : end]))
        start = end
    parts.append(encoding.encode_ordinary(text[start:]))
    return parts
