"""Names of functions that are known but not scalar, or not deterministic: they are refused by their kind."""

from __future__ import annotations


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


OTHER_AGGREGATES = _names(
    "approx_count_distinct approx_percentile array_agg bit_and bit_or bit_xor collect_list collect_set first "
    "first_value kurtosis last last_value listagg median mode percentile percentile_approx regr_slope skewness "
    "string_agg try_avg try_sum"
)
NONDETERMINISTIC = _names(
    "rand random randn randstr uniform uuid shuffle now current_date curdate current_timestamp localtimestamp current_time "
    "unix_timestamp current_timezone current_user user session_user current_catalog current_database current_schema "
    "monotonically_increasing_id spark_partition_id input_file_name input_file_block_start input_file_block_length version"
)
WINDOW_ONLY = _names("row_number rank dense_rank percent_rank cume_dist ntile lag lead nth_value")
