"""Benchmarks: methods side by side on public data sets, and what each cost. A face: it calls the facade."""
