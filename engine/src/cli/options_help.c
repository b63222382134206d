/* SPDX-License-Identifier: Apache-2.0 */
/* What --help and --version print, from the tables. */
#include <ctype.h>

#include "backends/registry.h"
#include "options.h"
#include "version.h"

enum {
	COLUMNS = 80,           /* of a terminal that nobody has widened */
	HELP_COLUMN = 31,       /* where an option's sentence begins */
};

const struct command_description command_descriptions[COMMAND_MAX] = {
	[COMMAND_SERVE] = {
		"[OPTION...]", "wait for measurements and take the other side of them",
		"Listens until SIGTERM and serves any number of clients, each measurement in a process of its "
		"own. Without a token it listens on loopback only.",
		{ "perch serve",
		  "perch serve --bind 192.0.2.1 --token-file token",
		  "perch serve -d mlx5_0 -x 3 --token-file token" },
	},
	[COMMAND_LAT] = {
		"HOST [OPTION...]", "measure latency to HOST, where 'perch serve' runs",
		"Measures one message after the other and prints a line for each size. Latencies are in "
		"microseconds; half_round_trip is half of the observed round trip.",
		{ "perch lat 192.0.2.1 --token-file token -s 8:64K",
		  "perch lat 192.0.2.1 --token-file token --backend verbs -d mlx5_0 -x 3",
		  "perch lat 192.0.2.1 --token-file token -D 10 --json" },
	},
	[COMMAND_BW] = {
		"HOST [OPTION...]", "measure bandwidth to HOST, where 'perch serve' runs",
		"Keeps many messages outstanding and prints a line for each size. Bandwidth counts payload only, in "
		"Gb/s of 1e9 bits.",
		{ "perch bw 192.0.2.1 --token-file token -s 64K:1M -D 10",
		  "perch bw 192.0.2.1 --token-file token --backend verbs -d mlx5_0 -x 3 -q 4",
		  "perch bw 192.0.2.1 --token-file token --bidirectional --json" },
	},
	[COMMAND_TRANSFER] = {
		"HOST [OPTION...]", "measure batches of transfers to HOST, where 'perch serve' runs",
		"Writes to the memory of HOST, or reads from it, in batches, on several devices and threads. "
		"Applications move tensors and checkpoints so. Prints a line for each size and batch. "
		"Latency is that of a batch; bandwidth counts payload only, in GB/s of 1e9 bytes.",
		{ "perch transfer 192.0.2.1 --token-file token --backend verbs --batch 128",
		  "perch transfer 192.0.2.1 --token-file token --op read -s 1M --threads 2",
		  "perch transfer 192.0.2.1 --token-file token -s 4K:1M --batch 1:64 --json" },
	},
	[COMMAND_RATE] = {
		"HOST [OPTION...]", "measure the message rate to HOST, where 'perch serve' runs",
		"Keeps the queue pairs of all threads full of small messages, and prints a line for each size. "
		"The rate counts complete messages, in millions a second.",
		{ "perch rate 192.0.2.1 --token-file token --backend verbs --threads 4 -q 4",
		  "perch rate 192.0.2.1 --token-file token --op read -s 8:256 --json" },
	},
	[COMMAND_CHECK] = {
		"lat|bw|transfer|rate HOST [OPTION...]", "validate a command without a host and print its job",
		"Takes a command line of 'perch lat', 'bw', 'transfer' or 'rate'. "
		"Checks it for every backend, without a network, a device or a backend's library. Prints the job "
		"and its expected lines as one JSON object. HOST is not looked up, and no token is read.",
		{ "perch check lat 192.0.2.1 --backend verbs -s 8:64K" },
	},
	[COMMAND_HIST] = {
		"[OPTION...] [FILE...]", "merge encoded histograms and print their quantiles",
		"Reads encoded histograms (the histogram.data of records), one a line, from the files or standard "
		"input. Adds them up and prints one JSON object in the recorded unit.",
		{ "perch hist histograms",
		  "perch hist --quantiles 0.5,0.999 first second" },
	},
	[COMMAND_MEET] = {
		"HOST --flow ID [OPTION...]", "wait at HOST for the other side of a flow",
		"Returns 0 once all parties have arrived, and 4 if they have not within --timeout. With --lines "
		"it takes no host and serves many meetings. A request has id, host, port, flow and timeout_ms; "
		"{\"cancel\": ID} ends it early. Each gets one answer with its id and exit code when it has ended.",
		{ "perch meet 192.0.2.1 --token-file token --flow a",
		  "perch meet --lines --token-file token" },
	},
	[COMMAND_DEVICES] = {
		"[OPTION...]", "list backends, providers and devices of this host",
		"Lists what --backend, --provider and --device can name here.",
		{ "perch devices",
		  "perch devices --json" },
	},
	[COMMAND_COMPLETION] = {
		"bash|zsh", "print what makes a shell complete perch's command line",
		"Prints a script for the shell. For one session: source <(perch completion bash). For every one: "
		"write it to /usr/share/bash-completion/completions/perch, or as _perch to a directory of zsh's fpath.",
		{ "perch completion bash",
		  "perch completion zsh" },
	},
};

void options_print_wrapped(FILE *f, const char *text, int indent) {
	int column = indent;

	while (*text) {
		int n = (int) strcspn(text, " ");

		if (column > indent && column + 1 + n > COLUMNS) {
			fprintf(f, "\n%*s", indent, "");
			column = indent;
		} else if (column > indent) {
			fputc(' ', f);
			column++;
		}
		fprintf(f, "%.*s", n, text);
		column += n;
		text += n + strspn(text + n, " ");
	}
	fputc('\n', f);
}

/* The option's names, and where `text` is too long for the rest of the line, the lines that follow. */
static void print_option(FILE *f, const struct option_entry *e, const char *text) {
	char left[64];
	int n;

	n = e->letter ? snprintf(left, sizeof(left), "  -%c, ", e->letter) : snprintf(left, sizeof(left), "      ");
	n += snprintf(left + n, sizeof(left) - (size_t) n, "--%s%s%s", e->name, e->metavar ? " " : "",
		      e->metavar ? e->metavar : "");
	fputs(left, f);
	if (n > HELP_COLUMN - 2) {
		fputc('\n', f);
		n = 0;
	}
	fprintf(f, "%*s", HELP_COLUMN - n, "");
	options_print_wrapped(f, text, HELP_COLUMN);
}

static void print_described(FILE *f, const struct option_entry *e) {
	char text[512];

	(void) snprintf(text, sizeof(text), "%s%s%s%s", e->help, e->fallback ? " (default: " : "",
			e->fallback ? e->fallback : "", e->fallback ? ")" : "");
	print_option(f, e, text);
}

static void print_options(FILE *f, enum command command) {
	for (int section = 0; section < SECTION_MAX; section++) {
		bool titled = false;

		for (size_t i = 0; option_at(i); i++) {
			const struct option_entry *e = option_at(i);

			if (e->hidden || (int) e->section != section || !option_belongs(e, command))
				continue;
			if (!titled)
				fprintf(f, "\n%s:\n", section_title(e->section));
			titled = true;
			print_described(f, e);
		}
	}
}

static void print_backends(FILE *f) {
	fputs("\nBackends:\n", f);
	for (const struct backend *const *b = backends; *b; b++) {
		int n = fprintf(f, "  %s", (*b)->facts->name);

		fprintf(f, "%*s", MAX(HELP_COLUMN - n, 1), "");
		options_print_wrapped(f, (*b)->facts->summary, HELP_COLUMN);
	}
}

static void print_usage(FILE *f, enum command command) {
	fprintf(f, "Usage: perch %s %s\n\n", command_name(command), command_descriptions[command].arguments);
}

static void print_examples(FILE *f, enum command command) {
	const char *const *examples = command_descriptions[command].examples;

	fputs("\nExamples:\n", f);
	for (size_t i = 0; i < ELEMENTSOF(command_descriptions[command].examples) && examples[i]; i++)
		fprintf(f, "  %s\n", examples[i]);
}

/* Only commands that measure have more options than a screen holds. */
static void print_short(FILE *f, enum command command) {
	const char *summary = command_descriptions[command].summary;

	print_usage(f, command);
	fprintf(f, "%c%s.\n\nMost used options:\n", toupper((unsigned char) summary[0]), summary + 1);
	for (size_t i = 0; option_at(i); i++) {
		const struct option_entry *e = option_at(i);

		if (e->common & 1u << command)
			print_option(f, e, e->brief);
		else if (e->print == options_print_help || e->print == options_print_help_all)
			print_option(f, e, e->help);
	}
	print_examples(f, command);
}

static void print_subcommands(FILE *f) {
	fputs("perch measures the latency and bandwidth of a network fabric between two hosts.\n\n"
	      "Usage: perch SUBCOMMAND [OPERAND...] [OPTION...]\n\nSubcommands:\n", f);
	for (int c = 0; c < COMMAND_MAX; c++)
		fprintf(f, "  %-12s%s\n", command_name(c), command_descriptions[c].summary);
}

void options_print_help(FILE *f, enum command command) {
	if (command >= 0 && !command_measures(command)) {
		options_print_help_all(f, command);
		return;
	}
	if (command >= 0) {
		print_short(f, command);
		return;
	}
	print_subcommands(f);
	fputs("\n'perch SUBCOMMAND --help' lists the most used options, '--help-all' every one.\n"
	      "'perch --help-all' describes the backends:", f);
	for (const struct backend *const *b = backends; *b; b++)
		fprintf(f, " %s", (*b)->facts->name);
	fputs("\n\nExamples:\n"
	      "  perch serve --bind 192.0.2.1 --token-file token\n"
	      "  perch lat 192.0.2.1 --token-file token -s 8:64K\n"
	      "  perch bw 192.0.2.1 --token-file token --backend verbs -D 10\n", f);
}

static void print_exit_status(FILE *f) {
	static const char *const lines[] = {
		"Exit status:",
		"  0  measured                    4  the peer: unknown, lost, refused, timed",
		"  1  measured, outside a limit      out, wrong token or version",
		"  2  wrong command line          5  payload corrupted",
		"  3  this host cannot run it     6  internal, or local input or output",
	};

	fputc('\n', f);
	for (size_t i = 0; i < ELEMENTSOF(lines); i++)
		fprintf(f, "%s\n", lines[i]);
}

void options_print_help_all(FILE *f, enum command command) {
	if (command >= 0) {
		print_usage(f, command);
		options_print_wrapped(f, command_descriptions[command].text, 0);
		print_options(f, command);
		if (command_measures(command))
			print_backends(f);
		print_examples(f, command);
		return;
	}
	options_print_help(f, command);
	print_backends(f);
	fputs("\nAs cxi_{send,write,read,atomic}_{lat,bw} or mori_io_benchmark:\n"
	      "  through a link of that name, or by perch --personality NAME [OPTION...]\n", f);
	print_exit_status(f);
}

void options_print_version(FILE *f, enum command command) {
	(void) command;
	fputs("perch " PERCH_VERSION "\nbackends:", f);
	for (const struct backend *const *b = backends; *b; b++)
		fprintf(f, " %s", (*b)->facts->name);
	fputc('\n', f);
}
