"""What to do about an exit code, and about a soak that is not over. Checks import it."""

from __future__ import annotations

_SOAK = {
    "running": "wait for its end: playbooks/soak.yml finds the running soak, and judges it again "
    "when it is over",
    "stopped": "it was ended on purpose (playbooks/soak_stop.yml, or soak-stop on the host): let "
    "the next one run to its end",
}  # fmt: skip

_UNSTARTED = (
    "look at agent.log of raw/{client} and raw/{server}: an agent says there why; then measure "
    "again"
)

#: Codes whose remedy is what agents left, and that of outputs which were measured elsewhere.
AT_HOSTS = (None, 2, 4, 6)
IMPORTED = "import the whole output of the client"

#: {client} and {server} are the flow's hosts.
_CODES = {
    1: "compare the flow's figures with the limit in its command line; measure again on an idle "
    "host before acting",
    2: "correct the test's parameters in the suite; the client's stderr in "
    "raw/{client}/flows.jsonl names the option",
    3: "install or configure what the message names on that host, then measure again",
    4: "look at agent.log and flows.jsonl of the server, in raw/{server}; check address, "
    "port and firewall; then measure again",
    5: "take the path out of service: run the flow again with --verify, then replace cable, "
    "adapter or memory in turn",
    6: "read the flow's lines in flows.jsonl of raw/{client} and raw/{server}; measure again",
}  # fmt: skip

_ORIGINS = {
    "ends": "compare the addresses of both hosts in the inventory with the flow's stdout in "
    "raw/{client}/flows.jsonl; measure again",
    "times": "compare the clocks of both hosts with the times in the flow's files under raw/; "
    "measure again",
    "version": "install one version of the tool on all hosts, and measure again",
}  # fmt: skip


def for_origin(about: str | None, client: str, server: str) -> str | None:
    """Of an output that contradicts the plan, its hosts or their agents; None of any other."""
    remedy = _ORIGINS.get(about or "")
    return remedy and remedy.format(client=client, server=server)


def for_soak(state: str | None) -> str | None:
    """Of a soak that runs, or that somebody ended: neither is a fault of a host or a flow."""
    return _SOAK.get(state or "")


def for_code(code: int | None, client: str = "", server: str = "") -> str:
    """One action for each of the design's exit codes; None: nothing was ever started."""
    if code == 0:
        return _SOAK["stopped"]
    return _CODES.get(code or 0, _UNSTARTED).format(client=client, server=server)
