"""Report the results of an experiment."""
