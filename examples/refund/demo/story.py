"""The story: somebody asks for a refund, the server dies in the middle of a step, and the next one goes on."""

import json
from collections.abc import Iterator
from typing import Any

from threadmark.examples.refund.demo.api import Api, Event, StreamBroke
from threadmark.examples.refund.demo.screen import Screen
from threadmark.examples.refund.demo.server import DemoFailed, DemoServer

__all__ = ["Story"]

ORDER_ID = "o-17"
CENTS = 4_200
STREAM = {"stream_mode": ["messages-tuple", "custom"], "stream_resumable": True}


class Story:
    """Tells the story on `server`, to whoever looks at `screen`."""

    def __init__(self, screen: Screen, server: DemoServer, api: Api, *, step_ms: int) -> None:
        self._screen = screen
        self._server = server
        self._api = api
        self._step_ms = step_ms
        self._seen: set[tuple[str, str]] = set()
        self._last_id = "0"
        self.thread_id = ""
        self.run_id = ""
        self.killed_pids: list[int] = []

    def ask(self) -> None:
        """Put the case to the agent, and kill the server while it writes to the customer."""
        self._screen.scene("A case for the agent")
        self.thread_id = self._api.post("/threads", {})["thread_id"]
        script = _script(self._step_ms)
        self._screen.quote("you", script)
        said = {"messages": [{"role": "user", "content": script}]}
        events = self._api.start(self._runs, {"assistant_id": "refund", "input": said, **STREAM})
        # One of two that go on at the same time is recorded then, and the other one is not.
        self._kill_after(events, {("called", "email_customer"), ("returned", "check_policy")})
        self._screen.blow("The message to the customer had begun, and nobody has recorded what became of it.")

    def go_on(self) -> None:
        """Start the server again and listen on, until the agent wants an approval."""
        self._screen.scene("Another server, on the same data")
        self._server.start()
        self._listen(self._rejoined())

    def approve(self, *, then_kill: bool) -> None:
        """Say yes to what the agent asks, and perhaps kill the server while the money is on its way."""
        self._screen.scene("A person is asked")
        asked = self._question("approval")
        self._screen.ask(f"May {asked['tool']} be called with {json.dumps(asked['arguments'])}? You say yes.")
        events = self._api.start(self._runs, {"assistant_id": "refund", "command": {"resume": True}, **STREAM})
        if not then_kill:
            self._listen(events)
            return
        self._kill_after(events, {("called", "refund")})
        self._screen.blow("The refund had begun. Was it paid? Nobody may simply try again: it must not be paid twice.")

    def settle(self) -> None:
        """Start once more; the refund is in doubt, and its verifier asks the outside world."""
        self._screen.scene("A third server, and a step in doubt")
        self._server.start()
        self._listen(self._rejoined())
        asked = self._question("in_doubt")
        self._screen.ask(f"{asked['tool']} is in doubt: the run waits, and {asked['tool']} is not called again.")
        settled = self._api.post(f"/runs/{self.run_id}/steps/{asked['step_key']}/resolve", {"outcome": "verify"})
        self._screen.tell(f"Its verifier looks for the payment by its idempotency key: {settled['outcome']}.")
        self._listen(self._rejoined())

    def steps(self) -> dict[str, Any]:
        """Every step of the whole piece of work, with its attempts, and the totals."""
        steps: dict[str, Any] = self._api.get(f"/runs/{self.run_id}/steps")
        return steps

    def last_words(self) -> str:
        """What the agent said in the end."""
        content: str = self._api.get(f"/threads/{self.thread_id}/state")["values"]["messages"][-1]["content"]
        return content

    def journal_holds(self) -> bool:
        """Whether the hash chain of the thread's journal holds."""
        return bool(self._api.get(f"/threads/{self.thread_id}/journal/verify")["holds"])

    @property
    def _runs(self) -> str:
        return f"/threads/{self.thread_id}/runs/stream"

    def _rejoined(self) -> Iterator[Event]:
        path = f"/threads/{self.thread_id}/runs/{self.run_id}/stream"
        self._screen.tell(f"The stream is joined again, behind event {self._last_id}.")
        return self._api.rejoin(path, self._last_id)

    def _question(self, kind: str) -> dict[str, Any]:
        thread = self._api.get(f"/threads/{self.thread_id}")
        asked = [each["value"] for task in thread["interrupts"].values() for each in task]
        found = next((each for each in asked if each["kind"] == kind), None)
        if found is None:
            raise DemoFailed(f"the thread is {thread['status']} and asks for no {kind}: {asked}")
        return dict(found)

    def _kill_after(self, events: Iterator[Event], awaited: set[tuple[str, str]]) -> None:
        for event in events:
            self._show(event)
            if awaited <= self._seen:
                break
        else:
            raise DemoFailed(f"the stream ended before {sorted(awaited)} were seen")
        pid = self._server.kill()
        self.killed_pids.append(pid)
        self._screen.blow(f"SIGKILL: process {pid} is gone.")
        try:
            for event in events:
                self._show(event)
        except StreamBroke:
            self._screen.tell("The stream broke.")

    def _listen(self, events: Iterator[Event]) -> None:
        for event in events:
            self._show(event)

    def _show(self, event: Event) -> None:
        self._last_id = event.id or self._last_id
        match event.name:
            case "metadata":
                self.run_id = event.data["run_id"]
                self._screen.tell(f"Run {self.run_id}, turn {event.data['attempt']}.")
            case "custom":
                called, attempt = event.data["effect"], event.data["attempt"]
                self._seen.add(("called", called))
                self._screen.quote("outside", f"{called} is called, attempt {attempt}")
            case "messages":
                self._show_message(event.data[0])
            case "error":
                raise DemoFailed(f"the run failed: {event.data}")
            case _:
                pass

    def _show_message(self, message: dict[str, Any]) -> None:
        if message["type"] == "tool":
            self._seen.add(("returned", message["name"]))
            self._screen.quote("recorded", f"{message['name']} came to {message['content']}")
            return
        if message["content"]:
            self._screen.word("agent", message["content"])
        for call in message["tool_call_chunks"]:
            self._screen.quote("agent", f"wants {call['name']} {call['args']}")


def _script(step_ms: int) -> str:
    """What the offline model is to do: a real one would find it out from a customer's words."""
    order, money = {"order_id": ORDER_ID}, {"amount_cents": CENTS}
    calls: list[tuple[str, str, dict[str, Any]]] = [
        ("call", "lookup_order", order),
        ("parallel", "check_policy", order | money),
        ("parallel", "email_customer", order | {"template": "received", "delay_ms": step_ms}),
        ("call", "refund", order | money | {"delay_ms": step_ms}),
        ("call", "confirm", order),
    ]
    return "\n".join(f"{word} {tool} {json.dumps(arguments)}" for word, tool, arguments in calls)
