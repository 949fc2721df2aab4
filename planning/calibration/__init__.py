"""Learning from outcomes: shrinkage of efficiencies towards the published prior, and its use in estimates. Pure."""
