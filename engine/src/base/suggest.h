/* SPDX-License-Identifier: Apache-2.0 */
/* "Did you mean": the valid word that is nearest to a mistyped one. */
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
