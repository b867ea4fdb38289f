"""Memory: what the next run should know. Assertions across threads, each traceable to the moment it came from.

Bring a database up to date with `migrate`, open it, give a `Recollection` an index and an embedder, and use its verbs.
Memory keeps an origin as an opaque value and knows nothing of threads, runs or journals; a run goes on without it.
"""

from typing import TYPE_CHECKING

from threadmark.lazy import lazy_exports

if TYPE_CHECKING:
    from threadmark.memory.choice import choose_embedder, owned_index, server_index
    from threadmark.memory.embedders import HashedEmbedder, MiniLmEmbedder, OpenAiEmbedder, WordLlamaEmbedder
    from threadmark.memory.embedders.embedder import Embedder
    from threadmark.memory.erase.erasure_manifest import ErasureManifest
    from threadmark.memory.erase.external_copies import CopyErasure, ExternalCopies
    from threadmark.memory.erase.forget import Erasure, Forget
    from threadmark.memory.errors import (
        AlreadyRetracted,
        AnsweredBefore,
        BoundReached,
        CannotUndo,
        EmbedderFailed,
        EmbedderMissing,
        FilterRefused,
        ImportGivenUp,
        ImportUnderWay,
        IndexUnavailable,
        ReceiptInProgress,
        ReceiptReused,
        RecollectionError,
        Refused,
        ScopeRefused,
        Unavailable,
        UnknownAssertion,
        UnknownJob,
        UnknownQuarantine,
    )
    from threadmark.memory.exports.spooled_lines import SpooledLines
    from threadmark.memory.extraction import Extraction, ExtractionFailed, Extractor, extract
    from threadmark.memory.imports.importer import Imported
    from threadmark.memory.index.claimed_index import ClaimedIndex
    from threadmark.memory.index.edge_index import EdgeIndex
    from threadmark.memory.index.index import Index
    from threadmark.memory.index.memory_index import MemoryIndex
    from threadmark.memory.index.rebuild import Agreement
    from threadmark.memory.items.items import Item, Items
    from threadmark.memory.merged.merged_chains import Chain, merged_chains
    from threadmark.memory.merged.splitting import SplitName, split_chain
    from threadmark.memory.migrations import current_revision, head_revision, migrate, schema_gap
    from threadmark.memory.model.admission import Hold, Selector
    from threadmark.memory.model.assertion import (
        ITEM,
        TURN,
        Assertion,
        Cardinality,
        Closing,
        Disposition,
        Draft,
        Verdict,
        Which,
    )
    from threadmark.memory.model.filters import Filter, parse_filter
    from threadmark.memory.model.provenance import Change, Evidence, Origin, Role, Trust, quote_hash
    from threadmark.memory.model.question import Answer, Answers, Include, Question, Withheld
    from threadmark.memory.model.scope import Scope
    from threadmark.memory.recall.block import NOTICE, block
    from threadmark.memory.recall.recall_log import Access
    from threadmark.memory.recall.recipe import CURRENT, Recipe
    from threadmark.memory.recollection import Recollection
    from threadmark.memory.store.database import Database
    from threadmark.memory.store.receipts import Receipt
else:
    __getattr__, __dir__ = lazy_exports(__name__, __file__)

__all__ = [
    "CURRENT",
    "ITEM",
    "NOTICE",
    "TURN",
    "Access",
    "Agreement",
    "AlreadyRetracted",
    "Answer",
    "AnsweredBefore",
    "Answers",
    "Assertion",
    "BoundReached",
    "CannotUndo",
    "Cardinality",
    "Chain",
    "Change",
    "ClaimedIndex",
    "Closing",
    "CopyErasure",
    "Database",
    "Disposition",
    "Draft",
    "EdgeIndex",
    "Embedder",
    "EmbedderFailed",
    "EmbedderMissing",
    "Erasure",
    "ErasureManifest",
    "Evidence",
    "ExternalCopies",
    "Extraction",
    "ExtractionFailed",
    "Extractor",
    "Filter",
    "FilterRefused",
    "Forget",
    "HashedEmbedder",
    "Hold",
    "ImportGivenUp",
    "ImportUnderWay",
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
    "Receipt",
    "ReceiptInProgress",
    "ReceiptReused",
    "Recipe",
    "Recollection",
    "RecollectionError",
    "Refused",
    "Role",
    "Scope",
    "ScopeRefused",
    "Selector",
    "SplitName",
    "SpooledLines",
    "Trust",
    "Unavailable",
    "UnknownAssertion",
    "UnknownJob",
    "UnknownQuarantine",
    "Verdict",
    "Which",
    "Withheld",
    "WordLlamaEmbedder",
    "block",
    "choose_embedder",
    "current_revision",
    "extract",
    "head_revision",
    "merged_chains",
    "migrate",
    "owned_index",
    "parse_filter",
    "quote_hash",
    "schema_gap",
    "server_index",
    "split_chain",
]
