"""What a person looks at and changes after the fact: replans, histories, reports, playbook files."""
