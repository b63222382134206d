/* SPDX-License-Identifier: Apache-2.0 */
#include "backend_facts.h"

#include <stdio.h>

#include "base/suggest.h"

#define OFI_OPS \
	(1u << OP_SEND | 1u << OP_WRITE | 1u << OP_READ | 1u << OP_FETCH_ADD | 1u << OP_COMPARE_SWAP | \
	 1u << OP_ATOMIC_OP | 1u << OP_FETCH_ATOMIC | 1u << OP_COMPARE_ATOMIC)
#define OFI_FLAGS (BACKEND_DEVICES | BACKEND_GPU | BACKEND_BOUNCE | BACKEND_SLEEPS | BACKEND_LANES)

const struct backend_facts backend_facts[BACKEND_ID_MAX] = {
	[BACKEND_TCP] = {
		.name = "tcp",
		.flags = BACKEND_BOUNCE | BACKEND_SLEEPS | BACKEND_LANES,
		.ops = 1u << OP_SEND,
		.summary = "one TCP connection through the kernel: the baseline",
	},
	[BACKEND_VERBS] = {
		.name = "verbs",
		.flags = BACKEND_DEVICES | BACKEND_GPU | BACKEND_BOUNCE | BACKEND_SLEEPS | BACKEND_LANES |
			 BACKEND_STAMPS | BACKEND_ONE_WORD | BACKEND_QUEUE_PAIRS,
		.ops = (1u << OP_MAX) - 1,
		.summary = "rdma-core: InfiniBand and RoCE, queue pairs of RC, UC and UD",
	},
	[BACKEND_OFI] = {
		.name = "ofi",
		.flags = OFI_FLAGS | BACKEND_PROVIDERS,
		.ops = OFI_OPS,
		.summary = "libfabric, reliable datagrams over any provider: tcp, shm, verbs, efa, cxi, ...",
	},
	[BACKEND_CXI] = {
		.name = "cxi",
		.flags = OFI_FLAGS,
		.ops = OFI_OPS,
		.summary = "HPE Slingshot: libfabric's provider cxi, with its own options",
	},
	[BACKEND_NULL] = {
		.name = "null",
		.flags = BACKEND_SOLO | BACKEND_STAMPS,
		/* all but the atomics of --atomic-op, whose results somebody would have to work out */
		.ops = (1u << OP_ATOMIC_OP) - 1,
		.summary = "no network: measures the engine's own cost per sample",
	},
};

const struct backend_facts *backend_facts_of(const char *name) {
	for (size_t i = 0; i < BACKEND_ID_MAX; i++)
		if (streq(backend_facts[i].name, name))
			return &backend_facts[i];
	return NULL;
}

const char *backends_with(unsigned backends, unsigned ops, unsigned flags, char ret[BACKENDS_WITH_MAX]) {
	const char *names[BACKEND_ID_MAX + 1] = { NULL };
	char list[BACKENDS_WITH_MAX / 2];
	size_t n = 0;

	for (int id = 0; id < BACKEND_NULL; id++) {
		const struct backend_facts *b = &backend_facts[id];

		if ((!backends || backends & 1u << id) && (b->ops & ops) == ops && (b->flags & flags) == flags)
			names[n++] = b->name;
	}
	if (n == 0)
		*ret = '\0';
	else
		(void) snprintf(ret, BACKENDS_WITH_MAX, "; give --backend %s", join_words(names, list, sizeof(list)));
	return ret;
}
