"""What providers demand of calls and results: each checker is written from the provider's own rule."""

from collections.abc import Sequence

from threadmark.compaction.input.source import Role
from threadmark.compaction.view import RenderedPart

__all__ = ["orphans_anthropic", "orphans_chat", "orphans_gemini", "orphans_responses"]


def orphans_chat(parts: Sequence[RenderedPart]) -> list[str]:
    """Chat Completions: tool messages follow the message that asked, one for each call, before anybody else speaks."""
    faults: list[str] = []
    waiting: list[str] = []
    for place, part in enumerate(parts):
        if part.role is Role.TOOL:
            if part.call_id not in waiting:
                faults.append(f"{place}: result {part.call_id} without a call")
            else:
                waiting.remove(part.call_id)
            continue
        if waiting:
            faults.append(f"{place}: calls {waiting} without a result")
        waiting = [call.id for call in part.calls]
        if len(set(waiting)) != len(waiting) or "" in waiting:
            faults.append(f"{place}: ids {waiting}")
    return faults


def orphans_responses(parts: Sequence[RenderedPart]) -> list[str]:
    """Responses: each function_call_output names a function_call that came before it and has no output yet."""
    faults: list[str] = []
    open_calls: list[str] = []
    for place, part in enumerate(parts):
        if part.role is Role.TOOL:
            if part.call_id is None or part.call_id not in open_calls:
                faults.append(f"{place}: output without a call")
            else:
                open_calls.remove(part.call_id)
        open_calls.extend(call.id for call in part.calls)
    last_speaker = next((part for part in reversed(parts) if part.role is not Role.TOOL), None)
    allowed = {call.id for call in last_speaker.calls} if last_speaker else set()
    faults.extend(f"call {call} without an output" for call in open_calls if call not in allowed)
    return faults


def orphans_anthropic(parts: Sequence[RenderedPart]) -> list[str]:
    """Messages: all tool_use blocks of a turn are answered by tool_result blocks at the start of the next user turn."""
    turns: list[tuple[str, list[RenderedPart]]] = []
    for part in parts:
        side = "assistant" if part.role is Role.AI else "user"
        if turns and turns[-1][0] == side:
            turns[-1][1].append(part)
        else:
            turns.append((side, [part]))
    faults: list[str] = []
    for place, (side, inside) in enumerate(turns):
        if side == "assistant":
            asked = sorted(call.id for part in inside for call in part.calls)
            following = turns[place + 1][1] if place + 1 < len(turns) else None
            got = sorted(str(part.call_id) for part in following or () if part.role is Role.TOOL)
            waits = place + 2 == len(turns) and all(part.role is Role.TOOL for part in following or ())
            if waits and set(got) <= set(asked):
                continue  # the thread ends here and waits for the rest: nothing is sent yet
            if following is not None and asked != got:
                faults.append(f"turn {place}: asked {asked}, got {got}")
        elif place == 0 and any(part.role is Role.TOOL for part in inside):
            faults.append("the first turn has results")
    return faults


def orphans_gemini(parts: Sequence[RenderedPart]) -> list[str]:
    """generateContent: the turn after function calls has exactly as many function responses."""
    faults: list[str] = []
    expected = 0
    for place, part in enumerate(parts):
        if part.role is Role.TOOL:
            expected -= 1
            if expected < 0:
                faults.append(f"{place}: one response too many")
                expected = 0
            continue
        if expected:
            faults.append(f"{place}: {expected} responses are missing")
        expected = len(part.calls)
    return faults
