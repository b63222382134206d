/* SPDX-License-Identifier: Apache-2.0 */
/* Lanes added up. The threads have ended: nobody else writes to them now. */
#include <stdio.h>

#include "base/message.h"
#include "transfer_result.h"

/* Names between commas, as they were found, without what does not fit. */
static void join_devices(const struct transfer *x, bool server, char *ret, size_t size) {
	size_t n = 0;

	ret[0] = '\0';
	for (uint32_t i = 0; i < x->n_pairs && x->lanes[i]; i++) {
		const struct session *s = x->lanes[i]->run.session;
		const char *name = server ? json_string_value(json_object_get(x->lanes[i]->peer.end, "device"))
					  : s ? s->device : NULL;

		if (name && n < size)
			n += (size_t) snprintf(ret + n, size - n, "%s%s", n ? "," : "", name);
	}
}

/* The sum's ends are those of the first pair, with all devices; addresses differ from pair to pair. */
static json_t *server_end(const struct transfer *x, const struct lane *l, bool sum, const struct placed *server) {
	char devices[JOB_DEVICES_TEXT];
	json_t *end;

	if (!l->peer.end)
		return NULL;
	end = json_copy(l->peer.end);
	(void) json_object_set_new(end, "placement", placed_to_json(server));
	if (!sum || x->n_pairs == 1)
		return end;
	join_devices(x, true, devices, sizeof(devices));
	(void) json_object_set_new(end, "device", json_string(devices));
	(void) json_object_set_new(end, "address", json_null());
	return end;
}

/*
 * Of the batch that a failure cut off: where a transfer is one piece, the pieces that are complete;
 * else nobody knows which belong together.
 */
static uint64_t unfinished(const struct lane *l) {
	return l->busy && l->transfer->shape.chunks == 1 ? l->done : 0;
}

/* Adds one lane: what it moved from the common start to its last completion. */
static void add_lane(const struct transfer *x, const struct lane *l, struct run *run, struct transfer_view *view,
		     struct result *ret) {
	const struct shape *s = &x->shape;
	uint64_t bytes = shape_bytes(s);

	view->lanes++;
	integrity_add(&ret->integrity, &l->integrity);
	run->traffic |= l->progress > 0;
	if (x->warming)
		return; /* it failed before anything was measured */
	histogram_add(run->total, l->run.total);
	view->batches += l->batches;
	view->completed += l->batches * s->batch + unfinished(l);
	if (l->batches > 0)
		run->outcome.elapsed_ns = MAX(run->outcome.elapsed_ns,
					      clock_ns(&l->run.clock, l->ended - x->start_ticks));
	ret->bytes += l->batches * bytes;
	ret->messages += l->batches * s->batch;
	*(l->job.op != OP_READ ? &ret->path.sent_bytes : &ret->path.received_bytes) += l->moved_batches * bytes;
}

/* Of the threads that drive a pair's lanes (-1: all), at either end. */
static void add_places(const struct transfer *x, int pair, struct placed *client, struct placed *server) {
	for (uint32_t i = 0; i < x->n_lanes && x->lanes[i]; i++) {
		const struct lane *l = x->lanes[i];

		if (pair >= 0 && l->pair != (uint32_t) pair)
			continue;
		placed_add(client, &l->run.placed);
		placed_add(server, &l->peer.placed);
	}
}

double transfer_link_gbit_s(const struct transfer *x, int pair) {
	uint32_t devices = job_list_length(x->job.devices);
	double sum = 0;

	for (uint32_t i = 0; i < x->n_pairs; i++) {
		const struct session *s = x->lanes[i]->run.session;

		if (pair >= 0 ? i != (uint32_t) pair : i >= devices)
			continue; /* later pairs have the first ones' devices again */
		if (!s || s->rate_gbit_s <= 0)
			return 0;
		sum += s->rate_gbit_s;
	}
	return sum;
}

static uint32_t lists_of(const struct transfer *x) {
	const struct shape *s = &x->shape;
	uint64_t each = (shape_pieces(s) + x->job.queue_pairs - 1) / x->job.queue_pairs;

	if (x->job.consecutive)
		return (uint32_t) ((s->batch + x->job.queue_pairs - 1) / x->job.queue_pairs);
	return (uint32_t) ((each + x->job.outstanding - 1) / x->job.outstanding);
}

int view_open(const struct transfer *x, int pair, struct run *run, struct transfer_view *view, struct result *ret) {
	const struct lane *first = x->lanes[MAX(pair, 0)];
	struct placed server = first->peer.placed;

	*run = (struct run) {
		.job = pair < 0 ? &x->job : &first->job,
		.role = ROLE_CLIENT,
		.backend = first->run.backend,
		.session = first->run.session,
		.control = x->control,
		.arena = first->run.arena,
		.clock = first->run.clock,
	};
	run->placed = first->run.placed;
	add_places(x, pair, &run->placed, &server);
	if (histogram_new(&run->total) < 0)
		return failure(-ENOMEM, EXIT_HOST, "no memory for a histogram (%zu KiB)",
			       sizeof(struct histogram) / 1024);
	*view = (struct transfer_view) {
		.pair = pair,
		.pairs = x->n_pairs,
		.threads = x->job.threads,
		.shape = x->shape,
		.lists = lists_of(x),
		.buffer_bytes = job_buffer(&x->job),
		.rate_gbit_s = transfer_link_gbit_s(x, pair),
		.node = pair < 0 ? -1 : x->place.nodes[first->number],
	};
	*ret = (struct result) {
		.run = run,
		.size = x->shape.size,
		.transfer = view,
		.server = server_end(x, first, pair < 0, &server),
	};
	for (uint32_t i = 0; i < x->n_lanes; i++)
		if (pair < 0 || x->lanes[i]->pair == (uint32_t) pair)
			add_lane(x, x->lanes[i], run, view, ret);
	view->asked = x->job.iterations * view->lanes * x->shape.batch;
	run->outcome.messages = ret->messages;
	/*
	 * Of several lanes none's fastest batch is that of all, and the fastest of each need not have been at one time.
	 */
	run->outcome.min_bytes_per_s = -1;
	run->outcome.peak_bytes_per_s = view->lanes == 1 && run->total->count && run->total->min
						? (double) shape_bytes(&x->shape) * 1e9 / (double) run->total->min
						: -1;
	if (pair < 0 && x->n_pairs > 1) {
		view->client_device = malloc(JOB_DEVICES_TEXT);
		if (view->client_device)
			join_devices(x, false, view->client_device, JOB_DEVICES_TEXT);
	}
	return 0;
}

void view_close(struct run *run, struct transfer_view *view, struct result *r) {
	run->total = histogram_free(run->total);
	free(view->client_device);
	view->client_device = NULL;
	json_decref(r->server);
	r->server = NULL;
}
