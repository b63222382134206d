/* SPDX-License-Identifier: Apache-2.0 */
/* GID tables: reading them, and choosing the entry that reaches the peer. */
#include "verbs_device.h"

#include <arpa/inet.h>
#include <stdio.h>

/*
 * What speaks for an entry, most important first; each outweighs all that follow.
 * IPv4 before IPv6 is no judgement: it is what perftest, MPI and the kernel's connection manager take by default,
 * so figures of different tools stay comparable.
 */
enum {
	RANK_ADDRESS = 16,      /* it is the very address that reaches the peer */
	RANK_NETDEV = 8,        /* it is of the interface that reaches the peer */
	RANK_IPV4 = 4,
	RANK_ROUTABLE = 2,      /* IPv6, but not link-local */
	RANK_USABLE = 1,
};

static const char *const gid_type_names[] = {
	[IBV_GID_TYPE_IB] = "IB",
	[IBV_GID_TYPE_ROCE_V1] = "RoCE v1",
	[IBV_GID_TYPE_ROCE_V2] = "RoCE v2",
};

const char *verbs_gid_type_name(enum ibv_gid_type type) {
	return (unsigned) type < ELEMENTSOF(gid_type_names) ? gid_type_names[type] : "unknown";
}

static const struct in6_addr *as_ipv6(const union ibv_gid *gid) {
	/* the same 16 bytes in the same order (RoCEv2 annex, A17.4) */
	return (const struct in6_addr *) (const void *) gid->raw;
}

bool verbs_gid_is_ipv4(const union ibv_gid *gid) {
	return IN6_IS_ADDR_V4MAPPED(as_ipv6(gid));
}

void verbs_gid_text(const union ibv_gid *gid, char ret[INET6_ADDRSTRLEN]) {
	if (verbs_gid_is_ipv4(gid))
		(void) inet_ntop(AF_INET, gid->raw + 12, ret, INET6_ADDRSTRLEN);
	else
		(void) inet_ntop(AF_INET6, gid->raw, ret, INET6_ADDRSTRLEN);
}

static bool is_zero(const union ibv_gid *gid) {
	return gid->global.subnet_prefix == 0 && gid->global.interface_id == 0;
}

int verbs_gid_table(struct ibv_context *context, uint8_t port, const struct ibv_port_attr *attr,
		    struct verbs_gid ret[VERBS_GIDS_MAX]) {
	int n = 0;

	for (int i = 0; i < MIN(attr->gid_tbl_len, VERBS_GIDS_MAX); i++) {
		struct ibv_gid_entry e = { 0 };
		int r = ibv_query_gid_ex(context, port, (uint32_t) i, &e, 0);

		if (r == ENODATA || (r == 0 && is_zero(&e.gid)))
			continue; /* an empty entry: the kernel says so, or shows zeros */
		if (r)
			return r > 0 ? -r : r;
		ret[n] = (struct verbs_gid) { .index = i, .gid = e.gid, .type = (enum ibv_gid_type) e.gid_type };
		if (e.ndev_ifindex == 0 || !if_indextoname(e.ndev_ifindex, ret[n].netdev))
			ret[n].netdev[0] = '\0'; /* InfiniBand; or an interface of another network namespace */
		n++;
	}
	return n;
}

static bool has_address(const union ibv_gid *gid, const struct sockaddr_storage *a) {
	const struct sockaddr_in *in = (const struct sockaddr_in *) a;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *) a;

	if (a->ss_family == AF_INET)
		return verbs_gid_is_ipv4(gid) && memcmp(gid->raw + 12, &in->sin_addr, sizeof(in->sin_addr)) == 0;
	/* An IPv4 connection over an IPv6 socket has a mapped address: the same bytes as the GID. */
	return a->ss_family == AF_INET6 && memcmp(gid->raw, &in6->sin6_addr, sizeof(gid->raw)) == 0;
}

unsigned verbs_gid_rank(const struct verbs_gid *g, const struct sockaddr_storage *local, const char *netdev) {
	unsigned rank = RANK_USABLE;

	if (g->type != IBV_GID_TYPE_ROCE_V2)
		return 0; /* RoCE v1 cannot be routed, and modern devices lack it; whoever wants it gives --gid-index */
	if (has_address(&g->gid, local))
		rank |= RANK_ADDRESS;
	if (netdev[0] && streq(g->netdev, netdev))
		rank |= RANK_NETDEV;
	if (verbs_gid_is_ipv4(&g->gid))
		rank |= RANK_IPV4;
	else if (!IN6_IS_ADDR_LINKLOCAL(as_ipv6(&g->gid)))
		rank |= RANK_ROUTABLE;
	return rank;
}

static void explain(const struct verbs_gid *g, unsigned rank, const char *netdev, char why[VERBS_WHY_MAX]) {
	char text[INET6_ADDRSTRLEN];
	const char *kind = rank & RANK_IPV4 ? "an IPv4 address"
					    : rank & RANK_ROUTABLE ? "an IPv6 address" : "a link-local address";

	verbs_gid_text(&g->gid, text);
	if (rank & RANK_ADDRESS)
		(void) snprintf(why, VERBS_WHY_MAX, "GID %d (%s, RoCE v2) has the address that reaches the peer",
				g->index, text);
	else if (rank & RANK_NETDEV)
		(void) snprintf(why, VERBS_WHY_MAX,
				"GID %d (%s, RoCE v2) is the first with %s on %s, which reaches the peer", g->index,
				text, kind, netdev);
	else
		(void) snprintf(why, VERBS_WHY_MAX,
				"GID %d (%s, RoCE v2) is the first with %s; none belongs to %s%s reaches the peer",
				g->index, text, kind, netdev[0] ? netdev : "the interface",
				netdev[0] ? ", which" : " that");
}

int verbs_gid_choose(const struct verbs_gid *gids, size_t n, const struct sockaddr_storage *local, const char *netdev,
		     char why[VERBS_WHY_MAX]) {
	unsigned best_rank = 0;
	int best = -ENOENT;

	for (size_t i = 0; i < n; i++) {
		unsigned rank = verbs_gid_rank(&gids[i], local, netdev);

		if (rank > best_rank) { /* equals: the lowest index */
			best_rank = rank;
			best = (int) i;
		}
	}
	if (best >= 0)
		explain(&gids[best], best_rank, netdev, why);
	return best;
}
