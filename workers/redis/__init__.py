"""Notifications, live feed and arq jobs over Redis."""
