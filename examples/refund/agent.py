"""The agent of the refund story."""

from threadmark import ChatAgent
from threadmark.examples.refund.tools import check_policy, confirm, email_customer, lookup_order, refund

__all__ = ["refund_agent"]

refund_agent = ChatAgent(
    name="refund",
    description="Looks up an order, checks the policy, and refunds once a person has approved it.",
    instructions=(
        "You handle refunds. Look the order up and check the policy before you refund; a person approves each refund. "
        "Then confirm it and write to the customer. Amounts are in cents."
    ),
    tools=(lookup_order, check_policy, email_customer, refund, confirm),
)
