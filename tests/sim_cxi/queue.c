/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Completion queues: the inner one's entries, less those that only the simulation knows of, plus the errors that the
 * device would have reported.
 */
#include "sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

bool sim_wait_object_ok(enum fi_wait_obj wait) {
	if (wait == FI_WAIT_NONE)
		return true;
	return sim_variables.wait_objects && (wait == FI_WAIT_UNSPEC || wait == FI_WAIT_FD);
}

static int close_cq(struct fid *fid) {
	struct sim_cq *cq = container(fid, struct sim_cq, fid.fid);

	if (cq->users > 0)
		return -FI_EBUSY;
	if (cq->inner)
		(void) fi_close(&cq->inner->fid);
	while (cq->failures) {
		struct sim_failure *f = cq->failures;

		cq->failures = f->next;
		free(f);
	}
	cq->domain->users--;
	free(cq);
	return 0;
}

static int control(struct fid *fid, int command, void *arg) {
	struct sim_cq *cq = container(fid, struct sim_cq, fid.fid);

	return command == FI_GETWAIT && sim_variables.wait_objects ? fi_control(&cq->inner->fid, command, arg)
								   : -FI_ENOSYS;
}

static struct sim_shadow *shadow_of(struct sim_cq *cq, void *context) {
	bool ours = (char *) context >= (char *) cq->shadows && (char *) context < (char *) (cq->shadows + SIM_SHADOWS);

	return ours ? context : NULL;
}

/* Drops what is nobody's, and gives back the user's contexts. Every format begins with the context. */
static ssize_t filter(struct sim_cq *cq, char *entries, ssize_t n, fi_addr_t *sources) {
	ssize_t kept = 0;

	for (ssize_t i = 0; i < n; i++) {
		char *entry = entries + (size_t) i * cq->entry_size, *to = entries + (size_t) kept * cq->entry_size;
		void *context = *(void **) (void *) entry;
		struct sim_shadow *shadow = shadow_of(cq, context);

		if (shadow) {
			bool report = shadow->report;

			context = shadow->context;
			sim_shadow_return(cq, shadow);
			if (!report)
				continue;
		}
		if (to != entry)
			for (size_t b = 0; b < cq->entry_size; b++)
				to[b] = entry[b];
		*(void **) (void *) to = context;
		if (sources)
			sources[kept] = sim_outer_source(cq->endpoints ? cq->endpoints->av : NULL, sources[i]);
		kept++;
	}
	return kept > 0 ? kept : -FI_EAGAIN;
}

static ssize_t read_once(struct sim_cq *cq, void *entries, size_t count, fi_addr_t *sources) {
	ssize_t n;

	pthread_mutex_lock(&cq->domain->lock);
	for (struct sim_endpoint *ep = cq->endpoints; ep; ep = ep->next_of_cq)
		sim_delayed_flush(ep);
	if (cq->failures)
		n = -FI_EAVAIL;
	else
		n = sources ? fi_cq_readfrom(cq->inner, entries, count, sources)
			    : fi_cq_read(cq->inner, entries, count);
	if (n > 0)
		n = filter(cq, entries, n, sources);
	pthread_mutex_unlock(&cq->domain->lock);
	return n;
}

static ssize_t cq_read(struct fid_cq *fid, void *entries, size_t count) {
	ssize_t n = read_once(container(fid, struct sim_cq, fid), entries, count, NULL);

	sim_count(CALL_fi_cq_read, n);
	return n;
}

static ssize_t cq_readfrom(struct fid_cq *fid, void *entries, size_t count, fi_addr_t *sources) {
	ssize_t n = read_once(container(fid, struct sim_cq, fid), entries, count, sources);

	sim_count(CALL_fi_cq_readfrom, n);
	return n;
}

static ssize_t cq_readerr(struct fid_cq *fid, struct fi_cq_err_entry *ret, uint64_t flags) {
	struct sim_cq *cq = container(fid, struct sim_cq, fid);
	ssize_t n = 1;

	pthread_mutex_lock(&cq->domain->lock);
	if (cq->failures) {
		struct sim_failure *f = cq->failures;
		void *data = ret->err_data;
		size_t size = ret->err_data_size;

		*ret = f->entry;
		ret->err_data = data;
		ret->err_data_size = size > 0 ? 0 : size;
		cq->failures = f->next;
		free(f);
	} else {
		struct sim_shadow *shadow;

		n = fi_cq_readerr(cq->inner, ret, flags);
		shadow = n > 0 ? shadow_of(cq, ret->op_context) : NULL;
		if (shadow) {
			ret->op_context = shadow->context;
			sim_shadow_return(cq, shadow);
		}
	}
	pthread_mutex_unlock(&cq->domain->lock);
	sim_count(CALL_fi_cq_readerr, n);
	return n;
}

/* In short turns, so that an error of ours is seen soon. */
static ssize_t wait_for(struct sim_cq *cq, void *entries, size_t count, fi_addr_t *sources, int timeout) {
	const struct timespec turn = { .tv_nsec = 100000 };
	struct timespec now, end;
	ssize_t n;

	if (!sim_variables.wait_objects)
		return -FI_ENOSYS;
	(void) clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += timeout / 1000;
	end.tv_nsec += timeout % 1000 * 1000000L;
	for (;;) {
		n = read_once(cq, entries, count, sources);
		if (n != -FI_EAGAIN)
			return n;
		(void) clock_gettime(CLOCK_MONOTONIC, &now);
		if (timeout >= 0 && (now.tv_sec - end.tv_sec) * 1000000000L + now.tv_nsec - end.tv_nsec >= 0)
			return -FI_EAGAIN;
		(void) nanosleep(&turn, NULL);
	}
}

static ssize_t cq_sread(struct fid_cq *fid, void *entries, size_t count, const void *condition, int timeout) {
	ssize_t n = wait_for(container(fid, struct sim_cq, fid), entries, count, NULL, timeout);

	sim_count(CALL_fi_cq_sread, n);
	return n;
}

static ssize_t cq_sreadfrom(struct fid_cq *fid, void *entries, size_t count, fi_addr_t *sources, const void *condition,
			    int timeout) {
	ssize_t n = wait_for(container(fid, struct sim_cq, fid), entries, count, sources, timeout);

	sim_count(CALL_fi_cq_sreadfrom, n);
	return n;
}

static int cq_signal(struct fid_cq *fid) {
	return fi_cq_signal(container(fid, struct sim_cq, fid)->inner);
}

static const char *cq_strerror(struct fid_cq *fid, int number, const void *data, char *text, size_t length) {
	struct sim_cq *cq = container(fid, struct sim_cq, fid);

	if (number < RC_UNDELIVERABLE || number > RC_AMO_ALIGN_ERROR)
		return fi_cq_strerror(cq->inner, number, data, text, length);
	if (text && length > 0)
		(void) snprintf(text, length, "%s", sim_rc_text(number));
	return sim_rc_text(number);
}

static struct fi_ops cq_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = close_cq,
	.bind = sim_no_bind,
	.control = control,
	.ops_open = sim_no_ops_open,
};

static struct fi_ops_cq cq_ops = {
	.size = sizeof(struct fi_ops_cq),
	.read = cq_read,
	.readfrom = cq_readfrom,
	.readerr = cq_readerr,
	.sread = cq_sread,
	.sreadfrom = cq_sreadfrom,
	.signal = cq_signal,
	.strerror = cq_strerror,
};

static size_t size_of(enum fi_cq_format format) {
	switch (format) {
	case FI_CQ_FORMAT_MSG:
		return sizeof(struct fi_cq_msg_entry);
	case FI_CQ_FORMAT_DATA:
		return sizeof(struct fi_cq_data_entry);
	case FI_CQ_FORMAT_TAGGED:
		return sizeof(struct fi_cq_tagged_entry);
	default:
		return sizeof(struct fi_cq_entry);
	}
}

int sim_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **ret, void *context) {
	struct sim_domain *d = container(domain, struct sim_domain, fid);
	struct fi_cq_attr inner = attr ? *attr : (struct fi_cq_attr) { 0 };
	struct sim_cq *cq;
	int r;

	if (!sim_wait_object_ok(inner.wait_obj))
		return -FI_ENOSYS;
	if (inner.wait_cond != FI_CQ_COND_NONE || inner.flags)
		return -FI_ENOSYS;
	if (inner.format == FI_CQ_FORMAT_UNSPEC)
		inner.format = FI_CQ_FORMAT_CONTEXT;
	if (inner.wait_obj == FI_WAIT_UNSPEC)
		inner.wait_obj = FI_WAIT_FD;
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return -FI_ENOMEM;
	cq->domain = d;
	d->users++;
	cq->entry_size = size_of(inner.format);
	for (size_t i = 0; i < SIM_SHADOWS; i++)
		sim_shadow_return(cq, &cq->shadows[i]);
	cq->fid.fid = (struct fid) { .fclass = FI_CLASS_CQ, .context = context, .ops = &cq_fid_ops };
	cq->fid.ops = &cq_ops;
	r = fi_cq_open(d->inner, &inner, &cq->inner, NULL);
	if (r) {
		(void) close_cq(&cq->fid.fid);
		return r;
	}
	*ret = &cq->fid;
	return 0;
}

/* A request that the device answers with an error: there is no completion but this. */
ssize_t sim_fail(struct sim_endpoint *ep, void *context, uint64_t flags, enum sim_rc why) {
	struct sim_failure *f = calloc(1, sizeof(*f)), **tail = &ep->tx->failures;

	if (!f)
		return -FI_EAGAIN;
	f->entry.op_context = context;
	f->entry.flags = flags;
	f->entry.err = why == RC_UNDELIVERABLE ? FI_EHOSTUNREACH : why == RC_VNI_NOT_FOUND ? FI_ENOTCONN : FI_EIO;
	f->entry.prov_errno = (int) why;
	while (*tail)
		tail = &(*tail)->next;
	*tail = f;
	return 0;
}

struct sim_shadow *sim_shadow_take(struct sim_cq *cq, const void *bytes, size_t length, void *context, bool report) {
	struct sim_shadow *s = cq->free_shadow;

	if (!s)
		return NULL;
	cq->free_shadow = s->next_free;
	for (size_t i = 0; i < length; i++)
		s->bytes[i] = ((const uint8_t *) bytes)[i];
	s->context = context;
	s->report = report;
	return s;
}

void sim_shadow_return(struct sim_cq *cq, struct sim_shadow *shadow) {
	shadow->next_free = cq->free_shadow;
	cq->free_shadow = shadow;
}
