/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tests of the verbs backend's traffic share: a pair of sessions over the fake,
 * closed without a trace. After cmocka.h.
 */
#pragma once

#include "verbs_pair.h"

static struct verbs_pair pair;

static inline int setup(void **state) {
	(void) state;
	verbs_pair_devices();
	return 0;
}

static inline void open_pair(const struct job *job) {
	if (verbs_pair_open(&pair, job) < 0)
		fail_msg("%s", failure_text());
}

static inline void close_pair(void) {
	verbs_pair_close(&pair);
	assert_int_equal(fake.live, 0);
	assert_int_equal(fake.violations, 0);
}

static inline void lend_all(enum role role) {
	for (uint32_t slot = 0; op_takes_receive(pair.job.op) && slot < pair.ends[role].arena.window; slot++)
		assert_int_equal(pair.backend->post_receive(pair.ends[role].session, slot,
							    pair.ends[role].arena.slot_bytes), 0);
}

static inline int take(enum role role, struct completion *ret, unsigned max) {
	return pair.backend->poll(pair.ends[role].session, ret, max);
}

static inline uint8_t *tx(enum role role, uint32_t slot) {
	return arena_tx(&pair.ends[role].arena, slot);
}

static inline uint8_t *rx(enum role role, uint32_t slot) {
	return arena_rx(&pair.ends[role].arena, slot);
}

static inline void refused(const struct job *job, const char *part) {
	assert_true(verbs_pair_open(&pair, job) < 0);
	assert_int_equal(failure_code(), EXIT_HOST);
	if (!strstr(failure_text(), part))
		fail_msg("'%s' does not say '%s'", failure_text(), part);
	close_pair();
}

/* What the session adds to a record. */
static inline json_t *described(enum role role) {
	json_t *record = json_pack("{s:{}}", "params");

	pair.backend->describe(pair.ends[role].session, record);
	return record;
}
