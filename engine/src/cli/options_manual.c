/* SPDX-License-Identifier: Apache-2.0 */
/* perch(1) as man(7) source: the prose stands here, everything about options and backends comes from the tables. */
#include "backends/registry.h"
#include "options.h"
#include "version.h"

/* Text of the tables: a typed hyphen must stay a hyphen-minus, and no line may start with a control character. */
static void put_text(FILE *f, const char *text) {
	if (*text == '.' || *text == '\'')
		fputs("\\&", f);
	for (; *text; text++)
		if (*text == '-')
			fputs("\\-", f);
		else if (*text == '\\')
			fputs("\\e", f);
		else
			fputc(*text, f);
}

static void put_line(FILE *f, const char *text) {
	put_text(f, text);
	fputc('\n', f);
}

static const char head[] =
	".TH PERCH 1 " PERCH_DATE " \"perch " PERCH_VERSION "\" \"User Commands\"\n"
	".SH NAME\n"
	"perch \\- measure the latency and bandwidth of a network fabric between two hosts\n"
	".SH SYNOPSIS\n";

static const char description[] =
	".SH DESCRIPTION\n"
	".B perch\n"
	"measures what a fabric gives an application: latency with its whole distribution, bandwidth, and the\n"
	"processor time that both cost.\n"
	"One side runs\n"
	".BR \"perch serve\" ;\n"
	"the other runs\n"
	".B perch lat\n"
	"or\n"
	".BR \"perch bw\" ,\n"
	"which sends the whole job over, so that the two sides cannot disagree about it.\n"
	"Both sides prove to each other that they know the same token, which itself never travels.\n"
	"Its file must belong to you or root, and be readable by its owner only.\n"
	"Without a token, only loopback is served.\n"
	".PP\n"
	"Options may stand anywhere after the subcommand; long names are written out in full.\n"
	"The letters are those of\n"
	".BR perftest (1),\n"
	"with one difference:\n"
	".B \\-n\n"
	"counts the messages of all queue pairs together.\n"
	"Sizes take K, M and G for powers of 1024 (KiB, MiB and GiB mean the same).\n"
	"Times take ns, us, ms, s, m and h.\n"
	"Rates take K, M and G for powers of 1000.\n";

static const char output[] =
	".SH OUTPUT\n"
	"Standard output carries results only; everything else goes to standard error.\n"
	"The table of\n"
	".B perch lat\n"
	"has the columns Bytes, Sends, Min, Max, Mean and StdDev, as\n"
	".BR cxi_send_lat (1)\n"
	"prints them, then p50, p99 and p99.9.\n"
	"A percentile is left out unless at least ten samples lie above it.\n"
	"The tables of bandwidth and transfers end with Link[%] where the link's rate is known: payload in percent of\n"
	"that rate, of both directions with \\-\\-bidirectional.\n"
	"Headers take the rest: a full RoCE v2 link shows 92 to 98, by its MTU.\n"
	".PP\n"
	"While perch measures, a line on the terminal says what runs and what is left.\n"
	"It is written to standard error, and only where that is a terminal and\n"
	".B TERM\n"
	"is not dumb.\n"
	"When the reader of standard output is gone, the measurement ends at once, by SIGPIPE and without a message.\n"
	".PP\n"
	"With\n"
	".B \\-\\-json\n"
	"each size is one object on a line of its own, written as soon as that size is measured:\n"
	".I schema\n"
	"is \"perch.record/1\", and\n"
	".I kind\n"
	"is latency, bandwidth, interval (only with \\-\\-interval) or sample (only with \\-\\-report\\-all).\n"
	"Units are part of the names; a value that was not measured is null, never 0.\n"
	"Where a measurement fails, the sizes already done keep their lines, and the failing size is one object\n"
	"whose\n"
	".I status\n"
	"is \"error\".\n"
	".I histogram.data\n"
	"is in HdrHistogram's compressed V2 encoding, in nanoseconds as observed;\n"
	".B perch hist\n"
	"merges and reads it.\n";

static const char definitions[] =
	".SH DEFINITIONS\n"
	".TP\n"
	".B half_round_trip\n"
	"Latency of send, and of write where the provider tells the target of an arrival: half of the time from\n"
	"just before the message is posted to the arrival of its echo.\n"
	".TP\n"
	".B completion\n"
	"Latency of read, of atomics, and of write otherwise: the time from just before the operation is posted\n"
	"to its local completion.\n"
	"The record's\n"
	".I completion_level\n"
	"says how far the operation was then.\n"
	".TP\n"
	".B bandwidth\n"
	"Payload bits over time, in Gb/s of 1e9 bits, up to the final acknowledgement of the receiver.\n"
	".TP\n"
	".B percentiles\n"
	"Taken from a histogram with three significant digits, the highest value that counts as equal;\n"
	"minimum, maximum, mean and standard deviation are exact.\n";

static const char personalities[] =
	".SH PERSONALITIES\n"
	"Started through a link named\n"
	".BR cxi_send_lat ,\n"
	"cxi_write_lat, cxi_read_lat, cxi_atomic_lat, cxi_send_bw, cxi_write_bw, cxi_read_bw, cxi_atomic_bw\n"
	"or mori_io_benchmark,\n"
	"or with\n"
	".B \\-\\-personality\n"
	".I NAME\n"
	"as its first words,\n"
	".B perch\n"
	"takes that program's command line and prints its page's layout,\n"
	"over the backend cxi, and MORI-IO's benchmark over verbs.\n"
	"Both ends must be\n"
	".BR perch ,\n"
	"because its protocol is not the original's.\n";

static const char exit_status[] =
	".SH EXIT STATUS\n"
	".TP\n.B 0\nMeasured, within every limit given.\n"
	".TP\n.B 1\nMeasured, but outside a limit given on the command line.\n"
	".TP\n.B 2\nThe command line is wrong.\n"
	".TP\n.B 3\nThis host cannot run it: no device, provider, permission or memory, or the port is in use.\n"
	".TP\n.B 4\nThe peer: name not resolved, lost, refused, timed out, cannot run it, wrong token or version.\n"
	".TP\n.B 5\nPayload corrupted.\n"
	".TP\n.B 6\nInternal error, local input or output, or the device lost in the middle.\n"
	".SH ENVIRONMENT\n"
	".TP\n"
	".B PERCH_TOKEN_FILE\n"
	"The same as\n"
	".BR \\-\\-token\\-file ,\n"
	"which outranks it.\n"
	".TP\n"
	".BR FI_ *\n"
	"Read by libfabric; see\n"
	".BR fabric (7).\n";

static const char examples[] =
	".SH EXAMPLES\n"
	"A secret for both hosts, and a server:\n"
	".PP\n"
	".EX\n"
	"(umask 077; openssl rand \\-hex 32 > token)\n"
	"perch serve \\-\\-bind 192.0.2.1 \\-\\-token\\-file token\n"
	".EE\n"
	".PP\n"
	"Latency of each power of two from 8 bytes to 64 KiB, and bandwidth for ten seconds over libfabric:\n"
	".PP\n"
	".EX\n"
	"perch lat 192.0.2.1 \\-\\-token\\-file token \\-\\-size 8:64K\n"
	"perch bw 192.0.2.1 \\-\\-token\\-file token \\-\\-backend ofi \\-\\-duration 10s \\-\\-json\n"
	".EE\n"
	".PP\n"
	"Quantiles over several runs:\n"
	".PP\n"
	".EX\n"
	"jq \\-r .histogram.data run1.jsonl run2.jsonl | perch hist \\-\\-quantiles 0.5,0.999\n"
	".EE\n"
	".SH SEE ALSO\n"
	".BR fi_info (1),\n"
	".BR fi_pingpong (1),\n"
	".BR ib_send_lat (1),\n"
	".BR cxi_send_lat (1),\n"
	".BR iperf3 (1),\n"
	".BR fabric (7)\n";

static void put_synopsis(FILE *f) {
	for (int c = 0; c < COMMAND_MAX; c++) {
		fprintf(f, "%s.B perch %s\n", c ? ".br\n" : "", command_name(c));
		put_line(f, command_descriptions[c].arguments);
	}
	fputs(".br\n.B perch\n\\-\\-help | \\-\\-help\\-all | \\-\\-version\n", f);
}

static void put_commands(FILE *f) {
	fputs(".SH COMMANDS\n", f);
	for (int c = 0; c < COMMAND_MAX; c++) {
		fprintf(f, ".TP\n.B %s\n", command_name(c));
		put_line(f, command_descriptions[c].text);
	}
}

static void put_option(FILE *f, const struct option_entry *e) {
	char commands[128];

	fputs(".TP\n\\fB", f);
	if (e->letter)
		fprintf(f, "\\-%c\\fR, \\fB", e->letter);
	fputs("\\-\\-", f);
	put_text(f, e->name);
	fputs("\\fR", f);
	if (e->metavar)
		fprintf(f, " \\fI%s\\fR", e->metavar);
	fputc('\n', f);
	put_line(f, e->help);
	if (e->fallback) {
		fputs("Default: ", f);
		put_text(f, e->fallback);
		fputs(".\n", f);
	}
	if (e->commands)
		fprintf(f, "(%s)\n", option_commands(e, commands, sizeof(commands)));
}

static void put_options(FILE *f) {
	fputs(".SH OPTIONS\n", f);
	for (int section = 0; section < SECTION_MAX; section++) {
		fprintf(f, ".SS %s\n", section_title((enum option_section) section));
		for (size_t i = 0; option_at(i); i++)
			if ((int) option_at(i)->section == section && !option_at(i)->hidden)
				put_option(f, option_at(i));
	}
}

static void put_backends(FILE *f) {
	fputs(".SH BACKENDS\n", f);
	for (const struct backend *const *b = backends; *b; b++) {
		fprintf(f, ".TP\n.B %s\n", (*b)->facts->name);
		put_line(f, (*b)->facts->summary);
	}
}

void options_print_manual(FILE *f, enum command command) {
	(void) command;
	fputs(head, f);
	put_synopsis(f);
	fputs(description, f);
	put_commands(f);
	put_options(f);
	put_backends(f);
	fputs(output, f);
	fputs(definitions, f);
	fputs(personalities, f);
	fputs(exit_status, f);
	fputs(examples, f);
}

/* One cell of Markdown. */
static void put_cell(FILE *f, const char *text) {
	for (; *text; text++)
		fprintf(f, *text == '|' || *text == '<' || *text == '*' ? "\\%c" : "%c", *text);
}

void options_print_markdown(FILE *f, enum command command) {
	char commands[128];

	(void) command;
	fputs("| option | subcommands | default | meaning |\n|---|---|---|---|\n", f);
	for (int section = 0; section < SECTION_MAX; section++)
		for (size_t i = 0; option_at(i); i++) {
			const struct option_entry *e = option_at(i);

			if ((int) e->section != section || e->hidden)
				continue;
			fputs("| ", f);
			if (e->letter)
				fprintf(f, "`-%c`, ", e->letter);
			fprintf(f, "`--%s%s%s` | %s | ", e->name, e->metavar ? " " : "", e->metavar ? e->metavar : "",
				e->commands ? option_commands(e, commands, sizeof(commands)) : "all");
			put_cell(f, e->fallback ? e->fallback : "-");
			fputs(" | ", f);
			put_cell(f, e->help);
			fputs(" |\n", f);
		}
}
