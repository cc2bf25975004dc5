"""What the experiment showed."""
