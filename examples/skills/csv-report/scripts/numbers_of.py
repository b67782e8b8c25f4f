def number(text):
    """The number that a text stands for, or None."""
    try:
        return float(text.replace(" ", "").replace("_", ""))
    except ValueError:
        return None
