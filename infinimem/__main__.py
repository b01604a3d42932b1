"""`python -m infinimem`, the same as `infinimem`."""

from infinimem.cli import main

if __name__ == "__main__":
    main()
