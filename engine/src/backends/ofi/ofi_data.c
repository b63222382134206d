/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hot path. Every pointer used here was made valid by open and connect. A completion's context points into one
 * array, so that its offset alone tells kind and slot: nothing is stored, nothing is looked up.
 */
#include "ofi.h"

#include "base/message.h"

/* Cold: keeps the callers' frames small. */
static int post_failed(struct ofi_session *o, const char *what, ssize_t r) __attribute__((noinline, cold));

static int post_failed(struct ofi_session *o, const char *what, ssize_t r) {
	/* libfabric's number is ours: the caller's to repeat */
	if (r == -FI_EAGAIN)
		return -EAGAIN;
	o->broken = true;
	/* Providers without remote data for writes say so only now: CXI's up to libfabric 2.3. */
	if (r == -FI_ENOSYS && o->notified)
		return failure(-EOPNOTSUPP, EXIT_HOST, "%s, provider %s, device %s: a write cannot announce itself "
			       "to its target in this version; use --definition completion", o->job->backend,
			       o->session.provider, o->session.device);
	return ofi_failed(o, what, (int) r, NULL);
}

/* A completion will follow. */
static inline int started(struct ofi_session *o, const char *what, ssize_t r) {
	if (unlikely(r != 0))
		return post_failed(o, what, r);
	o->under_way++;
	return 0;
}

/* None will: the message is injected. */
static inline int injected(struct ofi_session *o, const char *what, ssize_t r) {
	return likely(r == 0) ? 1 : post_failed(o, what, r);
}

static inline int lent(struct ofi_session *o, ssize_t r) {
	return likely(r == 0) ? 0 : post_failed(o, "lending a receive buffer", r);
}

int ofi_started(struct ofi_session *o, const char *what, ssize_t r) {
	return started(o, what, r);
}

/* One call a message, as without flags; they are rare enough to be kept out of the others' way. */
static __attribute__((noinline)) int post_send_with(struct ofi_session *o, const struct work *w,
						    const struct ofi_place *p, uint64_t flags) {
	struct iovec iov = { .iov_base = p->tx, .iov_len = w->size };
	struct fi_msg m = { .msg_iov = &iov, .desc = &o->desc, .iov_count = 1, .addr = o->peer,
			    .context = o->contexts + w->slot };

	return started(o, "starting a send", fi_sendmsg(o->ep, &m, o->message_flags | flags));
}

static __attribute__((noinline)) int post_rma_with(struct ofi_session *o, const struct work *w,
						   const struct ofi_place *p, uint64_t flags) {
	bool write = w->op == OP_WRITE;
	struct iovec iov = { .iov_base = write ? p->tx : p->rx, .iov_len = w->size };
	struct fi_rma_iov target = { .addr = p->remote, .len = w->size, .key = o->remote_key };
	struct fi_msg_rma m = { .msg_iov = &iov, .desc = write ? &o->desc : &o->rx_desc, .iov_count = 1,
				.addr = o->peer, .rma_iov = &target, .rma_iov_count = 1,
				.context = o->contexts + w->slot };

	if (write)
		return started(o, "starting a write", fi_writemsg(o->ep, &m, o->message_flags | flags));
	return started(o, "starting a read", fi_readmsg(o->ep, &m, o->message_flags | flags));
}

static int post_send(struct ofi_session *o, const struct work *w, const struct ofi_place *p) {
	ssize_t r;

	if (w->size < o->inject_below) {
		r = fi_inject(o->ep, p->tx, w->size, o->peer);
		return injected(o, "starting a send", r);
	}
	if (unlikely(w->more))
		return post_send_with(o, w, p, FI_MORE);
	r = fi_send(o->ep, p->tx, w->size, o->desc, o->peer, o->contexts + w->slot);
	return started(o, "starting a send", r);
}

static int post_write(struct ofi_session *o, const struct work *w, const struct ofi_place *p) {
	ssize_t r;

	if (!w->notify) {
		uint64_t flags = (w->size < o->write_flags_below ? o->write_flags : 0) | (w->more ? FI_MORE : 0);

		if (flags)
			return post_rma_with(o, w, p, flags);
		r = fi_write(o->ep, p->tx, w->size, o->desc, o->peer, p->remote, o->remote_key, o->contexts + w->slot);
		return started(o, "starting a write", r);
	}
	if (w->size < o->inject_below) {
		r = fi_inject_writedata(o->ep, p->tx, w->size, w->slot, o->peer, p->remote, o->remote_key);
		return injected(o, "starting a write", r);
	}
	r = fi_writedata(o->ep, p->tx, w->size, o->desc, w->slot, o->peer, p->remote, o->remote_key,
			 o->contexts + w->slot);
	return started(o, "starting a write", r);
}

static int post_read(struct ofi_session *o, const struct work *w, const struct ofi_place *p) {
	ssize_t r;

	if (unlikely(w->more))
		return post_rma_with(o, w, p, FI_MORE);
	r = fi_read(o->ep, p->rx, w->size, o->rx_desc, o->peer, p->remote, o->remote_key, o->contexts + w->slot);
	return started(o, "starting a read", r);
}

/* Its one endpoint is the one channel; the size comes with each post. */
void ofi_place(struct session *s, uint32_t slot, uint32_t channel, uint64_t offset, uint64_t size) {
	struct ofi_session *o = ofi_session(s);

	(void) channel;
	(void) size;
	o->places[slot] = (struct ofi_place) { .tx = o->arena.tx + offset, .rx = o->arena.rx + offset,
					       .remote = o->remote_base + offset };
}

int ofi_post(struct session *s, const struct work *work) {
	struct ofi_session *o = ofi_session(s);
	const struct ofi_place *p = o->places + work->slot;

	switch (work->op) {
	case OP_SEND:
		return post_send(o, work, p);
	case OP_WRITE:
		return post_write(o, work, p);
	case OP_READ:
		return post_read(o, work, p);
	default:
		return o->post_atomic(o, work); /* a job has no other, and open has found it */
	}
}

/*
 * Messages land in the receive that is next in order. Notified writes land where their sender says,
 * and use up a receive, without payload, only with providers that demand so (FI_RX_CQ_DATA):
 * those take contexts in turn, since the receive that a write uses up need not be the one lent for its slot.
 */
int ofi_post_receive(struct session *s, uint32_t slot, uint64_t size) {
	struct ofi_session *o = ofi_session(s);
	ssize_t r;

	if (o->messages) {
		r = fi_recv(o->ep, o->places[slot].rx, size, o->rx_desc, FI_ADDR_UNSPEC, o->contexts + o->slots + slot);
		return lent(o, r);
	}
	if (!o->feeds)
		return 0;
	r = fi_recv(o->ep, NULL, 0, NULL, FI_ADDR_UNSPEC, o->contexts + o->slots + o->next_feed);
	if (r == 0)
		o->next_feed = (o->next_feed + 1) % o->slots;
	return lent(o, r);
}

static inline struct completion completion_of(struct ofi_session *o, const void *context) {
	uint32_t index = (uint32_t) ((const struct fi_context2 *) context - o->contexts);

	if (index >= o->slots)
		return (struct completion) { .kind = COMPLETION_RECEIVE, .slot = index - o->slots };
	o->under_way--;
	return (struct completion) { .kind = COMPLETION_LOCAL, .slot = index };
}

static int poll_plain(struct ofi_session *o, struct completion *ret, unsigned max) {
	struct fi_cq_entry entries[OFI_POLL_BATCH];
	ssize_t n = fi_cq_read(o->cq, entries, MIN(max, (unsigned) OFI_POLL_BATCH));

	if (n <= 0)
		return likely(n == -FI_EAGAIN || n == 0) ? 0 : ofi_cq_failed(o, n);
	for (ssize_t i = 0; i < n; i++)
		ret[i] = completion_of(o, entries[i].op_context);
	return (int) n;
}

/* The slot of a notified write was chosen by the peer: it indexes our memory and is checked. */
static int poll_notified(struct ofi_session *o, struct completion *ret, unsigned max) {
	struct fi_cq_data_entry entries[OFI_POLL_BATCH];
	ssize_t n = fi_cq_read(o->cq, entries, MIN(max, (unsigned) OFI_POLL_BATCH));

	if (n <= 0)
		return likely(n == -FI_EAGAIN || n == 0) ? 0 : ofi_cq_failed(o, n);
	for (ssize_t i = 0; i < n; i++) {
		/*
		 * Both marks count: shm (2.1) leaves FI_REMOTE_WRITE out,
		 * sockets marks its own writes with FI_REMOTE_CQ_DATA too.
		 */
		if ((entries[i].flags & FI_WRITE) || !(entries[i].flags & FI_REMOTE_CQ_DATA)) {
			ret[i] = completion_of(o, entries[i].op_context);
			continue;
		}
		if (entries[i].data >= o->slots)
			return failure(-EPROTO, EXIT_PEER, "%s: the peer announced a write to slot %llu of %u; "
				       "is it the same version of perch?", o->job->backend,
				       (unsigned long long) entries[i].data, o->slots);
		ret[i] = (struct completion) { .kind = COMPLETION_RECEIVE, .slot = (uint32_t) entries[i].data };
	}
	return (int) n;
}

int ofi_poll(struct session *s, struct completion *ret, unsigned max) {
	struct ofi_session *o = ofi_session(s);

	if (o->rate)
		return ofi_rate_poll(o, ret, max);
	return o->notified ? poll_notified(o, ret, max) : poll_plain(o, ret, max);
}

int ofi_arm(struct session *s, struct completion *ret, unsigned max, struct pollfd alarms[BACKEND_ALARMS]) {
	struct ofi_session *o = ofi_session(s);
	struct fid *fid = &o->cq->fid;
	int r;

	alarms_clear(alarms, BACKEND_ALARMS);
	/* Receives that the peer has lent may be all that the caller waits for: it posts before it sleeps. */
	o->credited = false;
	r = ofi_poll(s, ret, max);
	if (r != 0 || o->credited)
		return r ? r : -EAGAIN;

	/* Arms the descriptor. -FI_EAGAIN: something has come since, and sleeping now could miss it. */
	r = fi_trywait(o->fabric, &fid, 1);
	if (r == -FI_EAGAIN)
		return -EAGAIN;
	if (r < 0)
		return ofi_failed(o, "arming the completion queue", r, NULL);
	alarms[0] = (struct pollfd) { .fd = o->wait_fd, .events = POLLIN };
	return 0;
}

int ofi_wait(struct session *s, struct completion *ret, unsigned max, uint64_t timeout_ns) {
	return backend_wait(s, ret, max, timeout_ns, ofi_session(s)->wake_fd);
}
