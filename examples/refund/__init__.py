"""The refund story: an agent whose tools read, send, pay and confirm."""

from threadmark.examples.refund.agent import refund_agent

__all__ = ["refund_agent"]
