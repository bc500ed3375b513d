"""Answers of the evidence tools: functions from a run as of one moment to a result that cites its rows."""
