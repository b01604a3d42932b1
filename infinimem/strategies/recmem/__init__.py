"""RecMem: what is said stays as it is until it recurs; then it is told."""
