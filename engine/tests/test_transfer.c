/* SPDX-License-Identifier: Apache-2.0 */
/* How batches are laid out, cut and shared out: every byte of every transfer is in exactly one piece. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/exit_codes.h"
#include "job/job.h"
#include "job/memory_kind.h"
#include "base/message.h"
#include "measure/transfer.h"

static struct job a_job(void) {
	struct job job;

	job_defaults(&job);
	job.kind = KIND_TRANSFER;
	job.op = OP_WRITE;
	(void) copy_string(job.backend, sizeof(job.backend), "ofi");
	job.sizes[0] = 1000;
	job.n_sizes = 1;
	job.iterations = 1;
	job.outstanding = 8;
	job.timeout_ns = NSEC_PER_SEC;
	job_complete_lanes(&job);
	return job;
}

static struct shape shape(struct job *job, uint64_t size, uint32_t batch, uint64_t chunk, uint32_t max,
			  uint64_t stride) {
	struct shape s;

	job->chunk_bytes = chunk;
	job->max_chunks = max;
	job->stride_bytes = stride;
	shape_of(job, size, batch, &s);
	return s;
}

/* Each byte is covered once, in order, and no piece leaves its transfer. */
static void covers(const struct shape *s) {
	uint32_t piece = 0;

	for (uint32_t t = 0; t < s->batch; t++) {
		uint64_t at = t * s->places.stride;

		for (uint32_t c = 0; c < s->chunks; c++, piece++) {
			assert_int_equal(shape_piece_offset(s, piece), at);
			assert_in_range(shape_piece_size(s, piece), 1, s->chunk);
			at += shape_piece_size(s, piece);
		}
		assert_int_equal(at, t * s->places.stride + s->size);
	}
	assert_int_equal(piece, shape_pieces(s));
	assert_int_equal(shape_span(s), (s->batch - 1) * s->places.stride + s->size);
}

static void test_every_byte_of_a_batch_is_in_one_piece(void **state) {
	static const uint64_t sizes[] = { 1, 2, 999, 1000, 4096, 65537 }, chunks[] = { 0, 1, 7, 1000, 4096, 1 << 20 };
	static const uint32_t most[] = { 1, 2, 3, 1024 }, batches[] = { 1, 2, 5 };
	struct job job = a_job();

	(void) state;
	for (size_t i = 0; i < ELEMENTSOF(sizes); i++)
		for (size_t k = 0; k < ELEMENTSOF(chunks); k++)
			for (size_t m = 0; m < ELEMENTSOF(most); m++)
				for (size_t b = 0; b < ELEMENTSOF(batches); b++) {
					struct shape s = shape(&job, sizes[i], batches[b], chunks[k], most[m], 0);

					covers(&s);
					assert_true(s.chunks <= most[m] || chunks[k] == 0);
					s = shape(&job, sizes[i], batches[b], chunks[k], most[m], sizes[i] + 13);
					covers(&s);
				}
}

static void test_pieces_are_as_asked_or_larger_where_there_would_be_too_many(void **state) {
	struct job job = a_job();
	struct shape s;

	(void) state;
	s = shape(&job, 100000, 1, 7168, 1024, 0);
	assert_int_equal(s.chunk, 7168);
	assert_int_equal(s.chunks, 14);
	s = shape(&job, 1 << 20, 1, 4096, 8, 0);
	assert_int_equal(s.chunk, 131072);
	assert_int_equal(s.chunks, 8);
	s = shape(&job, 100, 3, 4096, 8, 0);
	assert_int_equal(s.chunk, 100);
	assert_int_equal(s.chunks, 1);
}

static void test_the_buffer_is_what_the_largest_batch_takes(void **state) {
	struct job job = a_job();

	(void) state;
	job.sizes[1] = 5000;
	job.n_sizes = 2;
	job.batches[1] = 10;
	job.n_batches = 2;
	assert_int_equal(job_buffer(&job), 50000);
	job.stride_bytes = 8192;
	assert_int_equal(job_buffer(&job), 9 * 8192 + 5000);
	job.chunk_bytes = 1000;
	assert_int_equal(job_most_pieces(&job), 50);
	job.buffer_bytes = 1 << 20;
	assert_int_equal(job_buffer(&job), 1 << 20);
}

static struct job a_rate(uint64_t footprint, uint32_t queue_pairs, uint64_t size) {
	struct job job = a_job();

	job.kind = KIND_RATE;
	job.footprint = footprint;
	job.queue_pairs = queue_pairs;
	job.sizes[0] = size;
	return job;
}

/* Every place of every queue pair is within the buffer, begins a cache line, and is its own. */
static void are_apart(const struct job *job) {
	const uint64_t size = job->sizes[0], buffer = job_buffer(job);
	uint64_t far = 0, n = 0;
	struct places p;
	uint8_t *taken;

	job_rate_places(job, &p);
	taken = calloc(buffer / 64 + 1, 1);
	for (uint32_t q = 0; q < job->queue_pairs; q++)
		for (uint32_t i = 0; i < p.n; i++, n++) {
			uint64_t at = place_offset(&p, q, i), next = place_offset(&p, q, (i + 1) % p.n);

			assert_true(at % 64 == 0 && at + size <= buffer);
			for (uint64_t line = at / 64; line <= (at + size - 1) / 64; line++)
				assert_int_equal(taken[line]++, 0);
			far += MAX(at, next) - MIN(at, next) > 4 * p.stride;
		}
	free(taken);
	assert_true(n <= JOB_PIECES_MAX);
	assert_true(p.n < 32 || far > n / 2);
	/* whole cache lines from one to the next, of which far ones may be one fewer */
	assert_true(2 * p.stride * p.n * job->queue_pairs > buffer - 64 * job->queue_pairs);
	assert_true(p.stride < 64 * 31 || (p.stride + 128) * p.n * job->queue_pairs > buffer - 64 * job->queue_pairs);
}

static void test_a_footprint_is_used_in_a_scattered_order(void **state) {
	static const uint64_t footprints[] = { 1 << 16, 1000000, 3 << 20, UINT64_C(64) << 20 };
	static const uint64_t sizes[] = { 8, 64, 100, 4096, 6000 };

	(void) state;
	for (size_t i = 0; i < ELEMENTSOF(footprints); i++)
		for (size_t k = 0; k < ELEMENTSOF(sizes); k++)
			for (uint32_t queue_pairs = 1; queue_pairs < 8; queue_pairs += 3) {
				struct job job = a_rate(footprints[i], queue_pairs, sizes[k]);

				assert_int_equal(job_validate(&job), 0);
				assert_int_equal(job_buffer(&job), footprints[i]);
				are_apart(&job);
			}
}

/* Each batch of a turn has places of its own, within the buffer; the next turn has the same ones. */
static void test_transfers_are_scattered_over_a_footprint(void **state) {
	struct job job = a_job();
	uint8_t taken[1 << 20] = { 0 };
	uint64_t last = 0, far = 0;
	struct shape s;

	(void) state;
	job.footprint = sizeof(taken);
	job.chunk_bytes = 1000;
	job.sizes[0] = 4000;
	job.batches[0] = 48;
	assert_int_equal(job_validate(&job), 0);
	assert_int_equal(job_buffer(&job), job.footprint);
	shape_of(&job, 4000, 48, &s);
	assert_int_equal(s.turns, 256 / 48);
	assert_int_equal(job_most_pieces(&job), s.turns * 48 * 4);
	for (uint32_t piece = 0; piece < shape_all_pieces(&s); piece++) {
		uint64_t at = shape_piece_offset(&s, piece);

		for (uint64_t k = 0; k < shape_piece_size(&s, piece); k++)
			assert_int_equal(taken[at + k]++, 0);
		far += at > last + 8192 || at + 8192 < last;
		last = at;
	}
	assert_true(far > shape_all_pieces(&s) / 5);
	assert_int_equal(shape_place(&s, s.turns * UINT64_C(48)), 0);
	assert_int_equal(shape_place(&s, s.turns * UINT64_C(48) + 50), 50);
}

static void test_a_footprint_holds_a_batch(void **state) {
	struct job least = a_job(), less = a_job(), none = a_job(), both = a_job();

	(void) state;
	least.sizes[0] = less.sizes[0] = none.sizes[0] = both.sizes[0] = 64;
	least.batches[0] = less.batches[0] = both.batches[0] = 33;
	none.batches[0] = 1;
	least.footprint = both.footprint = 4096; /* of a power of two many places */
	less.footprint = 4095;
	none.footprint = 63;
	both.stride_bytes = 64;
	assert_int_equal(job_validate(&least), 0);
	assert_int_equal(job_validate(&less), -EINVAL);
	assert_non_null(strstr(failure_text(), "--footprint 4095 has no places for a --batch of 33"));
	failure_reset();
	assert_int_equal(job_validate(&none), -EINVAL);
	failure_reset();
	assert_int_equal(job_validate(&both), -EINVAL);
	assert_non_null(strstr(failure_text(), "leave --buffer and --stride out"));
	failure_reset();
}

static void test_a_footprint_holds_a_message_of_each_queue_pair(void **state) {
	struct job least = a_rate(4 * 64, 4, 50), less = a_rate(4 * 64 - 1, 4, 50);
	struct job most = a_rate(UINT64_C(1) << 40, 1, 8), more = a_rate((UINT64_C(1) << 40) + 1, 1, 8);

	(void) state;
	assert_int_equal(job_validate(&least), 0);
	assert_int_equal(job_validate(&less), -EINVAL);
	assert_non_null(strstr(failure_text(), "--footprint 255: at least 256 bytes"));
	failure_reset();
	assert_int_equal(job_validate(&most), 0);
	assert_int_equal(job_validate(&more), -EINVAL);
	failure_reset();
}

static void test_lanes_have_the_devices_of_their_pair(void **state) {
	struct job job = a_job(), lane;

	(void) state;
	(void) copy_string(job.devices, sizeof(job.devices), "a,b,c,d");
	(void) copy_string(job.server_devices, sizeof(job.server_devices), "w,x,y,z");
	job.cross_rail = 3;
	job.threads = 8;
	assert_int_equal(job_pairs(&job), 4);
	assert_int_equal(job_lanes(&job), 8);
	job_for_lane(&job, 0, &lane);
	assert_string_equal(lane.device, "a");
	assert_string_equal(lane.server_device, "z");
	job_for_lane(&job, 6, &lane);
	assert_string_equal(lane.device, "c");
	assert_string_equal(lane.server_device, "x");
	job.threads = 2;
	assert_int_equal(job_lanes(&job), 4);
}

/* Each pair has the next GPU of a list, which goes around; of what is none, every pair has the same. */
static void test_lanes_have_the_gpu_of_their_pair(void **state) {
	static const char *const bad[] = { "cuda:", "cuda:,", "cuda:0,", "cuda:0,,1", "cuda:0,256", "cuda:0,0001",
					   "cuda:0,x", "cuda,1", "host,host", "huge:2M,1G" };
	struct job job = a_job(), lane;
	struct memory_kind kind;

	(void) state;
	(void) copy_string(job.devices, sizeof(job.devices), "a,b,c,d");
	(void) copy_string(job.server_devices, sizeof(job.server_devices), "w,x,y,z");
	(void) copy_string(job.tx_memory, sizeof(job.tx_memory), "cuda:3,0,12");
	(void) copy_string(job.rx_memory, sizeof(job.rx_memory), "rocm:7");
	job.threads = 8;
	assert_int_equal(job_validate(&job), 0);
	for (uint32_t i = 0; i < job_lanes(&job); i++) {
		static const char *const wanted[] = { "cuda:3", "cuda:0", "cuda:12", "cuda:3" };

		job_for_lane(&job, i, &lane);
		assert_string_equal(lane.tx_memory, wanted[i % 4]);
		assert_string_equal(lane.rx_memory, "rocm:7");
	}
	(void) copy_string(job.tx_memory, sizeof(job.tx_memory), "cuda:0000:3b:00.0,near");
	job_for_lane(&job, 4, &lane);
	assert_string_equal(lane.tx_memory, "cuda:0000:3b:00.0");
	job_for_lane(&job, 1, &lane);
	assert_string_equal(lane.tx_memory, "cuda:near");
	for (size_t i = 0; i < ELEMENTSOF(bad); i++)
		assert_int_equal(memory_kind_parse(bad[i], &kind), -EINVAL);
}

static void test_a_list_of_gpus_is_for_pairs_of_devices(void **state) {
	struct job job = a_job();

	(void) state;
	(void) copy_string(job.tx_memory, sizeof(job.tx_memory), "cuda:0,1");
	assert_int_equal(job_validate(&job), -EINVAL);
	assert_non_null(strstr(failure_text(), "--tx-memory cuda:0,1 lists 2 GPUs, and there is 1 pair of devices"));
	failure_reset();
	(void) copy_string(job.devices, sizeof(job.devices), "a,b");
	(void) copy_string(job.server_devices, sizeof(job.server_devices), "c,d");
	job.threads = 2;
	assert_int_equal(job_validate(&job), 0);
	(void) copy_string(job.rx_memory, sizeof(job.rx_memory), "ze:0,1,2");
	assert_int_equal(job_validate(&job), -EINVAL);
	assert_non_null(strstr(failure_text(), "--rx-memory ze:0,1,2 lists 3 GPUs, and there are 2 pairs of devices"));
	failure_reset();
}

/* As many pairs as the longer list has: the shorter one goes around. */
static void test_a_side_may_have_fewer_devices(void **state) {
	static const char *const lists[][3] = {
		{ "a,b,c", "w,x", "aw bx cw" }, { "a", "w,x,y", "aw ax ay" }, { "a,b", "w,x,y,z,v", "aw bx ay bz av" },
	};

	(void) state;
	for (size_t i = 0; i < ELEMENTSOF(lists); i++) {
		struct job job = a_job(), lane;
		char said[64] = "";

		(void) copy_string(job.backend, sizeof(job.backend), "ofi");
		(void) copy_string(job.devices, sizeof(job.devices), lists[i][0]);
		(void) copy_string(job.server_devices, sizeof(job.server_devices), lists[i][1]);
		job.threads = job_pairs(&job);
		assert_int_equal(job_validate(&job), 0);
		for (uint32_t pair = 0; pair < job_pairs(&job); pair++) {
			job_for_lane(&job, pair, &lane);
			(void) snprintf(said + strlen(said), sizeof(said) - strlen(said), "%s%.1s%.1s",
					pair ? " " : "", lane.device, lane.server_device);
		}
		assert_string_equal(said, lists[i][2]);
	}
}

static void test_each_device_may_have_a_port_and_a_gid(void **state) {
	static const char *const bad[] = { ":1", "a:0", "a:256", "a::256", "a:x", "a:1:3:4", "a:1:-1", "a,:1:3", "a," };
	struct job job = a_job(), lane;

	(void) state;
	(void) copy_string(job.backend, sizeof(job.backend), "verbs");
	(void) copy_string(job.devices, sizeof(job.devices), "a,b:2,c:1:3,d::0");
	(void) copy_string(job.server_devices, sizeof(job.server_devices), "w::7,x,y,z:1:5");
	job.verbs.gid_index = 9;
	job.verbs.server_ib_port = 4;
	job.cross_rail = 1;
	job.threads = 4;
	assert_int_equal(job_validate(&job), 0);
	job_for_lane(&job, 0, &lane);
	assert_string_equal(lane.device, "a");
	assert_int_equal(lane.verbs.ib_port, 0);
	assert_int_equal(lane.verbs.gid_index, 9);
	assert_string_equal(lane.server_device, "x");
	assert_int_equal(lane.verbs.server_ib_port, 4);
	assert_int_equal(lane.verbs.server_gid_index, -1);
	job_for_lane(&job, 2, &lane);
	assert_string_equal(lane.device, "c");
	assert_int_equal(lane.verbs.ib_port, 1);
	assert_int_equal(lane.verbs.gid_index, 3);
	assert_string_equal(lane.server_device, "z");
	assert_int_equal(lane.verbs.server_ib_port, 1);
	assert_int_equal(lane.verbs.server_gid_index, 5);
	job_for_lane(&job, 3, &lane);
	assert_string_equal(lane.device, "d");
	assert_int_equal(lane.verbs.gid_index, 0);
	assert_int_equal(lane.verbs.server_gid_index, 7);
	for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
		struct job wrong = a_job();

		(void) copy_string(wrong.backend, sizeof(wrong.backend), "verbs");
		(void) copy_string(wrong.devices, sizeof(wrong.devices), bad[i]);
		(void) copy_string(wrong.server_devices, sizeof(wrong.server_devices),
				strchr(bad[i], ',') ? "w,x" : "w");
		wrong.threads = 2;
		assert_int_equal(job_validate(&wrong), -EINVAL);
	}
}

static void test_elsewhere_a_colon_is_a_part_of_the_name(void **state) {
	struct job job = a_job(), lane;

	(void) state;
	(void) copy_string(job.backend, sizeof(job.backend), "ofi");
	(void) copy_string(job.devices, sizeof(job.devices), "eth0:1:3");
	(void) copy_string(job.server_devices, sizeof(job.server_devices), "eth0:2");
	assert_int_equal(job_validate(&job), 0);
	job_for_lane(&job, 0, &lane);
	assert_string_equal(lane.device, "eth0:1:3");
	assert_int_equal(lane.verbs.gid_index, -1);
}

static void test_a_host_has_sixteen_devices_at_most(void **state) {
	struct job job = a_job();

	(void) state;
	(void) copy_string(job.backend, sizeof(job.backend), "verbs");
	(void) copy_string(job.devices, sizeof(job.devices), "a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p");
	(void) copy_string(job.server_devices, sizeof(job.server_devices), job.devices);
	job.threads = 16;
	assert_int_equal(job_validate(&job), 0);
	(void) strcat(job.devices, ",q");
	(void) strcat(job.server_devices, ",q");
	job.threads = 17;
	assert_int_equal(job_validate(&job), -EINVAL);
}

static void test_a_job_survives_its_way_to_the_server(void **state) {
	struct job job = a_job(), back;
	json_t *json;

	(void) state;
	(void) copy_string(job.devices, sizeof(job.devices), "a,b");
	(void) copy_string(job.server_devices, sizeof(job.server_devices), "c,d");
	job.threads = 2;
	job.batches[0] = 128;
	job.consecutive = job.no_session = true;
	job.chunk_bytes = 64;
	job.stride_bytes = 2000;
	assert_int_equal(job_validate(&job), 0);
	assert_int_equal(job_to_json(&job, &json), 0);
	assert_int_equal(job_from_json(json, &back), 0);
	assert_memory_equal(&job, &back, sizeof(job));
	/* From the network anything may come. */
	(void) json_array_append_new(json_object_get(json, "batches"), json_integer(32769));
	assert_int_equal(job_from_json(json, &back), -EBADMSG);
	json_decref(json);
}

int main(void) {
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_byte_of_a_batch_is_in_one_piece),
		cmocka_unit_test(test_pieces_are_as_asked_or_larger_where_there_would_be_too_many),
		cmocka_unit_test(test_the_buffer_is_what_the_largest_batch_takes),
		cmocka_unit_test(test_a_footprint_is_used_in_a_scattered_order),
		cmocka_unit_test(test_transfers_are_scattered_over_a_footprint),
		cmocka_unit_test(test_a_footprint_holds_a_batch),
		cmocka_unit_test(test_a_footprint_holds_a_message_of_each_queue_pair),
		cmocka_unit_test(test_lanes_have_the_devices_of_their_pair),
		cmocka_unit_test(test_lanes_have_the_gpu_of_their_pair),
		cmocka_unit_test(test_a_list_of_gpus_is_for_pairs_of_devices),
		cmocka_unit_test(test_a_side_may_have_fewer_devices),
		cmocka_unit_test(test_each_device_may_have_a_port_and_a_gid),
		cmocka_unit_test(test_elsewhere_a_colon_is_a_part_of_the_name),
		cmocka_unit_test(test_a_host_has_sixteen_devices_at_most),
		cmocka_unit_test(test_a_job_survives_its_way_to_the_server),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
