/* SPDX-License-Identifier: Apache-2.0 */
/* Purpose: each command of MORI-IO's page becomes the transfers that say the same, and wrong ones say why. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "command_line.h"

static void test_defaults(void **state) {
	const struct job *j = &options.job;

	(void) state;
	assert_int_equal(parse_line("mori_io_benchmark --host h"), 0);
	assert_int_equal(options.command, COMMAND_TRANSFER);
	assert_true(options.boxed && j->consecutive && j->no_session);
	assert_string_equal(options.host, "h");
	assert_string_equal(j->backend, "verbs");
	assert_int_equal(j->op, OP_READ);
	assert_int_equal(j->sizes[0], 32768);
	assert_int_equal(j->batches[0], 256);
	assert_int_equal(j->iterations, 128);
	assert_int_equal(j->warmup, 2);
	assert_int_equal(j->threads, 1);
	assert_int_equal(j->completion, COMPLETION_BUSY);
	assert_int_equal(options.log_level, LOG_INFO);
}

/* The page's, behind torchrun's own words. */
static void test_the_commands_of_the_page(void **state) {
	const struct job *j = &options.job;

	(void) state;
	assert_int_equal(parse_line("mori_io_benchmark --host=10.235.192.60 --all --enable-sess "
				    "--enable-batch-transfer --num-qp-per-transfer 2 --num-target-dev 8 "
				    "--num-initiator-dev 8 "
				    "--devices a,b,c,d,e,f,g,h --server-devices s,t,u,v,w,x,y,z"), 0);
	assert_int_equal(job_pairs(j), 8);
	assert_int_equal(j->threads, 8);
	assert_int_equal(j->queue_pairs, 2);
	assert_false(j->consecutive || j->no_session);
	assert_int_equal(j->n_sizes, 18);
	assert_int_equal(j->sizes[0], 8);
	assert_int_equal(j->sizes[17], 1048576);
	assert_int_equal(parse_line("mori_io_benchmark --host=10.235.192.60 --enable-batch-transfer --enable-sess "
				    "--buffer-size 1024 --transfer-batch-size 128 --num-initiator-dev 1 "
				    "--num-target-dev 1 --num-qp-per-transfer 16 --all-batch --num-worker-threads 1 "
				    "--log-level info --op-type write --poll_cq_mode polling"), 0);
	assert_int_equal(j->op, OP_WRITE);
	assert_int_equal(j->n_sizes, 1);
	assert_int_equal(j->sizes[0], 1024);
	assert_int_equal(j->n_batches, 16);
	assert_int_equal(j->batches[15], 32768);
	assert_int_equal(parse_line("mori_io_benchmark --host=10.194.132.29 --transfer-batch-size 1 --all "
				    "--sweep-start-size=1024 --sweep-max-size=67108864 --op-type write "
				    "--enable-sess --enable-batch-transfer"), 0);
	assert_int_equal(j->n_sizes, 17);
	assert_int_equal(j->sizes[16], 67108864);
	assert_int_equal(j->batches[0], 1);
}

static void test_unequal_counts_and_threads_of_each_rank(void **state) {
	(void) state;
	assert_int_equal(parse_line("mori_io_benchmark --host h --num-initiator-dev 3 --num-target-dev 2 "
				    "--devices a,b,c --server-devices x,y --num-worker-threads 2 "
				    "--log-level error"), 0);
	assert_int_equal(job_pairs(&options.job), 3);
	assert_int_equal(options.job.threads, 6);
	assert_int_equal(options.log_level, LOG_WARNING);
}

static void test_without_a_host_it_is_the_target(void **state) {
	(void) state;
	assert_int_equal(parse_line("perch --personality mori_io_benchmark --port 24021 --op-type write"), 0);
	assert_int_equal(options.command, COMMAND_SERVE);
	assert_true(options.once);
	assert_int_equal(options.port, 24021);
}

static void test_what_is_refused(void **state) {
	(void) state;
	refused_line("mori_io_benchmark --host h --op-type send", "--op-type 'send': it takes: read or write");
	refused_line("mori_io_benchmark --host h --iters 0", "give a whole number from 1 to 1000000000");
	refused_line("mori_io_benchmark --host h --transfer-batch-size 40000", "from 1 to 32768");
	refused_line("mori_io_benchmark --host h --enable-session", "did you mean --enable-sess");
	refused_line("mori_io_benchmark --host h word", "unknown argument 'word'");
	refused_line("mori_io_benchmark --host", "--host needs a value");
	refused_line("mori_io_benchmark --host h --num-target-dev 2 --devices a --server-devices x,y,z",
		     "--devices names 1 and --server-devices 3");
	refused_line("mori_io_benchmark --host h --backend tcp --num-initiator-dev 2 --num-target-dev 4",
		     "backend tcp has no devices to choose from");
	refused_line("mori_io_benchmark --host h --backend tcp --devices a", "backend tcp has no devices");
	refused_line("perch --personality mori lat", "or mori_io_benchmark");
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_the_commands_of_the_page),
		cmocka_unit_test(test_unequal_counts_and_threads_of_each_rank),
		cmocka_unit_test(test_without_a_host_it_is_the_target),
		cmocka_unit_test(test_what_is_refused),
	};

	return cmocka_run_group_tests_name("mori", tests, NULL, NULL);
}
