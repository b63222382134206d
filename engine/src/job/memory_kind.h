/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What kinds of memory a buffer may lie in, and their names: on the command line, in a job and in records.
 *
 *     host                       ordinary pages
 *     huge:2M, huge:1G           huge pages of that size
 *     cuda:N, rocm:N, ze:N       memory of the N-th GPU of that runtime; without :N the first
 *     cuda:0000:3b:00.0          of the GPU at that PCI address
 *     cuda:near                  of the GPU nearest to the network device
 *     cuda:N,M,...               transfers: of a GPU for each pair of devices, in their order; fewer go around
 */
#pragma once

#include "job.h"

struct backend_facts;

enum memory_type {
	MEMORY_HOST,
	MEMORY_HUGE,
	MEMORY_CUDA,            /* NVIDIA */
	MEMORY_ROCM,            /* AMD */
	MEMORY_ZE,              /* Intel: oneAPI Level Zero */
	MEMORY_TYPE_MAX,
};

enum { MEMORY_ORDINAL_MAX = 255 };      /* only a bound: the runtime says how many GPUs there are */

struct memory_kind {
	enum memory_type type;
	uint64_t huge;          /* bytes of a page; 0 but for MEMORY_HUGE */
	uint32_t ordinal;       /* of the GPU; 0 for others, and where one of these names it: */
	char address[PCI_ADDRESS_MAX];  /* its own on the PCI bus; else empty */
	bool near;              /* the one nearest to the network device, which each end finds for itself */
	bool small;             /* host memory in the kernel's smallest pages alone: of a job with --footprint */
};

/* Reads a name; of a list, the first one. -EINVAL: it is none (says nothing; MEMORY_KINDS is what to give). */
int memory_kind_parse(const char *text, struct memory_kind *ret);
#define MEMORY_KINDS "host, huge:2M, huge:1G, cuda[:GPU], rocm[:GPU] or ze[:GPU]"
#define MEMORY_GPUS "GPU is a number, a PCI address, or near"

/* How many GPUs a name that memory_kind_parse() takes lists; 1 of other memory. */
uint32_t memory_list_length(const char *text);

/* Writes what the pair of devices has of the list in *name; of no list, leaves it as it is. */
void memory_of_pair(char name[JOB_MEMORY_TEXT], uint32_t pair);

/* Writes the one name that a kind has: "cuda" becomes "cuda:0". */
void memory_kind_format(const struct memory_kind *kind, char ret[JOB_MEMORY_TEXT]);

static inline bool memory_is_gpu(enum memory_type type) {
	return type == MEMORY_CUDA || type == MEMORY_ROCM || type == MEMORY_ZE;
}

static inline bool memory_kind_equal(const struct memory_kind *a, const struct memory_kind *b) {
	return a->type == b->type && a->huge == b->huge && a->ordinal == b->ordinal && a->near == b->near &&
	       a->small == b->small && streq(a->address, b->address);
}

/* Of a valid job, which has names that are known. */
struct memory_kind job_tx_memory(const struct job *job);
struct memory_kind job_rx_memory(const struct job *job);

/*
 * Whether messages leave a GPU: the host cannot put such payload into a command,
 * so there is no inlining, injecting and IDC.
 */
bool job_sends_from_gpu(const struct job *job);
bool job_uses_gpu(const struct job *job);

/* Ends a message that a GPU's memory cannot be reached: "; --bounce ..." where the job may have it, else "". */
const char *job_bounce_advice(const struct job *job);

/* Bytes of the huge pages that any of the buffers lies in; 0: none. */
uint64_t job_huge(const struct job *job);

/* The part of job_validate() that concerns memory. -EINVAL (said, EXIT_USAGE). */
int memory_validate(const struct job *job, const struct backend_facts *backend);
