/* SPDX-License-Identifier: Apache-2.0 */
#include "bad_byte.h"

#include <stdio.h>

#include "base/clock.h"
#include "result.h"

/* A word travels as the number that its bytes are in memory's order. */
static json_int_t number_of(const uint8_t word[8]) {
	json_int_t n = 0;

	for (unsigned i = 0; i < 8; i++)
		n |= (json_int_t) ((uint64_t) word[i] << (8 * i));
	return n;
}

static void word_of(json_int_t n, uint8_t ret[8]) {
	for (unsigned i = 0; i < 8; i++)
		ret[i] = (uint8_t) ((uint64_t) n >> (8 * i));
}

json_t *bad_byte_say(const struct integrity *i) {
	const struct bad_byte *b = &i->first;

	if (!i->located)
		return NULL;
	return json_pack("{s:I, s:I, s:I, s:i, s:I, s:I}", "message", (json_int_t) b->message, "offset",
			 (json_int_t) b->offset, "age_ns", (json_int_t) (monotonic_ns() - b->found_ns), "word_bytes",
			 b->word_bytes, "expected", number_of(b->expected), "found", number_of(b->found));
}

int bad_byte_hear(const json_t *json, struct bad_byte *ret) {
	json_int_t message, offset, age, expected, found;
	uint64_t now = monotonic_ns();
	int bytes;

	if (json_unpack((json_t *) (uintptr_t) json, "{s:I, s:I, s:I, s:i, s:I, s:I!}", "message", &message, "offset",
			&offset, "age_ns", &age, "word_bytes", &bytes, "expected", &expected, "found", &found) < 0)
		return -EBADMSG;
	if (message < 0 || offset < 0 || age < 0 || (uint64_t) age >= now || bytes < 1 ||
	    bytes > (int) sizeof(ret->found))
		return -EBADMSG;
	*ret = (struct bad_byte) { .at_server = true, .message = (uint64_t) message, .offset = (uint64_t) offset,
				   .found_ns = now - (uint64_t) age, .word_bytes = (uint8_t) bytes };
	word_of(expected, ret->expected);
	word_of(found, ret->found);
	return 0;
}

static json_t *hex(const struct bad_byte *b, const uint8_t *word) {
	char text[2 * sizeof(b->found) + 1] = "";

	for (unsigned i = 0; i < b->word_bytes; i++)
		(void) snprintf(text + 2 * i, sizeof(text) - 2 * i, "%02x", word[i]);
	return b->word_bytes ? json_string(text) : json_null();
}

json_t *bad_byte_json(const struct integrity *i) {
	const struct bad_byte *b = &i->first;
	struct timespec at;

	if (!i->located)
		return NULL;
	at = clock_wall_at(b->found_ns);
	return json_pack("{s:s, s:I, s:I, s:o, s:o, s:o}", "found_by", b->at_server ? "server" : "client", "message",
			 (json_int_t) b->message, "offset", (json_int_t) b->offset, "at", b->found_ns ? time_json(&at)
			 : json_null(), "expected", hex(b, b->expected), "found", hex(b, b->found));
}
