"""Knowledge base → tasks and the corpus that answers them."""
