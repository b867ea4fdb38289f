"""Embedders: what turns a text into a vector. None of them touches the network unless it is given an address."""

from threadmark.memory.embedders.hashed import HashedEmbedder
from threadmark.memory.embedders.minilm import MiniLmEmbedder
from threadmark.memory.embedders.openai import OpenAiEmbedder
from threadmark.memory.embedders.wordllama import WordLlamaEmbedder

__all__ = ["HashedEmbedder", "MiniLmEmbedder", "OpenAiEmbedder", "WordLlamaEmbedder"]
