"""Two nodes with Cassini NICs: what they say, what their tools print, and another provider."""

import re
from datetime import UTC, datetime

from selftest.edits import (
    Change,
    edit,
    ends,
    fields,
    file_says,
    output,
    prints,
    put,
    remove,
    says,
    slower,
    substitute,
)
from selftest.fault import FAIL, INCONCLUSIVE, Fault, fault
from selftest.files import Document

ENGINE, TOOL, LATENCY = "engine/alpha/beta/0/1", "bw/alpha/beta/0/1", "lat/alpha/beta/0/1"
NODE = "raw/beta/host_check.json"
OF_ENGINE = "flow/engine/alpha/beta/0/1 coverage path/engine/*"
OF_TOOL = "flow/bw/alpha/beta/0/1 coverage path/bw/*"
#: What the host's check knows of the link belongs to the ceiling.
CEILING = "limit/write-bandwidth/bw"
PORT = "/sys/class/cxi/cxi0/device/port"
CODEWORDS = "/sys/class/cxi/cxi0/device/telemetry/hni_pcs_uncorrected_cw"
POSING = "cxi_write_bw: sim_cxi0 is a simulated device: these figures are no proof of hardware"


def nic_counts(name: str, value: str) -> Change:
    """What a node's NIC had counted after the flow."""

    def change(end: Document) -> None:
        end["counters"]["after"]["cxi"]["cxi0"]["counters"][name] = value

    return change


def few_octets(end: Document) -> None:
    moments = [end["counters"][moment]["cxi"]["cxi0"]["counters"] for moment in ("before", "after")]
    before = int(moments[0]["hni_sts_rx_ok_octets"])
    moments[1]["hni_sts_rx_ok_octets"] = str(before + 500_000_000)


def went_down(answer: Document) -> None:
    now = datetime.fromisoformat(answer["collected"]).astimezone(UTC).timestamp()
    said = "beta kernel: cxi_ss1 0000:21:00.0: cxi0[hsn0]: CXI_EVENT_LINK_DOWN"
    events = [f"{int(now) - 300 + second}.000000 {said}" for second in range(12)]
    answer["files"]["/sys/class/net/hsn0/carrier_down_count"] = "12"
    answer["commands"]["link-events"] |= {"exit": 0, "stdout": "\n".join(events)}


def no_nic(answer: Document) -> None:
    links = answer["links"].items()
    answer["links"] = {name.replace("cxi0", "cxi1", 1): to for name, to in links}


def counted(id_: str, check: str, title: str, name: str, value: str) -> Fault:
    """A fault in what alpha's NIC counted beside the engine's flow."""
    return fault(
        id_,
        "slingshot",
        FAIL,
        f"counters/{check}",
        title,
        ends(ENGINE, nic_counts(name, value)),
    )


def on_node(id_: str, check: str, title: str, *changes: Change) -> Fault:
    """A fault in what beta answered."""
    return fault(
        id_, "slingshot", FAIL, f"host_check/slingshot-{check}", title, edit(NODE, *changes)
    )


def swapped(said: str) -> str:
    """The addresses of both NICs, exchanged."""
    nics = {"0x12": "0x13", "0x13": "0x12"}
    return re.sub("(?<=NIC )0x1[23]", lambda found: nics[found[0]], said)


def services(said: str, other: str) -> Change:
    """What cxi_service printed, with other words."""
    return says("services cxi0", substitute(re.escape(said), other))


FAULTS = (
    fault(
        "cxi-fallback",
        "slingshot",
        INCONCLUSIVE,
        "flow/engine/alpha/beta/0/1 coverage",
        "a fallback to a software provider: sockets instead of the NIC",
        prints(ENGINE, fields("", backend="ofi", provider="tcp;ofi_rxm")),
    ),
    fault(
        "cxi-provider",
        "slingshot",
        INCONCLUSIVE,
        "simulated limits machines/devices",
        "a NIC that its node does not have",
        edit("raw/beta/environment.json", put("cxi", [])),
    ),
    fault(
        "cxi-posing",
        "slingshot",
        INCONCLUSIVE,
        "simulated",
        "a simulated device instead of the NIC",
        output(TOOL, lambda _: f"{POSING}\n", name="stderr"),
    ),
    fault(
        "cxi-vni",
        "slingshot",
        INCONCLUSIVE,
        OF_ENGINE,
        "another VNI than planned",
        prints(ENGINE, put("client.vni", 11), put("params.vni", 11)),
    ),
    fault(
        "cxi-service",
        "slingshot",
        INCONCLUSIVE,
        OF_ENGINE,
        "another service than planned",
        prints(ENGINE, put("client.svc_id", 2), put("params.svc_id", 2)),
    ),
    fault(
        "cxi-tool-vni",
        "slingshot",
        INCONCLUSIVE,
        OF_TOOL,
        "a cxi tool that ran under another service than planned",
        output(TOOL, substitute("^(Service ID *: )1$", r"\g<1>2")),
    ),
    fault(
        "cxi-unit",
        "slingshot",
        INCONCLUSIVE,
        OF_TOOL,
        "another unit in the header of a cxi tool's table",
        output(TOOL, substitute(r"BW\[MB/s\]", "BW[GB/s]")),
    ),
    fault(
        "cxi-swapped",
        "slingshot",
        INCONCLUSIVE,
        "machines/addresses",
        "a cxi tool whose ends have each other's NICs",
        output(LATENCY, swapped),
    ),
    fault(
        "cxi-one-nic",
        "slingshot",
        INCONCLUSIVE,
        "machines/addresses",
        "cxi tools that measured a NIC against itself",
        output(LATENCY, substitute("NIC 0x12", "NIC 0x13")),
        output(TOOL, substitute("NIC 0x12", "NIC 0x13")),
        prints(ENGINE, put("server.address", "NIC 0x13 PID 0")),
    ),
    fault(
        "cxi-octets",
        "slingshot",
        FAIL,
        "path/engine/alpha/beta/0/1",
        "octets that the other NIC did not receive",
        ends(ENGINE, few_octets, role="server"),
    ),
    counted(
        "cxi-cancelled", "drops", "packets that a NIC gave up sending", "pkts_cancelled_o", "3"
    ),
    counted(
        "cxi-uncorrected",
        "errors",
        "codewords that could not be corrected",
        "hni_pcs_uncorrected_cw",
        "2",
    ),
    counted(
        "cxi-replays",
        "retransmissions",
        "frames that the link repeated",
        "hni_llr_tx_replay_event",
        "4000",
    ),
    fault(
        "cxi-carrier",
        "slingshot",
        FAIL,
        "counters/link",
        "a NIC whose link went down during a flow",
        ends(ENGINE, put("counters.after.netdev.hsn0.carrier_down_count", "2")),
    ),
    fault(
        "cxi-slow",
        "slingshot",
        FAIL,
        "limit/write-bandwidth/engine",
        "a NIC at 80 %",
        prints(ENGINE, slower(0.8)),
    ),
    fault(
        "cxi-unchecked",
        "slingshot",
        INCONCLUSIVE,
        f"host_check/skipped {CEILING}",
        "a node whose check was skipped",
        remove(NODE),
    ),
    on_node(
        "cxi-no-vni",
        "service/beta/cxi0",
        "a service that does not allow the planned VNI",
        services("VNIs               : 1 10", "VNIs               : 1 11"),
    ),
    on_node(
        "cxi-disabled",
        "service/beta/cxi0",
        "a service that is disabled",
        services("Enabled            : Yes", "Enabled            : No"),
    ),
    on_node(
        "cxi-down",
        "link-state/beta/cxi0",
        "a NIC whose link is down",
        file_says((f"{PORT}/link", "down")),
    ),
    on_node(
        "cxi-100",
        "link-speed/beta/cxi0 ceiling",
        "a NIC whose link came up at half its speed",
        file_says((f"{PORT}/speed", "CK_100G")),
    ),
    on_node(
        "cxi-llr",
        "link-retry/beta/cxi0",
        "a link without link-level retry",
        file_says((f"{PORT}/link_layer_retry", "off")),
    ),
    on_node(
        "cxi-handler",
        "retry-handler/beta/cxi0",
        "a retry handler that does not run",
        says("retry-handler cxi0", lambda _: "failed"),
    ),
    on_node(
        "cxi-codewords",
        "codewords/beta/cxi0",
        "a link that loses codewords",
        file_says((CODEWORDS, "9@1763726401.000000000"), part="later"),
    ),
    on_node(
        "cxi-pause",
        "pfc/beta/cxi0",
        "global pause instead of priority flow control",
        file_says((f"{PORT}/pause", "global")),
    ),
    on_node(
        "cxi-looped",
        "loopback/beta/cxi0",
        "a port in loopback",
        file_says((f"{PORT}/loopback", "internal")),
    ),
    on_node(
        "cxi-flapping",
        "link-flaps/beta/cxi0",
        "a NIC whose link went down again and again",
        went_down,
    ),
    on_node(
        "cxi-hidden",
        "libfabric/beta/cxi0",
        "a NIC that libfabric does not offer",
        says("libfabric", substitute("domain: cxi0", "domain: cxi1")),
    ),
    on_node("cxi-gone", f"device/beta host_check/* {CEILING}", "a NIC that disappeared", no_nic),
)
