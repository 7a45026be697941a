"""How fast the product is, beside references that run in turns with it (docs/performance.md)."""
