/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of GPUs over test doubles of the makers' runtimes (doubles/fake_gpu.h). They stand where the real libraries
 * would be found, and abort where calls come out of order. None of this says anything about a GPU.
 */
#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "doubles.h"
#include "memory/gpu.h"
#include "memory/memory.h"
#include "memory/memory_room.h"
#include "base/message.h"

static const enum memory_type types[] = { MEMORY_CUDA, MEMORY_ROCM, MEMORY_ZE };
static int reset(void **state) {
	(void) state;
	doubles_reset();
	failure_reset();
	return 0;
}

static int open_both(struct arena *a, enum memory_type tx, enum memory_type rx) {
	const struct memory_kind kinds[2] = { { .type = tx }, { .type = rx } };

	failure_reset();
	return arena_open(a, 4096, 4, NULL, true, kinds);
}

static void assert_failed(int e, int error, enum exit_code code, const char *part) {
	assert_int_equal(e, error);
	assert_int_equal(failure_code(), code);
	if (!strstr(failure_text(), part))
		fail_msg("'%s' does not say '%s'", failure_text(), part);
}

/* A rate of 8 threads over 16 GiB each would otherwise lock 128 GiB of the host. */
static void test_a_flat_buffer_takes_memory_of_the_host_only_to_verify(void **state) {
	const uint64_t bytes = UINT64_C(2) << 20;       /* a page of a GPU */
	struct arena a;

	(void) state;
	for (size_t i = 0; i < ELEMENTSOF(types); i++) {
		const struct memory_kind gpu = { .type = types[i] };

		room_limit(bytes);
		assert_int_equal(arena_open_flat(&a, bytes, 1, false, &gpu), 0);
		assert_null(a.views[0].base);
		assert_null(a.view_tx);
		arena_close(&a);
		assert_failed(arena_open_flat(&a, bytes, 1, true, &gpu), -ENOMEM, EXIT_HOST, "--max-memory");
		failure_reset();
		room_limit(2 * bytes);
		assert_int_equal(arena_open_flat(&a, bytes, 1, true, &gpu), 0);
		memset(a.view_tx, 0x5a, 64);
		assert_int_equal(arena_push(&a, 0, 64), 0);
		arena_close(&a);
		room_limit(0);
	}
}

/* Runs in a process of its own; answers the signal that ended it, or the exit code. */
static int apart(void (*f)(void)) {
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		/* cmocka's, and the sanitizer's, handlers would go on with the test in here. */
		(void) signal(SIGSEGV, SIG_DFL);
		(void) signal(SIGABRT, SIG_DFL);
		f();
		exit(0);
	}
	assert_true(pid > 0 && waitpid(pid, &status, 0) == pid);
	return WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
}

static void test_names(void **state) {
	static const char *const wrong[] = { "", "gpu", "host:0", "huge", "huge:4K", "cuda:", "cuda:x", "cuda:-1",
					     "cuda:256", "cuda:0:0", "cuda:Near", "host:near",
					     "cuda:0000:3b:00", "cuda:3b:00.0", "cuda:0000:3b:00.0x", "huge:near",
					     "rocm:1K", "Host", "ze:1.5", "cuda0" };
	static const struct {
		const char *text, *shown;
	} right[] = { { "host", "host" }, { "huge:2M", "huge:2M" }, { "huge:1G", "huge:1G" }, { "cuda", "cuda:0" },
		      { "cuda:7", "cuda:7" }, { "rocm:0", "rocm:0" }, { "ze:255", "ze:255" },
		      { "cuda:near", "cuda:near" }, { "ze:0000:3B:00.0", "ze:0000:3b:00.0" } };
	struct memory_kind kind;
	char shown[JOB_MEMORY_TEXT];

	(void) state;
	for (size_t i = 0; i < ELEMENTSOF(right); i++) {
		assert_int_equal(memory_kind_parse(right[i].text, &kind), 0);
		memory_kind_format(&kind, shown);
		assert_string_equal(shown, right[i].shown);
	}
	for (size_t i = 0; i < ELEMENTSOF(wrong); i++)
		if (memory_kind_parse(wrong[i], &kind) != -EINVAL)
			fail_msg("'%s' is taken for memory", wrong[i]);
}

/* What the host writes into a view comes back through the GPU, and through nothing else. */
static void test_copies(void **state) {
	(void) state;
	for (size_t i = 0; i < ELEMENTSOF(types); i++) {
		struct arena a;

		assert_int_equal(open_both(&a, types[i], types[i]), 0);
		assert_int_equal(a.n_regions, 1);
		assert_ptr_not_equal(a.view_rx, a.rx);
		assert_true(gpu_is_simulated(a.regions[0].gpu));
		memset(arena_rx_view(&a, 3), 0x5a, 4096);
		assert_int_equal(arena_push_rx(&a, 3, 4096), 0);
		memset(arena_rx_view(&a, 3), 0, 4096);
		assert_int_equal(arena_pull_rx(&a, 3, 4096), 0);
		for (size_t k = 0; k < 4096; k++)
			assert_int_equal(arena_rx_view(&a, 3)[k], 0x5a);
		arena_close(&a);
	}
}

/* The doubles hand out memory full of another program's bytes. */
static void test_fresh_memory_is_clear(void **state) {
	(void) state;
	for (size_t i = 0; i < ELEMENTSOF(types); i++) {
		struct arena a;

		assert_int_equal(open_both(&a, types[i], types[i]), 0);
		assert_int_equal(arena_pull_rx(&a, 1, 4096), 0);
		for (size_t k = 0; k < 4096; k++)
			assert_int_equal(arena_rx_view(&a, 1)[k], 0);
		arena_close(&a);
	}
}

static void test_halves_of_two_kinds(void **state) {
	struct arena a, b;

	(void) state;
	assert_int_equal(open_both(&a, MEMORY_HOST, MEMORY_CUDA), 0);
	assert_int_equal(a.n_regions, 2);
	assert_null(arena_tx_region(&a)->gpu);
	assert_non_null(arena_rx_region(&a)->gpu);
	assert_ptr_equal(arena_tx_view(&a, 1), arena_tx(&a, 1));

	/* A bounce shares what is host memory already, and has its own for the rest. */
	assert_int_equal(arena_open_bounce(&b, &a), 0);
	assert_ptr_equal(arena_tx(&b, 2), arena_tx(&a, 2));
	assert_ptr_not_equal(arena_rx(&b, 2), arena_rx(&a, 2));
	assert_null(arena_rx_region(&b)->gpu);
	memset(arena_rx(&b, 2), 1, 4096);
	arena_close(&b);
	memset(arena_tx(&a, 2), 1, 4096);
	arena_close(&a);
}

static void test_two_runtimes_at_once(void **state) {
	struct arena a;
	char name[160];

	(void) state;
	assert_int_equal(open_both(&a, MEMORY_ROCM, MEMORY_ZE), 0);
	arena_gpu_name(&a, name, sizeof(name));
	assert_string_equal(name, "sim_rocm0, sim_ze0");
	arena_close(&a);
}

static void *copy_out(void *arena) {
	return arena_pull_rx(arena, 1, 4096) == 0 ? arena : NULL;
}

/* As a transfer's workers do: a context is current in one thread only, and the double ends who forgets that. */
static void test_copies_in_another_thread(void **state) {
	(void) state;
	for (size_t i = 0; i < ELEMENTSOF(types); i++) {
		struct arena a;
		pthread_t thread;
		void *copied = NULL;

		assert_int_equal(open_both(&a, types[i], types[i]), 0);
		assert_int_equal(pthread_create(&thread, NULL, copy_out, &a), 0);
		assert_int_equal(pthread_join(thread, &copied), 0);
		assert_ptr_equal(copied, &a);
		arena_close(&a);
	}
}

static void test_second_gpu(void **state) {
	(void) state;
	for (size_t i = 0; i < ELEMENTSOF(types); i++) {
		const struct memory_kind kind = { .type = types[i], .ordinal = 1 };
		struct gpu *g;

		assert_int_equal(gpu_open(&kind, &g), 0);
		assert_int_equal(g->name[strlen(g->name) - 1], '1');
		/* Level Zero's second driver has the GPUs. */
		assert_int_equal(g->fabric_device, types[i] == MEMORY_ZE ? 1u << 16 | 1 : 1);
		assert_null(gpu_close(g));
	}
}

static void test_no_such_gpu(void **state) {
	(void) state;
	for (size_t i = 0; i < ELEMENTSOF(types); i++) {
		const struct memory_kind kind = { .type = types[i], .ordinal = 2 };
		struct gpu *g = NULL;

		failure_reset();
		assert_failed(gpu_open(&kind, &g), -ENODEV, EXIT_HOST, "sees 2 GPUs");
		(void) setenv("PERCH_FAKE_GPU_COUNT", "0", 1);
		failure_reset();
		assert_failed(gpu_open(&kind, &g), -ENODEV, EXIT_HOST,
			      types[i] == MEMORY_CUDA ? "/dev/nvidia0" : "/dev/dri/renderD");
		assert_null(g);
		(void) reset(NULL);
	}
}

static void test_out_of_memory(void **state) {
	(void) state;
	(void) setenv("PERCH_FAKE_GPU_MEMORY", "4096", 1);
	for (size_t i = 0; i < ELEMENTSOF(types); i++) {
		struct arena a = { .length = 1 };

		assert_failed(open_both(&a, types[i], types[i]), -ENOMEM, EXIT_HOST, "cannot get 2 MiB");
		assert_int_equal(a.length, 1);
		/* The second half fails: the first is given back (the double sees it). */
		assert_failed(open_both(&a, MEMORY_HOST, types[i]), -ENOMEM, EXIT_HOST, "memory");
	}
}

static void test_a_copy_fails(void **state) {
	(void) state;
	for (size_t i = 0; i < ELEMENTSOF(types); i++) {
		struct arena a;

		assert_int_equal(open_both(&a, types[i], types[i]), 0);
		(void) setenv("PERCH_FAKE_GPU_COPY_FAIL", "1", 1);
		assert_failed(arena_push_tx(&a, 0, 8), -EIO, EXIT_INTERNAL, "copying 8 bytes into its memory failed");
		failure_reset();
		assert_failed(arena_pull_rx(&a, 0, 8), -EIO, EXIT_INTERNAL, "copying 8 bytes out of its memory failed");
		arena_close(&a);
		(void) reset(NULL);
	}
}

static void test_export(void **state) {
	(void) state;
	for (size_t i = 0; i < ELEMENTSOF(types); i++) {
		uint64_t offset = 1;
		const struct region *r;
		uint8_t *seen;
		struct arena a;
		int fd = -1;

		assert_int_equal(open_both(&a, types[i], types[i]), 0);
		r = arena_tx_region(&a);
		memset(arena_tx_view(&a, 2), 0x77, 4096);
		assert_int_equal(arena_push_tx(&a, 2, 4096), 0);
		assert_int_equal(r->gpu->runtime->export(r->gpu, r->base, r->length, GPU_MAPPING_DEFAULT, &fd,
						       &offset), 0);
		seen = mmap(NULL, r->length, PROT_READ, MAP_SHARED, fd, (off_t) offset);
		assert_ptr_not_equal(seen, MAP_FAILED);
		assert_int_equal(seen[arena_offset(&a, 2)], 0x77);
		(void) munmap(seen, r->length);
		(void) close(fd);
		arena_close(&a);

		(void) setenv("PERCH_FAKE_GPU_DMABUF", "0", 1);
		assert_int_equal(open_both(&a, types[i], types[i]), 0);
		r = arena_tx_region(&a);
		assert_int_equal(r->gpu->runtime->export(r->gpu, r->base, r->length, GPU_MAPPING_DEFAULT, &fd,
						       &offset), -EOPNOTSUPP);
		arena_close(&a);
		(void) reset(NULL);
	}
}

static void touch(void) {
	struct arena a;

	if (open_both(&a, MEMORY_CUDA, MEMORY_CUDA) == 0)
		*a.tx = 1;
}

static void free_twice(void) {
	const struct memory_kind kind = { .type = MEMORY_CUDA };
	struct gpu *g;
	void *p;

	if (gpu_open(&kind, &g) < 0 || g->runtime->alloc(g, 4096, &p) < 0)
		return;
	g->runtime->free(g, p);
	g->runtime->free(g, p);
}

static void close_too_early(void) {
	const struct memory_kind kind = { .type = MEMORY_ZE };
	struct gpu *g;
	void *p;

	if (gpu_open(&kind, &g) == 0 && g->runtime->alloc(g, 4096, &p) == 0)
		(void) gpu_close(g);
}

static void copy_beyond(void) {
	static uint8_t bytes[8192];
	const struct memory_kind kind = { .type = MEMORY_ROCM };
	struct gpu *g;
	void *p;

	if (gpu_open(&kind, &g) == 0 && g->runtime->alloc(g, 4096, &p) == 0)
		(void) g->runtime->copy(g, p, bytes, sizeof(bytes), GPU_COPY_IN);
}

static void forget(void) {
	struct arena a;

	(void) open_both(&a, MEMORY_CUDA, MEMORY_HOST);
}

/* The doubles themselves: what they are for, they see. */
static void test_doubles_see_violations(void **state) {
	(void) state;
	assert_int_equal(apart(touch), SIGSEGV);
	assert_int_equal(apart(free_twice), SIGABRT);
	assert_int_equal(apart(close_too_early), SIGABRT);
	assert_int_equal(apart(copy_beyond), SIGABRT);
	assert_int_not_equal(apart(forget), 0); /* a sanitizer says so first */
}

static char root[] = "/tmp/perch-gpu-XXXXXX";

static void put_file(const char *path, const char *text) {
	char full[PATH_MAX], *slash;
	FILE *f;

	(void) snprintf(full, sizeof(full), "%s/%s", root, path);
	for (slash = strchr(full + strlen(root) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		(void) mkdir(full, 0700);
		*slash = '/';
	}
	f = fopen(full, "we");
	assert_non_null(f);
	(void) fputs(text, f);
	(void) fclose(f);
}

static void remove_file(const char *path) {
	char full[PATH_MAX];

	(void) snprintf(full, sizeof(full), "%s/%s", root, path);
	(void) unlink(full);
}

static int found(const char *type, const char *number, char ret[JOB_MEMORY_TEXT]) {
	char dev[PATH_MAX], sys[PATH_MAX];

	(void) snprintf(dev, sizeof(dev), "%s/dev", root);
	(void) snprintf(sys, sizeof(sys), "%s/sys", root);
	failure_reset();
	return gpu_memory_kind_in(dev, sys, type, number, ret);
}

static void test_detection(void **state) {
	char kind[JOB_MEMORY_TEXT];

	(void) state;
	assert_failed(found(NULL, "0", kind), -ENODEV, EXIT_HOST, "no GPU on this host");
	/* A network card's or another maker's display is none of Intel's GPUs. */
	put_file("dev/dri/renderD128", "");
	put_file("sys/class/drm/renderD128/device/vendor", "0x1002\n");
	assert_int_equal(found(NULL, "0", kind), -ENODEV);
	put_file("sys/class/drm/renderD128/device/vendor", "0x8086\n");
	assert_int_equal(found(NULL, "3", kind), 0);
	assert_string_equal(kind, "ze:3");
	put_file("dev/nvidiactl", "");
	assert_int_equal(found(NULL, "3", kind), 0); /* no GPU by itself */
	put_file("dev/nvidia0", "");
	assert_failed(found(NULL, "0", kind), -ENOTUNIQ, EXIT_HOST, "NVIDIA and of INTEL");
	remove_file("dev/dri/renderD128");
	assert_int_equal(found(NULL, "1", kind), 0);
	assert_string_equal(kind, "cuda:1");
	remove_file("dev/nvidia0");
	put_file("dev/kfd", "");
	assert_int_equal(found(NULL, "0", kind), 0);
	assert_string_equal(kind, "rocm:0");
	/* Named, nothing is looked for. */
	assert_int_equal(found("nvidia", "2", kind), 0);
	assert_string_equal(kind, "cuda:2");
	assert_int_equal(found("INTEL", "0", kind), 0);
	assert_string_equal(kind, "ze:0");
	assert_int_equal(found("VOODOO", "0", kind), -EINVAL);
	assert_int_equal(found("AMD", "x", kind), -EINVAL);
	assert_int_equal(found("AMD", "near", kind), -EINVAL);
	assert_int_equal(found("AMD", "0,1", kind), -EINVAL);
	assert_int_equal(found(NULL, "", kind), -EINVAL);
}

static int clean(void **state) {
	static const char *const files[] = { "dev/kfd", "dev/nvidia0", "dev/nvidiactl", "dev/dri/renderD128", "dev/dri",
					     "dev", "sys/class/drm/renderD128/device/vendor",
					     "sys/class/drm/renderD128/device", "sys/class/drm/renderD128",
					     "sys/class/drm", "sys/class", "sys", "" };
	char full[PATH_MAX];

	(void) state;
	for (size_t i = 0; i < ELEMENTSOF(files); i++) {
		(void) snprintf(full, sizeof(full), "%s/%s", root, files[i]);
		(void) remove(full);
	}
	return 0;
}

int main(int argc, char **argv) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_names, reset),
		cmocka_unit_test_setup(test_copies, reset),
		cmocka_unit_test_setup(test_fresh_memory_is_clear, reset),
		cmocka_unit_test_setup(test_halves_of_two_kinds, reset),
		cmocka_unit_test_setup(test_a_flat_buffer_takes_memory_of_the_host_only_to_verify, reset),
		cmocka_unit_test_setup(test_two_runtimes_at_once, reset),
		cmocka_unit_test_setup(test_copies_in_another_thread, reset),
		cmocka_unit_test_setup(test_second_gpu, reset),
		cmocka_unit_test_setup(test_no_such_gpu, reset),
		cmocka_unit_test_setup_teardown(test_out_of_memory, reset, reset),
		cmocka_unit_test_setup(test_a_copy_fails, reset),
		cmocka_unit_test_setup(test_export, reset),
		cmocka_unit_test_setup(test_doubles_see_violations, reset),
		cmocka_unit_test_setup_teardown(test_detection, reset, clean),
	};

	(void) argc;
	doubles_find(argv);
	if (!mkdtemp(root))
		abort();
	return cmocka_run_group_tests_name("memory of GPUs, on test doubles that prove nothing about GPUs", tests, NULL,
					   NULL);
}
