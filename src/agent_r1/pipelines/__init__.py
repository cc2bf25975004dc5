"""The Kedro pipelines: one folder per stage, with its nodes and its wiring."""
