"""How a running process is looked after: logs, status, endpoint, notifications, safe mode, doctor."""
