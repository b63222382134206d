/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Purpose: transfers over tcp move every byte to its place and nothing else, are complete only when they are, never
 * stand still with full socket buffers, and believe nothing that a peer says. Both ends in this process, over loopback.
 */
#include <endian.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <time.h>

#include <cmocka.h>

#include "tcp_pair.h"

/* Both sides of what was moved, and the bytes between the pieces: those of `gap` each. */
static void check_memory(const uint64_t *offsets, const uint64_t *sizes, size_t n, uint64_t gap) {
	const uint8_t *to = memory(pair.job.op == OP_READ ? ROLE_CLIENT : ROLE_SERVER);

	for (size_t i = 0; i < n; i++) {
		assert_same(offsets[i], sizes[i]);
		for (uint64_t k = 0; k < gap; k++)
			assert_int_equal(to[offsets[i] + sizes[i] + k], UNTOUCHED);
	}
}

/*
 * Sizes around every boundary inside, and far beyond a socket's buffers;
 * placed from the end of the memory to its beginning.
 */
static const uint64_t sizes[] = {
	1, 15, 16, 17, 1000, 8191, 8192, 8193, 65519, 65520, 65536, 65537, 262144, 1 << 20, (5 << 20) + 3, 1, 1,
	8 << 20, 77, 20 << 20, 9,
};

static void move_all(enum op op, uint32_t list, bool late) {
	const struct job job = transfer_job(op);
	uint64_t offsets[ELEMENTSOF(sizes)], length = 0;
	uint32_t done = 0;

	for (size_t i = ELEMENTSOF(sizes); i-- > 0;) {
		offsets[i] = length;
		length += sizes[i] + 5;
	}
	open_pair(&job, length);
	for (uint32_t i = 0; i < ELEMENTSOF(sizes); i++) {
		place(i, offsets[i], sizes[i]);
		assert_int_equal(post(i, (i + 1) % list != 0 && i + 1 < ELEMENTSOF(sizes)), 0);
		if (late)
			continue;
		done = take_completions(done);
		serve();
	}
	/* Both kernels' buffers are full before one end moves again. */
	for (int i = 0; late && i < 1000; i++)
		serve();
	finish(done, ELEMENTSOF(sizes));
	check_memory(offsets, sizes, ELEMENTSOF(sizes), 5);
	close_pair();
}

static void test_every_byte_finds_its_place(void **state) {
	(void) state;
	for (uint32_t list = 1; list <= ELEMENTSOF(sizes); list += 4)
		for (int late = 0; late < 2; late++) {
			move_all(OP_WRITE, list, late);
			move_all(OP_READ, list, late);
		}
}

/* More requests than the target has room for answers, and more answers than the socket has room for. */
static void test_many_small_ones(void **state) {
	(void) state;
	for (int op = 0; op < 2; op++) {
		const struct job job = transfer_job(op ? OP_READ : OP_WRITE);

		open_pair(&job, SLOTS * 1024);
		for (uint32_t i = 0; i < SLOTS; i++) {
			place(i, (uint64_t) i * 1024, 1024);
			assert_int_equal(post(i, i + 1 < SLOTS), 0);
		}
		for (int i = 0; i < 1000; i++)
			serve();
		finish(0, SLOTS);
		assert_same(0, SLOTS * 1024);
		close_pair();
	}
}

static int waiting_bytes(enum role role) {
	int n = -1;

	assert_int_equal(ioctl(tcp(pair.ends[role].session)->fd, FIONREAD, &n), 0);
	return n;
}

/* What has been sent to an end is there a moment later, loopback or not. */
static void await_bytes(enum role role, int n) {
	for (uint64_t begin = monotonic_ns(); waiting_bytes(role) < n && monotonic_ns() - begin < 10 * NSEC_PER_SEC;)
		;
	assert_int_equal(waiting_bytes(role), n);
}

/* A list of small writes goes with its last, in one piece, and one word answers it. */
static void test_a_list_is_one(void **state) {
	enum { LIST = 32 }; /* fits into the window that a new connection begins with */
	const struct job job = transfer_job(OP_WRITE);

	(void) state;
	open_pair(&job, LIST * 1024);
	for (uint32_t i = 0; i < LIST; i++) {
		place(i, (uint64_t) i * 1024, 1024);
		assert_int_equal(waiting_bytes(ROLE_SERVER), 0);
		assert_int_equal(post(i, i + 1 < LIST), 0);
	}
	await_bytes(ROLE_SERVER, LIST * (1024 + TCP_REQUEST));
	while (waiting_bytes(ROLE_SERVER) > 0)
		serve();
	await_bytes(ROLE_CLIENT, TCP_ACKNOWLEDGEMENT);
	finish(0, LIST);
	/* Slots are used again without being placed again. */
	memset(memory(ROLE_SERVER), UNTOUCHED, pair.length);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(post(i, false), 0);
	finish(0, 3);
	assert_same(0, 3 * 1024);
	assert_int_equal(memory(ROLE_SERVER)[3 * 1024], UNTOUCHED);
	close_pair();
}

/* A write is complete when it lies in the target's memory, and then at once: not with the last of a long list. */
static void test_complete_means_delivered(void **state) {
	const struct job job = transfer_job(OP_WRITE);
	struct completion c;
	uint32_t next = 0;

	(void) state;
	open_pair(&job, 64 << 20);
	memory(ROLE_CLIENT)[pair.length - 1] = 0;
	assert_int_equal(pair.ends[ROLE_CLIENT].session->level, LEVEL_DELIVERY);
	for (uint32_t i = 0; i < 64; i++) {
		place(i, (uint64_t) i << 20, 1 << 20);
		assert_int_equal(post(i, i < 63), 0);
	}
	for (int i = 0; i < 1000; i++)
		assert_int_equal(poll_end(ROLE_CLIENT, &c, 1), 0);
	while (next == 0) {
		serve();
		next = take_completions(0);
	}
	assert_same(0, (uint64_t) next << 20);
	assert_int_equal(memory(ROLE_SERVER)[pair.length - 1], UNTOUCHED);
	finish(next, 64);
	close_pair();
}

/* Whoever polls in the middle of a list wants it sent. */
static void test_an_unfinished_list(void **state) {
	(void) state;
	for (int op = 0; op < 2; op++) {
		const struct job job = transfer_job(op ? OP_READ : OP_WRITE);

		open_pair(&job, 4096);
		for (uint32_t i = 0; i < 4; i++) {
			place(i, i * 1024, 1024);
			assert_int_equal(post(i, true), 0);
		}
		finish(0, 4);
		assert_same(0, 4096);
		close_pair();
	}
}

static void test_a_full_queue(void **state) {
	struct job job = transfer_job(OP_WRITE);
	struct work w = { .op = OP_WRITE, .more = true };
	uint32_t n = 0;

	(void) state;
	job.outstanding = 100;
	open_pair(&job, SLOTS);
	for (;; n++, w.slot = n) {
		int r;

		assert_true(n < SLOTS);
		place(n, n, 1);
		r = hooks(ROLE_CLIENT)->post(pair.ends[ROLE_CLIENT].session, &w);
		if (r == -EAGAIN)
			break;
		assert_int_equal(r, 0);
	}
	assert_true(n >= job.outstanding);
	finish(0, n);
	assert_int_equal(post(n, false), 0);
	finish(n, n + 1);
	assert_same(0, n + 1);
	close_pair();
}

/* The server's part with sleeping, until it is told to stop. */
static atomic_bool stop;

static void *serve_asleep(void *failed) {
	struct completion none;

	while (!atomic_load(&stop))
		if (backend_wait(pair.ends[ROLE_SERVER].session, &none, 1, 10 * NSEC_PER_MSEC, pair.wake_fd) != 0)
			*(bool *) failed = true;
	return NULL;
}

static void sleep_through(enum op op, uint64_t size) {
	struct job job = transfer_job(op);
	struct completion c[7];
	bool failed = false;
	pthread_t thread;
	uint32_t done = 0;

	job.completion = COMPLETION_EVENT;
	open_pair(&job, SLOTS * size);
	atomic_store(&stop, false);
	assert_int_equal(pthread_create(&thread, NULL, serve_asleep, &failed), 0);
	for (uint32_t i = 0; i < SLOTS; i++) {
		place(i, i * size, size);
		assert_int_equal(post(i, (i + 1) % 4096 != 0), 0);
	}
	for (uint64_t begin = monotonic_ns(); done < SLOTS && monotonic_ns() - begin < 20 * NSEC_PER_SEC;) {
		int n = backend_wait(pair.ends[ROLE_CLIENT].session, c, ELEMENTSOF(c), NSEC_PER_SEC, pair.wake_fd);

		assert_true(n >= 0);
		done += (uint32_t) n;
	}
	atomic_store(&stop, true);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(done, SLOTS);
	assert_false(failed);
	assert_same(0, pair.length);
	close_pair();
}

/* Of the smallest the target can answer all that it has room for at once, and has read more. */
static void test_both_sleep(void **state) {
	(void) state;
	for (int op = 0; op < 2; op++) {
		sleep_through(op ? OP_READ : OP_WRITE, 4096);
		sleep_through(op ? OP_READ : OP_WRITE, 1);
	}
}

static uint64_t cpu_ns(void) {
	struct timespec t;

	(void) clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t) t.tv_sec * NSEC_PER_SEC + (uint64_t) t.tv_nsec;
}

/* Answers how long it slept. */
static uint64_t sleep_at(enum role role, uint64_t timeout_ns) {
	uint64_t begin = monotonic_ns(), cpu = cpu_ns();
	struct completion c;

	assert_int_equal(backend_wait(pair.ends[role].session, &c, 1, timeout_ns, pair.wake_fd), 0);
	assert_true(cpu_ns() - cpu < 20 * NSEC_PER_MSEC);
	return monotonic_ns() - begin;
}

/*
 * With nothing under way, with a write that nobody answers, and after the peer is gone:
 * until the time is over, or somebody wakes it.
 */
static void test_sleep_ends_in_time(void **state) {
	const struct job job = transfer_job(OP_WRITE);
	const uint64_t one = 1;
	struct pollfd end = { .events = POLLIN };

	(void) state;
	open_pair(&job, 4096);
	assert_true(sleep_at(ROLE_CLIENT, 50 * NSEC_PER_MSEC) >= 50 * NSEC_PER_MSEC);
	assert_true(sleep_at(ROLE_SERVER, 50 * NSEC_PER_MSEC) >= 50 * NSEC_PER_MSEC);
	place(0, 0, 4096);
	assert_int_equal(post(0, false), 0);
	assert_true(sleep_at(ROLE_CLIENT, 50 * NSEC_PER_MSEC) >= 50 * NSEC_PER_MSEC);
	/* The target wakes for the request, and the initiator for the word. */
	assert_true(sleep_at(ROLE_SERVER, 10 * NSEC_PER_SEC) < NSEC_PER_SEC);
	finish(0, 1);
	end.fd = tcp(pair.ends[ROLE_SERVER].session)->fd;
	assert_int_equal(shutdown(tcp(pair.ends[ROLE_CLIENT].session)->fd, SHUT_WR), 0);
	assert_int_equal(poll(&end, 1, 10000), 1);
	serve();
	assert_int_equal(shutdown(tcp(pair.ends[ROLE_SERVER].session)->fd, SHUT_WR), 0);
	for (int i = 0; i < 2; i++)
		assert_true(sleep_at((enum role) i, 50 * NSEC_PER_MSEC) >= 50 * NSEC_PER_MSEC);
	assert_int_equal(write(pair.wake_fd, &one, sizeof(one)), sizeof(one));
	for (int i = 0; i < 2; i++)
		assert_true(sleep_at((enum role) i, 10 * NSEC_PER_SEC) < NSEC_PER_SEC);
	assert_string_equal(failure_text(), "");
	close_pair();
}

/* A peer who writes what he likes: the other end's socket. */
static int stranger(enum role role) {
	return tcp(pair.ends[!role].session)->fd;
}

static void say(enum role to, const void *data, size_t n) {
	assert_int_equal(send(stranger(to), data, n, MSG_NOSIGNAL), (ssize_t) n);
}

/* The stream has no boundaries: each byte may come alone. */
static void test_requests_byte_by_byte(void **state) {
	struct job job = transfer_job(OP_WRITE);
	uint8_t message[TCP_REQUEST + 20];

	(void) state;
	open_pair(&job, 200);
	for (int asks = 0; asks < 2; asks++) {
		const struct tcp_request r = { .op = OP_WRITE, .acknowledge = asks, .offset = 100, .size = 20 };

		tcp_request_write(&r, message);
		memset(message + TCP_REQUEST, 7 + asks, 20);
		for (size_t i = 0; i < sizeof(message); i++) {
			assert_int_equal(waiting_bytes(ROLE_CLIENT), 0);
			say(ROLE_SERVER, message + i, 1);
			await_bytes(ROLE_SERVER, 1);
			serve();
		}
		assert_memory_equal(memory(ROLE_SERVER) + 100, message + TCP_REQUEST, 20);
	}
	assert_int_equal(memory(ROLE_SERVER)[99], UNTOUCHED);
	assert_int_equal(memory(ROLE_SERVER)[120], UNTOUCHED);
	/* The one word is of both. */
	await_bytes(ROLE_CLIENT, TCP_ACKNOWLEDGEMENT);
	assert_int_equal(recv(stranger(ROLE_SERVER), message, sizeof(message), 0), TCP_ACKNOWLEDGEMENT);
	assert_int_equal(message[TCP_ACKNOWLEDGEMENT - 1], 2);
	close_pair();
}

static void test_words_in_pieces(void **state) {
	static const uint8_t words[3 * TCP_ACKNOWLEDGEMENT] = { [7] = 1, [14] = 1, [15] = 3, [22] = 1, [23] = 4 };
	static const struct {
		size_t bytes;
		int completions;
	} pieces[] = { { 1, 0 }, { 6, 0 }, { 8, 1 }, { 1, 258 }, { 7, 0 }, { 1, 1 } };
	struct job job = transfer_job(OP_WRITE);
	struct completion c[260];
	size_t said = 0;

	(void) state;
	open_pair(&job, 1);
	for (uint32_t i = 0; i < ELEMENTSOF(c); i++) {
		place(i, 0, 1);
		assert_int_equal(post(i, i + 1 < ELEMENTSOF(c)), 0);
	}
	for (size_t i = 0; i < ELEMENTSOF(pieces); i++) {
		say(ROLE_CLIENT, words + said, pieces[i].bytes);
		said += pieces[i].bytes;
		await_bytes(ROLE_CLIENT, (int) pieces[i].bytes);
		assert_int_equal(poll_end(ROLE_CLIENT, c, ELEMENTSOF(c)), pieces[i].completions);
	}
	assert_int_equal(said, sizeof(words));
	close_pair();
}

static void test_hostile_requests(void **state) {
	static const struct {
		enum op op;
		uint8_t bytes[TCP_REQUEST];
	} cases[] = {
		{ OP_WRITE, { 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 } },       /* of no bytes */
		{ OP_WRITE, { 1, 0, 0, 0, 0, 0, 0, 201, 0, 0, 0, 0, 0, 0, 0, 0 } },     /* larger than all */
		{ OP_WRITE, { 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 200 } },     /* behind the end */
		{ OP_WRITE, { 1, 0, 0, 0, 0, 0, 0, 101, 0, 0, 0, 0, 0, 0, 0, 100 } },   /* across it */
		/* around all addresses */
		{ OP_WRITE, { 1, 0, 0, 0, 0, 0, 0, 100, 255, 255, 255, 255, 255, 255, 255, 200 } },
		{ OP_WRITE, { 2, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0 } },       /* a read */
		{ OP_READ, { 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0 } },        /* a write */
		{ OP_READ, { 2, 0, 0, 0, 0, 0, 0, 201, 0, 0, 0, 0, 0, 0, 0, 0 } },
		{ OP_READ, { 2, 0, 0, 0, 255, 255, 255, 255, 0, 0, 0, 0, 0, 0, 0, 199 } },
		{ OP_READ, { 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0 } },        /* nothing known */
		{ OP_SEND, { 3, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0 } },        /* longer than its place */
		{ OP_WRITE, { 1, 2, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0 } },       /* an unknown flag */
		{ OP_WRITE, { 1, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0 } },
		{ OP_WRITE, { 1, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0 } },
	};
	uint8_t untouched[200], payload[200] = { 0 };

	(void) state;
	memset(untouched, UNTOUCHED, sizeof(untouched));
	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		const struct job job = transfer_job(cases[i].op);

		open_pair(&job, sizeof(untouched));
		memset(memory(ROLE_SERVER), UNTOUCHED, sizeof(untouched));
		say(ROLE_SERVER, cases[i].bytes, TCP_REQUEST);
		say(ROLE_SERVER, payload, sizeof(payload));
		refused(ROLE_SERVER, -EPROTO);
		assert_memory_equal(memory(ROLE_SERVER), untouched, sizeof(untouched));
		assert_int_equal(waiting_bytes(ROLE_CLIENT), 0);
		close_pair();
	}
}

static void test_a_request_survives_the_wire(void **state) {
	const struct tcp_request r = { .op = OP_WRITE, .acknowledge = true, .offset = UINT64_C(0x0123456789),
				       .size = JOB_SIZE_MAX };
	static const uint8_t expected[TCP_REQUEST] = { 1, 1, 0, 0, 255, 255, 255, 255, 0, 0, 0, 0x01, 0x23, 0x45, 0x67,
						       0x89 };
	uint8_t bytes[TCP_REQUEST];
	struct tcp_request back;

	(void) state;
	tcp_request_write(&r, bytes);
	assert_memory_equal(bytes, expected, sizeof(expected));
	assert_int_equal(tcp_request_read(bytes, OP_WRITE, r.offset + r.size, &back), 0);
	assert_true(back.op == r.op && back.acknowledge && back.offset == r.offset && back.size == r.size);
	assert_int_equal(tcp_request_read(bytes, OP_WRITE, r.offset + r.size - 1, &back), -EPROTO);
}

/* What has been acknowledged can neither be taken back nor be more than was sent. */
static void test_hostile_acknowledgements(void **state) {
	static const uint64_t words[][2] = { { 0 }, { 4 }, { UINT64_MAX }, { 2, 2 }, { 2, 1 }, { 3, 5 } };

	(void) state;
	for (size_t i = 0; i < ELEMENTSOF(words); i++) {
		const struct job job = transfer_job(OP_WRITE);

		open_pair(&job, 3);
		for (uint32_t k = 0; k < 3; k++) {
			place(k, k, 1);
			assert_int_equal(post(k, false), 0);
		}
		for (int k = 0; k < 2 && (k == 0 || words[i][k]); k++) {
			uint64_t word = htobe64(words[i][k]);

			for (uint32_t next = 0; k == 1 && next < words[i][0];)
				next = take_completions(next);
			if (k == 1 && words[i][0] == 3)
				assert_int_equal(post(0, true), 0); /* else nothing is expected, and nothing read */
			say(ROLE_CLIENT, &word, sizeof(word));
		}
		refused(ROLE_CLIENT, -EPROTO);
		close_pair();
	}
}

static void die(enum role role, bool reset) {
	struct linger now = { .l_onoff = 1 };
	struct tcp_session *s = tcp(pair.ends[role].session);

	if (reset)
		assert_int_equal(setsockopt(s->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now)), 0);
	s->fd = close_fd(s->fd);
}

static void test_an_end_dies(void **state) {
	(void) state;
	for (int i = 0; i < 8; i++) {
		enum role dead = i & 1 ? ROLE_CLIENT : ROLE_SERVER;
		const struct job job = transfer_job(i & 2 ? OP_READ : OP_WRITE);

		open_pair(&job, 64 << 20);
		for (uint32_t k = 0; k < 4; k++) {
			place(k, (uint64_t) k << 24, 16 << 20);
			assert_int_equal(post(k, false), 0);
		}
		for (int k = 0; k < 4; k++)
			serve();
		die(dead, i & 4);
		refused(!dead, -ECONNRESET);
		if (strncmp(failure_text(), "lost the peer", strlen("lost the peer")) != 0)
			fail_msg("%s", failure_text());
		close_pair();
	}
}

/* Between two requests an end may go; within one it may not. */
static void test_half_a_request(void **state) {
	static const uint8_t half[TCP_REQUEST / 2] = { 1 };

	(void) state;
	for (int n = 0; n < 2; n++) {
		const struct job job = transfer_job(OP_WRITE);

		open_pair(&job, 1);
		say(ROLE_SERVER, half, n ? sizeof(half) : 1);
		serve();
		die(ROLE_CLIENT, false);
		refused(ROLE_SERVER, -ECONNRESET);
		close_pair();
	}
}

/* Outside of lanes the backend has one operation, as ever; transfers have two, and rates three. */
static void test_operations_of_the_backend(void **state) {
	static const char *const said[KIND_MAX] = {
		"the tcp backend does not have it", "the tcp backend does not have it", "is no transfer",
		"perch rate measures send",
	};
	(void) state;
	for (int kind = 0; kind < KIND_MAX; kind++)
		for (int op = 0; op < OP_MAX; op++) {
			struct job job = transfer_job((enum op) op);
			bool has;

			job.kind = (enum kind) kind;
			has = job_has_lanes(&job) && (op == OP_WRITE || op == OP_READ);
			has |= job.kind != KIND_TRANSFER && op == OP_SEND;
			job.outstanding = 1;
			failure_reset();
			(void) job_validate(&job);
			assert_int_equal(!strstr(failure_text(), said[kind]), has);
			if (!has)
				assert_int_equal(failure_code(), EXIT_USAGE);
		}
}

int main(void) {
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_byte_finds_its_place),
		cmocka_unit_test(test_many_small_ones),
		cmocka_unit_test(test_a_list_is_one),
		cmocka_unit_test(test_complete_means_delivered),
		cmocka_unit_test(test_an_unfinished_list),
		cmocka_unit_test(test_a_full_queue),
		cmocka_unit_test(test_both_sleep),
		cmocka_unit_test(test_sleep_ends_in_time),
		cmocka_unit_test(test_requests_byte_by_byte),
		cmocka_unit_test(test_words_in_pieces),
		cmocka_unit_test(test_hostile_requests),
		cmocka_unit_test(test_a_request_survives_the_wire),
		cmocka_unit_test(test_hostile_acknowledgements),
		cmocka_unit_test(test_an_end_dies),
		cmocka_unit_test(test_half_a_request),
		cmocka_unit_test(test_operations_of_the_backend),
	};

	return cmocka_run_group_tests_name("tcp transfers", tests, NULL, NULL);
}
