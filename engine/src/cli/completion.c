/* SPDX-License-Identifier: Apache-2.0 */
/* perch completion: scripts that complete perch's command line in bash and zsh, from the table of options. */
#include <stdio.h>

#include "base/exit_codes.h"
#include "options.h"

static bool shown(const struct option_entry *e, int command) {
	return !e->hidden && option_belongs(e, (enum command) command);
}

/* "-s | --size": an option in a case of bash. */
static void print_pattern(const struct option_entry *e, bool first) {
	(void) printf("%s", first ? "    " : " | ");
	if (e->letter)
		(void) printf("-%c | ", e->letter);
	(void) printf("--%s", e->name);
}

/* One branch of the case for all options whose values are of a kind; choices are no such kind. */
static void print_bash_branch(enum option_value value, const char *action) {
	bool any = false;

	for (size_t i = 0; option_at(i); i++) {
		const struct option_entry *e = option_at(i);

		if (e->hidden || !e->metavar || e->choices || e->value != value)
			continue;
		print_pattern(e, !any);
		any = true;
	}
	if (any)
		(void) printf(")\n%s      ;;\n", action);
}

static void print_bash_values(void) {
	(void) printf("  case $prev in\n");
	for (size_t i = 0; option_at(i); i++) {
		const struct option_entry *e = option_at(i);

		if (e->hidden || !e->choices)
			continue;
		print_pattern(e, true);
		(void) printf(")\n      words='");
		for (size_t j = 0; e->choices[j]; j++)
			(void) printf("%s%s", j ? " " : "", e->choices[j]);
		(void) printf("'\n      ;;\n");
	}
	print_bash_branch(VALUE_DEVICE, "      words=$(\n"
					"        shopt -s nullglob\n"
					"        set -- /sys/class/infiniband/* /sys/class/net/*\n"
					"        echo \"${@##*/}\"\n"
					"      )\n");
	print_bash_branch(VALUE_FILE, "      compopt -o filenames\n"
				      "      mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n"
				      "      return\n");
	print_bash_branch(VALUE_ANY, "      return\n");
	(void) printf("    :)\n      return\n      ;;\n  esac\n");
}

/* Options where a dash is typed, else what the command takes besides. */
static void print_bash_words(void) {
	(void) printf("  case $command in\n");
	for (int c = 0; c < COMMAND_MAX; c++) {
		(void) printf("    %s) options='", command_name(c));
		for (size_t i = 0; option_at(i); i++)
			if (shown(option_at(i), c))
				(void) printf("%s--%s", i ? " " : "", option_at(i)->name);
		(void) printf("' ;;\n");
	}
	(void) printf("  esac\n");
}

static void print_bash(void) {
	(void) printf("# shellcheck shell=bash\n"
		      "# Completes perch; made by 'perch completion bash'.\n"
		      "_perch() {\n"
		      "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}\n"
		      "  local command=${COMP_WORDS[1]} at=$COMP_CWORD words='' options=''\n"
		      "  COMPREPLY=()\n"
		      "  [[ $cur != = ]] || cur=\n"
		      "  [[ $prev != = ]] || prev=${COMP_WORDS[COMP_CWORD - 2]}\n"
		      "  if [[ $command = check ]] && ((COMP_CWORD > 2)); then\n"
		      "    command=${COMP_WORDS[2]}\n"
		      "  fi\n");
	print_bash_values();
	print_bash_words();
	(void) printf("  if ((at == 1)); then\n    words='");
	for (int c = 0; c < COMMAND_MAX; c++)
		(void) printf("%s ", command_name(c));
	(void) printf("--help --help-all --version'\n"
		      "  elif [[ -z $words && $cur = -* ]]; then\n"
		      "    words=$options\n"
		      "  elif [[ -z $words ]]; then\n"
		      "    case $command in\n"
		      "      check) words='lat bw transfer' ;;\n"
		      "      completion) words='bash zsh' ;;\n"
		      "      hist) compopt -o default ;;\n"
		      "      lat | bw | transfer | meet)\n"
		      "        mapfile -t COMPREPLY < <(compgen -A hostname -- \"$cur\")\n"
		      "        return\n"
		      "        ;;\n"
		      "    esac\n"
		      "  fi\n"
		      "  mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n"
		      "}\n"
		      "complete -F _perch perch\n");
}

/* Within a specification of _arguments, which stands between single quotes. */
static void print_zsh_text(const char *text) {
	for (; *text; text++) {
		if (*text == '\'')
			(void) printf("'\\''");
		else if (strchr("[]:\\", *text))
			(void) printf("\\%c", *text);
		else
			(void) putchar(*text);
	}
}

static void print_zsh_value(const struct option_entry *e) {
	(void) printf(":");
	print_zsh_text(e->metavar);
	(void) printf(":");
	for (size_t i = 0; e->choices && e->choices[i]; i++) {
		(void) printf("%s", i ? " " : "(");
		print_zsh_text(e->choices[i]);
	}
	if (e->choices)
		(void) printf(")");
	else if (e->value == VALUE_FILE)
		(void) printf("_files");
	else if (e->value == VALUE_DEVICE)
		(void) printf("_perch_devices");
}

/* '(-s --size)'{-s+,--size=}'[help]:SIZE:', as _arguments reads it. */
static void print_zsh_option(const struct option_entry *e) {
	(void) printf(" \\\n        ");
	if (e->letter)
		(void) printf("'(-%c --%s)'{-%c%s,--%s%s}'", e->letter, e->name, e->letter, e->metavar ? "+" : "",
			      e->name, e->metavar ? "=" : "");
	else
		(void) printf("'--%s%s", e->name, e->metavar ? "=" : "");
	(void) printf("[");
	print_zsh_text(e->brief ? e->brief : e->help);
	(void) printf("]");
	if (e->metavar)
		print_zsh_value(e);
	(void) printf("'");
}

/* What stands behind the options, by the command's usage. */
static const char *zsh_operands(int command) {
	switch (command) {
	case COMMAND_LAT:
	case COMMAND_BW:
	case COMMAND_TRANSFER:
	case COMMAND_RATE:
	case COMMAND_MEET:
		return " '1:host:_hosts'";
	case COMMAND_HIST:
		return " '*:file:_files'";
	case COMMAND_CHECK:
		return " '1:command:(lat bw transfer rate)'";
	case COMMAND_COMPLETION:
		return " '1:shell:(bash zsh)'";
	default:
		return "";
	}
}

static void print_zsh_commands(void) {
	(void) printf("  local -a commands=(\n");
	for (int c = 0; c < COMMAND_MAX; c++) {
		(void) printf("    '%s:", command_name(c));
		print_zsh_text(command_descriptions[c].summary);
		(void) printf("'\n");
	}
	(void) printf("  )\n");
}

static void print_zsh_cases(void) {
	(void) printf("  case $words[1] in\n");
	for (int c = 0; c < COMMAND_MAX; c++) {
		(void) printf("    %s)\n      _arguments -S", command_name(c));
		for (size_t i = 0; option_at(i); i++)
			if (shown(option_at(i), c))
				print_zsh_option(option_at(i));
		(void) printf("%s\n      ;;\n", zsh_operands(c));
	}
	(void) printf("  esac\n");
}

static void print_zsh(void) {
	(void) printf("#compdef perch\n"
		      "# Completes perch; made by 'perch completion zsh'.\n"
		      "_perch_devices() {\n"
		      "  local -a names=(/sys/class/infiniband/*(N:t) /sys/class/net/*(N:t))\n"
		      "  _describe device names\n"
		      "}\n"
		      "_perch() {\n");
	print_zsh_commands();
	(void) printf("  if (( CURRENT == 2 )); then\n"
		      "    if [[ $words[2] == -* ]]; then\n"
		      "      _arguments -S '--help[Print help.]' '--help-all[Print all help.]' "
		      "'--version[Print the version.]'\n"
		      "    else\n"
		      "      _describe -t commands command commands\n"
		      "    fi\n"
		      "    return\n"
		      "  fi\n"
		      "  shift words\n"
		      "  (( CURRENT-- ))\n"
		      "  if [[ $words[1] == check ]] && (( CURRENT > 2 )); then\n"
		      "    shift words\n"
		      "    (( CURRENT-- ))\n"
		      "  fi\n");
	print_zsh_cases();
	(void) printf("}\n"
		      "if [[ $funcstack[1] == _perch ]]; then\n"
		      "  _perch \"$@\"\n"
		      "else\n"
		      "  compdef _perch perch\n"
		      "fi\n");
}

int command_completion(const struct options *o) {
	if (o->shell == SHELL_BASH)
		print_bash();
	else
		print_zsh();
	return EXIT_MEASURED;
}
