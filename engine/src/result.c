/* SPDX-License-Identifier: Apache-2.0 */
#include "result.h"

double result_gbit_s(const struct result *r) {
	uint64_t ns = r->run->outcome.elapsed_ns;

	return ns ? (double) r->bytes * 8 / (double) ns : 0; /* bits a nanosecond are Gb/s */
}

double result_messages_s(const struct result *r) {
	uint64_t ns = r->run->outcome.elapsed_ns;

	return ns ? (double) r->messages * 1e9 / (double) ns : 0;
}

double result_p99_us(const struct result *r) {
	const struct histogram *h = r->run->total;

	if (r->run->job->kind != KIND_LATENCY || !histogram_supports(h, 0.99))
		return -1;
	return (double) histogram_quantile(h, 0.99) / 1e3 / (r->run->phase.half_round_trip ? 2 : 1);
}
