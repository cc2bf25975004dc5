"""One update of the policy."""
