/* SPDX-License-Identifier: Apache-2.0 */
/* What is said of a mistake on the command line: what is wrong, and the nearest word that is right. */
#include <ctype.h>

#include "base/message.h"
#include "options.h"
#include "base/suggest.h"

enum { ACCEPTS_MAX = 256, VALUE_MAX = 64 };

static const char *why(int error) {
	switch (error) {
	case -ERANGE:
		return "out of range";
	case -EDOM:
		return "a range whose MAX is below its MIN";
	case -E2BIG:
		return "too many";
	case -ENAMETOOLONG:
		return "too long";
	case -ENOMEM:
		return "no memory";
	default:
		return "not understood";
	}
}

/* What the option takes, for "give ...". */
static const char *accepted(const struct option_entry *e, char ret[ACCEPTS_MAX]) {
	return e->accepts ? e->accepts : join_words(e->choices, ret, ACCEPTS_MAX);
}

/* Writes units as they are spelled here: "64k", "64kb" and "64KiB" become "64K", "5gb/s" becomes "5Gb/s". */
static void repair_units(const char *value, char *ret) {
	bool digit = false;

	while (*value) {
		bool unit = digit && strchr("kKmMgG", *value);

		digit = isdigit((unsigned char) *value);
		*ret = *value++;
		if (unit)
			*ret = (char) toupper((unsigned char) *ret);
		ret++;
		if (unit) {
			size_t rest = *value == 'i' || *value == 'I';

			rest += value[rest] == 'b' || value[rest] == 'B';
			value += value[rest] == '\0' || value[rest] == ':' ? rest : 0;
		}
	}
	*ret = '\0';
}

static void lower_case(const char *value, char *ret) {
	for (; *value; value++)
		*ret++ = (char) tolower((unsigned char) *value);
	*ret = '\0';
}

/* A value with a unit that would be right in other letters. `o` is thrown away afterwards. */
static int refuse_letters(const struct option_entry *e, const char *value, struct options *o) {
	char other[VALUE_MAX];

	if (strlen(value) >= sizeof(other))
		return 0;
	repair_units(value, other);
	if (option_store(e, other, o) >= 0)
		return failure(-EINVAL, EXIT_USAGE, "--%s '%s': K, M and G are upper case, did you mean '%s'?", e->name,
			       value, other);
	lower_case(value, other);
	if (option_store(e, other, o) >= 0)
		return failure(-EINVAL, EXIT_USAGE, "--%s '%s': units are lower case, did you mean '%s'?", e->name,
			       value, other);
	return 0;
}

int refuse_value(const struct option_entry *e, const char *value, int error, struct options *o) {
	const char *nearest = e->choices && *value ? suggest_nearest(value, e->choices) : NULL;
	char accepts[ACCEPTS_MAX];
	int r = 0;

	if (nearest)
		return failure(error, EXIT_USAGE,
			       "--%s '%s' is %s, did you mean '%s'?", e->name, value, why(error), nearest);
	if (error == -EINVAL && e->type != OPTION_STRING)
		r = refuse_letters(e, value, o);
	if (r < 0)
		return r;
	return failure(error, EXIT_USAGE, "--%s '%s' is %s; give %s", e->name, value, why(error), accepted(e, accepts));
}

int refuse_missing_value(const struct option_entry *e) {
	char accepts[ACCEPTS_MAX];

	return failure(-EINVAL, EXIT_USAGE, "--%s needs a value; give %s", e->name, accepted(e, accepts));
}

/* The option's name without its value: what was typed before '='. */
int refuse_unknown(const char *word, enum command command) {
	const char *names[OPTIONS_MAX + 1], *nearest = NULL;
	int length = (int) strcspn(word, "=");
	char name[VALUE_MAX];
	size_t n = 0;

	for (size_t i = 0; option_at(i); i++)
		if (!option_at(i)->hidden && option_belongs(option_at(i), command))
			names[n++] = option_at(i)->name;
	names[n] = NULL;
	if (strncmp(word, "--", 2) == 0 && length < (int) sizeof(name)) {
		(void) snprintf(name, sizeof(name), "%.*s", length - 2, word + 2);
		nearest = suggest_nearest(name, names);
	}
	if (nearest)
		return failure(-EINVAL, EXIT_USAGE,
			       "unknown option '%.*s', did you mean '--%s'?", length, word, nearest);
	return failure(-EINVAL, EXIT_USAGE,
		       "unknown option '%.*s'; 'perch %s --help-all' lists the options", length, word,
		       command_name(command));
}

/* The option that may stand without a subcommand and is nearest to `word`; NULL: none is near. */
static const char *nearest_question(const char *word) {
	const char *names[OPTIONS_MAX + 1];
	size_t n = 0;

	for (size_t i = 0; option_at(i); i++)
		if (option_at(i)->type == OPTION_PRINT)
			names[n++] = option_at(i)->name;
	names[n] = NULL;
	return strncmp(word, "--", 2) == 0 ? suggest_nearest(word + 2, names) : NULL;
}

int refuse_command(const char *word) {
	const char *names[COMMAND_MAX + 1] = { NULL }, *nearest;
	char list[ACCEPTS_MAX];

	for (int c = 0; c < COMMAND_MAX; c++)
		names[c] = command_name(c);
	(void) join_words(names, list, sizeof(list));
	if (!word)
		return failure(-EINVAL, EXIT_USAGE, "no subcommand; give %s ('perch --help' explains them)", list);
	nearest = suggest_nearest(word, names);
	if (nearest)
		return failure(-EINVAL, EXIT_USAGE, "'%s' is no subcommand, did you mean '%s'?", word, nearest);
	nearest = nearest_question(word);
	if (nearest)
		return failure(-EINVAL, EXIT_USAGE, "'%s' is no subcommand, did you mean '--%s'?", word, nearest);
	return failure(-EINVAL, EXIT_USAGE,
		       "'%s' is no subcommand; give %s ('perch --help' explains them)", word, list);
}

int refuse_shell(const char *word) {
	const char *nearest = word ? suggest_nearest(word, shell_names) : NULL;

	if (nearest)
		return failure(-EINVAL, EXIT_USAGE, "no completion for '%s', did you mean '%s'?", word, nearest);
	if (word)
		return failure(-EINVAL, EXIT_USAGE, "no completion for '%s'; give bash or zsh", word);
	return failure(-EINVAL, EXIT_USAGE, "perch completion needs a shell; give bash or zsh");
}
