"""The console: pages and an API over one store, which show its rows and write decisions."""
