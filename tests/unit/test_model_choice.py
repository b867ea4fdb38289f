"""Which model serves, and what is refused when the server is set up."""

import pytest

from threadmark.state.entries.message import Message
from threadmark.workers.models import OFFLINE_MODEL, ModelRequest, ModelSettingRefused, create_model


@pytest.mark.parametrize(
    ("model", "api_key", "base_url", "name"),
    [
        (None, None, None, OFFLINE_MODEL),
        ("", "", "", OFFLINE_MODEL),
        (None, "sk-x", "https://models.invalid/v1", OFFLINE_MODEL),
        ("offline", "sk-x", "https://models.invalid/v1", OFFLINE_MODEL),
        ("mine/small:4b", "sk-x", None, "mine/small:4b"),
        ("mine", None, "http://localhost:1/v1", "mine"),
    ],
)
async def test_the_settings_name_a_model(
    model: str | None, api_key: str | None, base_url: str | None, name: str
) -> None:
    """The offline model serves unless another is named, and a key or a server for it is known."""
    chosen = create_model(model=model, api_key=api_key, base_url=base_url)

    assert chosen.name == name
    assert chosen.offline == (name == OFFLINE_MODEL)
    assert chosen.name_for(None) == name
    assert chosen.name_for("other") == (OFFLINE_MODEL if chosen.offline else "other")
    await chosen.close()


@pytest.mark.parametrize(
    ("model", "api_key", "base_url", "sentence"),
    [
        ("mine", None, None, "THREADMARK_MODEL is 'mine' and OPENAI_API_KEY is not set: set the key, set OPENAI_BASE"),
        ("my model", "sk-x", None, "a model's name has no blanks"),
        ("m" * 201, "sk-x", None, "200 signs at most"),
        ("mine", "sk-x", "localhost:1", "OPENAI_BASE_URL must begin with http:// or https://"),
        ("mine", "sk-x", "http:///v1", "OPENAI_BASE_URL must begin with http:// or https://"),
        ("mine", "sk-x", "http://[", "OPENAI_BASE_URL must begin with http:// or https://"),
    ],
)
def test_settings_that_lead_to_no_model_are_refused(
    model: str | None, api_key: str | None, base_url: str | None, sentence: str
) -> None:
    """The start stops with a sentence that names the variable and what to set."""
    with pytest.raises(ModelSettingRefused, match=sentence):
        create_model(model=model, api_key=api_key, base_url=base_url)


async def test_a_proxy_in_the_environment_does_not_take_the_offline_model_online(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The offline model answers in process, whatever the environment says of proxies."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    model = create_model()

    reply = await model.reply(ModelRequest(messages=(Message("1", "human", "x"),), idempotency_key="k"), lambda _: None)

    assert reply.text.startswith("You said: x")
    await model.close()
