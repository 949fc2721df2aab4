"""What one figure is of: a criterion of an RFQ, a vendor's promise. Pure."""

from __future__ import annotations

from enum import StrEnum


class Per(StrEnum):
    """What the figure is of."""

    CARD = "card"
    SERVER = "server"
    WHOLE = "whole"  # everything that the lines bring


# Criteria of RFQs issued before a server had one name were hashed with the other one, which stays in the hash; the API
# still takes it.
SERVER_AS_HASHED = "node"
EARLIER = {SERVER_AS_HASHED: Per.SERVER}
