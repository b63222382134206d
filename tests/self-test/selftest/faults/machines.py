"""What machines say of their drivers, GPUs and tables, on five composed hosts that were checked."""

from selftest.edits import file_says, put
from selftest.fault import INCONCLUSIVE, PASS
from selftest.faults.hosts import LATELY, logged, on_beta

SYNDROME = (
    f"[{LATELY}.000000] mlx5_core 0000:81:00.0: poll_health:848:(pid 0): device's health "
    "compromised - reached miss count",
    f"[{LATELY}.000001] mlx5_core 0000:81:00.0: print_health_info:520:(pid 0): synd 0x1: "
    "firmware internal error",
)
STUCK = (
    f"[{LATELY}.000000] mlx5_core 0000:81:00.0 enp1s0: NETDEV WATCHDOG: CPU: 3: transmit queue 5 "
    "timed out 5010 ms"
)
XID = f"[{LATELY}.000000] NVRM: Xid (PCI:0000:3b:00): 79, pid=1122, GPU has fallen off the bus."
REFUSED = (
    f"[{LATELY}.000000] DMAR: [DMA Read NO_PASID] Request device [{{}}:00.0] fault addr 0x7cd80000 "
    "[fault reason 0x01] Present bit in root entry is clear"
)
HUNG = f"[{LATELY}.000000] INFO: task python3:4711 blocked for more than 120 seconds."

FAULTS = (
    on_beta(
        "log-nic",
        "machine-nic-log/beta/mlx5_0",
        "a card whose firmware stopped, by the kernel's log",
        logged(*SYNDROME),
    ),
    on_beta(
        "log-stuck",
        "machine-transmit-timeouts/beta/enp1s0",
        "an interface whose transmit queue stood still",
        logged(STUCK),
    ),
    on_beta(
        "log-iommu",
        "machine-iommu-log/beta/mlx5_0",
        "a card to which the IOMMU refused memory",
        logged(REFUSED.format("81")),
    ),
    on_beta(
        "log-iommu-others",
        "machine-iommu-log-others/beta",
        "another device to which the IOMMU refused memory",
        logged(REFUSED.format("41")),
        word=PASS,
    ),
    on_beta(
        "log-gpu",
        "machine-gpu-log/beta",
        "a GPU that fell off the bus, where no test uses it",
        logged(XID),
        word=PASS,
    ),
    on_beta(
        "log-hung",
        "machine-hung-tasks/beta",
        "a program that hung in the kernel",
        logged(HUNG),
        word=PASS,
    ),
    on_beta(
        "neighbours-few",
        "machine-neighbours/beta",
        "a neighbour table with too few entries",
        file_says(("/proc/sys/net/ipv4/neigh/default/gc_thresh3", "9")),
        word=PASS,
    ),
    on_beta(
        "isolation-half",
        "machine-isolation/beta",
        "isolated processors that still have ticks",
        file_says(("/sys/devices/system/cpu/nohz_full", "(null)")),
        word=PASS,
    ),
    on_beta(
        "driver-stuck",
        "machine-driver-answers/beta/mlx5_0",
        "a card whose driver does not answer a read",
        put(
            "commands.read /sys/class/infiniband/mlx5_0/hca_type",
            {"argv": [], "exit": 137, "stdout": "", "stderr": ""},
        ),
        word=INCONCLUSIVE,
    ),
    on_beta(
        "tuned-drift",
        "machine-tuned-settings/beta",
        "a host whose settings are no longer those of tuned's profile",
        put(
            "commands.tuned-verify",
            {
                "argv": ["tuned-adm", "verify"],
                "exit": 1,
                "stdout": "Verification failed, current system settings differ from the preset "
                "profile.",
                "stderr": "",
            },
        ),
        word=PASS,
    ),
    on_beta(
        "no-ibv-devinfo",
        "nic-path-mtu/beta/mlx5_0",
        "a card without ibv_devinfo, which reads its path MTU",
        put("commands.verbs mlx5_0.exit", None),
        word=INCONCLUSIVE,
    ),
)
