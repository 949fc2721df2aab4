"""Readers of telemetry files that planning (reviews) and procurement (acceptance) share. Pure: no framework."""
