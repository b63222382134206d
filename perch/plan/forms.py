"""A test's commands: made from its params, and compared with those that a plan holds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest

from perch.model.plan import Flow, Form, PlanTest
from perch.model.record import Number
from perch.model.suite import SuiteTest
from perch.tools import TOOLS
from perch.tools.command import Command, Ends, Word

#: Stands in the params of a soak for the seconds of the round that a flow is in.
ROUND_SECONDS = "{round.seconds}"


def command_of(test: SuiteTest | PlanTest | Flow) -> Command | None:
    """How tests of this tool and kind run; None where no suite may ask for them."""
    tool = TOOLS.get(test.tool)
    return tool.commands.get(test.kind) if tool is not None else None


def test_of(name: str, planned: PlanTest | Flow, round_s: Number | None = None) -> SuiteTest:
    """A plan's test as its suite has it; of a soak as it runs in a round of so many seconds."""
    params = planned.params
    if round_s is not None and params.get("duration") == f"{ROUND_SECONDS}s":
        params = params | {"duration": round_s}
    return SuiteTest(
        name=name,
        title=planned.title,
        tool=planned.tool,
        kind=planned.kind,
        backend=planned.backend,
        provider=planned.provider,
        op=planned.op or "send",
        params=params,
        rails=planned.rails,
    )


def form(test: SuiteTest, command: Command, devices: int) -> Form:
    """The test with so many devices of each end. Raises ValueError or KeyError as its refusals."""
    template = command.template(test, devices)
    return Form(
        client=list(template.client),
        server=list(template.server),
        expect=command.expect(test, devices),
    )


# ---- a plan's own forms --------------------------------------------------------------------------


def _flat(words: Sequence[Word]) -> Iterator[str]:
    for word in words:
        yield from [word] if isinstance(word, str) else word


def _other_word(planned: Sequence[Word], made: Sequence[Word]) -> str | None:
    """The first word in which two commands differ, behind the word before it."""
    if list(planned) == list(made):
        return None
    before = ""
    for has, wants in zip_longest(_flat(planned), _flat(made)):
        if has != wants:
            after = f" after '{before}'" if before else ""
            ends = "ends" if has is None else f"has '{has}'"
            return f"{ends}{after}, its params ask for " + (f"'{wants}'" if wants else "no more")
        before = has
    return "leaves out other words where a host lacks a setting"


def faults(name: str, test: PlanTest) -> Iterator[str]:
    """Why a plan's test cannot be judged by its params: they must say what its commands do."""
    command, suite = command_of(test), test_of(name, test)
    if command is None:
        yield f"test '{name}' is {test.kind} of '{test.tool}', which Perch cannot plan"
        return
    try:
        for number, planned in test.forms.items():
            made = form(suite, command, number)
            for end in ("client", "server"):
                other = _other_word(getattr(planned, end), getattr(made, end))
                if other is not None:
                    yield f"the {end}'s command of test '{name}' {other}"
                    return
            for expect in planned.expect[:1]:  # what cannot be read or compared raises
                hash(tuple(command.wants(test_of(name, test, 1), Ends(pairs=number), expect)))
    except KeyError as error:
        yield f"test '{name}' has no parameter {error.args[0]}"
    except (ValueError, TypeError, AttributeError) as error:
        yield f"test '{name}' has params that Perch cannot plan: {error}"
