"""What messages say. Pure."""

from threadmark.state import Message

__all__ = ["text_of"]


def text_of(message: Message) -> str:
    """The words of a message; its text parts are joined by line breaks."""
    if isinstance(message.content, str):
        return message.content
    return "\n".join(str(part.get("text", "")) for part in message.content if part.get("type") == "text")
