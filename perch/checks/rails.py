"""Is each rail as fast as its siblings on the same hosts, and as the same rail of other hosts?

The best of all repeats speaks: what is slow is so each time. A NIC is named where it is slow with
each of several peers, so that these are not accused; else both ends are. One that is slow with each
as it sends, or as it receives, is named with that.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from perch.checks import RunView, check, first, names
from perch.checks.figures import is_bound_by_link, rounded_figures, speed
from perch.checks.limit_shares import FEWEST_PEERS
from perch.model.figures import rounded
from perch.model.verdict import Bound, Check

#: Of the best sibling, or of the median elsewhere, where the link bounds a rate of hardware: two
#: figures of 5 % variation each, as in both directions of a pair.
LEAST_LINK = 0.9
#: Of all other speeds, which depend on the hosts' processors, too: ClusterKit's 2.1 times.
LEAST_OTHER = 1 / 2.1

#: So many slow rails are named.
NAMED_MAX = 3

_ENDS = ("client.host", "server.host")
_SAME = ("test", "kind", "params.size_bytes", "params.batch")
_LINK = (*_ENDS, "rail", "server_rail")
_DEVICES = ("client.device", "server.device")
_WAYS = ("client_way", "server_way")
_is_transfer = pl.col("kind") == "transfer"

#: Operations whose payload the client sends; that of a read the server sends.
_SENT = ("send", "send-imm", "write", "write-imm")

_SIBLINGS, _ELSEWHERE = "siblings", "elsewhere"
#: By comparison its title, the words for when it does not hold, and its unit.
_WORDS = {
    _SIBLINGS: (
        "Every rail is as fast as its siblings",
        "Slower than its siblings",
        "of the fastest sibling's figure",
    ),
    _ELSEWHERE: (
        "Every rail is as fast as the same rail of other hosts",
        "Slower than the same rail of other hosts",
        "of the median of all pairs of hosts",
    ),
}
_REMEDY = (
    "compare cable, transceiver, switch port, PCIe link and firmware of this NIC with those of the "
    "other rails"
)


def client_rail() -> pl.Expr:
    """The rail of a record's client: the pairs of a transfer are rails."""
    return pl.when(_is_transfer).then("transfer.pair").otherwise("rail")


def server_rail() -> pl.Expr:
    """That of its server: another one of a transfer with cross_rail."""
    crossed = (pl.col("transfer.pair") + pl.col("params.cross_rail")) % pl.col("params.devices")
    return pl.when(_is_transfer).then(crossed).fill_null(client_rail())


def ways() -> list[pl.Expr]:
    """Columns client_way, server_way: sending or receiving; null where payload goes both ways."""
    both = pl.col("params.bidirectional").fill_null(value=False) | (pl.col("kind") == "latency")
    forth, back = ~both & pl.col("op").is_in(_SENT), ~both & (pl.col("op") == "read")
    sending, receiving = pl.lit("sending"), pl.lit("receiving")
    return [
        pl.when(forth).then(sending).when(back).then(receiving).alias(_WAYS[0]),
        pl.when(forth).then(receiving).when(back).then(sending).alias(_WAYS[1]),
    ]


def _best(records: pl.DataFrame) -> pl.DataFrame:
    """The best figure of each test, link and size, as a speed: of a latency its inverse."""
    return (
        records.filter(
            (pl.col("status") == "ok")
            & pl.col("kind").is_in(["latency", "bandwidth", "rate", "transfer"])
        )
        .with_columns(
            *ways(),
            rail=client_rail(),
            server_rail=server_rail(),
            v=speed(),
            hard=(pl.col("scope") == "hardware") & is_bound_by_link(),
        )
        .filter(pl.col("v") > 0)
        .sort("v", descending=True, maintain_order=True)
        .unique([*_SAME, *_LINK], keep="first", maintain_order=True)
        .with_columns(
            least=pl.when(pl.col("hard")).then(LEAST_LINK).otherwise(LEAST_OTHER),
            rails=pl.col("rail").n_unique().over("test"),
        )
        .filter(pl.col("rails") > 1)
    )


def _shared(best: pl.DataFrame, whole: pl.Expr) -> pl.DataFrame:
    share = rounded_figures(pl.col("v") / whole)
    return best.with_columns(share=share).with_columns(slow=share < pl.col("least"))


def _of_siblings(best: pl.DataFrame) -> pl.DataFrame:
    """Where two rails of a pair were measured, what each has of the fastest one."""
    of = [*_SAME, *_ENDS]
    beside = best.filter(pl.len().over(of) > 1)
    return _shared(beside, pl.col("v").max().over(of))


def _of_elsewhere(best: pl.DataFrame) -> pl.DataFrame:
    """What each rail has of the median of that rail between all pairs of hosts.

    A speed that the link bounds is a share of the rate as bought: hosts may have different ones.
    Column pairs: how many these are.
    """
    of = [*_SAME, "link.hop_class", "rail"]
    a, b = (pl.col(end) for end in _ENDS)
    ordered = [pl.when(a < b).then(x).otherwise(y) for x, y in ((a, b), (b, a))]
    pair = pl.concat_str(ordered, separator="\t")
    bought = pl.when(pl.col("hard")).then("link.expected_gbit_s").fill_null(1)
    counted = best.with_columns(pairs=pair.n_unique().over(of), v=pl.col("v") / bought)
    return _shared(counted, pl.col("v").median().over(of))


# ---- who is slow ---------------------------------------------------------------------------------


def _ends(links: pl.DataFrame) -> pl.DataFrame:
    """A row for each end of each link: its NIC and way, its peer, and whether the link is slow."""
    client, server = _ENDS
    return pl.concat(
        links.select(
            pl.col(host).alias("host"),
            pl.col(place).alias("place"),
            pl.col(device).alias("device"),
            pl.col(way).alias("way"),
            pl.col(other).alias("peer"),
            "link",
            "slow",
            "share",
        )
        for host, place, device, way, other in (
            (client, "rail", "client.device", "client_way", server),
            (server, "server_rail", "server.device", "server_way", client),
        )
    )


def _slow(ends: pl.DataFrame, *by: str) -> pl.DataFrame:
    """The NICs, or ways (`by`) of NICs, that are slow with each of at least two peers."""
    nics = ends.group_by("host", "place", *by, maintain_order=True).agg(
        pl.col("device").drop_nulls().first(),
        pl.col("peer").n_unique().alias("peers"),
        pl.col("slow").all(),
        pl.col("share").max(),
        "link",
    )
    return nics.filter(pl.col("slow") & (pl.col("peers") > 1))


def _needed(nics: pl.DataFrame) -> pl.DataFrame:
    """Without those that others explain: who sends to slow receivers only is none of them.

    A link that one of them alone explains proves that one.
    """
    of = nics.with_row_index("nic").explode("link").select("nic", "link")
    proven = of.filter(pl.len().over("link") == 1)["nic"].unique()
    is_proven = pl.col("nic").is_in(proven.to_list())
    explained = pl.col("link").is_in(of.filter(is_proven)["link"].unique().to_list())
    needed = of.filter(is_proven | ~explained)["nic"].unique()
    return nics.filter(pl.int_range(pl.len()).is_in(needed.to_list()))


def _slow_nics(ends: pl.DataFrame) -> pl.DataFrame:
    """The slow NICs, the slowest first. way: the slow one where the other is sound, else null.

    A way is judged by the links that no NIC explains which is slow both ways.
    """
    both = _slow(ends).with_columns(way=pl.lit(None, pl.String))
    explained = pl.col("link").is_in(both["link"].explode().to_list())
    one = _needed(_slow(ends.filter(pl.col("way").is_not_null() & ~explained), "way"))
    return pl.concat([both, one.select(both.columns)]).sort("share", "host", "place")


def _slow_ways(links: pl.DataFrame) -> Iterator[str]:
    """The slow ones of these links, the slowest first."""
    slow = links.filter("slow").sort("share", *_LINK).select(*_ENDS, "rail", *_DEVICES)
    found = {
        (client, server, rail): f" ({device})" if device and device == other else ""
        for client, server, rail, device, other in slow.iter_rows()
    }
    for (client, server, rail), device in found.items():
        back = (server, client, rail) in found
        if back and client > server:
            continue
        yield f"rail {rail}{device} " + (
            f"between {client} and {server}" if back else f"from {client} to {server}"
        )


def _named(found: pl.DataFrame) -> list[str]:
    """Rails that are slow everywhere, slow NICs, and the other slow links."""
    links = (
        found.group_by(_LINK, maintain_order=True)
        .agg(pl.col(*_DEVICES, *_WAYS).first(), pl.col("slow").any(), pl.col("share").min())
        .with_row_index("link")
    )
    ends = _ends(links)
    nics = _slow_nics(ends)
    hosts = ends.group_by("place").agg(pl.col("host").n_unique())
    slow = nics.filter(pl.col("way").is_null()).group_by("place").agg(pl.len())
    whole = slow.join(hosts, on="place").filter(pl.col("len") == pl.col("host"))["place"].sort()
    explained = nics["link"].explode().to_list()
    named = ["place", "host", "device", "way"]
    single = nics.filter(~pl.col("place").is_in(whole.to_list()))
    return [
        *(f"rail {rail} of all hosts" for rail in whole),
        *(
            f"rail {rail} of {host}"
            + (f" ({device})" if device else "")
            + (f", {way}" if way else "")
            for rail, host, device, way in single.select(named).iter_rows()
        ),
        *_slow_ways(links.filter(~pl.col("link").is_in(explained))),
    ]


# ---- findings ------------------------------------------------------------------------------------


def _finding(of: str, test: str, found: pl.DataFrame) -> Check:
    title, fault, unit = _WORDS[of]
    worst = found.sort(pl.col("share") / pl.col("least"), maintain_order=True)
    slow = worst.filter("slow")
    one = Check(
        id=f"rails/{of}/{test}",
        title=f"{title}, test {test}",
        status="pass",
        measured=rounded(worst["share"][0]),
        limit=Bound(rounded(worst["least"][0]), None),
        unit=unit,
        evidence=first(slow["id"] if slow.height else worst["id"].head(1)),
    )
    if slow.height:
        one.fault = f"{fault}: {names(_named(found), NAMED_MAX)}, test {test}"
        one.status = "fail" if slow["hard"].any() else "advisory"
        one.remedy = _REMEDY
    return one


def _elsewhere(test: str, best: pl.DataFrame) -> Check:
    found = _of_elsewhere(best)
    enough = found.filter(pl.col("pairs") >= FEWEST_PEERS)
    if not enough.is_empty():
        return _finding(_ELSEWHERE, test, enough)
    return Check(
        id=f"rails/{_ELSEWHERE}/{test}",
        title=f"{_WORDS[_ELSEWHERE][0]}, test {test}",
        status="not_judged",
        measured="pairs of hosts with the same rail: "
        f"{int(found['pairs'].max())}, and a median needs {FEWEST_PEERS}",  # type: ignore[arg-type]
    )


def _no_rails(run: RunView) -> Iterator[Check]:
    """Where hosts have several devices, what would compare them."""
    if any(len(host.devices) > 1 for host in run.plan.hosts.values()):
        yield Check(
            id=f"rails/{_SIBLINGS}",
            title=_WORDS[_SIBLINGS][0],
            status="not_judged",
            measured="no test measured two rails of two hosts",
            remedy="give tests devices: all in their params",
        )


@check(
    family="rails",
    order=123,
    columns=(
        *_SAME, *_ENDS, "id", "status", "scope", "op", "rail", "client.device", "server.device",
        "params.bidirectional", "params.devices", "params.cross_rail", "transfer.pair",
        "link.hop_class", "link.expected_gbit_s", "latency_us.p50", "latency_us.mean",
        "bandwidth.gbit_s",
    ),
    source="two figures of 5 % variation each, the most that "
    "draft-calabria-bmwg-ai-fabric-training-bench-02 recommends; NVIDIA ClusterKit: bad is what "
    "takes more than 2.1 times the best pair's time",
)  # fmt: skip
def rails(run: RunView) -> Iterator[Check]:
    """Of each test of several rails the slowest one, beside its siblings and elsewhere."""
    best = _best(run.records)
    if best.is_empty():
        yield from _no_rails(run)
    for (test,), of_test in sorted(best.partition_by("test", as_dict=True).items()):
        beside = _of_siblings(of_test)
        if not beside.is_empty():
            yield _finding(_SIBLINGS, str(test), beside)
        yield _elsewhere(str(test), of_test)
