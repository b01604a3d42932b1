"""RecMem: what is said stays as it is until it recurs; then episodes and facts are made of it.

Source: RecMem (ACL 2026 Findings).
"""
