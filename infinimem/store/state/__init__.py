"""What the program remembers under .infinimem: seqs given, lines seen, what waits."""
