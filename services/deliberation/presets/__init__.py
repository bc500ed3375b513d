"""The four presets of the one loop: reflection pass, quality loop, self-review and chunked writing."""
