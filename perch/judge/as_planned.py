"""The parts of an output -> one part for each record that the plan expects, in its order."""

from __future__ import annotations

from perch.judge.asked import Asked, spoken
from perch.judge.outcome import Cause
from perch.model.figures import encode
from perch.model.part import Part
from perch.model.plan import Expect, Flow
from perch.model.record import Error
from perch.tools.transfer import place_of_expect, place_of_part, summed

#: Where a part lies within its flow: the size, or of transfers their place in words.
Place = int | str | None


def _place_of_part(flow: Flow, part: Part) -> Place:
    if flow.kind == "transfer":
        return place_of_part(part)
    return part.params.size_bytes if part.params else None


def _place_of_record(flow: Flow, expect: Expect) -> Place:
    return place_of_expect(expect) if flow.kind == "transfer" else expect.size_bytes


def _in_words(expect: Expect) -> str:
    return encode(expect).decode()


def _spoil(part: Part, code: int | None, message: str) -> None:
    part.status, part.error = "error", Error(code, message, traffic=True)


def _unmeasured(cause: Cause | None, ended: Part | None, some: bool, expect: Expect) -> Part:
    """A record without a line of its own: the cause, or the error line that ended it, says why.

    An error line without a size (no connection, half a line) is the record's own; one of another
    size only kept this one from running. `some`: something was measured.
    """
    if ended is not None and ended.error is not None:
        why = ended.error
        if ended.params is not None and ended.params.size_bytes is not None:
            return Part(status="not_measured", error=Error(why.code, f"not reached: {why.message}"))
        if cause is None:
            return Part(status="error", error=Error(why.code, why.message, why.traffic or some))
        code = why.code if cause.code is None else cause.code
        message = f"{cause.message}; {why.message}"
        return Part(status="error", error=Error(code, message, why.traffic or some))
    if cause is not None:
        traffic = some and cause.state == "error"
        return Part(status=cause.state, error=Error(cause.code, cause.message, traffic))
    message = f"the tool exited 0 but left no result for {_in_words(expect)}"
    return Part(status="error", error=Error(6, message, traffic=True))


def matched(flow: Flow, parts: list[Part], cause: Cause | None, asked: Asked) -> list[Part]:
    """One part for each `expect`. A part that is not as planned is an error from here on."""
    placed: dict[Place, list[Part]] = {}
    for part in parts:
        if part.params is not None and part.params.size_bytes is not None:
            placed.setdefault(_place_of_part(flow, part), []).append(part)
    ended = next((part for part in parts if part.status == "error"), None)
    some = any(part.status == "ok" for part in parts)
    found = []
    for at, expect in enumerate(flow.expect):
        mine = placed.get(_place_of_record(flow, expect), [])
        if len(mine) > 1:
            _spoil(mine[0], 6, f"the output holds {len(mine)} results for {_in_words(expect)}")
        elif mine:
            asked.judge(at, mine[0])
        found.append(mine[0] if mine else _unmeasured(cause, ended, some, expect))
    return summed(flow, found)


def _is_whole(flow: Flow, parts: list[Part]) -> bool:
    """Whether the parts are one for each record that is expected, in their order."""
    if flow.kind == "transfer" or len(parts) != len(flow.expect):
        return False
    sizes = [_place_of_part(flow, part) for part in parts]
    wanted = [expect.size_bytes for expect in flow.expect]
    return None not in sizes and sizes == wanted and len(set(sizes)) == len(sizes)


def name_misfit(found: list[Part], parts: list[Part]) -> None:
    """Names a result for another size than planned.

    iperf chooses a default where its option is misspelt.
    """
    if len(found) != 1 or len(parts) != 1 or parts[0].status != "ok" or found[0] is parts[0]:
        return
    size = parts[0].params and parts[0].params.size_bytes
    if found[0].error:
        found[0].error.message = f"the result is for {spoken(size)} bytes, not as planned"


def check_rest(flow: Flow, found: list[Part], parts: list[Part]) -> None:
    """Output that belongs to no expected record makes all doubtful: the last one stands for it.

    It may be garbage behind the last line, or a size that was not asked for.
    """
    if len(parts) <= len(found) or any(part.status != "ok" for part in found):
        return
    expected = {_place_of_record(flow, expect) for expect in flow.expect}
    for part in parts:
        size = part.params and part.params.size_bytes
        if size is None or _place_of_part(flow, part) not in expected:
            other = f"it holds a result for {spoken(size)} bytes, which was not asked for"
            _spoil(found[-1], 6, part.error.message if part.error else other)
            return


def check_exit(found: list[Part], cause: Cause | None) -> None:
    """A command that measured everything and still failed.

    Exit 1 is a limit missed and leaves the figures; any other code spoils the last one, so that the
    run cannot pass.
    """
    if cause is None or any(part.status != "ok" for part in found):
        return
    if cause.code != 1:
        _spoil(found[-1], cause.code, cause.message)
        return
    for part in found:
        part.error = Error(1, cause.message, traffic=True)


def check_server(found: list[Part], cause: Cause | None) -> None:
    """Without the server's word no figure of the flow counts, whatever its client printed."""
    if cause is None:
        return
    for part in found:
        if part.status == "ok":
            _spoil(part, cause.code, cause.message)


def expected_parts(
    flow: Flow,
    parts: list[Part],
    cause: Cause | None,
    server_cause: Cause | None,
    asked: Asked,
) -> list[Part]:
    """What a flow's output says of each record that the plan expects."""
    if cause is None and server_cause is None and _is_whole(flow, parts):
        for at, part in enumerate(parts):
            asked.judge(at, part)
        return parts
    found = matched(flow, parts, cause, asked)
    name_misfit(found, parts)
    check_rest(flow, found, parts)
    check_exit(found, cause)
    check_server(found, server_cause)
    return found
