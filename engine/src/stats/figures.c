/* SPDX-License-Identifier: Apache-2.0 */
#include "figures.h"

#include <math.h>

json_t *number_or_null(double x) {
	return isfinite(x) && x >= 0 ? json_real(x) : json_null();
}

json_t *latency_json(const struct histogram *h, bool halve) {
	static const struct {
		const char *key;
		double p;
	} percentiles[] = {
		{ "p50", 0.5 }, { "p90", 0.9 }, { "p95", 0.95 }, { "p99", 0.99 }, { "p99_9", 0.999 },
		{ "p99_99", 0.9999 },
	};
	const double us = halve ? 0.5e-3 : 1e-3; /* of a nanosecond */
	json_t *o;

	if (h->count == 0)
		return NULL;
	o = json_pack("{s:I, s:f, s:f, s:f, s:f}", "count", (json_int_t) h->count, "min", (double) h->min * us, "max",
		      (double) h->max * us, "mean", histogram_mean(h) * us, "stddev", histogram_stddev(h) * us);
	for (size_t i = 0; i < ELEMENTSOF(percentiles); i++)
		(void) json_object_set_new(o, percentiles[i].key,
					   histogram_supports(h, percentiles[i].p)
						   ? json_real((double) histogram_quantile(h, percentiles[i].p) * us)
						   : json_null());
	return o;
}
