"""Memory: what the next run should know. Assertions across threads, each traceable to the moment it came from.

Bring a database up to date with `migrate`, open it, give a `Recollection` an index and an embedder, and use its verbs.
Memory keeps an origin as an opaque value and knows nothing of threads, runs or journals; a run goes on without it.
"""

from memory.accesses import Access
from memory.admission import Hold, Selector
from memory.archive import Imported
from memory.assertion import ITEM, TURN, Assertion, Cardinality, Closing, Disposition, Draft, Verdict, Which
from memory.block import NOTICE, block
from memory.change import Change
from memory.choice import choose_embedder, owned_index, server_index
from memory.copies import Copies, CopyErasure
from memory.database import Database
from memory.embedder import Embedder
from memory.embedders import HashedEmbedder, MiniLmEmbedder, OpenAiEmbedder, WordLlamaEmbedder
from memory.errors import (
    AlreadyRetracted,
    CannotUndo,
    EmbedderFailed,
    FilterRefused,
    IndexUnavailable,
    RecollectionError,
    Refused,
    ScopeRefused,
    Unavailable,
    UnknownAssertion,
    UnknownJob,
)
from memory.extraction import Extraction, ExtractionFailed, Extractor, extract
from memory.filters import Filter, parse_filter
from memory.forget import Erasure, Forget
from memory.index import Index
from memory.index_claimed import ClaimedIndex
from memory.index_edge import EdgeIndex
from memory.index_memory import MemoryIndex
from memory.items import Item, Items
from memory.migrations import current_revision, head_revision, migrate, schema_gap
from memory.provenance import Evidence, Origin, Role, Trust, quote_hash
from memory.rebuild import Agreement
from memory.recall import Answer, Answers, Include, Question, Withheld
from memory.recipe import CURRENT, Recipe
from memory.recollection import Recollection
from memory.scope import Scope
from memory.traces import Traces

__all__ = [
    "CURRENT",
    "ITEM",
    "NOTICE",
    "TURN",
    "Access",
    "Agreement",
    "AlreadyRetracted",
    "Answer",
    "Answers",
    "Assertion",
    "CannotUndo",
    "Cardinality",
    "Change",
    "ClaimedIndex",
    "Closing",
    "Copies",
    "CopyErasure",
    "Database",
    "Disposition",
    "Draft",
    "EdgeIndex",
    "Embedder",
    "EmbedderFailed",
    "Erasure",
    "Evidence",
    "Extraction",
    "ExtractionFailed",
    "Extractor",
    "Filter",
    "FilterRefused",
    "Forget",
    "HashedEmbedder",
    "Hold",
    "Imported",
    "Include",
    "Index",
    "IndexUnavailable",
    "Item",
    "Items",
    "MemoryIndex",
    "MiniLmEmbedder",
    "OpenAiEmbedder",
    "Origin",
    "Question",
    "Recipe",
    "Recollection",
    "RecollectionError",
    "Refused",
    "Role",
    "Scope",
    "ScopeRefused",
    "Selector",
    "Traces",
    "Trust",
    "Unavailable",
    "UnknownAssertion",
    "UnknownJob",
    "Verdict",
    "Which",
    "Withheld",
    "WordLlamaEmbedder",
    "block",
    "choose_embedder",
    "current_revision",
    "extract",
    "head_revision",
    "migrate",
    "owned_index",
    "parse_filter",
    "quote_hash",
    "schema_gap",
    "server_index",
]
