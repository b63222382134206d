"""The state of hosts, on five composed hosts that were checked."""

import re

from selftest.edits import (
    Change,
    cut_at,
    edit,
    file_says,
    put,
    remove,
    says,
    says_json,
    substitute,
)
from selftest.fault import FAIL, INCONCLUSIVE, PASS, Fault, fault
from selftest.files import Document

BETA = "raw/beta/host_check.json"
WANTED_OF_BETA = "inputs/hosts/beta.json"
HOSTS = ("alpha", "beta", "gamma", "delta", "epsilon")
PORT = "/sys/class/infiniband/mlx5_0/ports/1"
CONFIGURED = "/sys/kernel/config/rdma_cm/mlx5_0/ports/1"
CARD, BRIDGE = "/sys/bus/pci/devices/0000:81:00.0", "/sys/bus/pci/devices/0000:80:01.1"
CONGESTION = "/sys/kernel/debug/mlx5/0000:81:00.0/cc_params"
NETDEV = "/sys/class/net/enp1s0"
#: Seconds since the host was booted.
LATELY = 863000


def no_pfc(answer: Document) -> None:
    answer["prio_pfc"] = [False] * len(answer["prio_pfc"])


def gid_types(answer: Document) -> None:
    files = answer["files"]
    files.update({name: "IB/RoCE v1" for name in files if "gid_attrs/types" in name})


def alphas_gid(answer: Document) -> None:
    for name, said in answer["files"].items():
        if isinstance(said, str):
            answer["files"][name] = said.replace("c000:0202", "c000:0201")


def alphas_address(answer: Document) -> None:
    for command in answer["commands"].values():
        command["stdout"] = command["stdout"].replace('192.0.2.2"', '192.0.2.1"')


def no_card(answer: Document) -> None:
    for part in ("files", "links"):
        kept = {
            name: said for name, said in answer[part].items() if "infiniband/mlx5_0" not in name
        }
        answer[part] = kept


def no_verbs(answer: Document) -> None:
    del answer["files"]["/sys/class/infiniband_verbs/abi_version"]


def no_state(answer: Document) -> None:
    del answer["files"][f"{PORT}/state"]


def lost_packets(answer: Document) -> None:
    name = f"{CARD}/aer_dev_nonfatal"
    said = answer["files"][name]
    said = said.replace("TLPBlockedErr 0", "TLPBlockedErr 0\ndev_nonfatal_errs_bit[27] 3", 1)
    answer["files"][name] = said.replace("TOTAL_ERR_NONFATAL 0", "TOTAL_ERR_NONFATAL 3", 1)


def corrected(answer: Document) -> None:
    name = f"{CARD}/aer_dev_correctable"
    said = answer["files"][name].replace("BadTLP 0", "BadTLP 900", 1)
    answer["files"][name] = said.replace("TOTAL_ERR_COR 0", "TOTAL_ERR_COR 900", 1)


def no_driver(answer: Document) -> None:
    del answer["links"]["/sys/class/infiniband/mlx5_0/device/driver"]


def no_manager(answer: Document) -> None:
    del answer["files"]["/sys/class/misc/rdma_cm/abi_version"]


def no_buffer(answer: Document) -> None:
    answer["prio_buffer"] = [0] * len(answer["prio_buffer"])


def logged(*said: str) -> Change:
    """Lines of the kernel's log."""
    return says("kernel-log-lines", lambda log: "".join([log, *(f"\n{line}" for line in said)]))


def other_address(text: str) -> str:
    return text.replace('192.0.2.2"', '192.0.2.77"')


DOWN = [f"[{LATELY + 60 * n}.000000] mlx5_core 0000:81:00.0 enp1s0: Link down" for n in range(14)]
#: A PCIe switch above the card: its lower bridge, and its upper one with the link to the root.
LOWER, UPPER = "0000:83:00.0", "0000:82:00.0"


def half_uplink(answer: Document) -> None:
    """A PCIe switch between card and slot whose own link came up with half its lanes."""
    answer["links"] = {
        name: said.replace("/0000:81:00.0", f"/{UPPER}/{LOWER}/0000:81:00.0")
        if isinstance(said, str) and "0000:80:01.1/0000:81:00.0" in said
        else said
        for name, said in answer["links"].items()
    }
    files = answer["files"]
    for bridge in (LOWER, UPPER):
        for name, said in list(files.items()):
            if name.startswith(f"{BRIDGE}/"):
                files[name.replace("0000:80:01.1", bridge)] = said
    for bridge in (f"/sys/bus/pci/devices/{UPPER}", BRIDGE):
        files[f"{bridge}/current_link_width"] = "8"


AER = (
    f"[{LATELY}.000000] pcieport 0000:80:01.1: AER: Uncorrected (Non-Fatal) error received: "
    "0000:81:00.0",
    f"[{LATELY}.000001] mlx5_core 0000:81:00.0: PCIe Bus Error: severity=Uncorrected (Non-Fatal), "
    "type=Transaction Layer, (Requester ID)",
)
MCE = f"[{LATELY}.000000] mce: [Hardware Error]: CPU 3: Uncorrected error, bank 5"
HALF_RATE = file_says((f"{PORT}/rate", "50 Gb/sec (1X HDR)"), (f"{NETDEV}/speed", "50000"))
NARROW = file_says(
    *((f"{end}/{of}_link_{what}", value) for end in (CARD, BRIDGE) for of in ("current", "max")
      for what, value in (("speed", "8.0 GT/s PCIe"), ("width", "12")))
)  # fmt: skip
OPEN_PORTS = re.escape('"range": [18000, 19000]')


def wanted(id_: str, title: str, *changes: Change) -> Fault:
    """A fault in what the inventory wants of beta."""
    return fault(
        id_, "checked", INCONCLUSIVE, "host_check/skipped", title, edit(WANTED_OF_BETA, *changes)
    )


def on_beta(id_: str, check: str, title: str, *changes: Change, word: str = FAIL) -> Fault:
    """A fault in what beta answered."""
    return fault(id_, "checked", word, f"host_check/{check}", title, edit(BETA, *changes))


FAULTS = (
    fault(
        "check-skipped",
        "checked",
        INCONCLUSIVE,
        "host_check/skipped",
        "a host check that was skipped",
        remove(BETA),
    ),
    fault(
        "checks-off",
        "checked",
        INCONCLUSIVE,
        "host_check/skipped",
        "host checks that the plan switches off, and no host answered",
        edit("plan.json", put("host_checks", False)),
        remove(*(f"raw/{host}/host_check.json" for host in HOSTS)),
    ),
    wanted(
        "wanted-misspelt",
        "a wanted setting whose name is misspelt",
        put("wanted", {"pfc_prioritys": [3]}),
    ),
    wanted("wanted-empty", "a hardware host without wanted settings", put("wanted", {})),
    wanted("wanted-foreign", "the wanted settings of another host", put("host", "alpha")),
    on_beta(
        "check-foreign",
        "skipped",
        "a host check of another host",
        put("hostname", "omega"),
        word=INCONCLUSIVE,
    ),
    on_beta(
        "check-old",
        "skipped",
        "a host check from before the run",
        put("collected", "2025-12-31T23:00:00Z"),
        word=INCONCLUSIVE,
    ),
    on_beta(
        "check-late",
        "skipped",
        "a host check from a year after the run",
        put("collected", "2027-01-01T00:00:10Z"),
        word=INCONCLUSIVE,
    ),
    on_beta(
        "pfc-off",
        "qos-pfc/beta/enp1s0 host_check/*",
        "PFC off on one host",
        says_json("dcb-pfc enp1s0", no_pfc),
    ),
    on_beta(
        "mtu-differs",
        "nic-path-mtu-ends/beta/mlx5_0 host_check/*",
        "an MTU that differs between the ends",
        says(
            "verbs mlx5_0", substitute(r"active_mtu:(\s+)4096 \(5\)", r"active_mtu:\g<1>1024 (3)")
        ),
    ),
    on_beta(
        "port-down",
        "nic-port-state/beta/mlx5_0 host_check/*",
        "a port that is down",
        file_says((f"{PORT}/state", "1: DOWN")),
    ),
    on_beta(
        "port-rate",
        "nic-link-speed/beta/mlx5_0",
        "a port that came up at half its rate",
        HALF_RATE,
        says("settings enp1s0", substitute("Speed: 100000", "Speed: 50000")),
    ),
    on_beta(
        "port-layer",
        "nic-link-layer/beta/mlx5_0 host_check/*",
        "an InfiniBand port on an Ethernet fabric",
        file_says((f"{PORT}/link_layer", "InfiniBand")),
    ),
    on_beta(
        "port-errors",
        "nic-port-errors/beta/mlx5_0",
        "a port whose errors increase between two readings",
        file_says((f"{PORT}/counters/symbol_error", "300"), part="later"),
    ),
    on_beta(
        "pcie-narrow",
        "nic-pcie-width/beta/mlx5_0",
        "a card with half its PCIe lanes",
        file_says((f"{CARD}/current_link_width", "8"), (f"{BRIDGE}/current_link_width", "8")),
    ),
    on_beta(
        "pcie-slow",
        "nic-pcie-speed/beta/mlx5_0",
        "a card whose PCIe link came up at half its speed",
        file_says(
            (f"{CARD}/current_link_speed", "8.0 GT/s PCIe"),
            (f"{BRIDGE}/current_link_speed", "8.0 GT/s PCIe"),
        ),
    ),
    on_beta(
        "pcie-lost",
        "nic-pcie-errors/beta/mlx5_0",
        "a card whose packets PCIe lost",
        lost_packets,
    ),
    on_beta("gid-v1", "nic-gid/beta/mlx5_0 host_check/*", "no GID of RoCE v2", gid_types),
    on_beta(
        "gid-twice",
        "nic-duplicate-gid/alpha/mlx5_0 host_check/*",
        "two hosts with one GID",
        alphas_gid,
    ),
    on_beta(
        "address-twice",
        "nic-duplicate-address/alpha/enp1s0 host_check/*",
        "two hosts with one address",
        alphas_address,
    ),
    on_beta(
        "card-gone",
        "nic-device/beta/mlx5_0 host_check/*",
        "a card that disappeared",
        no_card,
    ),
    on_beta(
        "interface-down",
        "nic-interface-state/beta/enp1s0",
        "an interface without carrier",
        file_says((f"{NETDEV}/carrier", "0"), (f"{NETDEV}/operstate", "down")),
    ),
    on_beta(
        "driver-gone",
        "machine-module-ib-uverbs/beta",
        "the module through which programs reach a card is not loaded",
        no_verbs,
    ),
    on_beta(
        "nodes-closed",
        "machine-rdma-nodes/beta",
        "device nodes that the user may not open",
        says("rdma-nodes", substitute(" rw", "")),
    ),
    on_beta(
        "memory-lost",
        "machine-memory-errors/beta",
        "a memory module that lost data",
        file_says(("/sys/devices/system/edac/mc/mc0/ue_count", "1")),
    ),
    on_beta(
        "flapping",
        "machine-link-flaps/beta/enp1s0",
        "a link that went down again and again",
        file_says((f"{NETDEV}/carrier_down_count", "14")),
        logged(*DOWN),
    ),
    on_beta(
        "firewalled",
        "machine-firewall/beta",
        "a firewall in front of the tests",
        says("nft", substitute(OPEN_PORTS, '"range": [28000, 29000]')),
    ),
    on_beta(
        "global-pause",
        "qos-pause/beta/enp1s0 host_check/*",
        "global pause beside priority flow control",
        says("ethtool-pause enp1s0", substitute("false", "true")),
        says("ethtool-pause-text enp1s0", substitute("off", "on")),
    ),
    on_beta(
        "lossy-priority",
        "qos-path/beta/mlx5_0 host_check/*",
        "RDMA in a class that drops",
        file_says((f"{CONFIGURED}/default_roce_tos", "0")),
    ),
    on_beta(
        "gid-address",
        "nic-gid-address/beta/mlx5_0",
        "an address that no GID has",
        says("address enp1s0", other_address),
        says("addresses", other_address),
    ),
    on_beta(
        "mac-twice",
        "nic-duplicate-mac/alpha/enp1s0 host_check/*",
        "two hosts with one MAC address",
        file_says((f"{NETDEV}/address", "08:c0:eb:f0:28:b1")),
    ),
    on_beta(
        "mtu-of-interface",
        "nic-mtu-ends/beta/enp1s0",
        "an interface whose MTU differs from the others",
        file_says((f"{NETDEV}/mtu", "9000")),
    ),
    on_beta(
        "roce-v1",
        "qos-roce-mode/beta/mlx5_0",
        "a card that uses RoCE v1 by default",
        file_says((f"{CONFIGURED}/default_roce_mode", "IB/RoCE v1")),
    ),
    on_beta(
        "pcie-log", "machine-pcie-log/beta/mlx5_0", "PCIe errors in the kernel's log", logged(*AER)
    ),
    on_beta(
        "processor-log",
        "machine-hardware-log/beta",
        "a machine check in the kernel's log",
        logged(MCE),
    ),
    on_beta(
        "interface-errors",
        "nic-interface-errors/beta/enp1s0",
        "an interface that receives damaged frames",
        file_says((f"{NETDEV}/statistics/rx_crc_errors", "90000")),
        file_says((f"{NETDEV}/statistics/rx_crc_errors", "91000"), part="later"),
    ),
    on_beta(
        "node-unknown",
        "nic-numa-node/beta/mlx5_0",
        "a card whose NUMA node is unknown",
        file_says(
            (f"{CARD}/numa_node", "-1"), ("/sys/class/infiniband/mlx5_0/device/numa_node", "-1")
        ),
        word=PASS,
    ),
    on_beta(
        "pcie-corrected",
        "nic-pcie-corrected-errors/beta/mlx5_0",
        "a card whose PCIe link corrects errors",
        corrected,
        word=PASS,
    ),
    on_beta(
        "unsynchronised",
        "machine-clock/beta",
        "a host whose clock is not synchronised",
        says("chrony", substitute("Normal", "Not synchronised")),
        says("timedatectl", substitute("NTPSynchronized=yes", "NTPSynchronized=no")),
        word=PASS,
    ),
    on_beta(
        "clock-ahead",
        "machine-clock-skew/beta",
        "a host whose clock is a minute ahead of the others",
        says("clock", lambda text: f"{float(text) + 60:.9f}\n"),
        word=PASS,
    ),
    on_beta("driverless", "machine-driver/beta/mlx5_0", "a card without its driver", no_driver),
    on_beta(
        "manager-gone",
        "machine-module-rdma-ucm/beta",
        "the module through which programs connect is not loaded",
        no_manager,
    ),
    on_beta(
        "pcie-log-others",
        "machine-pcie-log-others/beta",
        "PCIe errors of another device in the kernel's log",
        logged(*(line.replace(":81:", ":41:").replace(":80:", ":40:") for line in AER)),
        word=PASS,
    ),
    on_beta(
        "interrupts-away",
        "nic-irq-affinity/beta/mlx5_0",
        "a card whose interrupts go to the other node's processors",
        says("interrupts 0000:81:00.0", substitute("^[0-9,-]+$", "1")),
        word=PASS,
    ),
    fault(
        "path-mtu",
        "checked",
        FAIL,
        "host_check/nic-path-mtu/alpha/mlx5_0",
        "a path MTU of 1024 on all hosts",
        edit(
            "raw/*/host_check.json",
            says(
                "verbs mlx5_0",
                substitute(r"active_mtu:(\s+)4096 \(5\)", r"active_mtu:\g<1>1024 (3)"),
            ),
        ),
    ),
    on_beta(
        "buffers-shared",
        "qos-buffers/beta/enp1s0",
        "a lossless priority without a buffer of its own",
        says_json("dcb-buffer enp1s0", no_buffer),
        word=PASS,
    ),
    on_beta(
        "pause-storm",
        "qos-pfc-storm/beta/enp1s0",
        "a host that paused the switch permanently",
        says(
            "ethtool-qos-stats enp1s0",
            substitute("tx_pause_storm_error_events: 0", "tx_pause_storm_error_events: 3"),
        ),
        word=PASS,
    ),
    fault(
        "check-half",
        "checked",
        INCONCLUSIVE,
        "host_check/skipped",
        "a host check that was cut in half",
        cut_at(BETA, 4000),
    ),
    on_beta(
        "check-unanswered",
        "nic-port-state/beta/mlx5_0",
        "a question that the host did not answer",
        no_state,
        word=INCONCLUSIVE,
    ),
    on_beta(
        "packets-too-large",
        "nic-pcie-max-payload/beta/mlx5_0 host_check/*",
        "a card with a larger PCIe payload than the port above it",
        # DevCtl, whose bits 7:5 are the size: 512 bytes below, 128 above
        says("pci 0000:80:01.1", substitute("^000060 57", "000060 17")),
    ),
    on_beta(
        "uplink-narrow",
        "nic-pcie-uplinks/beta/mlx5_0",
        "a PCIe switch whose link to the root came up with half its lanes",
        half_uplink,
    ),
    fault(
        "pcie-too-slow",
        "checked",
        FAIL,
        "ceiling host_check/nic-pcie-bandwidth/beta/mlx5_0",
        "a card and a slot of PCIe 3.0 with 12 lanes under a port of 100 Gb/s",
        edit(BETA, NARROW),
    ),
    on_beta(
        "notified-in-lossless",
        "qos-cnp/beta/mlx5_0",
        "congestion notifications in a priority with PFC",
        file_says((f"{CONGESTION}/np_cnp_dscp", "26"), (f"{CONGESTION}/np_cnp_prio", "3")),
        word=PASS,
    ),
)
