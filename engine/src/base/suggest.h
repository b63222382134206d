/* SPDX-License-Identifier: Apache-2.0 */
/* Words in messages: lists of them, and the valid one that is nearest to a mistyped one ("did you mean"). */
#pragma once

#include "util.h"

enum {
	SUGGEST_WORD_MAX = 64,  /* longer words are no typing mistakes */
	SUGGEST_PREFIX_MIN = 2, /* fewer letters begin too many words */
};

/*
 * Damerau-Levenshtein distance (optimal string alignment): insertions, deletions, substitutions and swaps of
 * neighbours, in any case of letters. SUGGEST_WORD_MAX: one of the words is too long to compare.
 */
unsigned word_distance(const char *a, const char *b);

/*
 * The nearest of the candidates (they end with NULL): at most one mistake in three letters, else the only one that
 * begins with `word`. NULL: none is near.
 */
const char *suggest_nearest(const char *word, const char *const *candidates);

/* "a, b or c"; `words` end with NULL. */
const char *join_words(const char *const *words, char *ret, size_t size);
