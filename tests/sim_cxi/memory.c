/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory regions: born disabled, bound to one endpoint, then enabled (FI_MR_ENDPOINT); offsets count from the region's
 * start (no FI_MR_VIRT_ADDR). An enabled region stands in its endpoint's card, where a peer's write finds it.
 */
#include "sim.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static void unlink_memory(struct sim_memory *m) {
	for (struct sim_memory **p = &m->domain->memories; *p; p = &(*p)->next)
		if (*p == m) {
			*p = m->next;
			return;
		}
}

static int close_memory(struct fid *fid) {
	struct sim_memory *m = container(fid, struct sim_memory, fid.fid);

	pthread_mutex_lock(&m->domain->lock);
	if (m->slot)
		*m->slot = (struct sim_region) { 0 };
	unlink_memory(m);
	pthread_mutex_unlock(&m->domain->lock);
	if (m->endpoint)
		m->endpoint->users--;
	if (m->inner)
		(void) fi_close(&m->inner->fid);
	m->domain->users--;
	free(m);
	return 0;
}

static int bind_memory(struct fid *fid, struct fid *other, uint64_t flags) {
	struct sim_memory *m = container(fid, struct sim_memory, fid.fid);
	struct sim_endpoint *ep = container(other, struct sim_endpoint, fid.fid);
	int r = 0;

	if (other->fclass != FI_CLASS_EP)
		r = -FI_ENOSYS;
	else if (m->endpoint || m->slot || ep->domain != m->domain)
		r = -FI_EINVAL;
	if (r == 0) {
		m->endpoint = ep;
		ep->users++;
	}
	sim_count(CALL_fi_mr_bind, r);
	return r;
}

static int enable(struct sim_memory *m) {
	struct sim_region *slot = NULL;

	if (m->slot)
		return 0;
	if (!m->endpoint)
		return -FI_EINVAL;
	if (!m->endpoint->enabled)
		return -FI_EOPBADSTATE;
	for (size_t i = 0; i < SIM_REGIONS_MAX && !slot; i++)
		if (!m->endpoint->seat.card->regions[i].enabled)
			slot = &m->endpoint->seat.card->regions[i];
	if (!slot)
		return -FI_ENOSPC;
	*slot = m->region;
	atomic_thread_fence(memory_order_release);
	slot->enabled = true;
	m->slot = slot;
	m->fid.key = m->region.key;
	return 0;
}

static int control(struct fid *fid, int command, void *arg) {
	struct sim_memory *m = container(fid, struct sim_memory, fid.fid);
	int r;

	if (command != FI_ENABLE)
		return -FI_ENOSYS;
	pthread_mutex_lock(&m->domain->lock);
	r = enable(m);
	pthread_mutex_unlock(&m->domain->lock);
	sim_count(CALL_fi_mr_enable, r);
	return r;
}

static struct fi_ops memory_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = close_memory,
	.bind = bind_memory,
	.control = control,
	.ops_open = sim_no_ops_open,
};

/*
 * FI_MR_ALLOCATED: pages that are not there cannot be pinned. msync() says so, and changes nothing in private memory.
 */
static bool is_there(const void *base, size_t length) {
	uintptr_t page = (uintptr_t) sysconf(_SC_PAGESIZE), from = (uintptr_t) base / page * page;

	return length == 0 || msync((void *) from, (uintptr_t) base + length - from, MS_ASYNC) == 0;
}

static bool key_taken(const struct sim_domain *d, uint64_t key) {
	for (const struct sim_memory *m = d->memories; m; m = m->next)
		if (m->region.key == key)
			return true;
	return false;
}

/* Provider keys: marked by their highest bit, never used again. Client keys: 32 bits, optimized below 100. */
static int choose_key(struct sim_memory *m, uint64_t requested, uint64_t flags) {
	struct sim_domain *d = m->domain;

	m->region.events = flags & FI_RMA_EVENT;
	if (d->info->domain_attr->mr_mode & FI_MR_PROV_KEY) {
		m->region.optimized = sim_variables.optimized_regions;
		m->region.key = SIM_KEY_PROVIDER | (m->region.events ? SIM_KEY_EVENTS : 0) | ++d->next_key;
		m->fid.key = FI_KEY_NOTAVAIL;
		return 0;
	}
	if (requested > SIM_KEY_CLIENT_MAX)
		return -FI_EKEYREJECTED;
	if (key_taken(d, requested))
		return -FI_ENOKEY;
	m->region.optimized = sim_variables.optimized_regions && requested < SIM_OPTIMIZED_KEYS;
	m->region.key = m->fid.key = requested;
	return 0;
}

static int register_inner(struct sim_memory *m, const struct iovec *iov, uint64_t access) {
	struct sim_domain *d = m->domain;
	uint64_t mode = d->inner_info->domain_attr->mr_mode;
	int r;

	r = fi_mr_reg(d->inner, iov->iov_base, iov->iov_len, access, 0, ++d->next_inner_key, 0, &m->inner, NULL);
	if (r)
		return r;
	m->region.inner_key = fi_mr_key(m->inner);
	m->region.inner_base = (mode & FI_MR_VIRT_ADDR) ? (uint64_t) (uintptr_t) iov->iov_base : 0;
	return 0;
}

static int register_attr(struct fid *fid, const struct fi_mr_attr *a, uint64_t flags, struct fid_mr **ret) {
	struct sim_domain *d = container(fid, struct sim_domain, fid.fid);
	struct sim_memory *m;
	int r;

	if (fid->fclass != FI_CLASS_DOMAIN || !a || a->iov_count != 1 || a->offset != 0)
		return -FI_EINVAL;
	if (flags & ~(FI_RMA_EVENT | FI_RMA_PMEM))
		return -FI_EBADFLAGS;
	if (a->iface == FI_HMEM_SYSTEM && (d->info->domain_attr->mr_mode & FI_MR_ALLOCATED) &&
	    !is_there(a->mr_iov->iov_base, a->mr_iov->iov_len))
		return -FI_EFAULT;
	if (sim_variables.refuse_memory)
		return -FI_EINVAL;
	m = calloc(1, sizeof(*m));
	if (!m)
		return -FI_ENOMEM;
	m->domain = d;
	d->users++;
	m->fid.fid = (struct fid) { .fclass = FI_CLASS_MR, .context = a->context, .ops = &memory_fid_ops };
	m->region.access = a->access;
	m->region.length = a->mr_iov->iov_len;
	m->region.base = (uint64_t) (uintptr_t) a->mr_iov->iov_base;
	pthread_mutex_lock(&d->lock);
	r = choose_key(m, a->requested_key, flags);
	if (r == 0)
		r = register_inner(m, a->mr_iov, a->access);
	if (r == 0) {
		m->next = d->memories;
		d->memories = m;
	}
	pthread_mutex_unlock(&d->lock);
	sim_count(CALL_fi_mr_reg, r);
	if (r) {
		(void) close_memory(&m->fid.fid);
		return r;
	}
	if (a->iface != FI_HMEM_SYSTEM)
		sim_model(MODEL_device_memory_region);
	m->fid.mem_desc = m;
	*ret = &m->fid;
	return 0;
}

static int register_vector(struct fid *fid, const struct iovec *iov, size_t count, uint64_t access, uint64_t offset,
			   uint64_t key, uint64_t flags, struct fid_mr **ret, void *context) {
	struct fi_mr_attr a = {
		.mr_iov = iov,
		.iov_count = count,
		.access = access,
		.offset = offset,
		.requested_key = key,
		.context = context,
	};

	return register_attr(fid, &a, flags, ret);
}

static int register_one(struct fid *fid, const void *base, size_t length, uint64_t access, uint64_t offset,
			uint64_t key, uint64_t flags, struct fid_mr **ret, void *context) {
	struct iovec iov = { .iov_base = (void *) (uintptr_t) base, .iov_len = length };

	return register_vector(fid, &iov, 1, access, offset, key, flags, ret, context);
}

struct fi_ops_mr sim_mr_ops = {
	.size = sizeof(struct fi_ops_mr),
	.reg = register_one,
	.regv = register_vector,
	.regattr = register_attr,
};

const struct sim_region *sim_target(const struct sim_peer *peer, uint64_t key, uint64_t offset, uint64_t length,
				    uint64_t access, enum sim_rc *ret_why) {
	for (size_t i = 0; i < SIM_REGIONS_MAX; i++) {
		const struct sim_region *g = &peer->card->regions[i];

		if (!g->enabled || g->key != key)
			continue;
		*ret_why = (g->access & access) != access ? RC_PERM_VIOLATION : RC_OUT_OF_BOUNDS;
		return (g->access & access) == access && offset <= g->length && length <= g->length - offset ? g : NULL;
	}
	*ret_why = RC_ENTRY_NOT_FOUND;
	return NULL;
}
