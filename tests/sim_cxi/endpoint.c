/* SPDX-License-Identifier: Apache-2.0 */
/* Endpoints: reliable datagrams only, with one address vector and completion queues, and a place on the fabric. */
#include "sim.h"

#include <stdlib.h>
#include <string.h>

static void leave_queue(struct sim_endpoint *ep) {
	for (struct sim_endpoint **p = ep->tx ? &ep->tx->endpoints : NULL; p && *p; p = &(*p)->next_of_cq)
		if (*p == ep) {
			*p = ep->next_of_cq;
			return;
		}
}

static int close_endpoint(struct fid *fid) {
	struct sim_endpoint *ep = container(fid, struct sim_endpoint, fid.fid);

	/* its regions go first */
	if (ep->users > 0)
		return -FI_EBUSY;
	pthread_mutex_lock(&ep->domain->lock);
	sim_delayed_flush(ep);
	leave_queue(ep);
	pthread_mutex_unlock(&ep->domain->lock);
	if (ep->inner)
		(void) fi_close(&ep->inner->fid);
	sim_seat_leave(&ep->seat);
	if (ep->av)
		ep->av->users--;
	if (ep->tx)
		ep->tx->users--;
	if (ep->rx)
		ep->rx->users--;
	fi_freeinfo(ep->info);
	ep->domain->users--;
	free(ep);
	return 0;
}

static int bind_av(struct sim_endpoint *ep, struct fid *other) {
	struct sim_av *av = container(other, struct sim_av, fid.fid);

	if (ep->av || av->domain != ep->domain)
		return -FI_EINVAL;
	ep->av = av;
	av->users++;
	return 0;
}

static int bind_cq(struct sim_endpoint *ep, struct fid *other, uint64_t flags) {
	struct sim_cq *cq = container(other, struct sim_cq, fid.fid);

	if (!(flags & (FI_TRANSMIT | FI_RECV)) || (flags & ~(FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION)))
		return -FI_EBADFLAGS;
	if (cq->domain != ep->domain || ((flags & FI_TRANSMIT) && ep->tx) || ((flags & FI_RECV) && ep->rx))
		return -FI_EINVAL;
	if (flags & FI_TRANSMIT) {
		ep->tx = cq;
		cq->users++;
		ep->tx_selective = flags & FI_SELECTIVE_COMPLETION;
		ep->next_of_cq = cq->endpoints;
		cq->endpoints = ep;
	}
	if (flags & FI_RECV) {
		ep->rx = cq;
		cq->users++;
		ep->rx_selective = flags & FI_SELECTIVE_COMPLETION;
	}
	return 0;
}

static int bind_endpoint(struct fid *fid, struct fid *other, uint64_t flags) {
	struct sim_endpoint *ep = container(fid, struct sim_endpoint, fid.fid);

	if (ep->enabled)
		return -FI_EOPBADSTATE;
	switch (other->fclass) {
	case FI_CLASS_AV:
		return bind_av(ep, other);
	case FI_CLASS_CQ:
		return bind_cq(ep, other, flags);
	default:
		return -FI_ENOSYS;
	}
}

/* The PID is assigned now; a wish comes from fi_getinfo() with FI_SOURCE, and a conflict shows here. */
static int take_seat(struct sim_endpoint *ep) {
	const struct sim_address *wish = ep->info->src_addr;
	struct sim_address address = { .nic = ep->domain->device->nic & 0xfffff, .pid = SIM_PID_ANY,
				       .vni = ep->domain->key.vni };
	size_t length = SIM_INNER_ADDRESS_MAX;
	uint8_t inner[SIM_INNER_ADDRESS_MAX];
	int r;

	if (wish && ep->info->src_addrlen == sizeof(*wish))
		address.pid = wish->pid;
	r = fi_getname(&ep->inner->fid, inner, &length);
	if (r)
		return r;
	r = sim_seat_take(address, &ep->seat);
	if (r < 0)
		return r;
	memcpy(ep->seat.card->inner, inner, length);
	atomic_thread_fence(memory_order_release);
	ep->seat.card->inner_length = (uint32_t) length;
	return 0;
}

/* As late as it may be: ofi_rxm (1.17) crashes when an endpoint is closed that nothing was ever bound to. */
static int open_inner(struct sim_endpoint *ep) {
	struct fi_info *inner;
	int r;

	if (ep->inner)
		return 0;
	inner = fi_dupinfo(ep->domain->inner_info);
	if (!inner)
		return -FI_ENOMEM;
	ep->inner_inject = inner->tx_attr->inject_size;
	r = fi_endpoint(ep->domain->inner, inner, &ep->inner, NULL);
	fi_freeinfo(inner);
	if (r == 0)
		r = fi_ep_bind(ep->inner, &ep->av->inner->fid, 0);
	if (r == 0 && ep->tx == ep->rx && ep->tx_selective == ep->rx_selective)
		return fi_ep_bind(ep->inner, &ep->tx->inner->fid,
				  FI_TRANSMIT | FI_RECV | (ep->tx_selective ? FI_SELECTIVE_COMPLETION : 0));
	if (r == 0 && ep->tx)
		r = fi_ep_bind(ep->inner, &ep->tx->inner->fid,
			       FI_TRANSMIT | (ep->tx_selective ? FI_SELECTIVE_COMPLETION : 0));
	if (r == 0 && ep->rx)
		r = fi_ep_bind(ep->inner, &ep->rx->inner->fid,
			       FI_RECV | (ep->rx_selective ? FI_SELECTIVE_COMPLETION : 0));
	return r;
}

static int enable(struct sim_endpoint *ep) {
	uint64_t caps = ep->info->caps;
	int r;

	if (ep->enabled)
		return 0;
	if (!ep->av)
		return -FI_ENOAV;
	if ((!ep->tx && (caps & (FI_SEND | FI_READ | FI_WRITE))) || (!ep->rx && (caps & FI_RECV)))
		return -FI_ENOCQ;
	r = open_inner(ep);
	if (r == 0)
		r = fi_enable(ep->inner);
	if (r == 0)
		r = take_seat(ep);
	if (r == 0)
		ep->enabled = true;
	return r;
}

static int control(struct fid *fid, int command, void *arg) {
	struct sim_endpoint *ep = container(fid, struct sim_endpoint, fid.fid);

	return command == FI_ENABLE ? enable(ep) : -FI_ENOSYS;
}

static int getname(struct fid *fid, void *addr, size_t *length) {
	struct sim_endpoint *ep = container(fid, struct sim_endpoint, fid.fid);
	size_t given = *length;

	if (!ep->enabled)
		return -FI_EOPBADSTATE;
	*length = sizeof(struct sim_address);
	memcpy(addr, &ep->seat.card->address, given < *length ? given : *length);
	return given < *length ? -FI_ETOOSMALL : 0;
}

static int setname(struct fid *fid, void *addr, size_t length) {
	return -FI_ENOSYS;
}

static int getpeer(struct fid_ep *ep, void *addr, size_t *length) {
	return -FI_ENOSYS;
}

static ssize_t cancel(struct fid *fid, void *context) {
	struct sim_endpoint *ep = container(fid, struct sim_endpoint, fid.fid);

	return ep->enabled ? fi_cancel(&ep->inner->fid, context) : -FI_EOPBADSTATE;
}

static int getopt_endpoint(struct fid *fid, int level, int name, void *value, size_t *length) {
	struct sim_endpoint *ep = container(fid, struct sim_endpoint, fid.fid);

	return ep->enabled ? fi_getopt(&ep->inner->fid, level, name, value, length) : -FI_EOPBADSTATE;
}

static int setopt_endpoint(struct fid *fid, int level, int name, const void *value, size_t length) {
	struct sim_endpoint *ep = container(fid, struct sim_endpoint, fid.fid);

	return ep->enabled ? fi_setopt(&ep->inner->fid, level, name, value, length) : -FI_EOPBADSTATE;
}

static struct fi_ops endpoint_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = close_endpoint,
	.bind = bind_endpoint,
	.control = control,
	.ops_open = sim_no_ops_open,
};

static struct fi_ops_cm cm_ops = {
	.size = offsetof(struct fi_ops_cm, connect),
	.setname = setname,
	.getname = getname,
	.getpeer = getpeer,
};

/* libfabric's inline calls check the size before they go beyond it: no scalable endpoints, no sizes left. */
static struct fi_ops_ep endpoint_ops = {
	.size = offsetof(struct fi_ops_ep, tx_ctx),
	.cancel = cancel,
	.getopt = getopt_endpoint,
	.setopt = setopt_endpoint,
};

/* fi_cxi(7): an endpoint's key, if it has one, must be the domain's. */
static int check_key(const struct sim_domain *d, const struct fi_ep_attr *a) {
	struct sim_auth_key key;

	if (!a->auth_key || a->auth_key_size == 0)
		return 0;
	if (a->auth_key_size != sizeof(key))
		return -FI_EINVAL;
	memcpy(&key, a->auth_key, sizeof(key));
	return key.svc_id == d->key.svc_id && key.vni == d->key.vni ? 0 : -FI_EINVAL;
}

int sim_endpoint_open(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ret, void *context) {
	struct sim_domain *d = container(domain, struct sim_domain, fid);
	struct sim_endpoint *ep;
	int r;

	if (!info || !info->ep_attr || info->ep_attr->type != FI_EP_RDM)
		return -FI_EINVAL;
	r = check_key(d, info->ep_attr);
	if (r < 0)
		return r;
	ep = calloc(1, sizeof(*ep));
	if (!ep)
		return -FI_ENOMEM;
	ep->domain = d;
	ep->seat.fd = -1;
	d->users++;
	ep->info = fi_dupinfo(info);
	ep->fid.fid = (struct fid) { .fclass = FI_CLASS_EP, .context = context, .ops = &endpoint_fid_ops };
	ep->fid.ops = &endpoint_ops;
	ep->fid.cm = &cm_ops;
	ep->fid.msg = &sim_message_ops;
	ep->fid.tagged = &sim_tagged_ops;
	ep->fid.rma = &sim_rma_ops;
	ep->fid.atomic = &sim_atomic_ops;
	if (!ep->info) {
		(void) close_endpoint(&ep->fid.fid);
		return -FI_ENOMEM;
	}
	ep->op_flags = info->tx_attr->op_flags & (FI_COMPLETION | SIM_LEVELS);
	*ret = &ep->fid;
	return 0;
}
