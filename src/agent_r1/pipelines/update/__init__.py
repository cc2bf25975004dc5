"""Update the policy."""
