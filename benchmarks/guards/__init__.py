"""The crash test of guards: faulty and right orders, unchanged, in front of ours and every other one."""
