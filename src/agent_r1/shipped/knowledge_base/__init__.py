"""Builds the knowledge base of `data/01_raw/knowledge_base` from its source packages."""
