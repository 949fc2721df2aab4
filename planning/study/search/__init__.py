"""The study: every way to run and to pay for a request, priced, filtered, ranked and explained. Pure."""
