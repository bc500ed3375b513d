"""Planning of evidence: which tools answer a question, what they brought, and whether that is enough."""
