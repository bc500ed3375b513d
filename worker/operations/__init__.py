"""How a running process is looked after: logs, vital signs, endpoint, notifications, safe mode, doctor."""
