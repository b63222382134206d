"""The links of hosts, on five composed hosts that were checked."""

from selftest.edits import Change, says, substitute
from selftest.fault import INCONCLUSIVE
from selftest.faults.hosts import on_beta
from selftest.files import Document

FEC_OFF = says("fec enp1s0", substitute(r'"active": \["RS"\]', '"active": ["Off"]'))


def uncorrectable(blocks: int) -> Change:
    """What FEC could not correct at the end of the check; at its beginning it was none."""
    return says(
        "fec-later enp1s0",
        substitute(r'("uncorrectable_blocks": {"total": )0', rf"\g<1>{blocks}"),
    )


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
)
