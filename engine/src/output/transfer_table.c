/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables of transfers for people: MORI-IO's columns first, so that eyes which know its table read this one; percentiles
 * and operations follow. GB are 1e9 bytes. A dash stands where there is no such figure, or too few samples for it.
 */
#include <stdio.h>

#include "base/message.h"
#include "transfer_result.h"

struct row {
	int pair;
	bool complete, verified;
	uint64_t size, checked, bad;
	uint32_t batch;
	double total_mb, peak, average, min_us, mean_us, p50_us, p99_us, ops, link; /* negative: none */
};

struct transfer_table {
	const struct transfer *x;
	const char *host;
	bool live, boxed;
	struct row *rows;
	size_t n, room;
};

static const char *device_of(const struct lane *l, bool server) {
	const char *name = server ? json_string_value(json_object_get(l->peer.end, "device")) : l->run.session->device;

	return name ? name : "";
}

static void print_header(const struct transfer_table *t, int pair) {
	const struct transfer *x = t->x;
	const struct job *j = &x->job;
	const struct lane *l = x->lanes[MAX(pair, 0)];
	const struct session *s = l->run.session;

	if (s->simulated)
		(void) printf("# SIMULATED: "
			      "no hardware carried these messages, and their figures say nothing about any\n");
	if (pair < 0)
		(void) printf("# sum of %u pairs of devices", x->n_pairs);
	else
		(void) printf("# pair %d: %s -> %s (%s)", pair, device_of(l, false), t->host, device_of(l, true));
	(void) printf(", %s over %s%s%s, %u thread%s, %u queue pair%s each, %s%s completion%s\n", op_name((int) j->op),
		      j->backend, s->provider[0] ? " " : "", s->provider, j->threads, j->threads > 1 ? "s" : "",
		      j->queue_pairs, j->queue_pairs > 1 ? "s" : "", j->consecutive ? "one list a transfer, " : "",
		      completion_mode_name((int) j->completion), j->no_session ? ", no session" : "");
	(void) printf("%12s%8s%14s%12s%12s%12s%12s%12s%12s%14s%s\n", "MsgSize[B]", "Batch", "TotalSize[MB]",
		      "MaxBW[GB/s]", "AvgBW[GB/s]", "MinLat[us]", "AvgLat[us]", "p50[us]", "p99[us]", "Ops/s",
		      transfer_link_gbit_s(x, pair) > 0 ? "     Link[%]" : "");
}

static void print_number(int width, int digits, double value) {
	if (value < 0)
		(void) printf("%*s", width, "-");
	else
		(void) printf("%*.*f", width, digits, value);
}

static void print_row(const struct row *r) {
	(void) printf("%12llu%8u", (unsigned long long) r->size, r->batch);
	print_number(14, 2, r->total_mb);
	print_number(12, 3, r->peak);
	print_number(12, 3, r->average);
	print_number(12, 2, r->min_us);
	print_number(12, 2, r->mean_us);
	print_number(12, 2, r->p50_us);
	print_number(12, 2, r->p99_us);
	print_number(14, 0, r->ops);
	if (r->link >= 0)
		print_number(12, 1, r->link);
	if (r->verified)
		(void) printf("  %llu bytes checked, %llu bad", (unsigned long long) r->checked,
			      (unsigned long long) r->bad);
	(void) printf("%s\n", r->complete ? "" : "  incomplete");
}

/*
 * MORI-IO's columns in PrettyTable's box. Its bandwidths are the bytes of a batch over the least and the mean time of
 * one: the time between two batches is in none of its figures.
 */
enum { BOX_COLUMNS = 7, BOX_TEXT = 24 };

static const char *const box_titles[BOX_COLUMNS] = { "MsgSize (B)",   "BatchSize",    "TotalSize (MB)", "Max BW (GB/s)",
						     "Avg Bw (GB/s)", "Min Lat (us)", "Avg Lat (us)" };

static void box_cells(const struct row *r, char ret[BOX_COLUMNS][BOX_TEXT]) {
	const double kb = r->total_mb * 1e3; /* over microseconds: GB/s */
	const double figures[] = { r->total_mb, kb / r->min_us, kb / r->mean_us, r->min_us, r->mean_us };

	(void) snprintf(ret[0], BOX_TEXT, "%llu", (unsigned long long) r->size);
	(void) snprintf(ret[1], BOX_TEXT, "%u", r->batch);
	for (size_t i = 0; i < ELEMENTSOF(figures); i++)
		(void) snprintf(ret[2 + i], BOX_TEXT, "%.2f", figures[i]);
}

/* In the middle; of an odd rest, the larger part stands before a text of even length, and behind one of odd length. */
static void print_centred(const char *text, size_t width) {
	size_t length = strlen(text), rest = width - MIN(length, width), before = (rest + (length % 2 == 0)) / 2;

	(void) printf("|%*s%s%*s", (int) before, "", text, (int) (rest - before), "");
}

static void print_box_rule(const size_t widths[BOX_COLUMNS], bool joined) {
	for (size_t i = 0; i < BOX_COLUMNS; i++) {
		(void) putchar(i == 0 || !joined ? '+' : '-');
		for (size_t k = 0; k < widths[i]; k++)
			(void) putchar('-');
	}
	(void) printf("+\n");
}

static void print_box(const struct transfer_table *t, int pair) {
	size_t widths[BOX_COLUMNS], whole = BOX_COLUMNS - 1;
	char cells[BOX_COLUMNS][BOX_TEXT], title[48];

	for (size_t i = 0; i < BOX_COLUMNS; i++)
		widths[i] = strlen(box_titles[i]) + 2;
	for (size_t row = 0; row < t->n; row++) {
		box_cells(t->rows + row, cells);
		for (size_t i = 0; i < BOX_COLUMNS; i++)
			widths[i] = MAX(widths[i], strlen(cells[i]) + 2);
	}
	for (size_t i = 0; i < BOX_COLUMNS; i++)
		whole += widths[i];
	(void) snprintf(title, sizeof(title), "Initiator Rank %d", pair);
	print_box_rule(widths, true);
	print_centred(title, whole);
	(void) printf("|\n");
	print_box_rule(widths, false);
	for (size_t i = 0; i < BOX_COLUMNS; i++)
		print_centred(box_titles[i], widths[i]);
	(void) printf("|\n");
	print_box_rule(widths, false);
	for (size_t row = 0; row < t->n; row++) {
		if (t->rows[row].pair != pair || !t->rows[row].complete)
			continue;
		box_cells(t->rows + row, cells);
		for (size_t i = 0; i < BOX_COLUMNS; i++)
			print_centred(cells[i], widths[i]);
		(void) printf("|\n");
	}
	print_box_rule(widths, false);
}

int transfer_table_new(const struct transfer *x, const char *host, bool boxed, struct transfer_table **ret) {
	struct transfer_table *t = calloc(1, sizeof(*t));

	if (!t)
		return failure(-ENOMEM, EXIT_HOST, "no memory for a table");
	*t = (struct transfer_table) { .x = x, .host = host, .live = x->n_pairs == 1 && !boxed,
				       .boxed = boxed,
				       .room = x->job.n_sizes * x->job.n_batches * (x->n_pairs + 1) };
	t->rows = calloc(t->room, sizeof(*t->rows));
	if (!t->rows) {
		free(t);
		return failure(-ENOMEM, EXIT_HOST, "no memory for a table");
	}
	if (t->live)
		print_header(t, 0);
	(void) fflush(stdout);
	*ret = t;
	return 0;
}

static double percentile(const struct histogram *h, double p) {
	return histogram_supports(h, p) ? (double) histogram_quantile(h, p) / 1e3 : -1;
}

void transfer_table_add(struct transfer_table *t, const struct result *r) {
	const struct histogram *h = r->run->total;
	const struct shape *s = &r->transfer->shape;
	const struct outcome *o = &r->run->outcome;
	struct row row = {
		.pair = r->transfer->pair,
		.complete = r->code == EXIT_MEASURED || r->code == EXIT_CORRUPT,
		.verified = r->run->job->verify,
		.size = s->size,
		.checked = r->integrity.checked_bytes,
		.bad = r->integrity.bad_bytes,
		.batch = s->batch,
		.total_mb = (double) shape_bytes(s) / 1e6,
		.peak = o->peak_bytes_per_s > 0 ? o->peak_bytes_per_s / 1e9 : -1,
		.average = result_gbit_s(r) / 8,
		.min_us = (double) h->min / 1e3,
		.mean_us = histogram_mean(h) / 1e3,
		.p50_us = percentile(h, 0.5),
		.p99_us = percentile(h, 0.99),
		.ops = result_messages_s(r),
		.link = result_link_percent(r),
	};

	/* One pair is its own sum; what was not measured has its reason on standard error. */
	if (h->count == 0 || (t->live && row.pair < 0))
		return;
	if (t->live)
		print_row(&row);
	else if (t->n < t->room)
		t->rows[t->n++] = row;
	(void) fflush(stdout);
}

struct transfer_table *transfer_table_end(struct transfer_table *t) {
	if (!t)
		return NULL;
	for (int pair = 0; t->boxed && pair < (int) t->x->n_pairs; pair++)
		print_box(t, pair);
	for (int pair = 0; !t->live && !t->boxed && pair <= (int) t->x->n_pairs; pair++) {
		int which = pair < (int) t->x->n_pairs ? pair : -1; /* the sum comes last */

		print_header(t, which);
		for (size_t i = 0; i < t->n; i++)
			if (t->rows[i].pair == which)
				print_row(t->rows + i);
	}
	(void) fflush(stdout);
	free(t->rows);
	free(t);
	return NULL;
}
