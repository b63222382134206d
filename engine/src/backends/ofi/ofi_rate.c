/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Message rates of sends. A provider that finds no receive for a message keeps it aside, or lets its sender try again:
 * then it is no longer the network that is measured. So the sender only sends what its target has lent a receive for.
 * The target lends about twice what may be outstanding. Each time that a part of them (OFI_CREDITS) is lent again it
 * says how many it has lent so far, in a message of four bytes.
 */
#include "ofi.h"

#include <endian.h>

#include "base/message.h"

enum {
	OFI_CREDITS = 4,        /* parts of the target's receives, as verbs has them */
	CREDIT_BYTES = 64,      /* a cache line for each, of which four bytes are used */
};

struct ofi_rate {
	/* of the receives, then at the target of the credits that it sends */
	struct fi_context2 *contexts;
	uint32_t *idle;                 /* receives that are not lent, and how many these are */
	uint32_t n_idle, n_receives;
	struct places places;           /* target: of the messages, */
	uint32_t channel, place;        /* which queue pair's, and the next one */
	uint32_t lent, told;            /* target, ever: receives, and what the sender has been told of them */
	uint32_t sending;               /* target: a bit for each credit under way */
	uint32_t credit, posted;        /* sender, ever: receives that were lent, and messages */
};

uint32_t ofi_rate_receives(const struct job *job, enum role role) {
	if (job->kind != KIND_RATE || job->op != OP_SEND)
		return 0;
	/* The sender's are for credits: all that the target can have sent, and one that is being taken. */
	if (role == ROLE_CLIENT)
		return OFI_CREDITS + 1;
	/* With the greeting twice as much: shm queues 1024, and 512 are outstanding unless asked otherwise. */
	return MAX(2 * job->outstanding, (uint32_t) OFI_QUEUE_SPARE + 1) - OFI_QUEUE_SPARE;
}

static uint32_t part_of(const struct ofi_session *o) {
	return (ofi_rate_receives(o->job, ROLE_SERVER) + OFI_CREDITS - 1) / OFI_CREDITS;
}

size_t ofi_rate_scratch(const struct job *job) {
	return ofi_rate_receives(job, ROLE_CLIENT) * CREDIT_BYTES;
}

static uint8_t *credit_at(const struct ofi_session *o, uint32_t number) {
	return ofi_compare_area(o) + number * CREDIT_BYTES;
}

/* Lends what is idle, as far as the provider takes it. */
static int lend(struct ofi_session *o) {
	struct ofi_rate *r = o->rate;
	const bool target = o->role == ROLE_SERVER;

	while (r->n_idle > 0) {
		const uint32_t i = r->idle[r->n_idle - 1];
		uint8_t *to = target ? o->arena.rx + place_offset(&r->places, r->channel, r->place) : credit_at(o, i);
		const uint64_t size = target ? job_largest_size(o->job) : CREDIT_BYTES;
		ssize_t e = fi_recv(o->ep, to, size, target ? o->rx_desc : o->scratch_desc, FI_ADDR_UNSPEC,
				    r->contexts + i);

		if (e == -FI_EAGAIN)
			return 0;
		if (e != 0)
			return ofi_failed(o, "lending a receive buffer", (int) e, NULL);
		r->n_idle--;
		r->lent++;
		if (++r->place == r->places.n)
			r->place = 0;
	}
	return 0;
}

/*
 * The target: says how many receives it has lent, where a part of them is new. A sender that has all its messages
 * acknowledged may go while the last credit is on its way: whether a failure counts, the caller knows.
 */
static int say_credit(struct ofi_session *o) {
	struct ofi_rate *r = o->rate;
	const uint32_t number = (uint32_t) __builtin_ctz(~r->sending), lent = htobe32(r->lent);
	ssize_t e;

	if (r->lent - r->told < part_of(o) || number >= OFI_CREDITS)
		return 0;
	memcpy(credit_at(o, number), &lent, sizeof(lent));
	e = fi_send(o->ep, credit_at(o, number), sizeof(lent), o->scratch_desc, o->peer,
		    r->contexts + r->n_receives + number);
	if (e == -FI_EAGAIN)
		return 0;
	if (e != 0) {
		o->broken = true;
		return ofi_failed(o, "telling the sender of receives", (int) e, NULL);
	}
	r->sending |= 1u << number;
	r->told = r->lent;
	o->under_way++;
	return 0;
}

/* The sender: more receives have been lent. */
static int take_credit(struct ofi_session *o, uint32_t number) {
	struct ofi_rate *r = o->rate;
	uint32_t lent;

	memcpy(&lent, credit_at(o, number), sizeof(lent));
	lent = be32toh(lent);
	/* It comes from the network, and only ever grows, by no more than there are receives. */
	if (lent - r->credit == 0 || lent - r->credit > ofi_rate_receives(o->job, ROLE_SERVER))
		return failure(-EPROTO, EXIT_PEER, "%s: the peer lent an impossible number of receives, %u after %u; "
			       "is it the same version of perch?", o->job->backend, lent, r->credit);
	r->credit = lent;
	o->credited = true;
	return 0;
}

/* 1: *ret is one for the test; 0: it is this file's own; negative: said. */
static int completed(struct ofi_session *o, const void *context, struct completion *ret) {
	struct ofi_rate *r = o->rate;
	const struct fi_context2 *c = context;
	uint32_t number;

	if (c >= o->contexts && c < o->contexts + o->slots) {
		o->under_way--;
		*ret = (struct completion) { .kind = COMPLETION_LOCAL, .slot = (uint32_t) (c - o->contexts) };
		return 1;
	}
	number = (uint32_t) (c - r->contexts);
	if (number >= r->n_receives) {
		o->under_way--;
		r->sending &= ~(1u << (number - r->n_receives));
		return 0;
	}
	r->idle[r->n_idle++] = number;
	if (o->role == ROLE_CLIENT)
		return take_credit(o, number);
	*ret = (struct completion) { .kind = COMPLETION_RECEIVE };
	return 1;
}

int ofi_rate_poll(struct ofi_session *o, struct completion *ret, unsigned max) {
	struct fi_cq_entry entries[OFI_POLL_BATCH];
	ssize_t n = fi_cq_read(o->cq, entries, MIN(max, (unsigned) OFI_POLL_BATCH));
	int found = 0, e = 0;

	if (unlikely(n < 0 && n != -FI_EAGAIN))
		return ofi_cq_failed(o, n);
	for (ssize_t i = 0; i < n; i++) {
		e = completed(o, entries[i].op_context, ret + found);
		if (unlikely(e < 0))
			return e;
		found += e;
	}
	e = lend(o);
	if (e == 0 && o->role == ROLE_SERVER)
		e = say_credit(o);
	return unlikely(e < 0) ? e : found;
}

int ofi_post_list(struct session *s, const struct list *list) {
	struct ofi_session *o = ofi_session(s);
	struct ofi_rate *r = o->rate;
	int n;

	if (!r)
		return backend_post_each(s, list);
	if (r->credit - r->posted < list->n)
		return 0;
	n = backend_post_each(s, list);
	r->posted += (uint32_t) MAX(n, 0);
	return n;
}

int ofi_rate_open(struct ofi_session *o, uint32_t channel) {
	struct ofi_rate *r;

	if (!ofi_rate_receives(o->job, o->role))
		return 0;
	o->rate = r = calloc(1, sizeof(*r));
	if (!r)
		return failure(-ENOMEM, EXIT_HOST, "%s: out of memory", o->job->backend);
	r->n_receives = r->n_idle = ofi_rate_receives(o->job, o->role);
	r->channel = channel;
	r->contexts = calloc((size_t) r->n_receives + OFI_CREDITS, sizeof(*r->contexts));
	r->idle = calloc(r->n_receives, sizeof(*r->idle));
	if (!r->contexts || !r->idle)
		return failure(-ENOMEM, EXIT_HOST, "%s: out of memory for %u receives; lower --outstanding",
			       o->job->backend, r->n_receives);
	for (uint32_t i = 0; i < r->n_receives; i++)
		r->idle[i] = r->n_receives - 1 - i;
	job_rate_places(o->job, &r->places);
	/* What is there from the beginning both ends know. */
	r->credit = r->told = ofi_rate_receives(o->job, ROLE_SERVER);
	return 0;
}

int ofi_rate_begin(struct ofi_session *o) {
	return o->rate ? lend(o) : 0;
}

void ofi_rate_close(struct ofi_session *o) {
	if (!o->rate)
		return;
	free(o->rate->contexts);
	free(o->rate->idle);
	free(o->rate);
	o->rate = NULL;
}
