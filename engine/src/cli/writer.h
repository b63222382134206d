/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "options.h"
#include "output/result.h"

/* How results come out. All hooks but `result` may be NULL. */
struct writer {
	/* whether this job can be written. Negative: said */
	int (*check)(const struct options *o, const struct run *r);
	/* before the first size */
	void (*header)(const struct options *o, const struct run *r, const json_t *server);
	void (*result)(const struct options *o, const struct result *r);
	void (*interval)(const struct run *r, const json_t *interval);
	void (*end)(const struct options *o);                           /* after the last size, also where one failed */
};
