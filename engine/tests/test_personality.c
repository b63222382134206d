/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Purpose: each of the originals' command lines becomes the job that says the same in perch's
 * words, and wrong ones say why.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "backends/backend.h"
#include "command_line.h"
#include "job/memory_kind.h"
#include "cli/personality.h"

static const char *const names[] = { "cxi_send_lat", "cxi_write_lat", "cxi_read_lat", "cxi_atomic_lat",
				     "cxi_send_bw",  "cxi_write_bw",  "cxi_read_bw",  "cxi_atomic_bw" };

static void test_names(void **state) {
	const struct personality *p = NULL;
	char *direct[] = { (char *) "/usr/bin/cxi_read_bw", NULL },
		*other[] = { (char *) "perch", (char *) "lat", NULL };
	char *named[] = { (char *) "perch", (char *) "--personality", (char *) "cxi_send_lat", (char *) "-h", NULL };
	char *joined[] = { (char *) "perch", (char *) "--personality=cxi_atomic_bw", NULL };
	char *wrong[] = { (char *) "perch", (char *) "--personality", (char *) "cxi_stat", NULL };
	int skip = -1;

	(void) state;
	for (size_t i = 0; i < ELEMENTSOF(names); i++)
		assert_string_equal(personality_find(names[i])->name, names[i]);
	assert_null(personality_find("cxi_send"));
	assert_int_equal(personality_asked(1, direct, &p, &skip), 1);
	assert_string_equal(p->name, "cxi_read_bw");
	assert_int_equal(skip, 0);
	assert_int_equal(personality_asked(4, named, &p, &skip), 1);
	assert_string_equal(p->name, "cxi_send_lat");
	assert_int_equal(skip, 2);
	assert_int_equal(personality_asked(2, joined, &p, &skip), 1);
	assert_string_equal(p->name, "cxi_atomic_bw");
	assert_int_equal(skip, 1);
	assert_int_equal(personality_asked(2, other, &p, &skip), 0);
	failure_reset();
	assert_int_equal(personality_asked(3, wrong, &p, &skip), -EINVAL);
	assert_int_equal(failure_code(), EXIT_USAGE);
	failure_reset();
	assert_int_equal(personality_asked(2, wrong, &p, &skip), -EINVAL);
}

static void test_defaults(void **state) {
	(void) state;
	unsetenv("PERCH_TOKEN_FILE");
	assert_int_equal(parse_line("cxi_send_lat host"), 0);
	assert_int_equal(options.command, COMMAND_LAT);
	assert_string_equal(options.personality->name, "cxi_send_lat");
	assert_string_equal(options.host, "host");
	assert_int_equal(options.port, 49194);
	assert_string_equal(options.job.backend, "cxi");
	assert_string_equal(options.job.device, "cxi0");
	assert_int_equal(options.job.op, OP_SEND);
	assert_int_equal(options.job.n_sizes, 1);
	assert_int_equal(options.job.sizes[0], 8);
	assert_int_equal(options.job.iterations, 100);
	assert_int_equal(options.job.warmup, 10);
	assert_int_equal(options.job.gap_ns, NSEC_PER_MSEC);
	assert_true(options.job.barrier);
	assert_int_equal(options.job.cxi.svc_id, -1);
	assert_int_equal(options.job.clock, CLOCK_KIND_MONOTONIC);
	assert_false(options.job.cxi.no_idc || options.job.cxi.no_ll || options.job.cxi.rdzv || options.job.report_all);
	assert_string_equal(options.token_file, "");

	assert_int_equal(parse_line("cxi_send_lat"), 0);
	assert_int_equal(options.command, COMMAND_SERVE);
	assert_true(options.once);
	assert_int_equal(options.port, 49194);
	assert_string_equal(options.job.device, "cxi0");
	assert_string_equal(options.personality->name, "cxi_send_lat");
}

static void test_every_option(void **state) {
	(void) state;
	assert_int_equal(parse_line("cxi_send_lat -d cxi3 -v 7 -p 5000 -n 50 --warmup 0 --latency-gap 5 -s 1:1024 "
				    "--no-idc --no-ll -R --report-all --use-hp=2m -c cycles --ignore-cpu-freq-mismatch "
				    "192.0.2.1"), 0);
	assert_string_equal(options.job.device, "cxi3");
	assert_int_equal(options.job.cxi.svc_id, 7);
	assert_int_equal(options.port, 5000);
	assert_int_equal(options.job.iterations, 50);
	assert_int_equal(options.job.warmup, 0);
	assert_int_equal(options.job.gap_ns, 5 * NSEC_PER_USEC);
	assert_int_equal(options.job.n_sizes, 11);
	assert_int_equal(options.job.sizes[10], 1024);
	assert_true(options.job.cxi.no_idc && options.job.cxi.no_ll && options.job.cxi.rdzv && options.job.report_all);
	assert_int_equal(job_huge(&options.job), JOB_HUGE_2M);
	assert_int_equal(options.job.clock, CLOCK_KIND_CYCLES);
	assert_true(options.job.ignore_mismatch);
	assert_string_equal(options.host, "192.0.2.1");

	/* The originals turn IDC off with -R. */
	assert_int_equal(parse_line("cxi_send_lat h -R"), 0);
	assert_true(options.job.cxi.rdzv && options.job.cxi.no_idc);

	/* The operand may stand first, names may be shortened, and values be joined: as getopt_long(3) has it. */
	assert_int_equal(parse_line("cxi_send_lat h --iters=5 --rep -s8 -p5001"), 0);
	assert_int_equal(options.job.iterations, 5);
	assert_true(options.job.report_all);
	assert_int_equal(options.port, 5001);

	assert_int_equal(parse_line("cxi_send_lat -p 5002 -v 3 -d cxi1"), 0);
	assert_int_equal(options.port, 5002);
	assert_int_equal(options.job.cxi.svc_id, 3);
	assert_string_equal(options.job.device, "cxi1");

	/* a server takes the GPUs, too; the client's word counts */
	assert_int_equal(parse_line("cxi_send_lat -g NVIDIA -t 1"), 0);
	assert_string_equal(options.job.tx_memory, "cuda:1");
	assert_string_equal(options.job.rx_memory, "");
	assert_int_equal(parse_line("cxi_send_lat h -g NVIDIA -t 1 -r 2"), 0);
	assert_string_equal(options.job.tx_memory, "cuda:1");
	assert_string_equal(options.job.rx_memory, "cuda:2");
	assert_int_equal(parse_line("cxi_send_lat h -g amd -r 0 --use-hp 1G"), 0);
	assert_string_equal(options.job.tx_memory, "huge:1G");
	assert_string_equal(options.job.rx_memory, "rocm:0");
}

static void test_duration(void **state) {
	(void) state;
	assert_int_equal(parse_line("cxi_send_lat h -n 5 -D 2 --report-all"), 0);
	assert_int_equal(options.job.duration_ns, 2 * NSEC_PER_SEC);
	assert_int_equal(options.job.iterations, 0);
	assert_false(options.job.report_all);
}

static void test_sizes(void **state) {
	(void) state;
	assert_int_equal(parse_line("cxi_send_lat h -s 4294967295"), 0);
	assert_int_equal(options.job.sizes[0], UINT32_MAX);
	assert_int_equal(parse_line("cxi_send_lat h -s 3:20"), 0);
	assert_int_equal(options.job.n_sizes, 3);
	assert_int_equal(options.job.sizes[0], 4);
	assert_int_equal(options.job.sizes[2], 16);
	assert_int_equal(parse_line("cxi_send_lat h -s 1:4294967295"), 0);
	assert_int_equal(options.job.n_sizes, 32);
	assert_int_equal(options.job.sizes[31], UINT64_C(1) << 31);
	assert_int_equal(parse_line("cxi_send_lat h -s 5"), 0);
	assert_int_equal(options.job.sizes[0], 5);
	refused_line("cxi_send_lat -g NVIDIA -t first", "-t 'first': give the number of a GPU, from 0");
	refused_line("cxi_send_lat h -s 5:7", "no power of two");
	refused_line("cxi_send_lat h -s 0", "1 to 4294967295");
	refused_line("cxi_send_lat h -s 4294967296", "1 to 4294967295");
	refused_line("cxi_send_lat h -s 8:4", "1 to 4294967295");
	refused_line("cxi_send_lat h -s 8:", "1 to 4294967295");
	refused_line("cxi_send_lat h -s 1K", "1 to 4294967295");
	refused_line("cxi_send_lat h -s 000000000000000000000089", "1 to 4294967295");
	refused_line("cxi_send_lat h -s 111111111111111111111111111111:2", "1 to 4294967295");
}

static void test_sisters(void **state) {
	static const enum op ops[] = { OP_SEND, OP_WRITE, OP_READ, OP_ATOMIC_OP };
	char text[64];

	(void) state;
	for (size_t i = 0; i < ELEMENTSOF(names); i++) {
		(void) snprintf(text, sizeof(text), "%s h", names[i]);
		assert_int_equal(parse_line(text), 0);
		assert_int_equal(options.job.op, ops[i % 4]);
		assert_int_equal(options.job.kind, i < 4 ? KIND_LATENCY : KIND_BANDWIDTH);
		assert_int_equal(options.job.sizes[0], i < 4 || i == 7 ? 8 : 65536);
		assert_int_equal(options.job.outstanding, i < 4 ? 1 : i == 7 ? 4096 : 256);
		assert_int_equal(options.job.iterations, i < 4 ? 100 : i == 7 ? 10000 * 4096 : 1000 * 256);
		assert_int_equal(options.job.warmup, i < 4 ? 10 : 0);
		assert_int_equal(options.job.definition, i == 1 ? DEFINITION_COMPLETION : DEFINITION_AUTO);
	}
	assert_int_equal(parse_line("cxi_write_bw h -l 16 -n 3 -b --unrestricted --no-hrp --buf-sz 4096 --buf-align "
				    "64"), 0);
	assert_int_equal(options.job.outstanding, 16);
	assert_int_equal(options.job.iterations, 48);
	assert_true(options.job.bidirectional && options.job.cxi.unrestricted && options.job.cxi.no_hrp);
	assert_int_equal(options.buffer_limit, 4096);
}

static void test_atomics(void **state) {
	(void) state;
	assert_int_equal(parse_line("cxi_atomic_lat h -A max -T int32 --fetching --matching --no-idc"), 0);
	assert_int_equal(options.job.op, OP_FETCH_ATOMIC);
	assert_int_equal(options.job.atomic_op, ATOMIC_MAX);
	assert_int_equal(options.job.atomic_type, ATOMIC_INT32);
	assert_int_equal(options.job.sizes[0], 4);
	assert_int_equal(options.job.cxi.keys, KEYS_MATCHING);
	assert_true(options.job.cxi.no_idc);
	assert_int_equal(parse_line("cxi_atomic_bw h -A cswap -C le -T double_complex -l 8 -n 2"), 0);
	assert_true(job_validate(&options.job) < 0); /* complex numbers have no order */
	assert_int_equal(parse_line("cxi_atomic_bw h -A cswap -C ne -T float_complex -l 8 -n 2"), 0);
	assert_int_equal(options.job.op, OP_COMPARE_ATOMIC);
	assert_int_equal(options.job.atomic_op, ATOMIC_CSWAP_NE);
	assert_int_equal(options.job.atomic_type, ATOMIC_FLOAT_COMPLEX);
	assert_int_equal(parse_line("cxi_atomic_lat h -A SWAP"), 0);
	assert_int_equal(options.job.op, OP_ATOMIC_OP);
	assert_int_equal(options.job.atomic_op, ATOMIC_WRITE);
	assert_int_equal(parse_line("cxi_atomic_lat h -A AXOR -T UINT64"), 0);
	assert_int_equal(options.job.atomic_op, ATOMIC_MSWAP);
	refused_line("cxi_atomic_lat h -A prod", "MIN, MAX");
	refused_line("cxi_atomic_lat h -T long", "UINT64, INT8");
	refused_line("cxi_atomic_lat h -T uint7", "--atomic-type 'uint7': did you mean 'UINT8'?");
}

static void test_wrong(void **state) {
	(void) state;
	refused_line("cxi_send_lat h --frobnicate", "unknown option '--frobnicate'; 'cxi_send_lat --help'");
	refused_line("cxi_send_lat h --itres 5", "unknown option '--itres', did you mean '--iters'?");
	refused_line("cxi_send_lat h --latency_gap=5", "did you mean '--latency-gap'?");
	refused_line("cxi_send_lat h -l 5", "unknown option '-l'");                  /* a sister's */
	refused_line("cxi_read_lat h --no-idc", "unknown option '--no-idc'");
	refused_line("cxi_write_lat h -R", "unknown option '-R'");
	refused_line("cxi_send_bw h --warmup 5", "unknown option '--warmup'");
	refused_line("cxi_send_lat h -n", "--iters needs a value");
	refused_line("cxi_send_lat h --no-ll=1", "--no-ll takes no value");
	refused_line("cxi_send_lat h -n 0", "--iters '0': give a whole number from 1");
	refused_line("cxi_send_lat h -n -5", "--iters '-5'");
	refused_line("cxi_send_lat h -D 0", "--duration '0'");
	refused_line("cxi_send_lat h -D 1.5", "--duration '1.5'");
	refused_line("cxi_send_lat h -p 65536", "1 to 65535");
	refused_line("cxi_send_lat h --use-hp 4M", "give one of 2M, 1G");
	refused_line("cxi_send_lat h -c tsc", "give one of clock_gettime, cycles");
	refused_line("cxi_send_lat h -g Matrox", "give one of AMD, NVIDIA, INTEL");
	refused_line("cxi_send_lat h -g AMD -t x", "the number of a GPU");
	refused_line("cxi_send_lat h other", "'other' is a second operand");
	refused_line("cxi_send_lat h --report-all -n 10000001", "lower --iters");
	refused_line("cxi_send_bw h -l 16383", "1 to 16382");
	refused_line("cxi_send_bw h --buf-align 96", "power of two");
}

/* The page: 70 columns, in 10 + 12 + 4 x 12. */
static void test_help(void **state) {
	char *text = NULL;
	size_t size = 0;

	(void) state;
	for (size_t i = 0; i < ELEMENTSOF(names); i++) {
		FILE *f = open_memstream(&text, &size);

		assert_non_null(f);
		personality_print_help(f, personality_find(names[i]));
		personality_print_version(f, personality_find(names[i]));
		(void) fclose(f);
		assert_non_null(strstr(text, "both ends must be perch"));
		assert_non_null(strstr(text, "PERCH_TOKEN_FILE"));
		assert_true((strstr(text, "--list-size") != NULL) == (i >= 4));
		assert_true((strstr(text, "--latency-gap") != NULL) == (i < 4));
		assert_true((strstr(text, "--rdzv") != NULL) == (i % 4 == 0));
		for (const char *line = text; *line; line += strcspn(line, "\n") + 1)
			assert_true(strcspn(line, "\n") <= 80);
		free(text);
		text = NULL;
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_every_option),
		cmocka_unit_test(test_duration),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_sisters),
		cmocka_unit_test(test_atomics),
		cmocka_unit_test(test_wrong),
		cmocka_unit_test(test_help),
	};

	return cmocka_run_group_tests_name("personality", tests, NULL, NULL);
}
