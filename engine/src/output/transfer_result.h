/* SPDX-License-Identifier: Apache-2.0 */
/* What the lanes of a phase come to (transfer_result.c), and their tables (transfer_table.c). */
#pragma once

#include "measure/transfer.h"
#include "result.h"

/* One phase's outcome: of a pair, or of all. */
struct transfer_view {
	int pair;                       /* -1: the sum of all */
	uint32_t pairs, threads;
	struct shape shape;
	uint32_t lanes;
	uint64_t batches;               /* done */
	uint64_t completed;             /* transfers; after a failure also those of the batch that was under way */
	uint64_t asked;                 /* transfers; 0: until the time was over */
	uint32_t lists;                 /* post lists that a batch takes on each queue pair, at least */
	uint64_t buffer_bytes;          /* of a lane */
	double rate_gbit_s;             /* of the links together; 0: unknown */
	char *client_device;            /* of the sum of several: all of them; owned */
	int node;                       /* NUMA node of the initiator's device; -1: unknown, or several */
};

/*
 * transfer_result.c: adds the lanes of `pair` (-1: of all) up into *ret, whose run is *run.
 * Both are released by view_close().
 */
int view_open(const struct transfer *x, int pair, struct run *run, struct transfer_view *view, struct result *ret);
void view_close(struct run *run, struct transfer_view *view, struct result *r);

/* Rate of the links of `pair` (-1: of all together); 0: that of one is unknown. */
double transfer_link_gbit_s(const struct transfer *x, int pair);

/*
 * transfer_table.c: each pair has a table of its own, and then the sum. One pair's lines are printed as they come;
 * several pairs' are kept until transfer_table_end(). `boxed`: as MORI-IO's benchmark draws them, each pair as the
 * rank of an initiator, kept until then, and without the sum.
 */
struct transfer_table;
int transfer_table_new(const struct transfer *x, const char *host, bool boxed, struct transfer_table **ret);
void transfer_table_add(struct transfer_table *t, const struct result *r);
struct transfer_table *transfer_table_end(struct transfer_table *t);    /* prints what is kept; answers NULL */
