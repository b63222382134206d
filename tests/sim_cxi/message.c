/* SPDX-License-Identifier: Apache-2.0 */
/* Messages, plain and tagged: checked, counted, and handed to the inner provider. */
#include "sim.h"

#include <string.h>

#define SEND_FLAGS (FI_INJECT | FI_COMPLETION | SIM_LEVELS | FI_REMOTE_CQ_DATA | FI_MORE | FI_FENCE | SIM_WEAK_FENCE)
#define RECEIVE_FLAGS (FI_COMPLETION | FI_MULTI_RECV | FI_MORE | FI_PEEK | FI_CLAIM | FI_DISCARD)

/* One call's arguments, whatever their form was. */
struct request {
	struct fi_msg_tagged m;
	struct iovec iov;
	uint64_t flags;
	bool tagged;
	bool silent;                    /* one of the inject calls: no completion */
};

static void model_send(size_t length, bool inject) {
	const struct sim_variables *v = &sim_variables;

	if (length <= SIM_INJECT_SIZE && (inject || v->idc_message))
		sim_model(MODEL_idc_message);
	else
		sim_model(length <= v->rendezvous_threshold + v->rendezvous_get_min
			  ? MODEL_dma_message_eager : MODEL_dma_message_rendezvous);
}

/* The inner provider orders everything, so that a fence holds by itself; match-complete it may not know. */
static uint64_t inner_flags(uint64_t flags) {
	if (flags & FI_MATCH_COMPLETE)
		flags = (flags & ~FI_MATCH_COMPLETE) | FI_DELIVERY_COMPLETE;
	return flags & ~(FI_FENCE | SIM_WEAK_FENCE);
}

static ssize_t post(struct sim_endpoint *ep, const struct fi_msg_tagged *m, bool tagged, uint64_t flags) {
	struct fi_msg plain = {
		.msg_iov = m->msg_iov,
		.iov_count = m->iov_count,
		.addr = m->addr,
		.context = m->context,
		.data = m->data,
	};

	return tagged ? fi_tsendmsg(ep->inner, m, flags) : fi_sendmsg(ep->inner, &plain, flags);
}

static ssize_t inject(struct sim_endpoint *ep, const struct request *q) {
	const struct fi_msg_tagged *m = &q->m;

	if (q->tagged)
		return q->flags & FI_REMOTE_CQ_DATA ?
			fi_tinjectdata(ep->inner, q->iov.iov_base, q->iov.iov_len, m->data, m->addr, m->tag) :
			fi_tinject(ep->inner, q->iov.iov_base, q->iov.iov_len, m->addr, m->tag);
	return q->flags & FI_REMOTE_CQ_DATA ?
	       fi_injectdata(ep->inner, q->iov.iov_base, q->iov.iov_len, m->data, m->addr) :
	       fi_inject(ep->inner, q->iov.iov_base, q->iov.iov_len, m->addr);
}

/* The user's bytes are free when this returns; the inner provider's limit may be lower than ours. */
static ssize_t post_injected(struct sim_endpoint *ep, struct request *q) {
	uint64_t flags = inner_flags(q->flags);
	struct sim_shadow *shadow;
	ssize_t r;

	if (q->iov.iov_len <= ep->inner_inject)
		return q->silent ? inject(ep, q) : post(ep, &q->m, q->tagged, flags);
	shadow = sim_shadow_take(ep->tx, q->iov.iov_base, q->iov.iov_len, q->m.context,
				 !q->silent && sim_completes(ep, q->flags));
	if (!shadow)
		return -FI_EAGAIN;
	q->iov.iov_base = shadow->bytes;
	q->m.context = shadow;
	r = post(ep, &q->m, q->tagged, (flags & ~FI_INJECT) | FI_COMPLETION);
	if (r)
		sim_shadow_return(ep->tx, shadow);
	return r;
}

static ssize_t send_locked(struct sim_endpoint *ep, struct request *q) {
	bool injected = q->silent || (q->flags & FI_INJECT);
	struct sim_peer *peer;
	enum sim_rc why;
	ssize_t r;

	if (q->iov.iov_len > SIM_MESSAGE_MAX || (injected && q->iov.iov_len > SIM_INJECT_SIZE))
		return -FI_EMSGSIZE;
	if (q->flags & ~SEND_FLAGS)
		return -FI_EBADFLAGS;
	r = sim_reach(ep, q->m.addr, &peer, &why);
	if (r > 0)
		return sim_fail(ep, q->silent ? NULL : q->m.context, (q->tagged ? FI_TAGGED : FI_MSG) | FI_SEND, why);
	if (r < 0)
		return r;
	q->m.addr = peer->inner;
	sim_delayed_flush(ep);
	r = injected ? post_injected(ep, q) : post(ep, &q->m, q->tagged, inner_flags(q->flags));
	if (r == 0)
		model_send(q->iov.iov_len, injected);
	return r;
}

static ssize_t do_send(struct fid_ep *fid, enum sim_call call, struct request *q) {
	struct sim_endpoint *ep = sim_endpoint(fid);
	ssize_t r;

	if (!(ep->info->caps & (q->tagged ? FI_TAGGED : FI_MSG)))
		return -FI_ENOSYS;
	q->m.msg_iov = &q->iov;
	q->m.iov_count = 1;
	q->m.desc = NULL;
	pthread_mutex_lock(&ep->domain->lock);
	r = send_locked(ep, q);
	pthread_mutex_unlock(&ep->domain->lock);
	sim_count_flags(call, q->flags, r);
	return r;
}

/* One buffer at most: iov_limit is 1. */
static bool take_iov(struct request *q, const struct iovec *iov, size_t count) {
	if (count > 1 || (count == 1 && !iov))
		return false;
	q->iov = count == 1 ? *iov : (struct iovec) { 0 };
	return true;
}

static ssize_t send_buffer(struct fid_ep *fid, enum sim_call call, struct request *q, const void *buffer, size_t length,
			   uint64_t flags) {
	q->iov = (struct iovec) { .iov_base = (void *) (uintptr_t) buffer, .iov_len = length };
	q->flags = flags | (q->silent ? 0 : sim_endpoint(fid)->op_flags);
	return do_send(fid, call, q);
}

static ssize_t msg_send(struct fid_ep *ep, const void *buffer, size_t length, void *desc, fi_addr_t to, void *context) {
	struct request q = { .m = { .addr = to, .context = context } };

	return send_buffer(ep, CALL_fi_send, &q, buffer, length, 0);
}

static ssize_t msg_senddata(struct fid_ep *ep, const void *buffer, size_t length, void *desc, uint64_t data,
			    fi_addr_t to, void *context) {
	struct request q = { .m = { .addr = to, .context = context, .data = data } };

	return send_buffer(ep, CALL_fi_senddata, &q, buffer, length, FI_REMOTE_CQ_DATA);
}

static ssize_t msg_sendv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count, fi_addr_t to,
			 void *context) {
	struct request q = { .m = { .addr = to, .context = context } };

	if (!take_iov(&q, iov, count))
		return -FI_EINVAL;
	return send_buffer(ep, CALL_fi_sendv, &q, q.iov.iov_base, q.iov.iov_len, 0);
}

static ssize_t msg_sendmsg(struct fid_ep *ep, const struct fi_msg *m, uint64_t flags) {
	struct request q = { .m = { .addr = m->addr, .context = m->context, .data = m->data }, .flags = flags };

	return take_iov(&q, m->msg_iov, m->iov_count) ? do_send(ep, CALL_fi_sendmsg, &q) : -FI_EINVAL;
}

static ssize_t msg_inject(struct fid_ep *ep, const void *buffer, size_t length, fi_addr_t to) {
	struct request q = { .m = { .addr = to }, .silent = true };

	return send_buffer(ep, CALL_fi_inject, &q, buffer, length, 0);
}

static ssize_t msg_injectdata(struct fid_ep *ep, const void *buffer, size_t length, uint64_t data, fi_addr_t to) {
	struct request q = { .m = { .addr = to, .data = data }, .silent = true };

	return send_buffer(ep, CALL_fi_injectdata, &q, buffer, length, FI_REMOTE_CQ_DATA);
}

static ssize_t tagged_send(struct fid_ep *ep, const void *buffer, size_t length, void *desc, fi_addr_t to, uint64_t tag,
			   void *context) {
	struct request q = { .m = { .addr = to, .context = context, .tag = tag }, .tagged = true };

	return send_buffer(ep, CALL_fi_tsend, &q, buffer, length, 0);
}

static ssize_t tagged_senddata(struct fid_ep *ep, const void *buffer, size_t length, void *desc, uint64_t data,
			       fi_addr_t to, uint64_t tag, void *context) {
	struct request q = { .m = { .addr = to, .context = context, .tag = tag, .data = data }, .tagged = true };

	return send_buffer(ep, CALL_fi_tsenddata, &q, buffer, length, FI_REMOTE_CQ_DATA);
}

static ssize_t tagged_sendv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count, fi_addr_t to,
			    uint64_t tag, void *context) {
	struct request q = { .m = { .addr = to, .context = context, .tag = tag }, .tagged = true };

	if (!take_iov(&q, iov, count))
		return -FI_EINVAL;
	return send_buffer(ep, CALL_fi_tsendv, &q, q.iov.iov_base, q.iov.iov_len, 0);
}

static ssize_t tagged_sendmsg(struct fid_ep *ep, const struct fi_msg_tagged *m, uint64_t flags) {
	struct request q = { .m = *m, .flags = flags, .tagged = true };

	return take_iov(&q, m->msg_iov, m->iov_count) ? do_send(ep, CALL_fi_tsendmsg, &q) : -FI_EINVAL;
}

static ssize_t tagged_inject(struct fid_ep *ep, const void *buffer, size_t length, fi_addr_t to, uint64_t tag) {
	struct request q = { .m = { .addr = to, .tag = tag }, .tagged = true, .silent = true };

	return send_buffer(ep, CALL_fi_tinject, &q, buffer, length, 0);
}

static ssize_t tagged_injectdata(struct fid_ep *ep, const void *buffer, size_t length, uint64_t data, fi_addr_t to,
				 uint64_t tag) {
	struct request q = { .m = { .addr = to, .tag = tag, .data = data }, .tagged = true, .silent = true };

	return send_buffer(ep, CALL_fi_tinjectdata, &q, buffer, length, FI_REMOTE_CQ_DATA);
}

static ssize_t do_receive(struct fid_ep *fid, enum sim_call call, struct request *q) {
	struct sim_endpoint *ep = sim_endpoint(fid);
	ssize_t r;

	if (!(ep->info->caps & (q->tagged ? FI_TAGGED : FI_MSG)))
		return -FI_ENOSYS;
	if (q->flags & ~RECEIVE_FLAGS)
		return -FI_EBADFLAGS;
	if (!ep->enabled)
		return -FI_EOPBADSTATE;
	q->m.msg_iov = &q->iov;
	q->m.iov_count = 1;
	q->m.desc = NULL;
	pthread_mutex_lock(&ep->domain->lock);
	q->m.addr = sim_inner_source(ep, q->m.addr);
	if (q->tagged)
		r = fi_trecvmsg(ep->inner, &q->m, q->flags);
	else {
		struct fi_msg plain = { .msg_iov = &q->iov, .iov_count = 1, .addr = q->m.addr,
					.context = q->m.context };

		r = fi_recvmsg(ep->inner, &plain, q->flags);
	}
	pthread_mutex_unlock(&ep->domain->lock);
	sim_count_flags(call, q->flags, r);
	return r;
}

static ssize_t receive_buffer(struct fid_ep *fid, enum sim_call call, struct request *q, void *buffer, size_t length) {
	q->iov = (struct iovec) { .iov_base = buffer, .iov_len = length };
	q->flags = sim_endpoint(fid)->info->rx_attr->op_flags & (FI_COMPLETION | FI_MULTI_RECV);
	return do_receive(fid, call, q);
}

static ssize_t msg_recv(struct fid_ep *ep, void *buffer, size_t length, void *desc, fi_addr_t from, void *context) {
	struct request q = { .m = { .addr = from, .context = context } };

	return receive_buffer(ep, CALL_fi_recv, &q, buffer, length);
}

static ssize_t msg_recvv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count, fi_addr_t from,
			 void *context) {
	struct request q = { .m = { .addr = from, .context = context } };

	if (!take_iov(&q, iov, count))
		return -FI_EINVAL;
	return receive_buffer(ep, CALL_fi_recvv, &q, q.iov.iov_base, q.iov.iov_len);
}

static ssize_t msg_recvmsg(struct fid_ep *ep, const struct fi_msg *m, uint64_t flags) {
	struct request q = { .m = { .addr = m->addr, .context = m->context }, .flags = flags };

	return take_iov(&q, m->msg_iov, m->iov_count) ? do_receive(ep, CALL_fi_recvmsg, &q) : -FI_EINVAL;
}

static ssize_t tagged_recv(struct fid_ep *ep, void *buffer, size_t length, void *desc, fi_addr_t from, uint64_t tag,
			   uint64_t ignore, void *context) {
	struct request q = { .m = { .addr = from, .context = context, .tag = tag, .ignore = ignore }, .tagged = true };

	return receive_buffer(ep, CALL_fi_trecv, &q, buffer, length);
}

static ssize_t tagged_recvv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count, fi_addr_t from,
			    uint64_t tag, uint64_t ignore, void *context) {
	struct request q = { .m = { .addr = from, .context = context, .tag = tag, .ignore = ignore }, .tagged = true };

	if (!take_iov(&q, iov, count))
		return -FI_EINVAL;
	return receive_buffer(ep, CALL_fi_trecvv, &q, q.iov.iov_base, q.iov.iov_len);
}

static ssize_t tagged_recvmsg(struct fid_ep *ep, const struct fi_msg_tagged *m, uint64_t flags) {
	struct request q = { .m = *m, .flags = flags, .tagged = true };

	return take_iov(&q, m->msg_iov, m->iov_count) ? do_receive(ep, CALL_fi_trecvmsg, &q) : -FI_EINVAL;
}

struct fi_ops_msg sim_message_ops = {
	.size = sizeof(struct fi_ops_msg),
	.recv = msg_recv,
	.recvv = msg_recvv,
	.recvmsg = msg_recvmsg,
	.send = msg_send,
	.sendv = msg_sendv,
	.sendmsg = msg_sendmsg,
	.inject = msg_inject,
	.senddata = msg_senddata,
	.injectdata = msg_injectdata,
};

struct fi_ops_tagged sim_tagged_ops = {
	.size = sizeof(struct fi_ops_tagged),
	.recv = tagged_recv,
	.recvv = tagged_recvv,
	.recvmsg = tagged_recvmsg,
	.send = tagged_send,
	.sendv = tagged_sendv,
	.sendmsg = tagged_sendmsg,
	.inject = tagged_inject,
	.senddata = tagged_senddata,
	.injectdata = tagged_injectdata,
};
