/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Registration, and the address that one end gives the other: its port, its queue pairs, and where its memory is.
 * It comes from the network: what is read here is checked as hostile input before anything is built upon it.
 */
#include "verbs.h"

#include <arpa/inet.h>
#include <endian.h>

#include "base/message.h"

enum {
	ADDRESS_MAGIC = 0x50565242,     /* "PVRB" */
	NUMBER_BYTES = 3,               /* of a queue pair's number: 24 bits */
};

/* All big-endian; the numbers of the queue pairs follow. */
struct wire_address {
	uint32_t magic;
	uint32_t n_queues;
	uint32_t psn;
	uint32_t queue_key;
	uint32_t key;
	uint32_t mtu;                   /* active, bytes */
	uint64_t base;
	uint64_t length;                /* of the arena: both ends must have cut it alike */
	uint16_t lid;
	uint16_t cm_port;               /* --rdma-cm, the server's; 0: none */
	uint8_t layer;                  /* IBV_LINK_LAYER_* */
	uint8_t read_depth;             /* reads and atomics that it answers at a time */
	uint8_t cm_family;              /* 4, 6; 0: none */
	uint8_t port;                   /* from 1, for records */
	uint16_t pkey;                  /* its partition key; 0: none */
	uint8_t gid[16];
	uint8_t cm_address[16];
	uint8_t use_grh;
} __attribute__((packed));

_Static_assert(sizeof(struct wire_address) + NUMBER_BYTES * JOB_QUEUE_PAIRS_MAX <= ADDRESS_MAX,
	       "an address must fit into struct address");

/* No more than the operation needs: a peer gone wild can then do little. */
int verbs_access(enum op op, bool relaxed) {
	int access = IBV_ACCESS_LOCAL_WRITE;

	if (op_is_write(op))
		access |= IBV_ACCESS_REMOTE_WRITE;
	else if (op == OP_READ)
		access |= IBV_ACCESS_REMOTE_READ;
	else if (op_is_atomic(op))
		access |= IBV_ACCESS_REMOTE_ATOMIC;
	/* An optional flag: a device that cannot reorder ignores it (ibv_reg_mr(3)). */
	return access | (relaxed ? IBV_ACCESS_RELAXED_ORDERING : 0);
}

static int open_regions(struct verbs_session *v) {
	const int access = verbs_access(v->job->op, job_relaxed_ordering(v->job));
	const struct arena *a = &v->arena;

	for (unsigned i = 0; i < a->n_regions; i++) {
		const struct region *region = &a->regions[i];

		v->mr[i] = region->gpu ? verbs_gpu_register(v, region, access)
				       : ibv_reg_mr(v->pd, region->base, region->length, (unsigned) access);
		if (!v->mr[i])
			return region->gpu ? -EOPNOTSUPP : verbs_call_failure(errno, &v->device, "register memory");
	}
	v->tx_key = v->mr[0]->lkey;
	v->rx_key = v->mr[a->n_regions - 1]->lkey;
	return 0;
}

int verbs_memory_open(struct verbs_session *v) {
	int r;

	v->pd = ibv_alloc_pd(v->device.context);
	if (!v->pd)
		return verbs_call_failure(errno, &v->device, "make a protection domain");
	r = open_regions(v);
	if (r < 0)
		return r;
	if (!v->datagrams)
		return 0;
	/* A cache line of its own, since the device writes there with each message. */
	v->grh = aligned_alloc(128, 128);
	if (!v->grh)
		return failure(-ENOMEM, EXIT_HOST, "verbs: out of memory");
	v->grh_mr = ibv_reg_mr(v->pd, v->grh, 128, IBV_ACCESS_LOCAL_WRITE);
	return v->grh_mr ? 0 : verbs_call_failure(errno, &v->device, "register memory");
}

void verbs_memory_close(struct verbs_session *v) {
	if (v->grh_mr)
		(void) ibv_dereg_mr(v->grh_mr);
	for (size_t i = 0; i < ELEMENTSOF(v->mr); i++) {
		if (v->mr[i])
			(void) ibv_dereg_mr(v->mr[i]);
		v->mr[i] = NULL;
	}
	if (v->pd)
		(void) ibv_dealloc_pd(v->pd);
	free(v->grh);
	v->grh_mr = NULL;
	v->pd = NULL;
	v->grh = NULL;
}

static void put_cm_address(const struct verbs_session *v, struct wire_address *w) {
	struct sockaddr_storage a = { 0 };

	verbs_cm_address(v, &a);
	if (a.ss_family == AF_INET) {
		const struct sockaddr_in *v4 = (const void *) &a;

		w->cm_family = 4;
		w->cm_port = v4->sin_port; /* in network order already */
		memcpy(w->cm_address, &v4->sin_addr, sizeof(v4->sin_addr));
	} else if (a.ss_family == AF_INET6) {
		const struct sockaddr_in6 *v6 = (const void *) &a;

		w->cm_family = 6;
		w->cm_port = v6->sin6_port;
		memcpy(w->cm_address, &v6->sin6_addr, sizeof(v6->sin6_addr));
	}
}

int verbs_address_write(const struct verbs_session *v, struct address *ret) {
	/* What the peer's operations work on: reads take from it what is sent otherwise. */
	const bool lends = !op_is_send(v->job->op), reads = v->job->op == OP_READ;
	const struct ibv_mr *mr = v->mr[reads ? 0 : v->arena.n_regions - 1];
	struct wire_address w = {
		.magic = htobe32(ADDRESS_MAGIC),
		.n_queues = htobe32(v->n_queues),
		.psn = htobe32(v->first_psn),
		.queue_key = htobe32(v->queue_key),
		.key = htobe32(lends ? mr->rkey : 0),
		.mtu = htobe32(verbs_mtu_bytes(v->device.port_attr.active_mtu)),
		.base = htobe64(lends ? (uintptr_t) (reads ? v->arena.tx : v->arena.rx) : 0),
		.length = htobe64(v->arena.length),
		.lid = htobe16(v->device.port_attr.lid),
		.port = v->device.port,
		.pkey = htobe16(v->device.pkey),
		.layer = v->device.port_attr.link_layer,
		.use_grh = v->device.use_grh,
		.read_depth = (uint8_t) MIN(v->device.attr.max_qp_rd_atom, UINT8_MAX),
	};
	uint8_t *p = ret->bytes + sizeof(w);

	memcpy(w.gid, v->device.gid.raw, sizeof(w.gid));
	if (v->cm)
		put_cm_address(v, &w);
	memcpy(ret->bytes, &w, sizeof(w));
	for (uint32_t i = 0; i < v->n_queues; i++) {
		uint32_t number = v->queues[i].qp->qp_num;

		*p++ = (uint8_t) (number >> 16);
		*p++ = (uint8_t) (number >> 8);
		*p++ = (uint8_t) number;
	}
	ret->length = (size_t) (p - ret->bytes);
	return 0;
}

static int refuse(const char *why) {
	return failure(-EPROTO, EXIT_PEER, "verbs: the peer sent an unusable address: %s", why);
}

static int get_cm_address(struct verbs_session *v, const struct wire_address *w) {
	struct sockaddr_in *v4 = (void *) &v->remote_cm;
	struct sockaddr_in6 *v6 = (void *) &v->remote_cm;

	if (!v->job->verbs.rdma_cm || v->role == ROLE_SERVER)
		return 0;
	if ((w->cm_family != 4 && w->cm_family != 6) || w->cm_port == 0)
		return refuse("it names no listener for --rdma-cm");
	if (w->cm_family == 4) {
		*v4 = (struct sockaddr_in) { .sin_family = AF_INET, .sin_port = w->cm_port };
		memcpy(&v4->sin_addr, w->cm_address, sizeof(v4->sin_addr));
	} else {
		*v6 = (struct sockaddr_in6) { .sin6_family = AF_INET6, .sin6_port = w->cm_port };
		memcpy(&v6->sin6_addr, w->cm_address, sizeof(v6->sin6_addr));
	}
	return 0;
}

/* The path's MTU: what was asked for, or the smaller of both ports. */
static int choose_mtu(struct verbs_session *v, uint32_t theirs) {
	const struct job *job = v->job;
	uint32_t ours = verbs_mtu_bytes(v->device.port_attr.active_mtu), smaller = MIN(ours, theirs);

	if (job->verbs.mtu > ours)
		return failure(-EMSGSIZE, EXIT_HOST, "verbs, device %s: --mtu %u is above the active MTU of port %u, "
			       "%u; lower it, or raise the MTU of interface %s", v->device.name, job->verbs.mtu,
			       v->device.port, ours, v->device.netdev[0] ? v->device.netdev : "(none)");
	if (job->verbs.mtu > theirs)
		return failure(-EMSGSIZE, EXIT_PEER, "verbs: --mtu %u is above the active MTU of the peer's port, %u; "
			       "lower it, or raise the MTU of the peer's interface", job->verbs.mtu, theirs);
	v->path_mtu = job->verbs.mtu ? job->verbs.mtu : smaller;
	v->session.mtu = v->path_mtu;
	if (v->datagrams && job_largest_size(job) > v->path_mtu)
		return failure(-EMSGSIZE, theirs < ours ? EXIT_PEER : EXIT_HOST,
			       "verbs, device %s: --size %llu is above the path MTU of %u bytes; "
			       "with --connection ud a message is one packet; lower it, or raise the MTU%s",
			       v->device.name, (unsigned long long) job_largest_size(job), v->path_mtu,
			       theirs < ours ? " of the peer" : "");
	return 0;
}

/* Ports of two partitions, and two limited members of one, drop each other's packets and say nothing. */
static int check_partition(const struct verbs_session *v, uint16_t theirs) {
	uint16_t ours = v->device.pkey;

	if (v->cm || !ours || !theirs)
		return 0;
	if ((ours ^ theirs) & JOB_PKEY_PARTITION)
		return failure(-EPROTO, EXIT_PEER, "verbs, device %s: its partition key is 0x%04x "
			       "and the peer's 0x%04x; choose one that both ports have with --pkey", v->device.name,
			       ours, theirs);
	if ((ours | theirs) <= JOB_PKEY_PARTITION)
		return failure(-EPROTO, EXIT_PEER, "verbs, device %s: both ports are limited members "
			       "of partition 0x%04x, which cannot reach each other; "
			       "make one a full member at the subnet manager", v->device.name, ours);
	return 0;
}

/* On InfiniBand both ends have a global route header, or neither. */
static int share_route(struct verbs_session *v, bool peer_uses_grh) {
	static const union ibv_gid none;
	struct verbs_device *d = &v->device;

	if (peer_uses_grh && !d->use_grh && d->first_gid >= 0) {
		d->use_grh = true;
		d->gid_index = d->first_gid;
	}
	if ((d->use_grh || peer_uses_grh) && (!d->use_grh || memcmp(&v->remote_gid, &none, sizeof(none)) == 0))
		return failure(-EPROTO, EXIT_PEER, "verbs, device %s: one end requires GIDs "
			       "and the other port has none; is a subnet manager running?", d->name);
	return 0;
}

int verbs_address_read(struct verbs_session *v, const struct address *peer) {
	const uint8_t *p = peer->bytes + sizeof(struct wire_address);
	struct wire_address w;
	uint32_t mtu;
	int r;

	if (peer->length != sizeof(w) + (size_t) NUMBER_BYTES * v->n_queues)
		return refuse("its length is not that of this number of queue pairs");
	memcpy(&w, peer->bytes, sizeof(w));
	mtu = be32toh(w.mtu);
	if (be32toh(w.magic) != ADDRESS_MAGIC || be32toh(w.n_queues) != v->n_queues)
		return refuse("not one of this backend");
	if (be64toh(w.length) != v->arena.length)
		return failure(-EPROTO, EXIT_PEER, "verbs: the peer's buffers have %llu bytes and ours %llu for the "
			       "same job; install the same build of perch at both ends",
			       (unsigned long long) be64toh(w.length), (unsigned long long) v->arena.length);
	if (be64toh(w.base) > UINT64_MAX - v->arena.length)
		return refuse("its memory ends above the last address");
	if (mtu < JOB_MTU_MIN || mtu > JOB_MTU_MAX || (mtu & (mtu - 1)) || be32toh(w.psn) > PSN_MASK)
		return refuse("its MTU or sequence number is invalid");
	if (w.layer != v->device.port_attr.link_layer)
		return failure(-EPROTO, EXIT_PEER, "verbs, device %s: one port is InfiniBand and the other Ethernet; "
			       "choose devices of one fabric with --device and --server-device", v->device.name);
	r = check_partition(v, be16toh(w.pkey));
	if (r == 0)
		r = choose_mtu(v, mtu);
	if (r == 0)
		r = get_cm_address(v, &w);
	if (r < 0)
		return r;

	v->remote_psn = be32toh(w.psn);
	v->remote_queue_key = be32toh(w.queue_key);
	v->remote_key = be32toh(w.key);
	v->remote_base = be64toh(w.base);
	v->remote_lid = be16toh(w.lid);
	v->remote_port = w.port;
	memcpy(v->remote_gid.raw, w.gid, sizeof(w.gid));
	r = share_route(v, w.use_grh);
	if (r < 0)
		return r;
	/* RoCE v2 puts GIDs into IP headers: there is no packet from IPv4 to IPv6, and drivers only say EINVAL. */
	if (v->device.is_roce && verbs_gid_is_ipv4(&v->device.gid) != verbs_gid_is_ipv4(&v->remote_gid)) {
		char theirs[INET6_ADDRSTRLEN];

		verbs_gid_text(&v->remote_gid, theirs);
		return failure(-EPROTO, EXIT_PEER, "verbs, device %s: GID index %d (%s) and the peer's (%s) are IPv4 "
			       "and IPv6, which cannot reach each other; choose GIDs of one kind with --gid-index and "
			       "--server-gid-index", v->device.name, v->device.gid_index, v->device.address, theirs);
	}
	v->read_depth = (uint8_t) MIN(MIN(v->device.attr.max_qp_init_rd_atom, UINT8_MAX), w.read_depth);
	if (v->read_depth == 0 && (v->job->op == OP_READ || op_is_atomic(v->job->op)))
		return failure(-EOPNOTSUPP, EXIT_HOST,
			       "verbs, device %s: --op %s: one of the two devices takes no reads or atomics",
			       v->device.name, op_name((int) v->job->op));
	for (uint32_t i = 0; i < v->n_queues; i++, p += NUMBER_BYTES)
		v->queues[i].remote_number = (uint32_t) p[0] << 16 | (uint32_t) p[1] << 8 | p[2];
	return 0;
}
