/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Purpose: transfers land where they were placed, one list rings one doorbell and asks for one completion,
 * whichever calls the device has for it; and what was complete before a failure is known.
 * Over the fake of libibverbs (fake_verbs.h): no proof of the verbs path.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "fake_verbs_internal.h"
#include "measure/transfer.h"
#include "verbs_traffic.h"

enum { BUFFER = 1 << 20 };

#define ANY UINT32_MAX

/* A job with `slots` messages in a buffer of 1 MiB. */
static struct job transfer_job(enum op op, uint32_t slots) {
	struct job job = verbs_job(op);

	job.kind = KIND_TRANSFER;
	job.outstanding = 16;
	job.buffer_bytes = BUFFER;
	job.batches[0] = slots;
	job.n_batches = job.threads = job.max_chunks = 1;
	return job;
}

/* Whether the devices have the ibv_wr calls: every test of lists runs over both ways. */
static void choose_calls(bool wr) {
	fake.devices[0].no_wr = fake.devices[1].no_wr = !wr;
}

static unsigned doorbells(void) {
	return fake.calls[FAKE_POST_SEND] + fake.calls[FAKE_WR_COMPLETE];
}

static void place(uint32_t slot, uint32_t channel, uint64_t offset, uint64_t size) {
	pair.backend->lanes->place(pair.ends[ROLE_CLIENT].session, slot, channel, offset, size);
}

static int post(uint32_t slot, bool more, bool flush) {
	return pair.backend->post(pair.ends[ROLE_CLIENT].session,
				  &(struct work) { .op = pair.job.op, .slot = slot, .more = more, .flush = flush });
}

/* Takes what is complete, in the order of the slots from `first`, or in any. Answers how many, or the failure. */
static int collect(uint32_t first) {
	struct completion c[3]; /* few, so that what does not fit must be kept for the next call */
	int n, all = 0;

	while ((n = take(ROLE_CLIENT, c, ELEMENTSOF(c))) > 0)
		for (int i = 0; i < n; i++, all++) {
			assert_int_equal(c[i].kind, COMPLETION_LOCAL);
			if (first != ANY)
				assert_int_equal(c[i].slot, first + (unsigned) all);
		}
	return n < 0 ? n : all;
}

/*
 * What may be read of the initiator's buffer and the target's: the one that the messages come from,
 * and the one that they go to.
 */
static const uint8_t *source(void) {
	return pair.ends[pair.job.op == OP_READ ? ROLE_SERVER : ROLE_CLIENT].arena.tx;
}

static uint8_t *sink(void) {
	return pair.ends[pair.job.op == OP_READ ? ROLE_CLIENT : ROLE_SERVER].arena.tx;
}

static void fill_source(void) {
	uint8_t *p = (uint8_t *) (uintptr_t) source();

	for (uint32_t i = 0; i < BUFFER; i++)
		p[i] = (uint8_t) (i % 251 + 1);
}

/* Lists of `length` over each queue pair, of messages of odd sizes with gaps between them. */
static void lists_of(enum op op, bool wr, uint32_t queues, uint32_t length) {
	struct job job = transfer_job(op, 2 * queues * length);
	uint32_t slots = job.batches[0];

	job.queue_pairs = queues;
	job.outstanding = length;
	choose_calls(wr);
	open_pair(&job);
	assert_string_equal(pair.ends[ROLE_CLIENT].session->post_api, wr ? "ibv_wr" : "ibv_post_send");
	fill_source();
	for (uint32_t slot = 0; slot < slots; slot++)
		place(slot, slot / length % queues, slot * 101, 37 + slot % 5);
	for (int round = 1; round <= 3; round++) {
		memset(sink(), 0, BUFFER);
		for (uint32_t slot = 0; slot < slots; slot++) {
			bool last = (slot + 1) % length == 0;
			int e = post(slot, !last, last);

			/* The second list of a queue pair waits for the first, where that fills it. */
			for (unsigned turns = 0; e == -EAGAIN && turns < 2; turns++) {
				assert_true(collect(ANY) > 0);
				e = post(slot, !last, last);
			}
			assert_int_equal(e, 0);
		}
		while (collect(ANY) > 0)
			;
		assert_int_equal(doorbells(), round * slots / length);
		assert_int_equal(fake.sent, round * slots / length);
		for (uint32_t slot = 0, at = 0; slot < slots; slot++) {
			for (; at < slot * 101; at++)
				assert_int_equal(sink()[at], 0);
			assert_memory_equal(sink() + at, source() + at, 37 + slot % 5);
			at += 37 + slot % 5;
		}
	}
	close_pair();
}

static void test_a_list_is_one_doorbell_and_one_completion(void **state) {
	static const uint32_t queues[] = { 1, 4 }, lengths[] = { 1, 3, 16, 64 };

	for (int wr = 0; wr < 2; wr++)
		for (int read = 0; read < 2; read++)
			for (size_t q = 0; q < ELEMENTSOF(queues); q++)
				for (size_t n = 0; n < ELEMENTSOF(lengths); n++) {
					assert_int_equal(setup(state), 0);
					lists_of(read ? OP_READ : OP_WRITE, wr, queues[q], lengths[n]);
				}
}

static void test_lists_complete_in_order(void **state) {
	(void) state;
	for (int wr = 0; wr < 2; wr++) {
		struct job job = transfer_job(OP_WRITE, 48);

		choose_calls(wr);
		open_pair(&job);
		for (uint32_t slot = 0; slot < 48; slot++)
			place(slot, 0, slot * 64, 64);
		for (uint32_t slot = 0; slot < 48; slot += 8) {
			for (uint32_t i = 0; i < 8; i++)
				assert_int_equal(post(slot + i, i < 7, i == 7), 0);
			assert_int_equal(collect(slot), 8);
		}
		close_pair();
	}
}

/* Chunks of the largest batch are many more than may be under way, and cost no more than they must. */
static void test_hundreds_of_thousands_of_slots(void **state) {
	enum { SLOTS = 260000, LIST = 100 };
	struct job job = transfer_job(OP_WRITE, SLOTS / 100);

	(void) state;
	job.sizes[0] = 300;
	job.chunk_bytes = 3;
	job.max_chunks = 100;
	job.outstanding = LIST;
	open_pair(&job);
	fill_source();
	for (uint32_t slot = 0; slot < SLOTS; slot++)
		place(slot, 0, slot * 3, 3);
	for (uint32_t slot = 0; slot < SLOTS; slot++) {
		assert_int_equal(post(slot, (slot + 1) % LIST, (slot + 1) % LIST == 0), 0);
		if ((slot + 1) % LIST == 0)
			assert_int_equal(collect(slot + 1 - LIST), LIST);
	}
	assert_memory_equal(sink(), source(), SLOTS * 3);
	assert_true(sizeof(struct verbs_move) <= 16);
	close_pair();
}

/* A slot that has completed may be given another place: --no-session does so for each transfer. */
static void test_a_slot_moves(void **state) {
	struct job job = transfer_job(OP_READ, 2);

	(void) state;
	job.queue_pairs = 2;
	open_pair(&job);
	fill_source();
	for (uint32_t i = 0; i < 100; i++) {
		memset(sink(), 0, BUFFER);
		place(i % 2, i / 2 % 2, i * 10007, i + 1);
		assert_int_equal(post(i % 2, false, true), 0);
		assert_int_equal(collect(i % 2), 1);
		assert_memory_equal(sink() + i * 10007, source() + i * 10007, i + 1);
		assert_int_equal(sink()[i * 10007 + i + 1], 0);
	}
	close_pair();
}

/* No room for the rest of a list: what it has so far goes to the device, or it would wait for itself. */
static void test_a_list_that_must_wait_is_rung(void **state) {
	(void) state;
	for (int wr = 0; wr < 2; wr++) {
		struct job job = transfer_job(OP_WRITE, 24);

		assert_int_equal(setup(state), 0);
		job.outstanding = 8;
		choose_calls(wr);
		open_pair(&job);
		fill_source();
		for (uint32_t slot = 0; slot < 24; slot++)
			place(slot, 0, slot * 10, 10);
		for (uint32_t slot = 0; slot < 4; slot++)
			assert_int_equal(post(slot, slot < 3, slot == 3), 0);
		for (uint32_t slot = 4; slot < 8; slot++)
			assert_int_equal(post(slot, true, false), 0);
		assert_int_equal(doorbells(), 1);
		assert_int_equal(post(8, true, false), -EAGAIN);
		assert_int_equal(doorbells(), 2);
		assert_int_equal(post(8, true, false), -EAGAIN); /* and rings nothing when there is no list */
		assert_int_equal(doorbells(), 2);
		assert_int_equal(collect(0), 4);
		for (uint32_t slot = 8; slot < 12; slot++)
			assert_int_equal(post(slot, slot < 11, slot == 11), 0);
		assert_int_equal(doorbells(), 3);
		assert_int_equal(fake.sent, 2);
		assert_int_equal(collect(4), 8);
		assert_memory_equal(sink(), source(), 120);
		close_pair();
	}
}

static void test_what_the_device_takes_at_a_time(void **state) {
	struct job job = transfer_job(OP_WRITE, 4);

	(void) state;
	job.outstanding = 1000;
	job.queue_pairs = 4;
	fake.devices[0].attr.max_qp_wr = 999;
	refused(&job, "work requests of a queue pair: 1000 are needed, and it has at most 999; lower --outstanding");
	fake.devices[0].attr.max_qp_wr = 1000;
	fake.devices[0].attr.max_cqe = 3999;
	refused(&job, "entries of a completion queue: 4000 are needed, and it has at most 3999; "
		"lower --outstanding or --queue-pairs");
	fake.devices[0].attr.max_cqe = 4000;
	/* The target posts nothing, and needs no room for it. */
	fake.devices[1].attr.max_qp_wr = 1;
	fake.devices[1].attr.max_cqe = 4;
	open_pair(&job);
	close_pair();
}

/* Provider libraries say in their own ways that they do not know the calls. */
static void test_devices_without_the_calls(void **state) {
	static const int errors[] = { EOPNOTSUPP, ENOSYS, EINVAL };
	struct job job = transfer_job(OP_WRITE, 4);

	(void) state;
	job.queue_pairs = 3;
	for (size_t i = 0; i < ELEMENTSOF(errors); i++) {
		fake_fail(FAKE_CREATE_QP_EX, errors[i], 0);
		open_pair(&job);
		assert_string_equal(pair.ends[ROLE_CLIENT].session->post_api, "ibv_post_send");
		assert_null(pair.ends[ROLE_SERVER].session->post_api);
		place(0, 2, 0, 64);
		assert_int_equal(post(0, false, true), 0);
		assert_int_equal(fake.calls[FAKE_POST_SEND], i + 1);
		close_pair();
	}
	fake_fail(FAKE_CREATE_QP_EX, EINVAL, 0);
	/* the target's go well; what fails without the calls, too, was not theirs */
	fake_fail(FAKE_CREATE_QP, ENOMEM, 3);
	refused(&job, "left0: cannot make queue pair 1 of 3: Cannot allocate memory");
	fake_fail(FAKE_CREATE_QP, 0, 0);
	fake_fail(FAKE_CREATE_QP_EX, ENOMEM, 1); /* half of the queue pairs with the calls is no way to measure */
	refused(&job, "left0: cannot make queue pair 2 of 3: Cannot allocate memory");
}

static void test_inline_only_where_it_is_asked_for(void **state) {
	(void) state;
	for (int wr = 0; wr < 2; wr++)
		for (int bytes = -1; bytes <= 64; bytes += 65) {
			struct job job = transfer_job(OP_WRITE, 2);

			choose_calls(wr);
			job.verbs.inline_bytes = bytes;
			open_pair(&job);
			assert_int_equal(pair.ends[ROLE_CLIENT].session->inline_bytes, MAX(bytes, 0));
			fill_source();
			place(0, 0, 0, 64);
			place(1, 0, 64, 65);
			assert_int_equal(post(0, true, false), 0);
			/*
			 * Inline data is free again: the ibv_wr calls copy it at once,
			 * the linked list when its doorbell rings.
			 */
			memset((uint8_t *) (uintptr_t) source(), 0xee, 129);
			assert_int_equal(post(1, false, true), 0);
			assert_int_equal(sink()[0], wr && bytes == 64 ? 1 : 0xee);
			assert_int_equal(sink()[128], 0xee);
			for (uint32_t i = 0; i < 2 && !wr; i++)
				assert_int_equal(verbs_session(pair.ends[ROLE_CLIENT].session)
							 ->queues[0].requests[i].send_flags & IBV_SEND_INLINE,
						 bytes == 64 && i == 0 ? IBV_SEND_INLINE : 0);
			close_pair();
		}
}

/*
 * The queue pair works in order: what came before the message that failed is complete,
 * though it asked for no completion.
 */
static void test_what_was_complete_before_a_failure(void **state) {
	for (int wr = 0; wr < 2; wr++)
		for (unsigned skip = 0; skip < 24; skip++) {
			struct job job = transfer_job(OP_WRITE, 24);
			struct completion c[3];
			unsigned done = 0;
			int n;

			assert_int_equal(setup(state), 0);
			choose_calls(wr);
			job.outstanding = 24;
			open_pair(&job);
			failure_reset();
			for (uint32_t slot = 0; slot < 24; slot++)
				place(slot, 0, slot * 64, 64);
			fake.next_status = IBV_WC_WR_FLUSH_ERR; /* as of a queue pair whose device has gone */
			fake.status_skip = skip;
			for (uint32_t slot = 0; slot < 24; slot++)
				assert_int_equal(post(slot, slot % 8 != 7, slot % 8 == 7), 0);
			fake_fail(FAKE_QUERY_PORT, EIO, 0);
			while ((n = take(ROLE_CLIENT, c, ELEMENTSOF(c))) > 0)
				for (int i = 0; i < n; i++)
					assert_int_equal(c[i].slot, done++);
			assert_true(n < 0);
			assert_int_equal(done, skip);
			assert_int_equal(failure_code(), EXIT_INTERNAL);
			assert_non_null(strstr(failure_text(), "left0 port 1 of this host cannot be asked any more: "
					       "the device has gone"));
			close_pair();
		}
}

/* Asleep, or with nothing under way that could fail, its own event tells. */
static void test_a_device_that_vanishes_quietly(void **state) {
	struct job job = transfer_job(OP_WRITE, 4);
	struct completion c;
	struct session *s;

	(void) state;
	job.completion = COMPLETION_EVENT;
	open_pair(&job);
	s = pair.ends[ROLE_CLIENT].session;
	place(0, 0, 0, 64);
	assert_int_equal(post(0, false, true), 0);
	assert_int_equal(pair.backend->wait(s, &c, 1, NSEC_PER_SEC), 1);
	failure_reset();
	fake_raise(verbs_session(s)->device.context, IBV_EVENT_DEVICE_FATAL, 0);
	assert_true(pair.backend->wait(s, &c, 1, NSEC_PER_SEC) < 0);
	assert_int_equal(failure_code(), EXIT_INTERNAL);
	assert_non_null(strstr(failure_text(), "the device failed or was removed"));
	close_pair();
}

static void test_a_list_that_is_not_taken(void **state) {
	static const enum fake_call calls[] = { FAKE_POST_SEND, FAKE_WR_COMPLETE };

	(void) state;
	for (int wr = 0; wr < 2; wr++) {
		struct job job = transfer_job(OP_WRITE, 4);

		choose_calls(wr);
		open_pair(&job);
		failure_reset();
		fake_fail(calls[wr], ENODEV, 0);
		place(0, 0, 0, 64);
		place(1, 0, 64, 64);
		assert_int_equal(post(0, true, false), 0);
		assert_true(post(1, false, true) < 0);
		assert_int_equal(failure_code(), EXIT_INTERNAL);
		assert_non_null(strstr(failure_text(), "verbs, device left0: cannot post a"));
		assert_non_null(strstr(failure_text(), "No such device"));
		close_pair();
		fake_fail(calls[wr], 0, 0);
		/* The reason may be a completion, then it is told. */
		open_pair(&job);
		failure_reset();
		place(0, 0, 0, 64);
		fake.next_status = IBV_WC_RETRY_EXC_ERR;
		assert_int_equal(post(0, false, true), 0);
		fake_fail(calls[wr], EIO, 0);
		assert_true(post(0, false, true) < 0);
		assert_int_equal(failure_code(), EXIT_PEER);
		assert_non_null(strstr(failure_text(), "retries exceeded"));
		close_pair();
		fake_fail(calls[wr], 0, 0);
	}
}

/* An interrupted run leaves a list behind, and the driver's lock with it. */
static void test_closing_within_a_list(void **state) {
	(void) state;
	for (int wr = 0; wr < 2; wr++) {
		struct job job = transfer_job(OP_WRITE, 4);

		choose_calls(wr);
		open_pair(&job);
		place(0, 0, 0, 64);
		assert_int_equal(post(0, true, false), 0);
		close_pair();
	}
}

static void test_only_reliable_connections(void **state) {
	struct job job = transfer_job(OP_WRITE, 4);

	(void) state;
	for (int connection = CONNECTION_UC; connection <= CONNECTION_UD; connection++) {
		job.verbs.connection = (enum connection) connection;
		assert_int_equal(verbs_pair_open(&pair, &job), -EINVAL);
		assert_int_equal(failure_code(), EXIT_USAGE);
		assert_non_null(strstr(failure_text(), connection == CONNECTION_UC
				       ? "transfers need a reliable connection" : "has no --op write"));
		close_pair();
	}
}

/* One end of a whole job, its lanes connected over a socket with those of the other. */
static int open_lanes(const struct job *job, enum role role, int fd, struct transfer *ret) {
	static struct control control;
	static struct sockaddr_storage addresses[2];
	const struct open_arguments a = { .job = &ret->job, .role = role, .local = &addresses[role],
					  .peer = &addresses[!role] };

	addresses[ROLE_CLIENT] = address_of("10.0.0.1");
	addresses[ROLE_SERVER] = address_of("10.0.0.2");
	control = (struct control) { .fd = fd, .server = role == ROLE_SERVER, .timeout_ns = 10 * NSEC_PER_SEC };
	*ret = (struct transfer) { .job = *job, .done_fd = -1 };
	return transfer_open(ret, &a, &control);
}

/* The client's completion vectors, by lane: "0 1". The server is another process, with devices of its own. */
static void check_vectors(const char *devices, uint32_t threads, int vectors, const char *wanted) {
	struct job job = transfer_job(OP_WRITE, 8);
	struct transfer x;
	char seen[64] = "";
	int fds[2], status;
	pid_t server;

	job.verify = false;
	job.threads = threads;
	(void) copy_string(job.devices, sizeof(job.devices), devices);
	(void) copy_string(job.server_devices, sizeof(job.server_devices), devices);
	fake.devices[0].n_vectors = fake.devices[1].n_vectors = vectors;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
	server = fork();
	assert_true(server >= 0);
	if (server == 0)
		_exit(open_lanes(&job, ROLE_SERVER, fds[1], &x) < 0);
	if (open_lanes(&job, ROLE_CLIENT, fds[0], &x) < 0)
		fail_msg("%s", failure_text());
	for (uint32_t i = 0; i < x.n_lanes; i++) {
		const struct fake_cq *cq = (const void *) verbs_session(x.lanes[i]->sessions[0])->cq;
		size_t n = strlen(seen);

		(void) snprintf(seen + n, sizeof(seen) - n, "%s%d", i ? " " : "", cq->vector);
	}
	assert_string_equal(seen, wanted);
	transfer_close(&x);
	assert_int_equal(waitpid(server, &status, 0), server);
	assert_int_equal(status, 0);
	(void) close(fds[0]);
	(void) close(fds[1]);
}

static void test_lanes_take_completion_vectors_in_turn(void **state) {
	(void) state;
	check_vectors("left0", 1, 4, "0");
	check_vectors("left0", 3, 4, "0 1 2");
	check_vectors("left0", 3, 2, "0 1 0");
	check_vectors("left0", 2, 1, "0 0");
	check_vectors("left0", 2, 0, "0 0"); /* a driver that does not say */
	/* Lanes 0 and 2 are of the first device. */
	check_vectors("left0,right0", 4, 2, "0 1 1 0");
	check_vectors("left0,left0", 2, 4, "0 1");
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_a_list_is_one_doorbell_and_one_completion, setup),
		cmocka_unit_test_setup(test_lists_complete_in_order, setup),
		cmocka_unit_test_setup(test_hundreds_of_thousands_of_slots, setup),
		cmocka_unit_test_setup(test_a_slot_moves, setup),
		cmocka_unit_test_setup(test_a_list_that_must_wait_is_rung, setup),
		cmocka_unit_test_setup(test_what_the_device_takes_at_a_time, setup),
		cmocka_unit_test_setup(test_devices_without_the_calls, setup),
		cmocka_unit_test_setup(test_inline_only_where_it_is_asked_for, setup),
		cmocka_unit_test_setup(test_what_was_complete_before_a_failure, setup),
		cmocka_unit_test_setup(test_a_device_that_vanishes_quietly, setup),
		cmocka_unit_test_setup(test_a_list_that_is_not_taken, setup),
		cmocka_unit_test_setup(test_closing_within_a_list, setup),
		cmocka_unit_test_setup(test_only_reliable_connections, setup),
		cmocka_unit_test_setup(test_lanes_take_completion_vectors_in_turn, setup),
	};

	return cmocka_run_group_tests_name("transfers over verbs, over a fake libibverbs", tests, NULL, NULL);
}
