/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Registration, and the address that one end gives the other: the endpoint's name,
 * the key of the region that operations work on, where in it the half that they mean begins (a virtual address,
 * or counted from the region's start where the provider does), and the arena's length.
 * It comes from the network: what is read here is checked as hostile input before libfabric sees it.
 */
#include "ofi.h"

#include <endian.h>
#include <sys/mman.h>

#include "base/message.h"
#include "memory/memory_room.h"

enum {
	ADDRESS_MAGIC = 0x504f4649,     /* "POFI" */
	KEY_ARENA = 0,                  /* from first_key */
	KEY_SCRATCH = 1,
};

/* All big-endian; the name follows. */
struct wire_address {
	uint32_t magic;
	uint32_t format;                /* enum of fi_info.addr_format */
	uint64_t key;
	uint64_t base;
	uint64_t length;                /* of the arena: both ends must have cut it alike */
	uint32_t name_length;
} __attribute__((packed));

static uint64_t wanted_access(enum op op) {
	if (op_is_atomic(op)) /* reads and writes at both ends */
		return FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
	switch (op) {
	case OP_WRITE:
		return FI_WRITE | FI_REMOTE_WRITE;
	case OP_READ:
		return FI_READ | FI_REMOTE_READ;
	default:
		return FI_SEND | FI_RECV;
	}
}

static int reg(struct ofi_session *o, void *memory, size_t length, uint64_t access, uint64_t key, struct fid_mr **ret) {
	/* With FI_MR_PROV_KEY the provider ignores ours and picks its own. */
	int r = fi_mr_reg(o->domain, memory, length, access, 0, o->first_key + key, 0, ret, NULL);

	return r ? ofi_open_failed(o, "register memory", r) : 0;
}

static int open_scratch(struct ofi_session *o) {
	size_t page = (size_t) sysconf(_SC_PAGESIZE), length = 2 * OFI_HELLO_BYTES;
	void *p;
	int r;

	if (o->job->op == OP_COMPARE_SWAP || o->job->op == OP_COMPARE_ATOMIC)
		length += o->arena.length / 2;
	length += ofi_rate_scratch(o->job);
	length = (length + page - 1) / page * page;

	r = room_check("", length);
	if (r == 0)
		r = room_take(length);
	if (r < 0)
		return r;
	p = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (p == MAP_FAILED) {
		room_give(length);
		return failure(-ENOMEM, EXIT_HOST,
			       "%s: cannot get %zu KiB to compare with; lower --size or --outstanding", o->job->backend,
			       length >> 10);
	}
	o->scratch = p;
	o->scratch_length = length;
	return 0;
}

/*
 * A remote end always needs a registered target; local buffers only where FI_MR_LOCAL demands it,
 * and a GPU's always (FI_MR_HMEM): it is the registration that says what they are.
 */
static int open_regions(struct ofi_session *o, uint64_t access, bool local) {
	const struct arena *a = &o->arena;
	void *descs[2] = { NULL, NULL };
	int r;

	for (unsigned i = 0; i < a->n_regions; i++) {
		const struct region *region = &a->regions[i];

		if (!local && !region->gpu && o->job->op == OP_SEND)
			continue;
		if (region->gpu)
			r = ofi_gpu_register(o, region, access, KEY_ARENA + 2 * i, &o->mr[i]);
		else
			r = reg(o, region->base, region->length, access, KEY_ARENA + 2 * i, &o->mr[i]);
		if (r < 0)
			return r;
		descs[i] = local || region->gpu ? fi_mr_desc(o->mr[i]) : NULL;
	}
	o->desc = descs[0];
	o->rx_desc = descs[a->n_regions - 1];
	return 0;
}

int ofi_memory_open(struct ofi_session *o) {
	bool local = o->info->domain_attr->mr_mode & FI_MR_LOCAL;
	uint64_t access = wanted_access(o->job->op);
	int r;

	r = open_scratch(o);
	if (r < 0)
		return r;

	if (local) {
		r = reg(o, o->scratch, o->scratch_length, access | FI_SEND | FI_RECV, KEY_SCRATCH, &o->scratch_mr);
		if (r < 0)
			return r;
		o->scratch_desc = fi_mr_desc(o->scratch_mr);
	}

	return open_regions(o, access, local);
}

int ofi_memory_enable(struct ofi_session *o) {
	struct fid_mr *regions[] = { o->mr[0], o->mr[1], o->scratch_mr };

	if (!(o->info->domain_attr->mr_mode & FI_MR_ENDPOINT))
		return 0;

	/* Such regions are born disabled, and belong to one endpoint (fi_mr(3)). */
	for (size_t i = 0; i < ELEMENTSOF(regions); i++) {
		int r;

		if (!regions[i])
			continue;
		r = fi_mr_bind(regions[i], &o->ep->fid, 0);
		if (r == 0)
			r = fi_mr_enable(regions[i]);
		if (r)
			return ofi_open_failed(o, "enable registered memory", r);
	}
	return 0;
}

void ofi_memory_close(struct ofi_session *o) {
	for (size_t i = 0; i < ELEMENTSOF(o->mr); i++) {
		if (o->mr[i])
			(void) fi_close(&o->mr[i]->fid);
		o->mr[i] = NULL;
	}
	if (o->scratch_mr)
		(void) fi_close(&o->scratch_mr->fid);
	o->scratch_mr = NULL;
}

void ofi_scratch_close(struct ofi_session *o) {
	if (!o->scratch)
		return;
	(void) munmap(o->scratch, o->scratch_length);
	room_give(o->scratch_length);
	o->scratch = NULL;
}

int ofi_address_write(const struct ofi_session *o, struct address *ret) {
	uint8_t name[OFI_NAME_MAX];
	size_t name_length = sizeof(name);
	/* What the peer's operations work on: reads take from it what is sent otherwise. */
	const bool reads = o->job->op == OP_READ;
	const struct region *region = reads ? arena_tx_region(&o->arena) : arena_rx_region(&o->arena);
	const uint8_t *half = reads ? o->arena.tx : o->arena.rx;
	struct fid_mr *mr = o->mr[region - o->arena.regions];
	uint64_t key = 0, base = 0;
	struct wire_address w;
	int r;

	r = fi_getname(&o->ep->fid, name, &name_length);
	if (r)
		return ofi_open_failed(o, "get the endpoint's name", r);

	if (mr) {
		key = fi_mr_key(mr);
		if (key == FI_KEY_NOTAVAIL)
			return ofi_open_failed(o, "get the memory's key", FI_ENOKEY);
		base = (uint64_t) (uintptr_t) half;
		if (!(o->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR))
			base -= (uint64_t) (uintptr_t) region->base;
	}

	w = (struct wire_address) {
		.magic = htobe32(ADDRESS_MAGIC),
		.format = htobe32(o->info->addr_format),
		.key = htobe64(key),
		.base = htobe64(base),
		.length = htobe64(o->arena.length),
		.name_length = htobe32((uint32_t) name_length),
	};
	_Static_assert(sizeof(w) + OFI_NAME_MAX <= ADDRESS_MAX, "an address must fit into struct address");
	memcpy(ret->bytes, &w, sizeof(w));
	memcpy(ret->bytes + sizeof(w), name, name_length);
	ret->length = sizeof(w) + name_length;
	return 0;
}

/* Providers read as many bytes as the format says, whatever came; so its length must be the length of our own name. */
static bool name_is_sound(const struct ofi_session *o, uint32_t format, const uint8_t *name, size_t length) {
	uint8_t own[OFI_NAME_MAX];
	size_t own_length = sizeof(own);

	if (format != o->info->addr_format || length == 0 || length >= OFI_NAME_MAX)
		return false;
	if (format == FI_ADDR_STR)
		return strnlen((const char *) name, length) + 1 >= length;
	if (fi_getname(&o->ep->fid, own, &own_length) != 0 || own_length != length)
		return false;
	/* A socket address says its family itself; IPv4 and IPv6 differ in length. */
	return !ofi_is_ip(o->info) || memcmp(own, name, sizeof(sa_family_t)) == 0;
}

static int refuse(const struct ofi_session *o, const char *why) {
	return failure(-EPROTO, EXIT_PEER, "%s: the peer sent an unusable address: %s", o->job->backend, why);
}

static void place_slots(struct ofi_session *o, uint64_t remote_base) {
	const struct arena *a = &o->arena;

	o->remote_base = remote_base;
	for (uint32_t i = 0; !job_has_lanes(o->job) && i < o->slots; i++)
		o->places[i] = (struct ofi_place) {
			.tx = arena_tx(a, i),
			.rx = arena_rx(a, i),
			.compare = ofi_compare_area(o) + arena_offset(a, i),
			.remote = remote_base + arena_offset(a, i),
		};
}

int ofi_address_read(struct ofi_session *o, const struct address *peer) {
	uint8_t name[OFI_NAME_MAX] = { 0 };     /* longer than what is copied: a text always ends */
	struct wire_address w;
	size_t length;
	int r;

	if (peer->length > sizeof(peer->bytes) || peer->length < sizeof(w))
		return refuse(o, "too short");
	memcpy(&w, peer->bytes, sizeof(w));
	length = be32toh(w.name_length);
	if (be32toh(w.magic) != ADDRESS_MAGIC || length != peer->length - sizeof(w))
		return refuse(o, "not one of this backend");
	if (be64toh(w.length) != o->arena.length)
		return failure(-EPROTO, EXIT_PEER, "%s: the peer's buffers have %llu bytes and ours %llu for the same "
			       "job; install the same build of perch at both ends", o->job->backend,
			       (unsigned long long) be64toh(w.length), (unsigned long long) o->arena.length);
	if (be64toh(w.base) > UINT64_MAX - o->arena.length)
		return refuse(o, "its memory ends above the last address");
	if (!name_is_sound(o, be32toh(w.format), peer->bytes + sizeof(w), length))
		return refuse(o, "its endpoint's name has another format than ours; "
			      "both ends need the same provider and address family");
	memcpy(name, peer->bytes + sizeof(w), length);
	r = o->kind->check_peer ? o->kind->check_peer(o, name, length) : 0;
	if (r < 0)
		return r;

	r = fi_av_insert(o->av, name, 1, &o->peer, 0, NULL);
	if (r != 1)
		return failure(-EPROTO, EXIT_PEER, "%s, provider %s, device %s: cannot address the peer's endpoint: "
			       "%s; are both devices on one network?", o->job->backend, o->session.provider,
			       o->session.device, r < 0 ? fi_strerror(-r) : "the name was refused");
	o->remote_key = be64toh(w.key);
	place_slots(o, be64toh(w.base));
	return 0;
}
