"""A missed limit in words, from its metric and the end of the bound that was missed."""

from __future__ import annotations

from perch.model.limits import Limit

_HIGH = ("too low", "too high")
_MANY = ("too few", "too many")
_LARGE = ("too small", "too large")
_LONG = ("too short", "too long")

_STATISTICS = {"p50": "Median", "min": "Minimum", "max": "Maximum", "mean": "Mean"}
_OTHERS = {
    "latency_us.count": ("Samples", _MANY),
    "latency_us.stddev": ("Jitter (standard deviation)", _HIGH),
    "bandwidth.gbit_s": ("Bandwidth", _HIGH),
    "bandwidth.peak_gbit_s": ("Peak bandwidth", _HIGH),
    "bandwidth.min_interval_gbit_s": ("Bandwidth of the worst interval", _HIGH),
    "bandwidth.messages_per_s": ("Message rate", _HIGH),
    "bandwidth.bytes": ("Transferred bytes", _MANY),
    "cpu.client_s": ("CPU time of the client", _HIGH),
    "cpu.server_s": ("CPU time of the server", _HIGH),
    "cpu.client_system_s": ("CPU time of the client's host", _HIGH),
    "cpu.server_system_s": ("CPU time of the server's host", _HIGH),
    "cpu.client_s_per_gb": ("CPU time per GB of the client", _HIGH),
    "cpu.server_s_per_gb": ("CPU time per GB of the server", _HIGH),
    "tcp.retransmissions": ("TCP retransmissions", _MANY),
    "tcp.initial_rtt_us": ("Initial TCP round-trip time", _HIGH),
    "tcp.initial_cwnd_bytes": ("Initial TCP congestion window", _LARGE),
    "tcp.mss_bytes": ("TCP segment size", _LARGE),
    "tcp.window_bytes": ("TCP window", _LARGE),
    "derived.p99_minus_p50_us": ("Jitter (p99 - median)", _HIGH),
    "derived.mean_per_median": ("Mean latency relative to the median", _HIGH),
    "derived.stddev_per_median": ("Jitter relative to the median", _HIGH),
    "derived.max_per_median": ("Maximum latency relative to the median", _HIGH),
    "derived.retransmissions_per_gb": ("TCP retransmissions", _MANY),
    "derived.stall_s": ("Stall", _LONG),
    "derived.loss_ppm": ("Lost messages", _MANY),
    "derived.packets_lost_ppm": ("Lost packets", _MANY),
    "derived.packets_retried_ppm": ("Retransmitted packets", _MANY),
    "derived.packets_corrupted_ppm": ("Corrupted packets", _MANY),
}


def _words(metric: str) -> tuple[str, tuple[str, str]]:
    """The metric's name, and what it is below and above its bounds."""
    room, name = metric.split(".", 1)
    if metric in _OTHERS or room != "latency_us":
        return _OTHERS[metric]
    return f"{_STATISTICS.get(name, name.replace('_', '.'))} latency", _HIGH


def missed(limit: Limit, measured: float | None) -> str:
    """Median latency too high, bandwidth too low, TCP retransmissions too many."""
    name, (below, above) = _words(limit.metric)
    least = limit.bound.min
    is_below = least is not None and measured is not None and measured < least
    return f"{name} {below if is_below else above}"
