/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer target of the address blob that an ofi peer sends: accepted or refused, never a crash in the provider,
 * which trusts the length of what it is handed. Inputs of the second kind change some bytes of a right one.
 */
#include <arpa/inet.h>

#include "backends/registry.h"
#include "base/message.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#ifdef HAVE_OFI
#include "backends/ofi/ofi.h"

static struct job job = {
	.kind = KIND_BANDWIDTH,
	.backend = "ofi",
	.provider = "tcp;ofi_rxm", /* a socket address for a name: the form with most ways to be wrong */
	.op = OP_WRITE,
	.sizes = { 4096 },
	.n_sizes = 1,
	.iterations = 1,
	.outstanding = 2,
	.queue_pairs = 1,
	.batch = 1,
	.cq_moderation = 1,
	.timeout_ns = NSEC_PER_SEC,
};
static struct ofi_session *session;
static struct address own;

int LLVMFuzzerInitialize(int *argc, char ***argv) {
	static struct arena arena;
	struct sockaddr_storage a = { .ss_family = AF_INET };
	const struct open_arguments arguments = { .job = &job, .role = ROLE_CLIENT, .arena = &arena, .local = &a,
						  .peer = &a, .wake_fd = -1 };
	struct session *s;

	(void) argc;
	(void) argv;
	((struct sockaddr_in *) &a)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (arena_open(&arena, 4096, 2, NULL, true, NULL) < 0 || backend_find("ofi")->open(&arguments, &s) < 0)
		abort();
	session = (struct ofi_session *) s;
	if (ofi_address_write(session, &own) < 0)
		abort();
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	struct address a = own;

	failure_reset();
	if (size == 0)
		return 0;
	if (data[0] & 1) {
		a.length = MIN(size - 1, sizeof(a.bytes));
		memcpy(a.bytes, data + 1, a.length);
	} else {
		for (size_t i = 1; i + 1 < size; i += 2)
			a.bytes[data[i] % (own.length + 4)] = data[i + 1];
		a.length += data[0] & 2 ? data[0] >> 5 : 0;
	}
	if (ofi_address_read(session, &a) == 0)
		(void) fi_av_remove(session->av, &session->peer, 1, 0);
	else if (!failure_text()[0])
		abort();
	return 0;
}
#else
int LLVMFuzzerInitialize(int *argc, char ***argv) {
	(void) argc;
	(void) argv;
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	(void) data;
	(void) size;
	return 0;
}
#endif
