"""The links of hosts, on five composed hosts that were checked."""

import re

from selftest.edits import Change, edit, says, says_json, substitute
from selftest.fault import FAIL, INCONCLUSIVE, fault
from selftest.faults.hosts import BETA, on_beta
from selftest.files import Document

FEC_OFF = says("fec enp1s0", substitute(r'"active": \["RS"\]', '"active": ["Off"]'))


def uncorrectable(blocks: int) -> Change:
    """What FEC could not correct at the end of the check; at its beginning it was none."""
    return says(
        "fec-later enp1s0",
        substitute(r'("uncorrectable_blocks": {"total": )0', rf"\g<1>{blocks}"),
    )


_OTHER = {"leaf1": "leaf2", "leaf2": "leaf1", "1": "2", "2": "1"}
#: The cables of both cards are exchanged.
EXCHANGED = says(
    "lldp",
    lambda text: re.sub("leaf([12])|(?<=10:00:0)[12]", lambda at: _OTHER[at.group()], text),
)


def second_neighbour(answer: Document) -> None:
    """LLDP names a second switch at the end of the first link."""
    interfaces = answer["lldp"]["interface"]
    ((name, said),) = interfaces[0].items()
    chassis = {"leaf9": {"id": {"type": "mac", "value": "02:00:5e:10:00:09"}}}
    interfaces.append({name: {**said, "chassis": chassis}})


def not_installed(*names: str) -> Change:
    """A host without the tools that these commands need."""

    def change(answer: Document) -> None:
        for name in names:
            answer["commands"][name] |= {"exit": None, "stdout": ""}

    return change


FAULTS = (
    on_beta(
        "fec-differs",
        "nic-fec-ends/beta/mlx5_0",
        "a link whose FEC is off, while the others' is on",
        FEC_OFF,
    ),
    on_beta(
        "fec-uncorrectable",
        "nic-fec-blocks/beta/mlx5_0",
        "a link on which FEC cannot correct all blocks",
        uncorrectable(12),
    ),
    on_beta(
        "fec-unread",
        "nic-fec/beta/mlx5_0",
        "a host that lacks ethtool to tell its FEC",
        not_installed("fec enp1s0"),
        word=INCONCLUSIVE,
    ),
    fault(
        "cables-exchanged",
        "railed",
        FAIL,
        "host_check/nic-cabling/beta/mlx5_0 host_check/nic-cabling/beta/mlx5_1",
        "a host whose two cables are in each other's leaf",
        edit(BETA, EXCHANGED),
    ),
    on_beta(
        "two-neighbours",
        "nic-neighbour/beta/mlx5_0",
        "a link with two neighbours by LLDP",
        says_json("lldp", second_neighbour),
    ),
    on_beta(
        "neighbour-unread",
        "nic-neighbour/beta/mlx5_0",
        "a host that lacks lldpd to tell its neighbours",
        not_installed("lldp"),
        word=INCONCLUSIVE,
    ),
)
