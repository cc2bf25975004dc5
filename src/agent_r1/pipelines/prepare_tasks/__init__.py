"""Knowledge base → tasks, and the corpus with their answers."""
