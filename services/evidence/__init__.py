"""What a run can answer: a closed catalogue of questions over its rows as of one moment."""
