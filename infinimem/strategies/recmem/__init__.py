"""RecMem: what is said stays as it is until it recurs; then it is told. Source: RecMem (ACL 2026
Findings)."""
