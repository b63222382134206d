/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables for people. Latency begins with cxi_send_lat's six columns in its widths, so that eyes and scripts that know
 * the one read the other; percentiles follow. A dash stands where the samples do not support a percentile.
 */
#include <stdio.h>

#include "result.h"

static void print_percentile(const struct run *run, double p, double us) {
	if (histogram_supports(run->total, p))
		(void) printf("%12.2f", (double) histogram_quantile(run->total, p) * us);
	else
		(void) printf("%12s", "-");
}

static const char *message_column(const struct job *j) {
	switch (j->op) {
	case OP_SEND:
	case OP_SEND_IMM:
		return "Sends";
	case OP_WRITE:
	case OP_WRITE_IMM:
		return "Writes";
	case OP_READ:
		return "Reads";
	default:
		return "AtomicOps";
	}
}

void write_table_header(const char *host, const struct run *r, const json_t *server) {
	const struct job *j = r->job;
	const struct session *s = r->session;
	const char *address = json_string_value(json_object_get(server, "address")),
		*device = json_string_value(json_object_get(server, "device"));

	if (s->simulated)
		(void) printf("# SIMULATED: "
			      "no hardware carried these messages, and their figures say nothing about any\n");
	(void) printf("# %s %s over %s%s%s, ", op_name((int) j->op), kind_name((int) j->kind), j->backend,
		      s->provider[0] ? " " : "", s->provider);
	if (s->address[0])
		(void) printf("%s (%s) -> ", s->address, s->device);
	/* Of both ends what carries the data; the host that was asked for is only the control connection's. */
	(void) printf("%s", address ? address : host);
	if (address && device)
		(void) printf(" (%s)", device);
	(void) printf(", ");
	if (s->connection && backend_is(r->backend->facts, BACKEND_VERBS))
		(void) printf("%s, ", s->connection);
	if (j->threads > 1)
		(void) printf("%u threads, ", j->threads);
	if (j->queue_pairs > 1)
		(void) printf("%u queue pairs, ", j->queue_pairs);
	if (!streq(j->tx_memory, "host") || !streq(j->rx_memory, "host"))
		(void) printf("%s%s%s memory%s, ", j->tx_memory, streq(j->tx_memory, j->rx_memory) ? "" : " to ",
			      streq(j->tx_memory, j->rx_memory) ? "" : j->rx_memory, j->bounce ? " with a bounce" : "");
	(void) printf("%s completion%s\n", completion_mode_name((int) j->completion), j->kind != KIND_LATENCY ? ""
		      : r->phase.half_round_trip ? ", half round trip" : ", post to completion");
	if (j->kind == KIND_LATENCY)
		(void) printf("%10s%12s%12s%12s%12s%12s%12s%12s%12s\n", "Bytes", message_column(j), "Min[us]",
			      "Max[us]", "Mean[us]", "StdDev[us]", "p50[us]", "p99[us]", "p99.9[us]");
	else if (j->kind == KIND_RATE)
		(void) printf("%10s%14s%16s%14s%s\n", "Bytes", message_column(j), "Rate[Mmsg/s]", "Avg[Gb/s]",
			      s->rate_gbit_s > 0 ? "     Link[%]" : "");
	else
		(void) printf("%10s%12s%14s%14s%14s%14s%s\n", "Bytes", message_column(j), "Avg[Gb/s]", "Peak[Gb/s]",
			      "Min[Gb/s]", "Rate[msg/s]", s->rate_gbit_s > 0 ? "     Link[%]" : "");
	(void) fflush(stdout);
}

static void print_samples(const struct run *run) {
	double us = run->phase.half_round_trip ? 0.5e-3 : 1e-3;

	if (!run->outcome.samples)
		return;
	(void) printf("%10s%13s\n", "SendNum", "Latency[us]");
	for (uint64_t i = 0; i < run->outcome.messages; i++)
		(void) printf("%10llu%13.3f\n", (unsigned long long) i, (double) run->outcome.samples[i] * us);
}

static void print_latency(const struct result *r) {
	const struct run *run = r->run;
	const struct histogram *h = run->total;
	double us = run->phase.half_round_trip ? 0.5e-3 : 1e-3;

	print_samples(run);
	(void) printf("%10llu%12llu%12.2f%12.2f%12.2f%12.2f", (unsigned long long) r->size,
		      (unsigned long long) h->count, (double) h->min * us, (double) h->max * us, histogram_mean(h) * us,
		      histogram_stddev(h) * us);
	print_percentile(run, 0.5, us);
	print_percentile(run, 0.99, us);
	print_percentile(run, 0.999, us);
}

static void print_bandwidth(const struct result *r) {
	const struct outcome *o = &r->run->outcome;

	(void) printf("%10llu%12llu%14.3f", (unsigned long long) r->size, (unsigned long long) r->messages,
		      result_gbit_s(r));
	if (o->peak_bytes_per_s > 0)
		(void) printf("%14.3f%14.3f", o->peak_bytes_per_s * 8e-9, o->min_bytes_per_s * 8e-9);
	else
		(void) printf("%14s%14s", "-", "-");
	(void) printf("%14.0f", result_messages_s(r));
	if (result_link_percent(r) >= 0)
		(void) printf("%12.1f", result_link_percent(r));
}

static void print_rate(const struct result *r) {
	(void) printf("%10llu%14llu%16.3f%14.3f", (unsigned long long) r->size, (unsigned long long) r->messages,
		      result_messages_s(r) / 1e6, result_gbit_s(r));
	if (result_link_percent(r) >= 0)
		(void) printf("%12.1f", result_link_percent(r));
}

void write_table_result(const struct result *r) {
	const struct run *run = r->run;
	bool measured = run->job->kind == KIND_LATENCY ? run->total->count > 0
						       : r->bytes > 0 && run->outcome.elapsed_ns > 0;

	if (!measured)
		return; /* the reason is on standard error */
	if (run->job->kind == KIND_LATENCY)
		print_latency(r);
	else if (run->job->kind == KIND_RATE)
		print_rate(r);
	else
		print_bandwidth(r);
	if (run->job->verify)
		(void) printf("  %llu bytes checked, %llu bad", (unsigned long long) r->integrity.checked_bytes,
			      (unsigned long long) r->integrity.bad_bytes);
	(void) printf("%s%s\n", run->outcome.overloaded ? "  overloaded" : "",
		      r->code == EXIT_MEASURED ? "" : "  incomplete");
	(void) fflush(stdout);
}

void write_table_interval(const struct run *r, const json_t *interval) {
	const json_t *l = json_object_get(interval, "latency_us"), *g = json_object_get(interval, "gbit_s");

	(void) printf("# %8.2f - %8.2f s  %10lld messages", json_real_value(json_object_get(interval, "start_s")),
		      json_real_value(json_object_get(interval, "end_s")),
		      (long long) json_integer_value(json_object_get(interval, "count")));
	if (json_is_real(g))
		(void) printf("  %10.3f Gb/s", json_real_value(g));
	if (json_is_object(l)) {
		const json_t *p50 = json_object_get(l, "p50");

		if (json_is_number(p50))
			(void) printf("  p50 %8.2f us", json_number_value(p50));
		else
			(void) printf("  p50 %8s us", "-");
		(void) printf("  max %8.2f us", json_number_value(json_object_get(l, "max")));
	}
	(void) printf("\n");
	(void) fflush(stdout);
	(void) r;
}
