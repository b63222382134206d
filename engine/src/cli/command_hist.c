/* SPDX-License-Identifier: Apache-2.0 */
#include "command_hist.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>

#include "stats/histogram.h"
#include "base/message.h"

enum { REAL_DIGITS = 12 }; /* of a mean of nanoseconds: more than the histogram's three carry */

static void fclosep(FILE **f) {
	if (*f && *f != stdin)
		(void) fclose(*f);
}

/* Adds one line to the total; blanks around it belong to nobody. */
static int add_line(char *line, const char *name, unsigned number, struct histogram *total, unsigned *texts) {
	char *text = line + strspn(line, " \t\r\n");
	int r;

	text[strcspn(text, " \t\r\n")] = 0;
	if (!*text)
		return 0;
	r = histogram_decode_add(text, total);
	if (r == -ENOMEM)
		return failure(r, EXIT_HOST, "no memory for the histogram in %s, line %u", name, number);
	if (r < 0)
		return failure(r, EXIT_INTERNAL, "%s, line %u: not a histogram of Perch; it is cut off, damaged or "
			       "of another layout. Give the text of histogram.data, one a line", name, number);
	(*texts)++;
	return 0;
}

static int add_file(const char *path, struct histogram *total, unsigned *texts) {
	bool standard = streq(path, "-");
	const char *name = standard ? "standard input" : path;
	_cleanup_(fclosep) FILE *f = NULL;
	_cleanup_free_ char *line = NULL;
	unsigned number = 0;
	int r;

	f = standard ? stdin : fopen(path, "re");
	if (!f)
		return failure(-errno, EXIT_INTERNAL, "cannot open %s: %m", path);
	line = malloc(HISTOGRAM_TEXT_MAX + 2);
	if (!line)
		return failure(-ENOMEM, EXIT_HOST, "no memory to read %s", name);
	while (fgets(line, HISTOGRAM_TEXT_MAX + 2, f)) {
		/* a line longer than any histogram arrives in pieces, and its pieces are refused */
		r = add_line(line, name, ++number, total, texts);
		if (r < 0)
			return r;
	}
	if (ferror(f))
		return failure(-errno, EXIT_INTERNAL, "cannot read %s: %m", name);
	return 0;
}

static json_t *quantiles_to_json(const struct options *o, const struct histogram *h) {
	json_t *object = json_object();

	for (size_t i = 0; i < o->n_quantiles; i++) {
		double p = o->quantiles[i];
		char key[32];

		(void) snprintf(key, sizeof(key), "%.15g", p);
		/* the maximum needs no company; below it, ten samples must lie above (docs/definitions.md) */
		if (h->count > 0 && (p >= 1 || histogram_supports(h, p)))
			(void) json_object_set_new(object, key, json_integer((json_int_t) histogram_quantile(h, p)));
		else
			(void) json_object_set_new(object, key, json_null());
	}
	return object;
}

/*
 * The cumulative distribution in few points: one for each hundredth up to p99, then four for each halving
 * of what remains (HdrHistogram's percentile iterator), so that the tail is drawn as finely as the rest.
 * 10^9 samples take 193 points.
 */
static json_t *distribution_to_json(const struct histogram *h) {
	const double quarter = exp2(-0.25);
	json_t *array = json_array();
	double rest = 1; /* what may still lie above the next point */
	uint64_t seen = 0;

	for (size_t i = 0; i < HISTOGRAM_COUNTS && seen < h->count; i++) {
		double above;

		if (h->counts[i] == 0)
			continue;
		seen += h->counts[i];
		above = (double) (h->count - seen) / (double) h->count;
		if (above > rest)
			continue;
		(void) json_array_append_new(array, json_pack("[I, I]",
			(json_int_t) MIN(histogram_highest_at(i), h->max), (json_int_t) seen));
		while (above > 0 && rest >= above)
			rest = rest > 0.01 + 1e-9 ? rest - 0.01 : rest * quarter;
	}
	return array;
}

static int print(const struct options *o, const struct histogram *h) {
	_cleanup_free_ char *data = NULL;
	bool some = h->count > 0;
	json_t *object;
	int r;

	r = histogram_encode(h, &data);
	if (r < 0)
		return failure(r, EXIT_HOST, "no memory to encode the sum of the histograms");
	object = json_pack("{s:I, s:o, s:o, s:o, s:o, s:o, s:{s:s, s:s}}", "count", (json_int_t) h->count,
			   "min", some ? json_integer((json_int_t) h->min) : json_null(),
			   "max", some ? json_integer((json_int_t) h->max) : json_null(),
			   "mean", some ? json_real(histogram_mean(h)) : json_null(),
			   "stddev", some ? json_real(histogram_stddev(h)) : json_null(),
			   "quantiles", quantiles_to_json(o, h),
			   "histogram", "encoding", "hdr-v2-zlib-base64", "data", data);
	if (o->distribution)
		(void) json_object_set_new(object, "distribution", distribution_to_json(h));
	/* jansson hands a failed allocation on as NULL, which the dump then refuses */
	r = json_dumpf(object, stdout, JSON_COMPACT | JSON_REAL_PRECISION(REAL_DIGITS));
	json_decref(object);
	/* main() says what standard output refuses */
	if ((r < 0 || putchar('\n') == EOF) && !ferror(stdout))
		return failure(-ENOMEM, EXIT_HOST, "no memory to write the histogram");
	return 0;
}

int command_hist(const struct options *o) {
	static const char *const standard_input[] = { "-" };
	const char *const *files = o->n_files ? o->files : standard_input;
	size_t n = o->n_files ? o->n_files : 1;
	_cleanup_(histogram_freep) struct histogram *total = NULL;
	unsigned texts = 0;
	int r;

	r = histogram_new(&total);
	if (r < 0)
		return failure(r, EXIT_HOST, "no memory for a histogram"), EXIT_HOST;
	for (size_t i = 0; i < n; i++) {
		r = add_file(files[i], total, &texts);
		if (r < 0)
			return (int) failure_code();
	}
	if (texts == 0) {
		(void) failure(-ENODATA, EXIT_INTERNAL, "there is no histogram in the input; give the text of "
			       "histogram.data, one a line");
		return EXIT_INTERNAL;
	}
	r = print(o, total);
	return r < 0 ? (int) failure_code() : EXIT_MEASURED;
}
