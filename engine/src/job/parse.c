/* SPDX-License-Identifier: Apache-2.0 */
#include "parse.h"

#include <math.h>

/* strtoull() would take signs, blanks and wrap-around; this takes digits and leaves *text behind them. */
static int take_digits(const char **text, uint64_t *ret) {
	const char *p = *text;
	uint64_t value = 0;

	if (*p < '0' || *p > '9')
		return -EINVAL;
	for (; *p >= '0' && *p <= '9'; p++) {
		uint64_t digit = (uint64_t) (*p - '0');

		if (value > (UINT64_MAX - digit) / 10)
			return -ERANGE;
		value = value * 10 + digit;
	}
	*text = p;
	*ret = value;
	return 0;
}

int parse_u64(const char *text, uint64_t *ret) {
	uint64_t value;
	int r;

	r = take_digits(&text, &value);
	if (r < 0)
		return r;
	if (*text)
		return -EINVAL;
	*ret = value;
	return 0;
}

/* Digits, and perhaps a point and digits: what strtod() may then convert, whose own grammar is wider. */
static int take_decimal(const char **text, double *ret) {
	size_t n = strspn(*text, "0123456789");
	char copy[64];
	double value;

	if (n == 0)
		return -EINVAL;
	if ((*text)[n] == '.') {
		size_t fraction = strspn(*text + n + 1, "0123456789");

		if (fraction == 0)
			return -EINVAL;
		n += 1 + fraction;
	}
	if (n >= sizeof(copy))
		return -ERANGE;
	memcpy(copy, *text, n);
	copy[n] = 0;
	value = strtod(copy, NULL); /* setlocale() is never called: the point is a point */
	*text += n;
	*ret = value;
	return 0;
}

int parse_decimal(const char *text, double *ret) {
	double value;
	int r;

	r = take_decimal(&text, &value);
	if (r < 0)
		return r;
	if (*text)
		return -EINVAL;
	if (!(value > 0))
		return -ERANGE;
	*ret = value;
	return 0;
}

int parse_size(const char *text, uint64_t *ret) {
	static const struct {
		const char *suffix;
		unsigned shift;
	} units[] = {
		{ "", 0 }, { "K", 10 }, { "KiB", 10 }, { "M", 20 }, { "MiB", 20 }, { "G", 30 }, { "GiB", 30 },
	};
	uint64_t value;
	int r;

	r = take_digits(&text, &value);
	if (r < 0)
		return r;
	for (size_t i = 0; i < ELEMENTSOF(units); i++)
		if (streq(text, units[i].suffix)) {
			if (value > UINT64_MAX >> units[i].shift)
				return -ERANGE;
			*ret = value << units[i].shift;
			return 0;
		}
	return -EINVAL;
}

/* One to three sizes between colons. */
static int split_sizes(const char *text, uint64_t ret[3], unsigned *ret_n) {
	char copy[128];
	char *rest = copy;
	unsigned n = 0;
	int r;

	r = copy_string(copy, sizeof(copy), text);
	if (r < 0)
		return -EINVAL;
	for (char *part; (part = strsep(&rest, ":"));) {
		if (n == 3)
			return -EINVAL;
		r = parse_size(part, ret + n);
		if (r < 0)
			return r;
		if (ret[n] < 1 || ret[n] > JOB_SIZE_MAX)
			return -ERANGE;
		n++;
	}
	*ret_n = n;
	return 0;
}

int parse_sizes(const char *text, uint64_t ret[JOB_SIZES_MAX], size_t *ret_n) {
	uint64_t part[3], size, sizes[JOB_SIZES_MAX];
	unsigned parts;
	size_t n = 0;
	int r;

	r = split_sizes(text, part, &parts);
	if (r < 0)
		return r;
	if (parts == 1)
		part[1] = part[0];
	if (part[1] < part[0])
		return -EDOM;
	/* no overflow: sizes are below 2^32 */
	for (size = part[0]; size <= part[1]; size = parts == 3 ? size + part[2] : size * 2) {
		if (n == ELEMENTSOF(sizes))
			return -E2BIG;
		sizes[n++] = size;
	}
	memcpy(ret, sizes, n * sizeof(*sizes));
	*ret_n = n;
	return 0;
}

int parse_batches(const char *text, uint32_t ret[JOB_BATCHES_MAX], size_t *ret_n) {
	uint64_t first = 0, last;
	size_t n = 0;
	int r;

	r = take_digits(&text, &first);
	last = first;
	if (r == 0 && *text == ':') {
		text++;
		r = take_digits(&text, &last);
	}
	if (r < 0 || *text)
		return r < 0 ? r : -EINVAL;
	if (last < first)
		return -EDOM;
	if (first < 1 || last > JOB_BATCH_MAX)
		return -ERANGE;
	for (; first <= last; first *= 2) /* 16 at most: 1 to 32768 */
		ret[n++] = (uint32_t) first;
	*ret_n = n;
	return 0;
}

/* The unit's nanoseconds; 0: no such unit. */
static uint64_t duration_unit(const char *text) {
	static const struct {
		const char *suffix;
		uint64_t ns;
	} units[] = {
		{ "ns", 1 },          { "us", NSEC_PER_USEC },     { "ms", NSEC_PER_MSEC },
		{ "s", NSEC_PER_SEC }, { "m", 60 * NSEC_PER_SEC }, { "h", 3600 * NSEC_PER_SEC },
	};

	for (size_t i = 0; i < ELEMENTSOF(units); i++)
		if (streq(text, units[i].suffix))
			return units[i].ns;
	return 0;
}

int parse_duration(const char *text, uint64_t bare_unit_ns, uint64_t *ret_ns) {
	uint64_t whole, unit, part;
	const char *rest = text;
	double fraction = 0;
	int r;

	r = take_digits(&rest, &whole);
	if (r < 0)
		return r;
	if (*rest == '.') {
		/* the whole number is kept apart: as a double, 2^53 ns (104 days) would already be rounded */
		double both;

		rest = text;
		r = take_decimal(&rest, &both);
		if (r < 0)
			return r;
		fraction = both - (double) whole;
	}
	unit = *rest ? duration_unit(rest) : bare_unit_ns;
	if (unit == 0)
		return -EINVAL;
	part = (uint64_t) llround(fraction * (double) unit);
	if (whole > (UINT64_MAX - part) / unit)
		return -ERANGE;
	*ret_ns = whole * unit + part;
	return 0;
}

int parse_rate(const char *text, enum rate_unit *ret_unit, double *ret) {
	static const struct {
		const char *suffix;
		enum rate_unit unit;
	} units[] = {
		{ "msg/s", RATE_MESSAGES },
		{ "messages/s", RATE_MESSAGES },
		{ "b/s", RATE_BITS },
		{ "bit/s", RATE_BITS },
	};
	double value, factor = 1;
	int r;

	r = take_decimal(&text, &value);
	if (r < 0)
		return r;
	if (*text == 'K' || *text == 'M' || *text == 'G')
		factor = *text == 'K' ? 1e3 : *text == 'M' ? 1e6 : 1e9, text++;
	for (size_t i = 0; i < ELEMENTSOF(units); i++)
		if (streq(text, units[i].suffix)) {
			if (!(value > 0))
				return -ERANGE;
			*ret_unit = units[i].unit;
			*ret = value * factor;
			return 0;
		}
	return -EINVAL;
}

int parse_quantiles(const char *text, double *ret, size_t max, size_t *ret_n) {
	_cleanup_free_ char *copy = strdup(text);
	char *rest = copy;
	size_t n = 0;
	int r;

	if (!copy)
		return -ENOMEM;
	for (char *part; (part = strsep(&rest, ","));) {
		double value;

		r = parse_decimal(part, &value);
		if (r < 0)
			return r;
		if (value > 1)
			return -ERANGE;
		if (n == max)
			return -E2BIG;
		ret[n++] = value;
	}
	*ret_n = n;
	return 0;
}
