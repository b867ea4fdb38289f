"""Threads of memory by purpose: a question never waits behind the texts of somebody's import."""

from concurrent.futures import ThreadPoolExecutor

__all__ = ["EXPORTS", "QUESTIONS", "TEXTS", "UPKEEP"]

#: What one recall asks.
QUESTIONS = ThreadPoolExecutor(2, thread_name_prefix="memory-question")
#: What is written, a batch at a time.
TEXTS = ThreadPoolExecutor(2, thread_name_prefix="memory-text")
#: Opening, claiming and closing.
UPKEEP = ThreadPoolExecutor(2, thread_name_prefix="memory-upkeep")
#: Exports, which nobody else waits for.
EXPORTS = ThreadPoolExecutor(1, thread_name_prefix="memory-export")
