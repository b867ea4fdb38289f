"""Values that the other rooms share and the store keeps: plans, policies, money, promotions, orders, kept views."""
