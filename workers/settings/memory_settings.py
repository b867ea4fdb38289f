"""Where memories and their index are, and how long what memory logs is kept."""

from typing import Annotated

from threadmark.workers.settings.declaration import Reads, declared, not_shown
from threadmark.workers.settings.server_settings import DATABASE, SERVER, SERVICE, ServerSettings
from threadmark.workers.settings.values import choice, embedder, secret, whole

__all__ = ["KEY", "MemorySettings"]

EMBEDDER = Reads(embedder, "wordllama, minilm or openai:model:dimension")
KEY = Reads(secret, "a key without spaces or line breaks", not_shown)


class MemorySettings(ServerSettings):
    """Databases, index and embedder of memory."""

    memory_database_url: Annotated[str, DATABASE] = declared(
        default_factory=lambda given: f"sqlite:///{given['data_dir'] / 'memory'}.db",
        shown="`sqlite:///DATA_DIR/memory.db`",
        example="postgresql://threadmark:…@db.internal:5432/memory",
    )
    """The database of memories. It may be down while runs go on."""

    qdrant_url: Annotated[str | None, SERVER] = declared(
        shown="none: the index stays in the process", example="http://127.0.0.1:6333"
    )
    """The server of the memory index. Several processes need it: an index in a process has one owner."""

    qdrant_api_key: Annotated[str | None, KEY] = declared(shown="none", example="qdrant-example")
    """The key of that server. It is never logged or shown."""

    memory_index: Annotated[str, Reads(choice("auto", "embedded", "memory"), "auto, embedded or memory")] = declared(
        "auto", example="embedded"
    )
    """Where the index is: `embedded` in DATA_DIR/memory-index, `memory` in the process and built by each
    start; `auto`: on THREADMARK_QDRANT_URL if that is set, else embedded."""

    embedder: Annotated[str, EMBEDDER] = declared("wordllama", example="openai:text-embedding-3-small:1536")
    """What turns texts into vectors. `minilm` needs the extra of that name. A change takes effect with
    `threadmark reindex`."""

    embedder_url: Annotated[str | None, SERVICE] = declared(
        shown="none: OPENAI_BASE_URL, or the provider's own", example="http://127.0.0.1:11434/v1"
    )
    """The server of an embedder `openai:…`; OPENAI_API_KEY is its key."""

    recalls_kept_days: Annotated[int, Reads(whole(1, 3_650), "days from 1 to 3650")] = declared(90, example="90")
    """How long the log of recalls is kept: who asked what, and which memories answered."""

    ledger_words_days: Annotated[int, Reads(whole(0, 3_650), "days from 0 to 3650 (0: for ever)")] = declared(
        0, example="90"
    )
    """How long the ledgers of compactions keep words; afterwards their rows have digests."""
