"""That a study lacks rounds, in the same words wherever it is said."""


def missing_rounds(count: int, *, more: bool = False) -> str:
    """How many rounds are missing, as a clause; `more` right behind how many there are.

    Examples:
        >>> missing_rounds(1), missing_rounds(1200)
        ('1 round is missing', '1,200 rounds are missing')
        >>> f"12 rounds of training ({missing_rounds(4, more=True)})"
        '12 rounds of training (4 more are missing)'
    """
    what = "more" if more else "round" if count == 1 else "rounds"
    return f"{count:,} {what} {'is' if count == 1 else 'are'} missing"
