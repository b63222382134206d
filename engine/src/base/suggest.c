/* SPDX-License-Identifier: Apache-2.0 */
#include "suggest.h"

#include <ctype.h>
#include <stdio.h>

static bool same_letter(char a, char b) {
	return tolower((unsigned char) a) == tolower((unsigned char) b);
}

unsigned word_distance(const char *a, const char *b) {
	unsigned rows[3][SUGGEST_WORD_MAX + 1];
	size_t n = strlen(a), m = strlen(b);

	if (n >= SUGGEST_WORD_MAX || m >= SUGGEST_WORD_MAX)
		return SUGGEST_WORD_MAX;
	for (size_t j = 0; j <= m; j++)
		rows[0][j] = (unsigned) j;
	for (size_t i = 1; i <= n; i++) {
		const unsigned *before = rows[(i + 1) % 3], *above = rows[(i - 1) % 3];
		unsigned *row = rows[i % 3];

		row[0] = (unsigned) i;
		for (size_t j = 1; j <= m; j++) {
			row[j] = MIN(above[j], row[j - 1]) + 1;
			row[j] = MIN(row[j], above[j - 1] + !same_letter(a[i - 1], b[j - 1]));
			if (i > 1 && j > 1 && same_letter(a[i - 1], b[j - 2]) && same_letter(a[i - 2], b[j - 1]))
				row[j] = MIN(row[j], before[j - 2] + 1);
		}
	}
	return rows[n % 3][m];
}

/* The only candidate that begins with the word; NULL: none does, or several do. */
static const char *only_completion(const char *word, const char *const *candidates) {
	size_t n = strlen(word);
	const char *found = NULL;

	for (size_t i = 0; n >= SUGGEST_PREFIX_MIN && candidates[i]; i++)
		if (strncasecmp(word, candidates[i], n) == 0) {
			if (found)
				return NULL;
			found = candidates[i];
		}
	return found;
}

const char *suggest_nearest(const char *word, const char *const *candidates) {
	unsigned nearest = SUGGEST_WORD_MAX;
	const char *best = NULL;

	for (size_t i = 0; candidates[i]; i++) {
		unsigned distance = word_distance(word, candidates[i]);
		size_t longest = MAX(strlen(word), strlen(candidates[i]));

		if (distance < nearest && distance <= longest / 3) {
			nearest = distance;
			best = candidates[i];
		}
	}
	return best ? best : only_completion(word, candidates);
}

const char *join_words(const char *const *words, char *ret, size_t size) {
	size_t n = 0;

	*ret = '\0';
	for (size_t i = 0; words[i] && n < size; i++)
		n += (size_t) snprintf(ret + n, size - n, "%s%s", i == 0 ? "" : words[i + 1] ? ", " : " or ", words[i]);
	return ret;
}
