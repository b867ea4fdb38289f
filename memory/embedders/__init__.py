"""Embedders: what turns a text into a vector. None of them touches the network unless it is given an address."""

from memory.embedders.hashed import HashedEmbedder
from memory.embedders.minilm import MiniLmEmbedder
from memory.embedders.openai import OpenAiEmbedder
from memory.embedders.wordllama import WordLlamaEmbedder

__all__ = ["HashedEmbedder", "MiniLmEmbedder", "OpenAiEmbedder", "WordLlamaEmbedder"]
