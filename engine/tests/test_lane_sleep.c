/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Purpose: with --completion event a thread that drives several sessions sleeps for all of them together: none that has
 * nothing to come holds up another.
 * Over a backend in which time only passes while somebody sleeps: then one message of one session is complete.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include <cmocka.h>

#include "measure/transfer.h"

enum { LANES = 2, SESSIONS = 2, ENDS = LANES * SESSIONS, DEPTH = 4, FIRST_FD = 1000, SLEEPS_MAX = 1000 };

struct end {
	struct session session;
	uint32_t slots[DEPTH];          /* posted, */
	unsigned under, done;           /* how many, and the first of them that are complete */
};

static struct {
	struct end ends[ENDS];
	unsigned sleeps, in_vain;       /* in vain: what came was not slept for */
	struct transfer *transfer;
	unsigned stop_after;            /* sleeps; 0: never */
} world;

static struct end *end_of(struct session *s) {
	return (struct end *) s;
}

/* One message of the first session that has some is complete. */
static void time_passes(void) {
	for (size_t i = 0; i < ENDS; i++)
		if (world.ends[i].done < world.ends[i].under) {
			world.ends[i].done++;
			return;
		}
}

int ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask) {
	int ready = 0;

	(void) timeout;
	(void) mask;
	if (++world.sleeps > SLEEPS_MAX)
		fail_msg("it sleeps for ever");
	if (world.stop_after && world.sleeps >= world.stop_after)
		atomic_store(&world.transfer->stop, true);
	time_passes();
	for (nfds_t i = 0; i < n; i++) {
		fds[i].revents = fds[i].fd >= FIRST_FD && world.ends[fds[i].fd - FIRST_FD].done ? POLLIN : 0;
		ready += fds[i].revents != 0;
	}
	world.in_vain += ready == 0;
	return ready;
}

static int fake_poll(struct session *s, struct completion *ret, unsigned max) {
	struct end *e = end_of(s);
	const unsigned n = MIN(e->done, max);

	for (unsigned i = 0; i < n; i++)
		ret[i] = (struct completion) { .kind = COMPLETION_LOCAL, .slot = e->slots[i] };
	memmove(e->slots, e->slots + n, (e->under - n) * sizeof(e->slots[0]));
	e->under -= n;
	e->done -= n;
	return (int) n;
}

static int fake_arm(struct session *s, struct completion *ret, unsigned max, struct pollfd alarms[BACKEND_ALARMS]) {
	int n = fake_poll(s, ret, max);

	alarms_clear(alarms, BACKEND_ALARMS);
	if (n == 0)
		alarms[0] = (struct pollfd) { .fd = FIRST_FD + (int) (end_of(s) - world.ends), .events = POLLIN };
	return n;
}

static int fake_wait(struct session *s, struct completion *ret, unsigned max, uint64_t timeout_ns) {
	return backend_wait(s, ret, max, timeout_ns, -1);
}

static int fake_post(struct session *s, const struct work *w) {
	struct end *e = end_of(s);

	if (e->under == DEPTH)
		return -EAGAIN;
	e->slots[e->under++] = w->slot;
	return 0;
}

static void fake_place(struct session *s, uint32_t slot, uint32_t channel, uint64_t offset, uint64_t size) {
	(void) s;
	(void) slot;
	(void) channel;
	(void) offset;
	(void) size;
}

static const struct backend fake = {
	.facts = &backend_facts[BACKEND_OFI], .poll = fake_poll, .post = fake_post, .wait = fake_wait,
	.lanes = &(const struct lane_hooks) { .place = fake_place, .post_list = backend_post_each, .arm = fake_arm },
};

/* One thread, and lanes of one session for each queue pair. */
struct driven {
	struct transfer x;
	struct control control;
	struct lane lanes[LANES], *pointers[LANES];
	struct channel channels[LANES][SESSIONS];
	struct session *sessions[LANES][SESSIONS];
	uint16_t channel_of[LANES][DEPTH * SESSIONS];
	struct pollfd alarms[ENDS * BACKEND_ALARMS + 1];
	struct thread thread;
};

static struct driven d;

static void open_lanes(enum kind kind, uint32_t lanes, enum role role) {
	struct transfer *x = &d.x;

	memset(&d, 0, sizeof(d));
	memset(&world, 0, sizeof(world));
	world.transfer = x;
	job_defaults(&x->job);
	x->job.kind = kind;
	x->job.op = OP_WRITE;
	(void) copy_string(x->job.backend, sizeof(x->job.backend), "ofi");
	x->job.sizes[0] = 64;
	x->job.n_sizes = 1;
	x->job.queue_pairs = SESSIONS;
	x->job.outstanding = DEPTH;
	x->job.completion = COMPLETION_EVENT;
	x->job.threads = 1;
	job_complete_lanes(&x->job);
	if (kind == KIND_TRANSFER)
		x->job.batches[0] = DEPTH;
	shape_of(&x->job, 64, x->job.batches[0], &x->shape);
	x->role = role;
	x->control = &d.control;
	x->lanes = d.pointers;
	x->n_lanes = x->n_pairs = lanes;
	x->threads = &d.thread;
	x->warming = true;
	x->done_fd = -1;
	atomic_store(&x->running, 1);
	d.thread = (struct thread) { .transfer = x, .alarms = d.alarms, .n_alarms = ELEMENTSOF(d.alarms) };
	alarms_clear(d.alarms, ELEMENTSOF(d.alarms));
	for (uint32_t i = 0; i < lanes; i++) {
		struct lane *l = d.lanes + i;

		d.pointers[i] = l;
		*l = (struct lane) {
			.backend = &fake, .channels = d.channels[i], .sessions = d.sessions[i],
			.channel_of = d.channel_of[i], .n_channels = SESSIONS, .n_sessions = SESSIONS, .depth = DEPTH,
			.sleeps = true, .op = OP_WRITE, .transfer = x, .number = i, .job = x->job,
			.thread = &d.thread, .alarms = d.alarms + (size_t) i * SESSIONS * BACKEND_ALARMS,
		};
		l->run.role = role;
		assert_int_equal(clock_open(CLOCK_KIND_MONOTONIC, false, &l->run.clock), 0);
		for (uint32_t k = 0; k < SESSIONS; k++) {
			struct end *e = world.ends + i * SESSIONS + k;

			e->session.backend = &fake;
			d.sessions[i][k] = &e->session;
			d.channels[i][k].session = &e->session;
		}
		lane_prepare(l);
	}
}

static void test_a_rate(void **state) {
	(void) state;
	open_lanes(KIND_RATE, 1, ROLE_CLIENT);
	d.x.goal = 40;
	assert_int_equal(rate_drive(&d.thread), 0);
	assert_int_equal(d.lanes[0].moved_batches, 40);
	assert_int_equal(world.sleeps, 40);
	assert_int_equal(world.in_vain, 0);
}

static void test_lanes_of_one_thread(void **state) {
	(void) state;
	open_lanes(KIND_TRANSFER, LANES, ROLE_CLIENT);
	d.x.goal = 5;
	(void) transfer_initiate(&d.thread);
	assert_int_equal(d.thread.error, 0);
	for (uint32_t i = 0; i < LANES; i++)
		assert_int_equal(d.lanes[i].moved_batches, 5);
	assert_int_equal(world.sleeps, LANES * 5 * DEPTH);
	assert_int_equal(world.in_vain, 0);
}

/* Only the last session of the last lane has something to come. */
static void test_a_target(void **state) {
	(void) state;
	open_lanes(KIND_TRANSFER, LANES, ROLE_SERVER);
	world.stop_after = world.ends[ENDS - 1].under = DEPTH;
	(void) transfer_attend(&d.thread);
	assert_int_equal(d.thread.error, 0);
	assert_int_equal(world.sleeps, DEPTH);
	assert_int_equal(world.in_vain, 0);
}

int main(void) {
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_rate),
		cmocka_unit_test(test_lanes_of_one_thread),
		cmocka_unit_test(test_a_target),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
