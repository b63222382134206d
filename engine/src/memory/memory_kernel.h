/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel says of memory: the NUMA nodes that a thread is bound to, and numbers in its files. */
#pragma once

#include <limits.h>

#include "base/util.h"

enum {
	NODES_MAX = 1024,       /* the kernel's own largest number of NUMA nodes (CONFIG_NODES_SHIFT is at most 10) */
	NODES_WORD = CHAR_BIT * sizeof(unsigned long),
	NODES_TEXT = 64,
};

struct nodes {
	unsigned long mask[NODES_MAX / NODES_WORD];
};

/* Whether the memory of this thread must come from some nodes, and from which. */
bool nodes_bound(struct nodes *ret);

static inline bool nodes_have(const struct nodes *n, unsigned node) {
	return n->mask[node / NODES_WORD] & 1ul << node % NODES_WORD;
}

/* "NUMA node 0, 1"; cut where there are many. */
void nodes_format(const struct nodes *n, char ret[NODES_TEXT]);

/* Adds the number that a file holds. False: there is no such file, or no number in it. */
bool kernel_number(const char *directory, const char *file, uint64_t *to);

/* The same of one line: "KEY NUMBER", in files of nodes after "Node N". */
bool kernel_entry(const char *directory, const char *file, const char *key, uint64_t *to);
