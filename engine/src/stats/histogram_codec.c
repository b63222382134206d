/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HdrHistogram's compressed V2 encoding, as its Java, C and Python libraries read and write it:
 *
 *   base64( cookie, length, zlib( cookie, length, 0, digits, lowest, highest, ratio, counts ) )
 *
 * Numbers are big-endian. Counts are ZigZag LEB128, and a negative one -n stands for n places without a count.
 * Text that is read here may come from anywhere: every length is bounded before it is believed.
 */
#include <limits.h>
#include <openssl/evp.h>
#include <zlib.h>

#include "histogram.h"

enum {
	/* cookie bases of V2; 0x10 in the cookie stands for the variable-length counts */
	COOKIE_ENCODING = 0x1c849303 | 0x10,
	COOKIE_COMPRESSED = 0x1c849304 | 0x10,
	OUTER_HEADER = 8,
	HEADER = 40,
	LEB128_MAX = 9,                 /* HdrHistogram's variant: the ninth byte carries eight bits */
	PAYLOAD_MAX = HEADER + HISTOGRAM_COUNTS * LEB128_MAX,
	/* zlib never grows data by more than 0.1 % and 12 bytes (its manual); base64 adds a third */
	BINARY_MAX = OUTER_HEADER + PAYLOAD_MAX + PAYLOAD_MAX / 1000 + 64,
	TEXT_MAX = (BINARY_MAX + 2) / 3 * 4,
};

_Static_assert((int) TEXT_MAX <= (int) HISTOGRAM_TEXT_MAX, "HISTOGRAM_TEXT_MAX holds any encoding");

static const uint64_t ratio_one = UINT64_C(0x3ff0000000000000); /* 1.0 as IEEE 754 has it: values are not scaled */

static uint8_t *put_be(uint8_t *p, uint64_t value, unsigned bytes) {
	for (unsigned i = bytes; i-- > 0;)
		*p++ = (uint8_t) (value >> 8 * i);
	return p;
}

static uint64_t get_be(const uint8_t *p, unsigned bytes) {
	uint64_t value = 0;

	for (unsigned i = 0; i < bytes; i++)
		value = value << 8 | p[i];
	return value;
}

static uint8_t *put_leb128(uint8_t *p, int64_t value) {
	uint64_t z = (uint64_t) value << 1 ^ (uint64_t) (value >> 63);

	for (int i = 0; i < LEB128_MAX - 1; i++) {
		if (z < 0x80)
			break;
		*p++ = (uint8_t) (z | 0x80);
		z >>= 7;
	}
	*p++ = (uint8_t) z;
	return p;
}

/* Bytes taken; 0: the buffer ends within a number. */
static size_t get_leb128(const uint8_t *p, size_t length, int64_t *ret) {
	uint64_t z = 0;
	size_t n;

	for (n = 0; n < LEB128_MAX; n++) {
		if (n == length)
			return 0;
		if (n == LEB128_MAX - 1) {
			z |= (uint64_t) p[n] << 7 * n;
			n++;
			break;
		}
		z |= (uint64_t) (p[n] & 0x7f) << 7 * n;
		if (!(p[n] & 0x80)) {
			n++;
			break;
		}
	}
	*ret = (int64_t) (z >> 1) ^ -(int64_t) (z & 1);
	return n;
}

/* Writes header and counts; answers the length. */
static size_t put_payload(const struct histogram *h, uint8_t *payload) {
	size_t n = HISTOGRAM_COUNTS, zeros = 0;
	uint8_t *p = payload + HEADER;

	while (n > 0 && h->counts[n - 1] == 0)
		n--;
	for (size_t i = 0; i < n; i++) {
		if (h->counts[i] == 0) {
			zeros++;
			continue;
		}
		if (zeros)
			p = put_leb128(p, -(int64_t) zeros);
		zeros = 0;
		p = put_leb128(p, (int64_t) h->counts[i]);
	}
	n = (size_t) (p - payload);
	p = put_be(payload, COOKIE_ENCODING, 4);
	p = put_be(p, n - HEADER, 4);
	p = put_be(p, 0, 4); /* normalizing index offset: only shifted histograms have one */
	p = put_be(p, HISTOGRAM_DIGITS, 4);
	p = put_be(p, 1, 8);
	p = put_be(p, HISTOGRAM_HIGHEST, 8);
	(void) put_be(p, ratio_one, 8);
	return n;
}

int histogram_encode(const struct histogram *h, char **ret) {
	_cleanup_free_ uint8_t *payload = NULL, *binary = NULL;
	uLongf deflated = BINARY_MAX - OUTER_HEADER;
	_cleanup_free_ char *text = NULL;

	payload = malloc(PAYLOAD_MAX);
	binary = malloc(BINARY_MAX);
	if (!payload || !binary)
		return -ENOMEM;
	/* it fails only for want of memory: the output has room for the worst case */
	if (compress(binary + OUTER_HEADER, &deflated, payload, put_payload(h, payload)) != Z_OK)
		return -ENOMEM;
	(void) put_be(put_be(binary, COOKIE_COMPRESSED, 4), deflated, 4);
	text = malloc((OUTER_HEADER + deflated + 2) / 3 * 4 + 1);
	if (!text)
		return -ENOMEM;
	(void) EVP_EncodeBlock((unsigned char *) text, binary, (int) (OUTER_HEADER + deflated));
	*ret = text;
	text = NULL;
	return 0;
}

/* EVP_DecodeBlock() forgives blanks and counts the padding in; this does neither. */
static int decode_base64(const char *text, uint8_t **ret, size_t *ret_length) {
	size_t n = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/");
	size_t padding = strspn(text + n, "=");
	_cleanup_free_ uint8_t *binary = NULL;
	int r;

	if (text[n + padding] || padding > 2 || (n + padding) % 4 || n + padding > TEXT_MAX || n == 0)
		return -EBADMSG;
	binary = malloc((n + padding) / 4 * 3);
	if (!binary)
		return -ENOMEM;
	r = EVP_DecodeBlock(binary, (const unsigned char *) text, (int) (n + padding));
	if (r < (int) padding)
		return -EBADMSG;
	*ret_length = (size_t) r - padding;
	*ret = binary;
	binary = NULL;
	return 0;
}

static int inflate_payload(const uint8_t *binary, size_t length, uint8_t **ret, size_t *ret_length) {
	_cleanup_free_ uint8_t *payload = NULL;
	uLongf inflated = PAYLOAD_MAX;
	uLong consumed;
	int r;

	if (length < OUTER_HEADER || get_be(binary, 4) != COOKIE_COMPRESSED ||
	    get_be(binary + 4, 4) != length - OUTER_HEADER)
		return -EBADMSG;
	payload = malloc(PAYLOAD_MAX);
	if (!payload)
		return -ENOMEM;
	consumed = length - OUTER_HEADER;
	r = uncompress2(payload, &inflated, binary + OUTER_HEADER, &consumed);
	if (r != Z_OK)
		return r == Z_MEM_ERROR ? -ENOMEM : -EBADMSG; /* also a bomb: the output is bounded */
	if (consumed != length - OUTER_HEADER)
		return -EBADMSG;
	*ret_length = inflated;
	*ret = payload;
	payload = NULL;
	return 0;
}

/* Another precision or unit would put the same counts to other values. */
static bool same_layout(const uint8_t *payload, size_t length) {
	return length >= HEADER && get_be(payload, 4) == COOKIE_ENCODING &&
	       get_be(payload + 4, 4) == length - HEADER && get_be(payload + 8, 4) == 0 &&
	       get_be(payload + 12, 4) == HISTOGRAM_DIGITS && get_be(payload + 16, 8) == 1 &&
	       get_be(payload + 24, 8) <= HISTOGRAM_HIGHEST && get_be(payload + 32, 8) == ratio_one;
}

/* Counts at an index stand for the middle of its values, as in every HdrHistogram reader. */
static int count_at(struct histogram *h, size_t index, uint64_t count) {
	uint64_t low = histogram_lowest_at(index), high = histogram_highest_at(index);
	uint64_t middle = low + (high - low + 1) / 2;

	/* JSON's exact integers end at 2^53, and a nanosecond each those are 104 days */
	if (count > (UINT64_C(1) << 53) - h->count)
		return -EBADMSG;
	h->counts[index] += count;
	h->count += count;
	h->sum += (unsigned __int128) count * middle;
	h->sum_squares += (unsigned __int128) count * middle * middle;
	h->min = MIN(h->min, low);
	h->max = MAX(h->max, high);
	return 0;
}

static int get_counts(const uint8_t *p, size_t length, struct histogram *h) {
	size_t index = 0;
	int r;

	while (length > 0) {
		int64_t value;
		size_t n;

		n = get_leb128(p, length, &value);
		if (n == 0)
			return -EBADMSG;
		p += n;
		length -= n;
		if (value < 0) {
			if (value < -(int64_t) (HISTOGRAM_COUNTS - index))
				return -EBADMSG;
			index += (size_t) -value;
			continue;
		}
		if (index == HISTOGRAM_COUNTS)
			return -EBADMSG;
		r = value ? count_at(h, index, (uint64_t) value) : 0;
		if (r < 0)
			return r;
		index++;
	}
	return 0;
}

int histogram_decode_add(const char *text, struct histogram *to) {
	_cleanup_free_ uint8_t *binary = NULL, *payload = NULL;
	size_t length;
	int r;

	r = decode_base64(text, &binary, &length);
	if (r < 0)
		return r;
	r = inflate_payload(binary, length, &payload, &length);
	if (r < 0)
		return r;
	if (!same_layout(payload, length))
		return -EBADMSG;
	return get_counts(payload + HEADER, length - HEADER, to);
}

int histogram_decode(const char *text, struct histogram **ret) {
	_cleanup_(histogram_freep) struct histogram *h = NULL;
	int r;

	r = histogram_new(&h);
	if (r < 0)
		return r;
	r = histogram_decode_add(text, h);
	if (r < 0)
		return r;
	*ret = h;
	h = NULL;
	return 0;
}
