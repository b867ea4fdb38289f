"""Token counts are exact, offline, and survive any text."""

import gzip
import hashlib
import re
import threading
from importlib import resources
from pathlib import Path
from unittest import mock

import pytest
import tiktoken
import tiktoken_ext.openai_public  # type: ignore[import-untyped]
from hypothesis import given, settings
from hypothesis import strategies as st

from threadmark.workers import tokens

PACKED = resources.files("threadmark.workers") / "vocabulary" / "o200k_base.tiktoken.gz"
RANKS_URL = "https://openaipublic.blob.core.windows.net/encodings/o200k_base.tiktoken"


@pytest.mark.parametrize(
    ("text", "count"),
    [("", 0), ("hello world", 2), ("a\x00b", 3), ("<|endoftext|>", 7), ("漢字かな", 3), ("\ud800", 1)],
)
def test_known_texts_have_their_known_counts(text: str, count: int) -> None:
    """NUL, other scripts, lone surrogates and what looks like a special token are text like any other."""
    assert tokens.count_tokens(text) == count


def test_the_encoding_is_the_library_s_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pattern, ranks and special tokens equal those of tiktoken, which is handed our file as its download."""
    name = hashlib.sha1(RANKS_URL.encode()).hexdigest()
    (tmp_path / name).write_bytes(gzip.decompress(PACKED.read_bytes()))
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))

    theirs = tiktoken.Encoding(**tiktoken_ext.openai_public.o200k_base())

    ours = tokens.load()
    assert ours._pat_str == theirs._pat_str
    assert ours._mergeable_ranks == theirs._mergeable_ranks
    assert ours._special_tokens == theirs._special_tokens


def test_a_damaged_vocabulary_is_refused() -> None:
    """One changed byte is found by the hash, and the sentence names both hashes."""
    damaged = bytearray(gzip.decompress(PACKED.read_bytes()))
    damaged[0] ^= 1

    with pytest.raises(tokens.VocabularyDamaged, match=tokens.VOCABULARY_SHA256):
        tokens.parse_ranks(bytes(damaged))


def test_the_vendored_file_carries_no_name_and_no_time() -> None:
    """The compressed file can be made again byte for byte: its header has neither a name nor a time."""
    header = PACKED.read_bytes()[:10]

    assert header[:4] == b"\x1f\x8b\x08\x00"
    assert header[4:8] == b"\x00\x00\x00\x00"


def test_threads_that_come_first_together_share_one_encoding(monkeypatch: pytest.MonkeyPatch) -> None:
    """The vocabulary is read once, however many threads count first."""
    monkeypatch.setattr(tokens, "_loaded", None)
    barrier = threading.Barrier(8)
    loaded: list[tiktoken.Encoding] = []

    def load() -> None:
        barrier.wait()
        loaded.append(tokens.load())

    threads = [threading.Thread(target=load) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len({id(each) for each in loaded}) == 1


@given(text=st.text(alphabet=" \n\r\t!aA7/'s漢\u0301\u3000\u2028\x1c", max_size=60))
@settings(max_examples=400, deadline=None)
def test_long_runs_of_blanks_split_as_short_ones_do(text: str) -> None:
    """Counting a run of blanks apart gives the tokens of the whole text, whatever stands around the run."""
    from_three = re.compile(tokens._LONG_RUN.pattern.replace("100000", "3"))
    with mock.patch.object(tokens, "_LONG_RUN", from_three):
        parts = tokens._encode_long(tokens.load(), text)

    assert [token for part in parts for token in part] == tokens.load().encode_ordinary(text)


@pytest.mark.parametrize("text", [" " * 1_200_000 + "x", "x" + "\n" + "\t" * 1_100_000, " " * 1_100_000 + "\n"])
def test_a_million_blanks_are_counted(text: str) -> None:
    """A text that makes the splitter of tiktoken panic is counted like any other."""
    assert 0 < tokens.count_tokens(text) < len(text) / 8
