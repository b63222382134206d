/* SPDX-License-Identifier: Apache-2.0 */
/* How two ends find each other: who they are, and the addresses of the data path. */
#pragma once

#include "run.h"

enum { MACHINE_MAX = 160 };

/* Names this kernel, process id namespace and /dev/shm: equal at both ends means shared memory can join them. */
void machine_identity(char ret[MACHINE_MAX]);

/* The name of this host, for records. */
void host_name(char *ret, size_t size);

struct peer {
	json_t *end;            /* {host, device, address}, and driver where known, as the record has it; owned */
	uint32_t ib_port;       /* 0: none */
	bool can_notify;
};

/* Both ends, after run_open(): swaps addresses, connects, and waits until the other end is connected too. Negative: said. */
int exchange_addresses(struct run *r, struct peer *ret);

/* START: the client's word on a phase. */
int phase_to_json(const struct phase *p, json_t **ret);
int phase_from_json(const struct job *job, const json_t *json, struct phase *ret); /* -EBADMSG (said) */
