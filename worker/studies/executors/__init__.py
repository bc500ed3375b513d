"""Where the tasks of a study run: in this process, in a pool of processes, or on a Dask cluster."""
