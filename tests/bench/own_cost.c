/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a sample of latency costs the engine when the network costs nothing, beside one reading of its clock, in one
 * process: the least of many short parts each, as what else runs on the machine only adds to them.
 * One line: {"ns_per_sample": N, "ns_per_reading": N}
 */
#include <stdio.h>

#include "base/message.h"
#include "measure/run.h"

enum { PARTS = 200, SAMPLES = 10000 };

static struct run run;

static double sample_ns(void) {
	double least = 1e9;

	for (int i = 0; i < PARTS; i++) {
		run.phase = (struct phase) { .size = 8, .count = SAMPLES, .half_round_trip = true };
		run_begin(&run);
		if (latency_client(&run) < 0)
			exit(1);
		run_end(&run);
		least = MIN(least, (double) run.outcome.elapsed_ns / SAMPLES);
	}
	return least;
}

static double reading_ns(void) {
	double least = 1e9;

	for (int i = 0; i < PARTS; i++) {
		const uint64_t begin = clock_ticks(&run.clock);
		uint64_t end = begin;

		for (int k = 0; k < SAMPLES; k++)
			end = clock_ticks(&run.clock);
		least = MIN(least, (double) clock_ns(&run.clock, end - begin) / SAMPLES);
	}
	return least;
}

int main(int argc, char **argv) {
	static struct control nobody = { .fd = -1 };
	static const struct sockaddr_storage local = { .ss_family = AF_INET };
	struct open_arguments a = { .role = ROLE_CLIENT, .local = &local, .wake_fd = -1, .same_machine = true };
	struct job job;

	job_defaults(&job);
	job.kind = KIND_LATENCY;
	(void) copy_string(job.backend, sizeof(job.backend), "null");
	job.op = OP_SEND;
	job.sizes[0] = 8;
	job.n_sizes = 1;
	job.outstanding = 1;
	job.iterations = SAMPLES;
	job.timeout_ns = 60 * NSEC_PER_SEC;
	job.clock = argc > 1 && streq(argv[1], "cycles") ? CLOCK_KIND_CYCLES : CLOCK_KIND_MONOTONIC;
	a.job = &job;
	if (job_validate(&job) < 0 || run_open(&run, &a, &nobody) < 0)
		return 1;
	printf("{\"ns_per_sample\": %.2f, \"ns_per_reading\": %.2f}\n", sample_ns(), reading_ns());
	run_close(&run);
	return 0;
}
