"""The command line ``anaplat``: the platform in a terminal, without a DAG."""
