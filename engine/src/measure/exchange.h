/* SPDX-License-Identifier: Apache-2.0 */
/* How two ends find each other: who they are, and the addresses of the data path. */
#pragma once

#include "run.h"

enum { MACHINE_MAX = 160, BOOT_ID_MAX = 64 };

/*
 * Names this kernel, process id namespace and /dev/shm. Equal at both ends means that shared memory can join them,
 * and that of an equal beginning, up to the first blank, that they share their processors.
 */
void machine_identity(char ret[MACHINE_MAX]);
void machine_compare(const char *theirs, struct open_arguments *ret);   /* NULL: the peer has said nothing */

/*
 * Client: hears who the server is, and says so of itself with the job (machine_identity()).
 * In *ret whether both are one machine. Negative: said.
 */
int exchange_hear_identity(struct control *c, uint64_t timeout_ns, struct open_arguments *ret);
int exchange_say_job(struct control *c, const struct job *job);

/* The name of this host, for records. */
void host_name(char *ret, size_t size);
void host_boot_id(char ret[BOOT_ID_MAX]);        /* the kernel's, of this boot; empty: not to be had */
/* the kernel's (/proc/uptime), since this boot, asleep or not; negative: not to be had */
double host_uptime_s(void);

struct peer {
	struct placed placed;
	json_t *end;            /* {host, device, address}, and what else is known, as the record has it; owned */
	bool can_notify;
};

/*
 * Both ends, after run_open(): swaps addresses, connects, and waits until the other end is connected too.
 * Negative: said.
 */
int exchange_addresses(struct run *r, struct peer *ret);

/*
 * Whether every end that sends something in this job has what `key` of its end names ("idc", "ll"):
 * `own` says it of this end, `end` is the other's. Both ends answer the same. The client always sends;
 * the server where it answers messages, or sends its own.
 */
bool exchange_agree(const struct run *r, const json_t *end, const char *key, bool own);

/*
 * Shared memory fails like a local device when its other end dies: where the peer has gone,
 * it is to blame for the failure so far.
 */
void exchange_blame(struct control *c);

/* START: the client's word on a phase. */
int phase_to_json(const struct phase *p, json_t **ret);
int phase_from_json(const struct job *job, const json_t *json, struct phase *ret); /* -EBADMSG (said) */
