"""Makes the tiny base model that ships in ``data/01_raw/tiny_base``."""
