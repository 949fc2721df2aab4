"""Django leaves Chinese numbers ungrouped; accounts in China are kept in groups of three."""

THOUSAND_SEPARATOR = ","
NUMBER_GROUPING = 3
SHORT_DATE_FORMAT = "Y-m-d"
SHORT_DATETIME_FORMAT = "Y-m-d H:i"
