"""Where an offer is, and what may go there: regions, countries, export control."""

from __future__ import annotations

import re

_COUNTRY = (
    # first match wins; patterns of region names as the clouds write them
    (r"^(cn|ap-beijing|ap-shanghai|ap-guangzhou|ap-nanjing|ap-chengdu|ap-chongqing|china)", "CN"),
    (r"^(us|nam|eastus|westus|centralus|(north|south|west)central|na-siliconvalley)", "US"),
    (r"(tokyo|osaka|japan|asia-northeast1|asia-northeast2|^ap-northeast-[13]$|^jp)", "JP"),
    (r"(seoul|korea|asia-northeast3|^ap-northeast-2$|^kr)", "KR"),
    (r"(singapore|southeastasia|asia-southeast1|^ap-southeast-1$|^sg)", "SG"),
    (r"(sydney|melbourne|australia|^ap-southeast-2$|^ap-southeast-4$|^au)", "AU"),
    (r"(jakarta|indonesia|asia-southeast2|^ap-southeast-5$|^id)", "ID"),
    (r"(kuala|malaysia|^ap-southeast-3$|^my)", "MY"),
    (r"(mumbai|delhi|hyderabad|india|asia-south|^ap-south|^in)", "IN"),
    (r"(hong ?kong|eastasia|asia-east2|^ap-east-1$|^hk)", "HK"),
    (r"(taiwan|asia-east1$|^tw)", "TW"),
    (r"(finland|helsinki|europe-north1|^eu-north1$|^fin)", "FI"),
    (r"(stockholm|sweden|^eu-north-1$|europe-north2)", "SE"),
    (r"(milan|italy|^eu-south-1$|europe-west8|^it)", "IT"),
    (r"(madrid|spain|^eu-south-2$|europe-southwest)", "ES"),
    (r"(frankfurt|germany|^europe-central-1$|^eu-central-1$|europe-west3|^de)", "DE"),
    (r"(ireland|dublin|northeurope|^eu-west-1$|^ie)", "IE"),
    (r"(london|uksouth|ukwest|^eu-west-2$|europe-west2|^uk|^gb)", "GB"),
    (r"(paris|france|^eu-west-3$|^eu-west1$|europe-west9|^fr)", "FR"),
    (r"(netherlands|westeurope|europe-west4|^nl)", "NL"),
    (r"(belgium|europe-west1)", "BE"),
    (r"(canada|northamerica-northeast|^ca)", "CA"),
    (r"(brazil|saopaulo|southamerica|^sa-east)", "BR"),
    (r"(israel|^il|me-west1)", "IL"),
    (r"(uae|dubai|^me-central)", "AE"),
    (r"(iceland|^is)", "IS"),
    (r"(norway|^no)", "NO"),
)  # fmt: skip
_PATTERNS = tuple((re.compile(pattern), country) for pattern, country in _COUNTRY)
_NAMES = {
    "china": "CN", "mainland china": "CN", "中国": "CN", "usa": "US", "united states": "US", "japan": "JP",
    "singapore": "SG", "germany": "DE", "france": "FR", "india": "IN", "korea": "KR", "netherlands": "NL",
}  # fmt: skip
# Words of an export note that stop a purchase in mainland China. What a note does not say is not assumed.
_BARRED = ("licence needed for china", "banned", "shipments to china stopped", "entity list",
           "covered by oct 2023 rule", "over oct 2023 tpp threshold", "itself banned")  # fmt: skip
_FREE = ("china-legal", "chinese domestic", "not subject", "sales resumed", "hygon on us entity list",
         "entity list oct 2023")  # fmt: skip
NOT_FOR_SALE = "cloud only"


def country_of(region: str) -> str | None:
    """ISO country of a cloud's region; None when the name does not tell."""
    name = region.lower().strip()
    if len(name) == 2 and name != "eu":
        return name.upper()
    for pattern, country in _PATTERNS:
        if pattern.search(name):
            return country
    return None


def matches(region: str, wanted: str) -> bool:
    """Whether an offer's `region` is what was asked for: the region itself, its beginning, or its country."""
    asked, name = wanted.lower().strip(), region.lower()
    if not asked or name == asked or name.startswith(asked):
        return True
    country = _NAMES.get(asked) or (asked.upper() if len(asked) == 2 else country_of(asked))
    known = country_of(name)
    exact = country_of(asked) is not None and len(asked) > 2 and asked not in _NAMES
    return not exact and country is not None and known == country


def barred(note: str, country: str) -> bool:
    """Whether the export note speaks against buying the accelerator for use in `country`."""
    text = note.lower()
    if country != "CN" or any(words in text for words in _FREE):
        return False
    return any(words in text for words in _BARRED)
