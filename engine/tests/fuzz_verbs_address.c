/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer target of the address blob that a verbs peer sends, over the fake of libibverbs: accepted or refused
 * and said, never a crash, and what is accepted leads to no address outside the memory that the peer has lent.
 * Inputs of the second kind change some bytes of a right one.
 */
#include "verbs_pair.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct verbs_pair pair;
static struct address own;

int LLVMFuzzerInitialize(int *argc, char ***argv) {
	struct job job = verbs_job(OP_WRITE_IMM);

	(void) argc;
	(void) argv;
	job.queue_pairs = 2;
	verbs_pair_devices();
	if (verbs_pair_open(&pair, &job) < 0 || pair.backend->local_address(pair.ends[ROLE_SERVER].session, &own) < 0)
		abort();
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	struct verbs_session *v = verbs_session(pair.ends[ROLE_CLIENT].session);
	struct address a = own;

	if (size == 0)
		return 0;
	if (data[0] & 1) {
		a.length = MIN(size - 1, sizeof(a.bytes));
		memcpy(a.bytes, data + 1, a.length);
	} else {
		for (size_t i = 1; i + 1 < size; i += 2)
			a.bytes[data[i] % (own.length + 4)] = data[i + 1];
		a.length = own.length + (data[0] >> 1) % 8 - (data[0] >> 4) % 8;
	}
	failure_reset();
	if (verbs_address_read(v, &a) < 0) {
		if (!failure_text()[0])
			abort();
		return 0;
	}
	/* Every request that it prepares stays within the lent memory, as the peer has named it; nothing wraps. */
	verbs_begin(&v->session, 64);
	for (uint32_t slot = 0; slot < v->slots; slot++) {
		uint64_t at = v->requests[slot].wr.rdma.remote_addr;

		if (at < v->remote_base || at - v->remote_base > v->arena.length - 64 || v->path_mtu < JOB_MTU_MIN ||
		    v->path_mtu > JOB_MTU_MAX)
			abort();
	}
	return 0;
}
