"""A model that lists what should be remembered of a message. The message is data to it, and so is its reply to us."""

from threadmark.memory import ExtractionFailed
from threadmark.state import ExecutionId, Message, StepKey, idempotency_key_of
from threadmark.workers.models import ChatModel, ModelRequest
from threadmark.workers.models.errors import ModelRefused, ModelUnavailable, PromptInvalid

__all__ = ["PROMPT_VERSION", "ModelExtractor"]

#: Raised with every change of what the model is asked; kept with each statement.
PROMPT_VERSION = "1"
REPLY_TOKEN_COUNT_MAX = 2_000


class ModelExtractor:
    """The model of that name as an extractor (None: the server's); `task_id` is what its calls are paid for once by."""

    def __init__(self, model: ChatModel, model_name: str | None, task_id: str) -> None:
        self._model = model
        self._model_name = model_name
        self._task_id = task_id
        self._count = 0

    @property
    def name(self) -> str:
        """Model and prompt version."""
        return f"{self._model.name_for(self._model_name)}/extract-{PROMPT_VERSION}"

    async def extract(self, instruction: str, message: str) -> str:
        """The model's reply. Raises ExtractionFailed when there is none."""
        self._count += 1
        step = StepKey(f"extract-{self._count}")
        request = ModelRequest(
            model=self._model_name,
            instructions=instruction,
            messages=(Message(id="message", type="human", content=message),),
            reply_token_count_max=REPLY_TOKEN_COUNT_MAX,
            idempotency_key=idempotency_key_of(ExecutionId(self._task_id), step),
        )
        try:
            reply = await self._model.reply(request, lambda _piece: None)
        except (ModelUnavailable, ModelRefused, PromptInvalid) as error:
            raise ExtractionFailed(str(error)) from error
        return reply.text
