"""The environment variables of memory; part of the one list in `setting_variables.py`."""

from threadmark.workers.settings.values import choice, database_url, embedder, http_url, secret, shown_url, whole
from threadmark.workers.settings.variable import Variable, not_shown

__all__ = ["MEMORY_VARIABLES"]

MEMORY_VARIABLES: tuple[Variable, ...] = (
    Variable(
        name="THREADMARK_MEMORY_DATABASE_URL",
        field="memory_database_url",
        default=None,
        shown_default="`sqlite:///DATA_DIR/memory.db`",
        read_value=database_url,
        allowed="sqlite:///path, postgresql://user:password@host:port/name or postgresql://user@/name?host=/folder",
        example="postgresql://threadmark:…@db.internal:5432/memory",
        meaning="The database of memories. It may be down while runs go on.",
        shown=shown_url,
    ),
    Variable(
        name="THREADMARK_QDRANT_URL",
        field="qdrant_url",
        default=None,
        shown_default="none: the index stays in the process",
        read_value=http_url,
        allowed="http://host:port or https://host:port",
        example="http://127.0.0.1:6333",
        meaning="The server of the memory index. Several processes need it: an index in a process has one owner.",
        shown=shown_url,
    ),
    Variable(
        name="THREADMARK_QDRANT_API_KEY",
        field="qdrant_api_key",
        default=None,
        shown_default="none",
        read_value=secret,
        allowed="a key without spaces or line breaks",
        example="qdrant-example",
        meaning="The key of that server. It is never logged or shown.",
        shown=not_shown,
    ),
    Variable(
        name="THREADMARK_MEMORY_INDEX",
        field="memory_index",
        default="auto",
        shown_default="`auto`",
        read_value=choice("auto", "embedded", "memory"),
        allowed="auto, embedded or memory",
        example="embedded",
        meaning="Where the index is: `embedded` in DATA_DIR/memory-index, `memory` in the process and built by each "
        "start; `auto`: on THREADMARK_QDRANT_URL if that is set, else embedded.",
    ),
    Variable(
        name="THREADMARK_EMBEDDER",
        field="embedder",
        default="wordllama",
        shown_default="`wordllama`",
        read_value=embedder,
        allowed="wordllama, minilm or openai:model:dimension",
        example="openai:text-embedding-3-small:1536",
        meaning="What turns texts into vectors. A change takes effect with `threadmark reindex`.",
    ),
    Variable(
        name="THREADMARK_EMBEDDER_URL",
        field="embedder_url",
        default=None,
        shown_default="none: OPENAI_BASE_URL, or the provider's own",
        read_value=http_url,
        allowed="http://host:port/path or https://host:port/path",
        example="http://127.0.0.1:11434/v1",
        meaning="The server of an embedder `openai:…`; OPENAI_API_KEY is its key.",
        shown=shown_url,
    ),
    Variable(
        name="THREADMARK_RECALLS_KEPT_DAYS",
        field="recalls_kept_days",
        default="90",
        shown_default="`90`",
        read_value=whole(1, 3_650),
        allowed="days from 1 to 3650",
        example="90",
        meaning="How long the log of recalls is kept: who asked what, and which memories answered.",
    ),
    Variable(
        name="THREADMARK_LEDGER_WORDS_DAYS",
        field="ledger_words_days",
        default="0",
        shown_default="`0`",
        read_value=whole(0, 3_650),
        allowed="days from 0 to 3650 (0: for ever)",
        example="90",
        meaning="How long the ledgers of compactions keep words; afterwards their rows have digests.",
    ),
)
