/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A GPU's memory under the verbs backend: which registration is tried, and what is given up for it.
 * The devices and the GPU's runtime are doubles in this process (fake_verbs.h, doubles/fake_gpu.h):
 * they prove the order of calls, and nothing about GPUs or networks.
 */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "doubles.h"
#include "verbs_pair.h"

static int reset(void **state) {
	(void) state;
	doubles_reset();
	/* The fake device works on addresses: it stands for one that reaches the GPU. */
	(void) setenv("PERCH_FAKE_GPU_VISIBLE", "1", 1);
	verbs_pair_devices();
	return 0;
}

/* verbs_pair_open() has the arena's kinds from here. */
static struct job gpu_job(enum op op, const char *tx, const char *rx) {
	struct job job = verbs_job(op);

	(void) copy_string(job.tx_memory, sizeof(job.tx_memory), tx);
	(void) copy_string(job.rx_memory, sizeof(job.rx_memory), rx);
	return job;
}

static void assert_said(const char *part) {
	if (!strstr(failure_text(), part))
		fail_msg("'%s' does not say '%s'", failure_text(), part);
}

static struct verbs_session *session_of(const struct verbs_pair *p, enum role role) {
	return verbs_session(p->ends[role].session);
}

/* One message from client to server, from one GPU's memory into the other's. */
static void carry(struct verbs_pair *p, enum op op, uint32_t slot) {
	const struct work w = { .op = op, .slot = slot, .size = 64, .flush = true };
	struct completion c[4];
	struct arena *from = &p->ends[ROLE_CLIENT].arena, *to = &p->ends[ROLE_SERVER].arena;

	if (op == OP_READ) {
		from = &p->ends[ROLE_SERVER].arena;
		to = &p->ends[ROLE_CLIENT].arena;
	} else if (op_takes_receive(op))
		assert_int_equal(p->backend->post_receive(p->ends[ROLE_SERVER].session, slot, 64), 0);
	memset(arena_tx_view(from, slot), 0x42, 64);
	assert_int_equal(arena_push_tx(from, slot, 64), 0);
	assert_true(p->backend->post(p->ends[ROLE_CLIENT].session, &w) >= 0);
	assert_int_equal(p->backend->poll(p->ends[ROLE_CLIENT].session, c, 4), 1);
	if (op_takes_receive(op)) {
		assert_int_equal(p->backend->poll(p->ends[ROLE_SERVER].session, c, 4), 1);
		assert_int_equal(c[0].kind, COMPLETION_RECEIVE);
	}
	assert_int_equal(arena_pull_rx(to, slot, 64), 0);
	for (size_t i = 0; i < 64; i++)
		assert_int_equal(arena_rx_view(to, slot)[i], 0x42);
}

static void test_dmabuf(void **state) {
	static const enum op ops[] = { OP_SEND, OP_WRITE, OP_WRITE_IMM, OP_READ };
	static const char *const gpus[] = { "cuda:0", "rocm:1", "ze:0" };
	struct verbs_pair p;

	(void) state;
	for (size_t g = 0; g < ELEMENTSOF(gpus); g++)
		for (size_t i = 0; i < ELEMENTSOF(ops); i++) {
			struct job job = gpu_job(ops[i], gpus[g], gpus[g]);

			(void) reset(NULL);
			assert_int_equal(verbs_pair_open(&p, &job), 0);
			assert_string_equal(p.ends[ROLE_CLIENT].session->gpu_path, "dmabuf");
			assert_int_equal(fake.calls[FAKE_REG_DMABUF_MR], 2);
			assert_int_equal(fake.calls[FAKE_REG_MR], 0);
			carry(&p, ops[i], ops[i] == OP_WRITE_IMM ? 0 : 3); /* immediate data names slots in turn */
			verbs_pair_close(&p);
			assert_int_equal(fake.live, 0);
			assert_int_equal(fake.violations, 0);
		}
}

/* Each half where it belongs, registered apart. */
static void test_one_half_each(void **state) {
	static const enum op ops[] = { OP_SEND, OP_WRITE, OP_READ };
	struct verbs_pair p;

	(void) state;
	for (size_t i = 0; i < 2 * ELEMENTSOF(ops); i++) {
		struct job job = gpu_job(ops[i / 2], i % 2 ? "host" : "cuda:0", i % 2 ? "cuda:1" : "host");

		(void) reset(NULL);
		assert_int_equal(verbs_pair_open(&p, &job), 0);
		assert_int_equal(fake.calls[FAKE_REG_DMABUF_MR], 2);
		assert_int_equal(fake.calls[FAKE_REG_MR], 2);
		carry(&p, ops[i / 2], 1);
		verbs_pair_close(&p);
		assert_int_equal(fake.live, 0);
		assert_int_equal(fake.violations, 0);
	}
}

static void test_peer_memory_comes_second(void **state) {
	struct job job = gpu_job(OP_SEND, "cuda:0", "cuda:0");
	struct verbs_pair p;

	(void) state;
	/* The runtime exports nothing; or the kernel, or the device, takes no dmabuf. */
	for (int i = 0; i < 2; i++) {
		(void) reset(NULL);
		if (i == 0)
			(void) setenv("PERCH_FAKE_GPU_DMABUF", "0", 1);
		else
			fake_fail(FAKE_REG_DMABUF_MR, EOPNOTSUPP, 0);
		assert_int_equal(verbs_pair_open(&p, &job), 0);
		assert_string_equal(p.ends[ROLE_SERVER].session->gpu_path, "peer_memory");
		carry(&p, OP_SEND, 0);
		verbs_pair_close(&p);
		assert_int_equal(fake.live, 0);
	}
}

static void opens_by(const char *path, unsigned dmabufs) {
	struct job job = gpu_job(OP_WRITE, "cuda:0", "cuda:0");
	struct verbs_pair p;

	assert_int_equal(verbs_pair_open(&p, &job), 0);
	for (int role = ROLE_CLIENT; role <= ROLE_SERVER; role++)
		assert_string_equal(p.ends[role].session->gpu_path, path);
	assert_int_equal(fake.calls[FAKE_REG_DMABUF_MR], dmabufs);
	carry(&p, OP_WRITE, 3);
	verbs_pair_close(&p);
	assert_int_equal(fake.live, 0);
}

/* The first way that works is taken: the kernel may refuse one that the library has. */
static void test_the_way_over_pcie_comes_first(void **state) {
	void *library;

	(void) state;
	(void) setenv("PERCH_FAKE_GPU_PCIE", "1", 1);
	/* No libmlx5 is in use: nobody loads one. */
	opens_by("dmabuf_pcie", 2);
	library = dlopen("libmlx5.so.1", RTLD_NOW);
	assert_non_null(library);
	(void) reset(NULL);
	(void) setenv("PERCH_FAKE_GPU_PCIE", "1", 1);
	opens_by("data_direct", 2);
	(void) setenv("PERCH_FAKE_MLX5", "no", 1);
	(void) reset(NULL);
	(void) setenv("PERCH_FAKE_GPU_PCIE", "1", 1);
	opens_by("dmabuf_pcie", 2);
	(void) setenv("PERCH_FAKE_MLX5", "refuse", 1);
	(void) reset(NULL);
	(void) setenv("PERCH_FAKE_GPU_PCIE", "1", 1);
	opens_by("dmabuf_pcie", 2);
	(void) unsetenv("PERCH_FAKE_MLX5");
	/* An older driver of the GPU: data direct has no memory to reach. */
	(void) reset(NULL);
	opens_by("dmabuf", 2);
	(void) dlclose(library);
}

static void test_a_gpu_takes_relaxed_ordering(void **state) {
	struct job job = gpu_job(OP_WRITE_IMM, "cuda:0", "cuda:0");
	struct verbs_pair p;

	(void) state;
	job.kind = KIND_LATENCY;
	job.outstanding = 1;
	assert_int_equal(verbs_pair_open(&p, &job), 0);
	assert_true(fake.access & IBV_ACCESS_RELAXED_ORDERING);
	verbs_pair_close(&p);
	(void) reset(NULL);
	job.verbs.relaxed_ordering = RELAXED_ORDERING_OFF;
	assert_int_equal(verbs_pair_open(&p, &job), 0);
	assert_false(fake.access & IBV_ACCESS_RELAXED_ORDERING);
	verbs_pair_close(&p);
	(void) reset(NULL);
	job = verbs_job(OP_WRITE_IMM);
	job.kind = KIND_LATENCY;
	job.outstanding = 1;
	assert_int_equal(verbs_pair_open(&p, &job), 0);
	assert_false(fake.access & IBV_ACCESS_RELAXED_ORDERING);
	verbs_pair_close(&p);
}

static void test_neither(void **state) {
	struct job job = gpu_job(OP_SEND, "cuda:0", "cuda:0");
	struct verbs_pair p;

	(void) state;
	fake_fail(FAKE_REG_DMABUF_MR, EOPNOTSUPP, 0);
	fake_fail(FAKE_REG_MR, EFAULT, 0);
	assert_true(verbs_pair_open(&p, &job) < 0);
	assert_int_equal(failure_code(), EXIT_HOST);
	assert_said("neither as a dmabuf (Operation not supported) nor by its address (Bad address)");
	assert_said("nvidia-peermem");
	assert_said("; --bounce copies");
	verbs_pair_close(&p);
	assert_int_equal(fake.live, 0);
	/* No process would make the copy. */
	(void) reset(NULL);
	fake_fail(FAKE_REG_DMABUF_MR, EOPNOTSUPP, 0);
	fake_fail(FAKE_REG_MR, EFAULT, 0);
	job.op = OP_WRITE;
	assert_true(verbs_pair_open(&p, &job) < 0);
	assert_said("nvidia-peermem");
	assert_null(strstr(failure_text(), "--bounce"));
	verbs_pair_close(&p);
}

/* The host can neither copy such payload into a work request, nor poll for its last byte. */
static void test_no_inline_and_no_stamps(void **state) {
	struct job job = gpu_job(OP_WRITE, "cuda:0", "cuda:0");
	struct verbs_pair p;

	(void) state;
	job.kind = KIND_LATENCY;
	job.outstanding = 1;
	assert_int_equal(verbs_pair_open(&p, &job), 0);
	assert_int_equal(session_of(&p, ROLE_CLIENT)->inline_bytes, 0);
	assert_false(p.ends[ROLE_CLIENT].session->can_notify);
	assert_non_null(strstr(p.ends[ROLE_CLIENT].session->no_notify, "cannot poll a GPU's memory"));
	verbs_pair_close(&p);

	/* Received into a GPU, sent from the host: the host's payload may be inlined. */
	job = gpu_job(OP_SEND, "host", "cuda:0");
	job.kind = KIND_LATENCY;
	job.outstanding = 1;
	assert_int_equal(verbs_pair_open(&p, &job), 0);
	assert_true(session_of(&p, ROLE_CLIENT)->inline_bytes > 0);
	verbs_pair_close(&p);
}

int main(int argc, char **argv) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_dmabuf, reset),
		cmocka_unit_test_setup(test_one_half_each, reset),
		cmocka_unit_test_setup(test_peer_memory_comes_second, reset),
		cmocka_unit_test_setup(test_the_way_over_pcie_comes_first, reset),
		cmocka_unit_test_setup(test_a_gpu_takes_relaxed_ordering, reset),
		cmocka_unit_test_setup(test_neither, reset),
		cmocka_unit_test_setup(test_no_inline_and_no_stamps, reset),
	};

	(void) argc;
	doubles_find(argv);
	return cmocka_run_group_tests_name("verbs with memory of GPUs, all of it doubles", tests, NULL, NULL);
}
