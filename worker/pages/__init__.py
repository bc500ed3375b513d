"""Pages that people read: one report as Markdown or HTML, and the pictures on it. They compute nothing."""
