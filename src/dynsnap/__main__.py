"""`python -m dynsnap`, where the console script is not on the path."""

from dynsnap.cli import main

if __name__ == "__main__":
    main()
