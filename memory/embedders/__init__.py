"""Embedders: what turns a text into a vector. None of them touches the network unless it is given an address."""

from typing import TYPE_CHECKING

from threadmark.lazy import lazy_exports

if TYPE_CHECKING:
    from threadmark.memory.embedders.hashed import HashedEmbedder
    from threadmark.memory.embedders.minilm import MiniLmEmbedder
    from threadmark.memory.embedders.openai import OpenAiEmbedder
    from threadmark.memory.embedders.wordllama import WordLlamaEmbedder
else:
    __getattr__, __dir__ = lazy_exports(__name__, __file__)

__all__ = ["HashedEmbedder", "MiniLmEmbedder", "OpenAiEmbedder", "WordLlamaEmbedder"]
