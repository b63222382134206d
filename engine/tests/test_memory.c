/* SPDX-License-Identifier: Apache-2.0 */
/* Purpose: where the slots of an arena lie, side by side and scattered over a footprint. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/mman.h>
#include <unistd.h>

#include "base/message.h"
#include "job/memory_kind.h"
#include "memory/memory.h"

static long page_bytes;         /* of the host that the test plays; 0: this one's */

/* The linker puts them into the place of sysconf() (tests.mk). */
long __real_sysconf(int name);
long __wrap_sysconf(int name);

long __wrap_sysconf(int name) {
	return name == _SC_PAGESIZE && page_bytes ? page_bytes : __real_sysconf(name);
}

/* What madvise(2) was last asked, and how many pages of the range were there at that time. */
static int advice = -1;
static size_t pages_before;

int __real_madvise(void *p, size_t length, int wanted);
int __wrap_madvise(void *p, size_t length, int wanted);

static size_t pages_there(void *p, size_t length) {
	const size_t n = length / (size_t) __real_sysconf(_SC_PAGESIZE);
	unsigned char *there = calloc(n, 1);
	size_t sum = 0;

	assert_int_equal(mincore(p, length, there), 0);
	for (size_t i = 0; i < n; i++)
		sum += there[i] & 1;
	free(there);
	return sum;
}

int __wrap_madvise(void *p, size_t length, int wanted) {
	advice = wanted;
	pages_before = pages_there(p, length);
	return __real_madvise(p, length, wanted);
}

/* Each slot has memory of its own within both halves. */
static void are_apart(const struct arena *a) {
	uint8_t *taken = calloc(a->length / 2, 1);

	for (uint32_t slot = 0; slot < a->slots; slot++) {
		uint64_t at = arena_offset(a, slot);

		assert_true(at + a->slot_bytes <= a->length / 2);
		for (uint64_t k = 0; k < a->slot_bytes; k++)
			assert_int_equal(taken[at + k]++, 0);
	}
	free(taken);
}

static void test_slots_lie_side_by_side(void **state) {
	struct arena a;

	(void) state;
	assert_int_equal(arena_open(&a, 100, 12, NULL, true, NULL), 0);
	assert_int_equal(a.slots, 12);
	assert_int_equal(a.window, 12);
	are_apart(&a);
	arena_close(&a);
}

static void test_a_footprint_is_full_of_slots_in_a_scattered_order(void **state) {
	static const uint64_t sizes[] = { 1, 64, 1000, 4096 };
	static const uint32_t windows[] = { 1, 2, 12, 64 };
	struct arena a;

	(void) state;
	for (size_t i = 0; i < ELEMENTSOF(sizes); i++)
		for (size_t k = 0; k < ELEMENTSOF(windows); k++) {
			uint64_t far = 0;

			assert_int_equal(arena_open_scattered(&a, 3 << 20, sizes[i], windows[k], NULL, true, NULL), 0);
			assert_int_equal(a.length, 2 * (3 << 20));
			assert_int_equal(a.slots % windows[k], 0);
			assert_true((a.slots + windows[k]) * place_bytes(sizes[i]) > (3 << 20) / 2);
			are_apart(&a);
			for (uint32_t slot = 1; slot < a.slots; slot++)
				far += arena_offset(&a, slot) > arena_offset(&a, slot - 1) + 2 * a.stride ||
				       arena_offset(&a, slot) + 2 * a.stride < arena_offset(&a, slot - 1);
			assert_true(far * 2 > a.slots);
			arena_close(&a);
		}
}

/* Without verification messages may share memory; with it each of those under way has its own. */
static void test_a_footprint_with_fewer_places_than_a_window(void **state) {
	struct arena a;

	(void) state;
	assert_int_equal(arena_open_scattered(&a, 8 * 4096, 4096, 12, NULL, false, NULL), 0);
	assert_int_equal(a.slots, 12);
	for (uint32_t slot = 0; slot < a.slots; slot++)
		assert_true(arena_offset(&a, slot) + 4096 <= 8 * 4096);
	arena_close(&a);
	assert_int_equal(arena_open_scattered(&a, 8 * 4096, 4096, 12, NULL, true, NULL), -EINVAL);
	assert_int_equal(failure_code(), EXIT_USAGE);
	assert_non_null(strstr(failure_text(), "8 places of 4096 bytes, and 12 are needed"));
	failure_reset();
}

/* Two queue pairs never use the same byte; returns how many bytes each has at least. */
static uint64_t queues_are_apart(const struct arena *a, const struct queues *q) {
	uint8_t *taken = calloc(a->length / 2, 1); /* by which queue pair, from 1 on */
	uint64_t bytes[8] = { 0 }, least = UINT64_MAX;

	for (uint32_t slot = 0; slot < a->slots; slot++) {
		const uint64_t at = arena_offset(a, slot);
		const uint8_t queue = (uint8_t) (slot / q->run % q->n);

		assert_true(at + a->slot_bytes <= a->length / 2);
		for (uint64_t k = 0; k < a->slot_bytes; k++) {
			bytes[queue] += !taken[at + k];
			assert_true(!taken[at + k] || taken[at + k] == queue + 1);
			taken[at + k] = (uint8_t) (queue + 1);
		}
	}
	for (uint32_t i = 0; i < q->n; i++)
		least = MIN(least, bytes[i]);
	free(taken);
	return least;
}

/* As perftest's has: a page of messages, or one of them. A deep queue takes no more than half of a level 2 cache. */
static void test_each_queue_pair_has_a_buffer(void **state) {
	static const uint64_t sizes[] = { 64, 4096, 65536, 1 << 20 };
	struct arena a;

	(void) state;
	for (size_t i = 0; i < ELEMENTSOF(sizes); i++)
		for (uint32_t n = 1; n < 6; n++)
			for (uint32_t run = 1; run <= 32; run *= 4) {
				const struct queues q = { .n = n, .run = run };
				const uint64_t page = MAX(sizes[i], 4096u);

				assert_int_equal(arena_open(&a, sizes[i], 3 * 32 * n, &q, false, NULL), 0);
				assert_true(queues_are_apart(&a, &q) >= MIN(page, 64 * sizes[i]));
				assert_true(a.length / 2 <= MAX((uint64_t) 128 << 10, n * page));
				arena_close(&a);
			}
}

static void test_queue_pairs_share_a_footprint(void **state) {
	static const uint64_t footprints[] = { 5 * 4096, 200000, 3 << 20 };
	struct arena a;

	(void) state;
	for (size_t i = 0; i < ELEMENTSOF(footprints); i++)
		for (uint32_t n = 1; n < 6; n++)
			for (uint32_t run = 1; run <= 32; run *= 4) {
				const struct queues q = { .n = n, .run = run };

				assert_int_equal(arena_open_scattered(&a, footprints[i], 4096, 32 * n, &q, false,
								      NULL), 0);
				assert_true(queues_are_apart(&a, &q) * n * 2 + 4096 * n >= footprints[i] / 2);
				assert_int_equal(a.slots % (run * n), 0);
				arena_close(&a);
			}
}

/* What a GPU's payload is bounced through lies as the payload does, and takes nothing of it along. */
static void test_a_bounce_buffer_has_the_same_places(void **state) {
	const struct queues q = { .n = 3, .run = 2 };
	struct arena a, b;

	(void) state;
	assert_int_equal(arena_open(&a, 4096, 12, &q, false, NULL), 0);
	assert_int_equal(arena_open_bounce(&b, &a), 0);
	arena_close(&b);
	(void) queues_are_apart(&a, &q);
	arena_close(&a);
}

/* Backends compare the lengths of both ends, and hosts with pages of 4, 16 and 64 KiB measure together. */
static void test_a_length_is_the_same_on_hosts_with_other_pages(void **state) {
	static const struct memory_kind host = { .type = MEMORY_HOST };
	static const uint64_t sizes[] = { 1, 4096, 5000, 200000 };
	struct arena a;

	(void) state;
	for (size_t i = 0; i < ELEMENTSOF(sizes); i++) {
		size_t lengths[3] = { 0 };

		for (long page = 4096; page <= 65536; page *= 4) {
			page_bytes = page;
			for (size_t k = 0; k < ELEMENTSOF(lengths); k++) {
				assert_int_equal(k == 0 ? arena_open(&a, sizes[i], 3, NULL, true, NULL) :
						 k == 1 ? arena_open_scattered(&a, sizes[i] + 64, sizes[i], 3, NULL,
									       false, NULL) :
						 arena_open_flat(&a, sizes[i], 1, false, &host), 0);
				assert_int_equal((uintptr_t) a.tx % 4096, 0);
				assert_int_equal(a.length / 2 % (size_t) page, 0);
				if (page == 4096)
					lengths[k] = a.length;
				assert_int_equal(a.length, lengths[k]);
				arena_close(&a);
			}
		}
	}
	page_bytes = 0;
}

static bool all_is_there(const struct arena *a) {
	const struct region *r = &a->regions[0];

	return pages_there(r->base, r->length) == r->length / (size_t) sysconf(_SC_PAGESIZE);
}

/* Else a host that makes huge pages by itself has none of 4 KiB to compare --huge with. */
static void test_a_footprint_has_small_pages(void **state) {
	struct memory_kind kinds[2];
	struct arena a;
	struct job job;

	(void) state;
	job_defaults(&job);
	for (int i = 0; i < 4; i++) {
		const bool scattered = i < 2;

		job.footprint = i % 2 ? 4 << 20 : 0;
		kinds[0] = job_tx_memory(&job);
		kinds[1] = job_rx_memory(&job);
		advice = -1;
		assert_int_equal(scattered ? arena_open_scattered(&a, 4 << 20, 64, 1, NULL, false, kinds)
				 : arena_open_flat(&a, 4 << 20, 1, false, &kinds[0]), 0);
		assert_int_equal(advice, job.footprint ? MADV_NOHUGEPAGE : -1);
		assert_int_equal(pages_before, 0);
		assert_true(all_is_there(&a));
		arena_close(&a);
	}
	(void) copy_string(job.tx_memory, sizeof(job.tx_memory), "huge:2M");
	assert_false(job_tx_memory(&job).small);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_slots_lie_side_by_side),
		cmocka_unit_test(test_a_footprint_is_full_of_slots_in_a_scattered_order),
		cmocka_unit_test(test_a_footprint_with_fewer_places_than_a_window),
		cmocka_unit_test(test_each_queue_pair_has_a_buffer),
		cmocka_unit_test(test_queue_pairs_share_a_footprint),
		cmocka_unit_test(test_a_bounce_buffer_has_the_same_places),
		cmocka_unit_test(test_a_length_is_the_same_on_hosts_with_other_pages),
		cmocka_unit_test(test_a_footprint_has_small_pages),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
