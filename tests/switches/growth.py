"""Recorded answers of a switch whose counters grow with time, as in the fixtures' minute."""

import re

_number = re.compile(r"\d+")

#: Seconds between the answers of before/ and those of after/.
MINUTE = 60


def grown(before: str, after: str, seconds: float) -> str:
    """What the switch answers so many seconds after `before`: each number that grew grows on."""
    start = _number.findall(before)
    if len(start) != len(_number.findall(after)):
        return after  # another answer, as from a command that a shell ran
    numbers = iter(start)

    def at(found: re.Match[str]) -> str:
        old, new = next(numbers), found[0]
        if old == new:
            return new
        return str(int(old) + round((int(new) - int(old)) * seconds / MINUTE))

    return _number.sub(at, after)
