/* SPDX-License-Identifier: Apache-2.0 */
#include "escape.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "util.h"

/* The code point at `p` and its bytes; 0 bytes: no UTF-8 (RFC 3629: shortest form, no surrogates, to U+10FFFF). */
static size_t decode(const uint8_t *p, uint32_t *ret) {
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t n = *p < 0x80 ? 1 : *p >> 5 == 6 ? 2 : *p >> 4 == 14 ? 3 : *p >> 3 == 30 ? 4 : 0;
	uint32_t code = n == 1 ? *p : *p & (0x7fu >> n);

	for (size_t i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80) /* the end of the text is none, either */
			return 0;
		code = code << 6 | (p[i] & 0x3f);
	}
	*ret = code;
	return n > 0 && code >= least[n] && code <= 0x10ffff && code >> 11 != 0x1b ? n : 0;
}

/* C0, DEL and C1; separators of lines; marks, embeddings, overrides and isolates of bidirectional text (UAX 9). */
static bool is_unseen(uint32_t c) {
	return c < 0x20 || (c >= 0x7f && c <= 0x9f) || c == 0x61c || c == 0x200e || c == 0x200f ||
	       (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) || c == 0xfffe || c == 0xffff;
}

void escape_text(const char *text, char *ret, size_t size) {
	static const char *const brief[] = { ['\n'] = "\\n", ['\r'] = "\\r", ['\t'] = "\\t" };
	const uint8_t *p = (const uint8_t *) text;
	char escaped[sizeof("\\u") + 8]; /* of any 32 bits */
	size_t at = 0;

	while (*p) {
		uint32_t code = *p;
		size_t n = decode(p, &code), length = n;
		const char *from = (const char *) p;

		if (n == 0 || is_unseen(code)) {
			if (n == 0)
				code = *p;
			(void) snprintf(escaped, sizeof(escaped), code < 0x100 ? "\\x%02x" : "\\u%04x", code);
			from = code < ELEMENTSOF(brief) && brief[code] ? brief[code] : escaped;
			length = strlen(from);
		}
		if (at + length >= size)
			break;
		memcpy(ret + at, from, length);
		at += length;
		p += MAX(n, 1u);
	}
	ret[at] = '\0';
}
