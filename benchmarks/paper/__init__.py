"""The comparison: data sets, methods and one objective; ``run.py`` joins them."""
