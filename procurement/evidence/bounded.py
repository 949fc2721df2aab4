"""JSON and XML from strangers, read in bounded time and memory."""

from __future__ import annotations

from core.messages import Message


class HostileInputError(ValueError):
    """The input is built to exhaust or to deceive a parser. It is rejected, with the reason."""

    def __init__(self, code: str, message: Message) -> None:
        super().__init__(code)
        self.code = code
        self.message = message
