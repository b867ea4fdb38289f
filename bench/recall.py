"""Recall by category, beside BM25 and dense alone, through the whole of memory: database, embedded index, embedder.

    python -m bench.recall [--data FILE …] [--embedders wordllama,minilm,hashed]

Always measured: the project's own synthetic conversations (`bench.parts.conversations`). Measured when it is there:
`../shared/data/locomo-dev.json` beside the repository (LoCoMo, CC BY-NC 4.0: for evaluation only, never a part of this
project), or any file of that form given with `--data`. Adversarial questions are left out, as they have no evidence.
"""

import argparse
import asyncio
import hashlib
import json
import re
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from bench.parts.conversations import Asked, Conversation, Said, synthetic
from threadmark.memory import (
    CURRENT,
    TURN,
    Database,
    Draft,
    EdgeIndex,
    Embedder,
    EmbedderFailed,
    HashedEmbedder,
    MiniLmEmbedder,
    Origin,
    Question,
    Recipe,
    Recollection,
    Scope,
    WordLlamaEmbedder,
    migrate,
)

LOCOMO = Path(__file__).parents[2] / "shared" / "data" / "locomo-dev.json"
CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop"}
NOW = datetime(2026, 1, 1, tzinfo=UTC)
CUTS = (5, 10)
_ALONE = replace(
    CURRENT, text=0.0, context=0.0, dense=0.0, neighbour=0.0, speaker=0.0, date=0.0, time_words=0.0, session=0.0
)
RECIPES: dict[str, Recipe] = {
    "BM25 alone": replace(_ALONE, text=1.0),
    "dense alone": replace(_ALONE, dense=1.0),
    "recall": CURRENT,
}


@dataclass
class Tally:
    """Sums over questions."""

    count: int = 0
    at_5: float = 0.0
    at_10: float = 0.0
    reciprocal: float = 0.0

    def add(self, places: Sequence[int | None]) -> None:
        """Count one question by the places (0 is best) of its evidence; None is not found."""
        found = [place for place in places if place is not None]
        self.count += 1
        self.at_5 += sum(place < CUTS[0] for place in found) / len(places)
        self.at_10 += sum(place < CUTS[1] for place in found) / len(places)
        self.reciprocal += 1 / (1 + min(found)) if found else 0.0

    def __str__(self) -> str:
        means = (value / max(1, self.count) for value in (self.at_5, self.at_10, self.reciprocal))
        return " | ".join(f"{mean:.3f}" for mean in means) + f" | {self.count}"


def locomo(path: Path) -> Iterator[Conversation]:
    """The conversations of a file in LoCoMo's form."""
    for sample in json.loads(path.read_text(encoding="utf-8")):
        said = list(_said(sample["conversation"]))
        known = {each.name for each in said}
        asked = [
            Asked(text=each["question"], evidence=evidence, category=CATEGORIES[each["category"]])
            for each in sample["qa"]
            if each["category"] in CATEGORIES and (evidence := _evidence(each.get("evidence", []), known))
        ]
        yield Conversation(name=str(sample["sample_id"]), said=said, asked=asked)


def _said(conversation: dict[str, object]) -> Iterator[Said]:
    sessions = sorted((key for key in conversation if re.fullmatch(r"session_\d+", key)), key=lambda key: int(key[8:]))
    for key in sessions:
        at = datetime.strptime(str(conversation[f"{key}_date_time"]), "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
        turns = conversation[key]
        assert isinstance(turns, list)
        for turn in turns:
            text = turn["text"]
            if turn.get("blip_caption"):
                text += f" [shares {turn['blip_caption']}]"
            yield Said(name=turn["dia_id"], speaker=turn["speaker"], text=text, at=at)


def _evidence(given: Sequence[str], known: set[str]) -> list[str]:
    found = [f"D{int(day)}:{int(turn)}" for each in given for day, turn in re.findall(r"D:?(\d+):(\d+)", each)]
    return list(dict.fromkeys(each for each in found if each in known))


async def measure(conversations: Sequence[Conversation], embedder: Embedder, recipe: Recipe) -> dict[str, Tally]:
    """Tallies by category, and `all`."""
    tallies: dict[str, Tally] = defaultdict(Tally)
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/memory.db"
        migrate(url)
        memory = Recollection(
            Database.open(url), EdgeIndex(Path(folder) / "index"), embedder, clock=lambda: NOW, recipe=recipe
        )
        await memory.open(background=False)
        try:
            for conversation in conversations:
                scope = Scope(tenant_id="bench", namespace=(conversation.name,))
                await _remember(memory, conversation, scope)
                for asked in conversation.asked:
                    places = await _places(memory, asked, scope)
                    tallies["all"].add(places)
                    tallies[asked.category].add(places)
        finally:
            await memory.close()
    return tallies


async def _remember(memory: Recollection, conversation: Conversation, scope: Scope) -> None:
    drafts = [
        Draft(
            namespace=scope.namespace,
            text=each.text,
            kind=TURN,
            observed_at=each.at,
            origin=Origin(thread_ref=conversation.name, message_ref=each.name, actor=each.speaker, at=each.at),
        )
        for each in conversation.said
    ]
    for at in range(0, len(drafts), 500):
        await memory.remember(drafts[at : at + 500], scope=scope, now=NOW)
    await memory.index_pending()


async def _places(memory: Recollection, asked: Asked, scope: Scope) -> list[int | None]:
    answers = await memory.recall(Question(text=asked.text, scope=scope, asked_at=NOW, count_max=50))
    order = [each.assertion.provenance[0].origin.message_ref for each in answers.answers]
    return [order.index(each) if each in order else None for each in asked.evidence]


def embedders(names: Sequence[str]) -> Iterator[Embedder]:
    """The embedders by name; one whose weights are not installed is reported and left out."""
    for name in names:
        try:
            if name == "minilm":
                yield MiniLmEmbedder()
            else:
                yield WordLlamaEmbedder() if name == "wordllama" else HashedEmbedder()
        except EmbedderFailed as error:
            print(f"(not measured: {name}: {error})\n")


async def report(title: str, conversations: Sequence[Conversation], chosen: Sequence[Embedder]) -> None:
    """Print the table of one set."""
    questions = sum(len(each.asked) for each in conversations)
    turns = sum(len(each.said) for each in conversations)
    print(f"## {title}: {len(conversations)} conversations, {turns} turns, {questions} questions\n")
    print("| method | category | recall@5 | recall@10 | MRR | questions |\n| --- | --- | --- | --- | --- | --- |")
    for embedder in chosen:
        for name, recipe in RECIPES.items():
            tallies = await measure(conversations, embedder, recipe)
            label = name if name == "BM25 alone" else f"{name} ({embedder.name})"
            for category in ["all", *sorted(tallies.keys() - {"all"})]:
                print(f"| {label} | {category} | {tallies[category]} |", flush=True)
    print()


async def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="recall@5, recall@10 and MRR by category")
    parser.add_argument("--data", type=Path, nargs="*", default=[LOCOMO] if LOCOMO.is_file() else [])
    parser.add_argument("--embedders", default="wordllama,minilm")
    given = parser.parse_args()
    chosen = list(embedders(given.embedders.split(",")))
    await report("synthetic", list(synthetic()), chosen)
    if not given.data:
        print("(not measured: LoCoMo; its file is not here)")
    for path in given.data:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()[:12]
        await report(f"{path.name} (sha256 {digest}…)", list(locomo(path)), chosen)


if __name__ == "__main__":
    asyncio.run(main())
