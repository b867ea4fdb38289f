"""The server's model as a summariser: one call without tools for each chunk."""

from threadmark.compaction import SummariserFailed, SummaryPrompt, SummaryReply
from threadmark.state import Message
from threadmark.workers.models import ChatModel, ModelError, ModelRequest

__all__ = ["ModelSummariser"]


class ModelSummariser:
    """Asks the model of the server, or the one that is named."""

    def __init__(self, model: ChatModel, name: str | None = None) -> None:
        self._model, self._name = model, name

    async def summarise(self, prompt: SummaryPrompt) -> SummaryReply:
        """The model's reply. Raises SummariserFailed when there is none."""
        request = ModelRequest(
            messages=(Message(id=prompt.key, type="human", content=prompt.user),),
            idempotency_key=prompt.key,
            instructions=prompt.system,
            model=self._name,
            reply_token_count_max=prompt.output_tokens_max,
        )
        try:
            reply = await self._model.reply(request, _ignore)
        except ModelError as error:
            raise SummariserFailed(str(error)) from error
        return SummaryReply(
            text=reply.text,
            finish_reason=reply.finish_reason,
            has_tool_calls=bool(reply.tool_calls),
            prompt_tokens=reply.usage.input_tokens,
            output_tokens=reply.usage.output_tokens,
        )


def _ignore(_: str) -> None:
    """A summary is not streamed while it is written."""
