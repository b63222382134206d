/* SPDX-License-Identifier: Apache-2.0 */
/* What --help and --version print, from the tables. */
#include "backend.h"
#include "options.h"
#include "version.h"

enum {
	COLUMNS = 80,           /* of a terminal that nobody has widened */
	HELP_COLUMN = 30,       /* where an option's sentence begins */
};

const struct command_description command_descriptions[COMMAND_MAX] = {
	[COMMAND_SERVE] = {
		"[OPTION...]", "wait for measurements and take the other side of them",
		"Listens until SIGTERM and serves any number of clients, each measurement in a process of its "
		"own. Without a token it listens on loopback only.",
	},
	[COMMAND_LAT] = {
		"HOST [OPTION...]", "measure latency to HOST, where 'perch serve' runs",
		"Measures one message after the other and prints a line for each size. Latencies are in "
		"microseconds; half_round_trip is half of the observed round trip.",
	},
	[COMMAND_BW] = {
		"HOST [OPTION...]", "measure bandwidth to HOST, where 'perch serve' runs",
		"Keeps many messages under way and prints a line for each size. Bandwidth counts payload only, in "
		"Gb/s of 1e9 bits.",
	},
	[COMMAND_TRANSFER] = {
		"HOST [OPTION...]", "measure batches of transfers to HOST, where 'perch serve' runs",
		"Writes to, or reads from, the memory of HOST in batches, on several devices and threads at once, as applications "
		"do that move tensors or checkpoints. Prints a line for each size and batch. Latency is that of a batch; bandwidth "
		"counts payload only, in GB/s of 1e9 bytes.",
	},
	[COMMAND_CHECK] = {
		"lat|bw|transfer HOST [OPTION...]", "validate a command without a host and print its job",
		"Takes the words that 'perch lat', 'perch bw' or 'perch transfer' would be given, checks all that can be checked without "
		"a network, a device or a backend's library, for every backend, and prints the job and the lines that it owes as one "
		"JSON object. HOST is not looked up, and no token is read.",
	},
	[COMMAND_HIST] = {
		"[OPTION...] [FILE...]", "merge encoded histograms and print their quantiles",
		"Reads encoded histograms (the histogram.data of records), one a line, from the files or from "
		"standard input, adds them up and prints one JSON object in the unit recorded.",
	},
	[COMMAND_MEET] = {
		"HOST --flow ID [OPTION...]", "wait at HOST for the other side of a flow",
		"Returns 0 once all parties have arrived, and 4 if they have not within --timeout.",
	},
	[COMMAND_DEVICES] = {
		"[OPTION...]", "list backends, providers and devices of this host",
		"Lists what --backend, --provider and --device can name here.",
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

static void print_option(FILE *f, const struct option_entry *e) {
	char left[64], text[512];
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
	(void) snprintf(text, sizeof(text), "%s%s%s%s", e->help, e->fallback ? " (default: " : "",
			e->fallback ? e->fallback : "", e->fallback ? ")" : "");
	options_print_wrapped(f, text, HELP_COLUMN);
}

static void print_options(FILE *f, enum command command) {
	for (int section = 0; section < SECTION_MAX; section++) {
		bool titled = false;

		for (size_t i = 0; i < option_table_size; i++) {
			const struct option_entry *e = option_table + i;

			if (e->hidden || (int) e->section != section || !option_belongs(e, command))
				continue;
			if (!titled)
				fprintf(f, "\n%s:\n", section_title(e->section));
			titled = true;
			print_option(f, e);
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

static void print_command_help(FILE *f, enum command command) {
	const struct command_description *d = command_descriptions + command;

	fprintf(f, "Usage: perch %s %s\n\n", command_name(command), d->arguments);
	options_print_wrapped(f, d->text, 0);
	print_options(f, command);
	if (command_measures(command))
		print_backends(f);
}

void options_print_help(FILE *f, enum command command) {
	if (command >= 0) {
		print_command_help(f, command);
		return;
	}
	fputs("perch measures the latency and bandwidth of a network fabric between two hosts.\n\n"
	      "Usage: perch SUBCOMMAND [OPERAND...] [OPTION...]\n\nSubcommands:\n", f);
	for (int c = 0; c < COMMAND_MAX; c++)
		fprintf(f, "  %-10s%s\n", command_name(c), command_descriptions[c].summary);
	fputs("\n'perch SUBCOMMAND --help' lists the subcommand's options.\n", f);
	print_backends(f);
	fputs("\nIn the place of cxi_send_lat or a sister, cxi_{send,write,read,atomic}_{lat,bw}:\n"
	      "  through a link of that name, or by perch --personality NAME [OPTION...]\n", f);
	fputs("\nExamples:\n"
	      "  perch serve --bind 192.0.2.1 --token-file token\n"
	      "  perch lat 192.0.2.1 --token-file token --size 8:64K\n"
	      "  perch bw 192.0.2.1 --token-file token --backend ofi --duration 10s --json\n"
	      "\nExit status:\n"
	      "  0  measured                    4  the peer: unknown, lost, refused, timed\n"
	      "  1  measured, outside a limit      out, wrong token or version\n"
	      "  2  wrong command line          5  payload corrupted\n"
	      "  3  this host cannot run it     6  internal, or local input or output\n", f);
}

void options_print_version(FILE *f, enum command command) {
	(void) command;
	fputs("perch " PERCH_VERSION "\nbackends:", f);
	for (const struct backend *const *b = backends; *b; b++)
		fprintf(f, " %s", (*b)->facts->name);
	fputc('\n', f);
}
