/* SPDX-License-Identifier: Apache-2.0 */
/* What a Slingshot endpoint came up with: cxi's session has it, and records and the peer are told. */
#pragma once

#include <jansson.h>

#include "job/job.h"

struct slingshot {
	int32_t svc_id, vni;            /* in use; -1: unknown */
	bool idc, ll, unrestricted;
	uint32_t rdzv_from;             /* bytes of the smallest send that is forced into rendezvous; 0: none is */
	uint64_t hrp_up_to;             /* bytes; 0: no high-rate puts */
	enum key_mode keys;
	json_t *environment;            /* what the provider has read: object of strings; owned */
};
