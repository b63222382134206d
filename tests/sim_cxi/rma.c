/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes and reads. A write is restricted, so without order and without notice at the target,
 * when it targets an optimized region, no remote event is wanted,
 * and no write-after-write order was asked for (fi_cxi(7), "Optimized RMA").
 */
#include "sim.h"

#define WRITE_FLAGS \
	(FI_INJECT | FI_COMPLETION | SIM_LEVELS | FI_MORE | FI_FENCE | FI_REMOTE_CQ_DATA | SIM_HRP | SIM_WEAK_FENCE)
#define READ_FLAGS (FI_COMPLETION | SIM_LEVELS | FI_MORE | FI_FENCE)

struct request {
	struct fi_msg_rma m;
	struct iovec iov;
	struct fi_rma_iov rma;
	uint64_t flags;
	bool write, silent;
};

static bool is_restricted(const struct sim_endpoint *ep, const struct sim_region *g, const struct request *q) {
	if (!g->optimized)
		return false;
	/* its notice goes separately */
	if (q->flags & FI_REMOTE_CQ_DATA)
		return true;
	if (g->events || (!(q->rma.key & SIM_KEY_PROVIDER) && (ep->info->caps & FI_RMA_EVENT)))
		return false;
	return !(q->write && (ep->info->tx_attr->msg_order & (FI_ORDER_WAW | FI_ORDER_RMA_WAW)));
}

static void model(const struct sim_region *g, const struct request *q, bool restricted, bool injected) {
	size_t limit = restricted ? SIM_IDC_RESTRICTED : SIM_INJECT_SIZE;

	if (!q->write) {
		sim_model(MODEL_dma_read);
		sim_model(restricted ? MODEL_restricted_read : MODEL_unrestricted_read);
		return;
	}
	sim_model(restricted ? MODEL_restricted_write : MODEL_unrestricted_write);
	/* commands with immediate data carry no match bits: optimized regions only */
	sim_model(g->optimized && q->iov.iov_len <= limit && (injected || sim_variables.idc_rma) ? MODEL_idc_rma
		  : MODEL_dma_write);
	if (q->flags & SIM_HRP)
		sim_model(restricted ? MODEL_hrp_write : MODEL_hrp_ignored);
}

/*
 * A write is complete when the target's NIC has all of it (fi_cxi(7), FI_TRANSMIT_COMPLETE).
 * Of the inner provider's levels, delivery is the one that says so:
 * its transmit-complete may mean that the bytes have been copied into a socket.
 */
static uint64_t inner_flags(uint64_t flags, bool write) {
	flags &= ~(SIM_LEVELS | FI_FENCE | SIM_HRP | SIM_WEAK_FENCE);
	return write ? flags | FI_DELIVERY_COMPLETE : flags;
}

static ssize_t post_write(struct sim_endpoint *ep, const struct fi_msg_rma *m, uint64_t flags) {
	return fi_writemsg(ep->inner, m, flags);
}

/* Posts what waits, after what has overtaken it. Where the inner provider cannot take it now, it goes on waiting. */
void sim_delayed_flush(struct sim_endpoint *ep) {
	struct sim_delayed *d = &ep->delayed;

	if (!d->waiting)
		return;
	d->message.msg_iov = &d->iov;
	d->message.rma_iov = &d->rma;
	d->waiting = post_write(ep, &d->message, d->flags) == -FI_EAGAIN;
}

/*
 * With SIM_CXI_REORDER a restricted write waits for the next one, which goes first; any other call, or a look at the
 * queue, lets it go.
 */
static bool delay(struct sim_endpoint *ep, const struct request *q, uint64_t flags) {
	struct sim_delayed *d = &ep->delayed;

	if (!sim_variables.reorder || d->waiting || (q->flags & FI_FENCE))
		return false;
	*d = (struct sim_delayed) { .waiting = true, .message = q->m, .iov = q->iov, .rma = q->rma, .flags = flags };
	return true;
}

static ssize_t post(struct sim_endpoint *ep, struct request *q, bool restricted, bool injected) {
	uint64_t flags = inner_flags(q->flags, q->write);
	struct sim_shadow *shadow = NULL;
	ssize_t r;

	q->m.msg_iov = &q->iov;
	q->m.iov_count = 1;
	q->m.rma_iov = &q->rma;
	q->m.rma_iov_count = 1;
	q->m.desc = NULL;
	if (!q->write) {
		sim_delayed_flush(ep);
		return fi_readmsg(ep->inner, &q->m, flags);
	}
	/*
	 * The user's bytes must be copied: always for the calls without a completion, or when the inner limit is lower.
	 */
	if (injected && (q->silent || q->iov.iov_len > ep->inner_inject || sim_variables.reorder)) {
		shadow = sim_shadow_take(ep->tx, q->iov.iov_base, q->iov.iov_len, q->m.context,
					 !q->silent && sim_completes(ep, q->flags));
		if (!shadow)
			return -FI_EAGAIN;
		q->iov.iov_base = shadow->bytes;
		q->m.context = shadow;
		flags = (flags & ~FI_INJECT) | FI_COMPLETION;
	}
	if (restricted && delay(ep, q, flags))
		return 0;
	if (!restricted)
		sim_delayed_flush(ep);
	r = post_write(ep, &q->m, flags);
	if (r && shadow)
		sim_shadow_return(ep->tx, shadow);
	if (r == 0)
		sim_delayed_flush(ep);
	return r;
}

/* A write with notice needs what only the newest cxi has: a provider key whose region wants events. */
static int check_notice(const struct request *q) {
	if (!(q->flags & FI_REMOTE_CQ_DATA))
		return 0;
	if (!sim_variables.writedata)
		return -FI_ENOSYS;
	return (q->rma.key & SIM_KEY_PROVIDER) && (q->rma.key & SIM_KEY_EVENTS) ? 0 : -FI_EINVAL;
}

static ssize_t locked(struct sim_endpoint *ep, struct request *q) {
	uint64_t what = FI_RMA | (q->write ? FI_WRITE : FI_READ), offset = q->rma.addr;
	bool injected = q->silent || (q->flags & FI_INJECT), restricted;
	const struct sim_region *g = NULL;
	struct sim_peer *peer;
	enum sim_rc why;
	int r;

	if (q->iov.iov_len > SIM_MESSAGE_MAX || (injected && q->iov.iov_len > SIM_INJECT_SIZE))
		return -FI_EMSGSIZE;
	if (q->iov.iov_len > 0 && !q->iov.iov_base)
		return -FI_EINVAL;
	if (q->flags & ~(q->write ? WRITE_FLAGS : READ_FLAGS))
		return -FI_EBADFLAGS;
	if (!(q->rma.key & SIM_KEY_PROVIDER) && q->rma.key > SIM_KEY_CLIENT_MAX)
		return -FI_EKEYREJECTED;
	r = check_notice(q);
	if (r == 0)
		r = sim_reach(ep, q->m.addr, &peer, &why);
	if (r < 0)
		return r;
	if (r == 0)
		g = sim_target(peer, q->rma.key, offset, q->iov.iov_len, q->write ? FI_REMOTE_WRITE : FI_REMOTE_READ,
			       &why);
	if (!g)
		return sim_fail(ep, q->silent ? NULL : q->m.context, what, why);
	restricted = is_restricted(ep, g, q);
	q->m.addr = peer->inner;
	q->rma = (struct fi_rma_iov) { .addr = g->inner_base + offset, .len = q->iov.iov_len, .key = g->inner_key };
	r = (int) post(ep, q, restricted, injected);
	if (r == 0)
		model(g, q, restricted, injected);
	return r;
}

static ssize_t perform(struct fid_ep *fid, enum sim_call call, struct request *q) {
	struct sim_endpoint *ep = sim_endpoint(fid);
	ssize_t r;

	if (!(ep->info->caps & FI_RMA))
		return -FI_ENOSYS;
	pthread_mutex_lock(&ep->domain->lock);
	r = locked(ep, q);
	pthread_mutex_unlock(&ep->domain->lock);
	sim_count_flags(call, q->flags, r);
	return r;
}

static ssize_t simple(struct fid_ep *fid, enum sim_call call, bool write, const struct iovec *iov, size_t count,
		      fi_addr_t peer, uint64_t addr, uint64_t key, void *context) {
	struct request q = { .m = { .addr = peer, .context = context }, .rma = { .addr = addr, .key = key },
			     .write = write };

	if (count > 1)
		return -FI_EINVAL;
	if (count == 1)
		q.iov = *iov;
	q.flags = sim_endpoint(fid)->op_flags;
	return perform(fid, call, &q);
}

static ssize_t rma_read(struct fid_ep *ep, void *buffer, size_t length, void *desc, fi_addr_t from, uint64_t addr,
			uint64_t key, void *context) {
	struct iovec iov = { .iov_base = buffer, .iov_len = length };

	return simple(ep, CALL_fi_read, false, &iov, 1, from, addr, key, context);
}

static ssize_t rma_readv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count, fi_addr_t from,
			 uint64_t addr, uint64_t key, void *context) {
	return simple(ep, CALL_fi_readv, false, iov, count, from, addr, key, context);
}

static ssize_t rma_write(struct fid_ep *ep, const void *buffer, size_t length, void *desc, fi_addr_t to, uint64_t addr,
			 uint64_t key, void *context) {
	struct iovec iov = { .iov_base = (void *) (uintptr_t) buffer, .iov_len = length };

	return simple(ep, CALL_fi_write, true, &iov, 1, to, addr, key, context);
}

static ssize_t rma_writev(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count, fi_addr_t to,
			  uint64_t addr, uint64_t key, void *context) {
	return simple(ep, CALL_fi_writev, true, iov, count, to, addr, key, context);
}

static ssize_t message(struct fid_ep *ep, enum sim_call call, bool write, const struct fi_msg_rma *m, uint64_t flags) {
	struct request q = { .m = *m, .flags = flags, .write = write };

	if (m->rma_iov_count != 1 || !m->rma_iov || m->iov_count > 1)
		return -FI_EINVAL;
	q.rma = *m->rma_iov;
	if (m->iov_count == 1)
		q.iov = *m->msg_iov;
	return perform(ep, call, &q);
}

static ssize_t rma_readmsg(struct fid_ep *ep, const struct fi_msg_rma *m, uint64_t flags) {
	return message(ep, CALL_fi_readmsg, false, m, flags);
}

static ssize_t rma_writemsg(struct fid_ep *ep, const struct fi_msg_rma *m, uint64_t flags) {
	return message(ep, CALL_fi_writemsg, true, m, flags);
}

static ssize_t rma_inject(struct fid_ep *ep, const void *buffer, size_t length, fi_addr_t to, uint64_t addr,
			  uint64_t key) {
	struct request q = { .m = { .addr = to }, .rma = { .addr = addr, .key = key }, .write = true, .silent = true };

	q.iov = (struct iovec) { .iov_base = (void *) (uintptr_t) buffer, .iov_len = length };
	return perform(ep, CALL_fi_inject_write, &q);
}

static ssize_t rma_writedata(struct fid_ep *ep, const void *buffer, size_t length, void *desc, uint64_t data,
			     fi_addr_t to, uint64_t addr, uint64_t key, void *context) {
	struct request q = { .m = { .addr = to, .context = context, .data = data }, .rma = { .addr = addr, .key = key },
			     .write = true };

	q.iov = (struct iovec) { .iov_base = (void *) (uintptr_t) buffer, .iov_len = length };
	q.flags = FI_REMOTE_CQ_DATA | sim_endpoint(ep)->op_flags;
	return perform(ep, CALL_fi_writedata, &q);
}

static ssize_t rma_injectdata(struct fid_ep *ep, const void *buffer, size_t length, uint64_t data, fi_addr_t to,
			      uint64_t addr, uint64_t key) {
	struct request q = { .m = { .addr = to, .data = data }, .rma = { .addr = addr, .key = key }, .write = true,
			     .silent = true };

	q.iov = (struct iovec) { .iov_base = (void *) (uintptr_t) buffer, .iov_len = length };
	q.flags = FI_REMOTE_CQ_DATA;
	return perform(ep, CALL_fi_inject_writedata, &q);
}

struct fi_ops_rma sim_rma_ops = {
	.size = sizeof(struct fi_ops_rma),
	.read = rma_read,
	.readv = rma_readv,
	.readmsg = rma_readmsg,
	.write = rma_write,
	.writev = rma_writev,
	.writemsg = rma_writemsg,
	.inject = rma_inject,
	.writedata = rma_writedata,
	.injectdata = rma_injectdata,
};
