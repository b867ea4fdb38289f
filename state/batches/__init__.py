"""Appends of many lease holders, written as one batch through the driver directly."""
