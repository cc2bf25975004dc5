"""Builds the knowledge base in `data/01_raw/knowledge_base` from its source packages."""
