"""Files with rows: CSV and Parquet, read whole to learn from, or in chunks to answer more rows than fit in memory.

A column is one of two kinds. *Numbers* (and true/false, as 1 and 0) become float64 with NaN where a value is missing;
*text* becomes Python strings with None. A price belongs to a column of the file, however many columns a model makes of
it. Needs pandas and pyarrow, which the extra ``cli`` brings.
"""

from sparing.tables.answering import predict_table
from sparing.tables.content import TableError
from sparing.tables.full_models import ESTIMATORS, full_model
from sparing.tables.labelled import Labelled, fingerprint, read_labelled
from sparing.tables.price_lists import draft_price_list
from sparing.tables.reading import read_table, table_chunks
from sparing.tables.writing import TableWriter, whole_file

__all__ = [
    "ESTIMATORS",
    "Labelled",
    "TableError",
    "TableWriter",
    "draft_price_list",
    "fingerprint",
    "full_model",
    "predict_table",
    "read_labelled",
    "read_table",
    "table_chunks",
    "whole_file",
]
