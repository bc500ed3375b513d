"""Bar files: CSV and Parquet into columns, rows and times."""
