/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer target of the histogram decoder. Base64, lengths and deflate would keep random bytes from ever reaching the
 * counts, so inputs of the second kind are wrapped properly first. What is accepted must survive being encoded again.
 *
 *   clang -std=c11 -D_GNU_SOURCE -g -fsanitize=fuzzer,address,undefined -Isrc tests/fuzz_histogram.c \
 *         src/histogram.c src/histogram_codec.c -lz -lcrypto -lm
 */
#include <openssl/evp.h>
#include <zlib.h>

#include "stats/histogram.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const char *text) {
	_cleanup_(histogram_freep) struct histogram *h = NULL, *again = NULL;
	_cleanup_free_ char *encoded = NULL;

	if (histogram_decode(text, &h) < 0)
		return;
	(void) histogram_stddev(h);
	if (h->count && histogram_quantile(h, 0.5) > h->max)
		abort();
	if (histogram_encode(h, &encoded) < 0 || histogram_decode(encoded, &again) < 0 ||
	    memcmp(h, again, sizeof(*h)) != 0)
		abort();
}

/* `payload` as the inside of a well-formed text. */
static char *wrap(const uint8_t *payload, size_t size) {
	uLongf deflated = compressBound(size);
	_cleanup_free_ uint8_t *binary = malloc(8 + deflated);
	char *text = malloc((8 + deflated + 2) / 3 * 4 + 1);

	if (!binary || !text || compress(binary + 8, &deflated, payload, size) != Z_OK)
		abort();
	memcpy(binary, "\x1c\x84\x93\x14", 4);
	for (int i = 0; i < 4; i++)
		binary[4 + i] = (uint8_t) (deflated >> (24 - 8 * i));
	(void) EVP_EncodeBlock((unsigned char *) text, binary, (int) (8 + deflated));
	return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	_cleanup_free_ char *text = NULL;
	_cleanup_free_ uint8_t *payload = NULL;

	if (size == 0)
		return 0;
	if (data[0] & 1) {
		text = strndup((const char *) data + 1, size - 1);
	} else {
		/* a right header in front, unless the input brings its own */
		static const uint8_t header[40] = {
			0x1c, 0x84, 0x93, 0x13, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 1,
			0x00, 0x00, 0x03, 0x46, 0x30, 0xb8, 0xa0, 0x00, 0x3f, 0xf0,
		};
		bool own = data[0] & 2;
		size_t head = own ? 0 : sizeof(header);

		payload = malloc(head + size);
		if (!payload)
			abort();
		memcpy(payload, header, head);
		memcpy(payload + head, data + 1, size - 1);
		if (!own)
			for (int i = 0; i < 4; i++)
				payload[4 + i] = (uint8_t) ((size - 1) >> (24 - 8 * i));
		text = wrap(payload, head + size - 1);
	}
	if (text)
		check(text);
	return 0;
}
