"""The links of hosts, on five composed hosts that were checked."""

import re

from selftest.edits import Change, edit, says, says_json, substitute
from selftest.fault import FAIL, INCONCLUSIVE, PASS, fault
from selftest.faults.hosts import BETA, on_beta
from selftest.files import Document

CARD = "0000:81:00.0"
NO_FEC = substitute(r'"active": \["RS"\]', '"active": ["Off"]')
FEC_OFF = says("fec enp1s0", NO_FEC)


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


def module(pattern: str, replacement: str) -> Change:
    """What the module of the first card says."""
    return says("module enp1s0", substitute(pattern, replacement))


SR4 = module(r"(Vendor PN .*)", r"\g<1>\n\tTransceiver type : 100G Ethernet: 100G Base-SR4")
#: Receives on its third lane a fiftieth of the light that it needs.
DARK = module(r"(power\(Channel 3\) +: ).*", r"\g<1>0.0009 mW / -30.46 dBm")


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


def virtual(answer: Document) -> None:
    """The first card is a virtual function, whose physical one has the port enp1s0p."""
    answer["links"]["/sys/class/net/enp1s0/device/physfn/net"] = "enp1s0p"
    commands = answer["commands"]
    for name in [one for one in commands if one.endswith(" enp1s0")]:
        if name.startswith(("fec", "module", "dcb-", "ethtool-")):
            commands[f"{name}p"] = commands.pop(name)
    commands["lldp"]["stdout"] = commands["lldp"]["stdout"].replace("enp1s0", "enp1s0p")


def spoof_check(on: bool) -> Change:
    """The first port has a virtual function, whose addresses are checked or not."""

    def change(answer: Document) -> None:
        said = f'[{{"vfinfo_list": [{{"vf": 0, "spoofchk": {str(on).lower()}, "trust": true}}]}}]'
        asked = ["ip", "-j", "link", "show", "dev", "enp1s0"]
        told = {"argv": asked, "exit": 0, "stdout": said, "stderr": ""}
        answer["commands"]["virtual enp1s0"] = told

    return change


FAULTS = (
    on_beta(
        "fec-differs",
        "nic-fec-ends/beta/mlx5_0",
        "a link whose FEC is off, while the others' is on",
        FEC_OFF,
    ),
    fault(
        "fec-differs-type",
        "checked",
        PASS,
        "host_check/nic-fec-types/beta/mlx5_0 host_check/differs-nic-module/beta/enp1s0",
        "a link whose FEC is off, with a module of another make but of the others' type",
        edit("raw/*/host_check.json", SR4),
        edit(BETA, FEC_OFF, module("MMA1B00-C100D", "FTLC9551REPM")),
    ),
    on_beta(
        "fec-differs-virtual",
        "nic-fec-ends/beta/mlx5_0",
        "a virtual function whose physical one has no FEC, while the others' links have it",
        virtual,
        says("fec enp1s0p", NO_FEC),
    ),
    on_beta(
        "fec-uncorrectable",
        "nic-fec-blocks/beta/mlx5_0",
        "a link on which FEC cannot correct all blocks",
        uncorrectable(12),
    ),
    on_beta(
        "fec-unread",
        "nic-fec/beta/mlx5_0 host_check/nic-fec-blocks/beta/mlx5_0",
        "a host that lacks ethtool to tell its FEC",
        not_installed("fec enp1s0"),
        word=INCONCLUSIVE,
    ),
    on_beta(
        "module-dark",
        "nic-module-levels/beta/enp1s0",
        "a lane that receives too little light",
        DARK,
    ),
    on_beta(
        "module-warm",
        "nic-module-levels/beta/enp1s0",
        "a module that is warmer than its own warning",
        module("47.11 degrees C", "72.00 degrees C"),
        word=PASS,
    ),
    on_beta(
        "module-unread",
        "nic-module/beta/enp1s0",
        "a host that lacks ethtool to tell its modules",
        not_installed("module enp1s0"),
        word=INCONCLUSIVE,
    ),
    on_beta(
        "module-differs",
        "differs-nic-module/beta/enp1s0",
        "a module of another kind than the other hosts'",
        module("MMA1B00-C100D", "MFA1A00-C005"),
        word=PASS,
    ),
    on_beta(
        "setting-differs",
        "differs-nic-config-pci-wr-ordering/beta/mlx5_0",
        "a card that orders its writes in another way than the other hosts'",
        says(f"config {CARD}", substitute(r"per_mkey\(0\)", "force_relax(1)")),
        word=PASS,
    ),
    on_beta(
        "setting-pending",
        "nic-config/beta/mlx5_0",
        "a setting of a card that waits for a boot",
        says(f"config {CARD}", substitute(r"^ ( +NUM_OF_VFS +0 +0 +)0", r"*\g<1>8")),
        word=PASS,
    ),
    on_beta(
        "setting-unread",
        "nic-config/beta/mlx5_0",
        "a host that lacks mstflint to tell its cards' settings",
        not_installed(f"config {CARD}"),
        word=INCONCLUSIVE,
    ),
    on_beta(
        "bit-errors-unread",
        "nic-bit-errors/beta/mlx5_0",
        "a host that lacks mstlink to count its links' bit errors",
        not_installed(f"link {CARD}"),
        word=INCONCLUSIVE,
    ),
    on_beta(
        "adaptive-unread",
        "nic-adaptive-routing/beta/mlx5_0",
        "a host that lacks mstreg to tell whether its card routes adaptively",
        not_installed(f"roce-accl {CARD}"),
        word=INCONCLUSIVE,
    ),
    on_beta(
        "modules-unread",
        "machine-memory-modules/beta",
        "a host that lacks dmidecode to tell its memory modules",
        not_installed("memory-modules"),
        word=INCONCLUSIVE,
    ),
    on_beta(
        "link-sleeps",
        "nic-pcie-aspm/beta/mlx5_0 host_check/differs-nic-pcie-aspm/beta/mlx5_0",
        "a card whose PCIe link may sleep",
        says(f"pci {CARD}", lambda text: text.replace("000070 00", "000070 02")),
        word=PASS,
    ),
    on_beta(
        "adaptive-untold",
        "nic-adaptive-routing/beta/mlx5_0 host_check/differs-nic-adaptive-routing/beta/mlx5_0",
        "a card with adaptive routing that no trait names",
        says(f"roce-accl {CARD}", substitute(r"(routing_forced_en +\| 0x0000000)0", r"\g<1>1")),
        word=PASS,
    ),
    on_beta(
        "reporter-error",
        "nic-health/beta/mlx5_0",
        "a card whose firmware is in error, by devlink",
        says("devlink-health", lambda text: text.replace("healthy", "error", 1)),
    ),
    on_beta(
        "parameter-differs",
        "differs-nic-param-flow-steering-mode/beta/mlx5_0",
        "a driver that steers flows in another way than the other hosts'",
        says("devlink-param", lambda text: text.replace("smfs", "dmfs")),
        word=PASS,
    ),
    on_beta(
        "firmware-waits",
        "nic-firmware-stored/beta/mlx5_0",
        "a card whose next reset starts other firmware",
        says("devlink-info", substitute(r'("stored": .*?)22\.39\.1002', r"\g<1>22.40.1000")),
        word=PASS,
    ),
    on_beta(
        "bit-errors",
        "nic-bit-errors/beta/mlx5_0",
        "a link with too many bit errors before FEC, by mlxlink",
        says(f"link {CARD}", lambda text: text.replace("5E-10", "5E-5")),
        word=PASS,
    ),
    fault(
        "rights-differ",
        "checked",
        PASS,
        "host_check/differs-machine-virtual-function-rights/beta/enp1s0",
        "a host that checks the addresses of its virtual functions, while the others do not",
        edit("raw/*/host_check.json", spoof_check(False)),
        edit(BETA, spoof_check(True)),
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
