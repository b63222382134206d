/* SPDX-License-Identifier: Apache-2.0 */
/* Purpose: one table gives parsing, help and manual; every wrong command line is a usage error with a remedy. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "command_line.h"

/* `text` begins after "perch". */
static int parse(const char *text) {
	char line[1024];

	(void) snprintf(line, sizeof(line), "perch %s", text);
	return parse_line(line);
}

static void refused(const char *text, const char *part) {
	char line[1024];

	(void) snprintf(line, sizeof(line), "perch %s", text);
	refused_line(line, part);
}

static void test_defaults(void **state) {
	(void) state;
	unsetenv("PERCH_TOKEN_FILE");
	assert_int_equal(parse("lat host"), 0);
	assert_int_equal(options.command, COMMAND_LAT);
	assert_string_equal(options.host, "host");
	assert_string_equal(options.job.backend, "tcp");
	assert_int_equal(options.job.kind, KIND_LATENCY);
	assert_int_equal(options.job.n_sizes, 1);
	assert_int_equal(options.job.sizes[0], 8);
	assert_int_equal(options.job.iterations, 1000);
	assert_int_equal(options.job.warmup, 0);
	assert_int_equal(options.job.warmup_ns, 200 * NSEC_PER_MSEC);
	assert_int_equal(options.job.outstanding, 1);
	assert_int_equal(options.job.definition, DEFINITION_AUTO);
	assert_int_equal(options.port, 18600);
	assert_int_equal(options.timeout_ns, 30 * NSEC_PER_SEC);
	assert_int_equal(options.job.timeout_ns, options.timeout_ns);
	assert_string_equal(options.job.cpu, "");
	assert_string_equal(options.token_file, "");

	assert_int_equal(parse("bw host"), 0);
	assert_int_equal(options.job.kind, KIND_BANDWIDTH);
	assert_int_equal(options.job.sizes[0], 65536);
	assert_int_equal(options.job.iterations, 5000);
	assert_int_equal(options.job.outstanding, 64);

	assert_int_equal(parse("bw host --op atomic"), 0);
	assert_int_equal(options.job.op, OP_FETCH_ADD);
	assert_int_equal(options.job.sizes[0], 8);
}

static void test_every_value(void **state) {
	(void) state;
	assert_int_equal(parse("lat --backend ofi --provider tcp;ofi_rxm --device lo --op compare-swap --size 8:32 "
			       "--definition completion --duration 2 --warmup 0 --gap 10 --completion event "
			       "--clock cycles --cpu 3-4,8 --numa 1 --server-cpu auto --server-numa off --verify "
			       "--max-p99 12.5 --json --interval 500ms --port 65535 "
			       "--bind ::1 --token-file /t --timeout 1m --outstanding=1 fe80::1%eth0"), 0);
	assert_string_equal(options.job.provider, "tcp;ofi_rxm");
	assert_string_equal(options.job.device, "lo");
	assert_int_equal(options.job.op, OP_COMPARE_SWAP);
	assert_int_equal(options.job.n_sizes, 3);
	assert_int_equal(options.job.definition, DEFINITION_COMPLETION);
	assert_int_equal(options.job.duration_ns, 2 * NSEC_PER_SEC);
	assert_int_equal(options.job.iterations, 0);
	assert_int_equal(options.job.warmup, 0);
	assert_int_equal(options.job.warmup_ns, 0);
	assert_int_equal(options.job.gap_ns, 10 * NSEC_PER_USEC);
	assert_int_equal(options.job.completion, COMPLETION_EVENT);
	assert_int_equal(options.job.clock, CLOCK_KIND_CYCLES);
	assert_string_equal(options.job.cpu, "3-4,8");
	assert_string_equal(options.job.numa, "1");
	assert_string_equal(options.job.server_cpu, "auto");
	assert_string_equal(options.job.server_numa, "off");
	assert_true(options.job.verify && options.json);
	assert_true(options.max_p99_us == 12.5);
	assert_int_equal(options.job.interval_ns, 500 * NSEC_PER_MSEC);
	assert_int_equal(options.port, 65535);
	assert_string_equal(options.bind, "::1");
	assert_int_equal(options.job.timeout_ns, 60 * NSEC_PER_SEC);
	assert_string_equal(options.host, "fe80::1%eth0");

	/* A bare number counts messages; of two the last holds. */
	assert_int_equal(parse("lat h --warmup 7 --warmup 1.5s"), 0);
	assert_int_equal(options.job.warmup, 0);
	assert_int_equal(options.job.warmup_ns, 1500 * NSEC_PER_MSEC);
	assert_int_equal(parse("lat h --warmup 1.5s --warmup 7"), 0);
	assert_int_equal(options.job.warmup, 7);
	assert_int_equal(options.job.warmup_ns, 0);

	assert_int_equal(parse("bw h --bidirectional --outstanding 8 --rate 5Gb/s --min-gbit 2 --iterations 7"), 0);
	assert_true(options.job.bidirectional && options.min_gbit == 2);
	assert_int_equal(options.job.outstanding, 8);
	assert_int_equal(options.job.rate_unit, RATE_BITS);
	assert_true(options.job.rate == 5e9);
	assert_int_equal(options.job.iterations, 7);

	assert_int_equal(parse("serve --device eth0 --ready-file /r"), 0);
	assert_string_equal(options.job.device, "eth0");
	assert_int_equal(parse("meet h --flow a/b/c/0/1 --parties 3"), 0);
	assert_int_equal(options.parties, 3);
	assert_int_equal(parse("hist --quantiles 0.5,0.9 --distribution a - b"), 0);
	assert_int_equal(options.n_quantiles, 2);
	assert_int_equal(options.n_files, 3);
	assert_string_equal(options.files[1], "-");
	assert_int_equal(parse("devices --json"), 0);
	assert_int_equal(parse("completion zsh"), 0);
	assert_int_equal(options.shell, SHELL_ZSH);
}

static void test_choices(void **state) {
	(void) state;
	assert_int_equal(parse("bw h"), 0);
	for (size_t i = 0; i < ELEMENTSOF(options.given); i++)
		assert_false(options.given[i]);
	assert_int_equal(parse("bw h --backend verbs --connection uc --op write-imm --device d0 --server-device d1 "
			       "--ib-port 2 --server-ib-port 3 --gid-index 0 --server-gid-index 255 --mtu 1024 --sl 15 "
			       "--tos 104 --queue-pairs 4 --batch 2 "
			       "--cq-moderation 8 --inline 0 --srq --rdma-cm --relaxed-ordering off --huge 1G"), 0);
	assert_int_equal(options.job.verbs.connection, CONNECTION_UC);
	assert_int_equal(options.job.op, OP_WRITE_IMM);
	assert_string_equal(options.job.device, "d0");
	assert_string_equal(options.job.server_device, "d1");
	assert_int_equal(options.job.verbs.ib_port, 2);
	assert_int_equal(options.job.verbs.server_ib_port, 3);
	assert_int_equal(options.job.verbs.gid_index, 0);
	assert_int_equal(options.job.verbs.server_gid_index, 255);
	assert_int_equal(options.job.verbs.mtu, 1024);
	assert_int_equal(options.job.verbs.sl, 15);
	assert_int_equal(options.job.verbs.traffic_class, 104);
	assert_int_equal(options.job.queue_pairs, 4);
	assert_int_equal(options.job.batch, 2);
	assert_int_equal(options.job.cq_moderation, 8);
	assert_int_equal(options.job.verbs.inline_bytes, 0);
	assert_true(options.job.verbs.srq && options.job.verbs.rdma_cm);
	assert_int_equal(options.job.verbs.relaxed_ordering, RELAXED_ORDERING_OFF);
	assert_string_equal(options.job.tx_memory, "huge:1G");
	assert_string_equal(options.job.rx_memory, "huge:1G");
	assert_int_equal(parse("lat h --backend verbs --retry 0 --rnr-retry 1 --timeout-exponent 18 --huge 2M "
			       "--traffic-class 3"), 0);
	assert_int_equal(options.job.verbs.retry, 0);
	assert_int_equal(options.job.verbs.rnr_retry, 1);
	assert_int_equal(options.job.verbs.timeout_exponent, 18);
	assert_string_equal(options.job.rx_memory, "huge:2M");
	assert_int_equal(options.job.verbs.traffic_class, 3);
	assert_int_equal(options.job.verbs.sl, -1);
	assert_int_equal(options.job.verbs.gid_index, -1);

	/* One field under several names: the last word counts. */
	assert_int_equal(parse("lat h --huge 2M --rx-memory cuda --tx-memory rocm:1 --bounce"), 0);
	assert_string_equal(options.job.tx_memory, "rocm:1");
	assert_string_equal(options.job.rx_memory, "cuda:0");
	assert_true(options.job.bounce);
	assert_int_equal(parse("lat h --memory ze --huge 1G"), 0);
	assert_string_equal(options.job.tx_memory, "huge:1G");

	assert_int_equal(parse("serve --device d0 --ib-port 1 --gid-index 3"), 0);
	assert_int_equal(options.job.verbs.ib_port, 1);
	assert_int_equal(options.job.verbs.gid_index, 3);
}

/* What fingers type that know perftest. */
static void test_short_options(void **state) {
	(void) state;
	assert_int_equal(parse("bw h --backend verbs -d mlx5_0 -s 64:256 -n 7 -q 4 -x 3 -F -p 18515"), 0);
	assert_string_equal(options.job.device, "mlx5_0");
	assert_int_equal(options.job.n_sizes, 3);
	assert_int_equal(options.job.iterations, 7);
	assert_int_equal(options.job.queue_pairs, 4);
	assert_int_equal(options.job.verbs.gid_index, 3);
	assert_int_equal(options.port, 18515);
	assert_false(options.job.ignore_mismatch); /* -F speaks of a clock that is not in use */
	assert_int_equal(options_validate(&options), 0);

	assert_int_equal(parse("lat -FD10 -s64K h --clock cycles"), 0); /* a cluster, and values without a blank */
	assert_int_equal(options.job.duration_ns, 10 * NSEC_PER_SEC);
	assert_int_equal(options.job.sizes[0], 65536);
	assert_true(options.job.ignore_mismatch);

	assert_int_equal(parse("transfer h --backend verbs -d mlx5_0 -s 4K -n 5 -q 2 -x 1 -F -p 1"), 0);
	assert_int_equal(options.job.queue_pairs, 2);
	assert_int_equal(parse("serve -d mlx5_0 -x 3 -p 18515"), 0);
	assert_int_equal(options.job.verbs.gid_index, 3);
}

/* An option that a backend does not have is refused even with its default as value. */
static void test_choices_of_other_backends(void **state) {
	(void) state;
	refused("bw h --queue-pairs 4", "--queue-pairs: the tcp backend does not have it");
	refused("bw h --queue-pairs 1", "--queue-pairs: the tcp backend does not have it");
	refused("lat h --retry 7", "--retry: the tcp backend does not have it; give --backend verbs");
	refused("lat h --connection rc", "--connection: the tcp backend does not have it");
	refused("lat h --backend null --srq --tos 0", "--tos: the null backend does not have it");
	refused("lat h --gid-index 1", "--gid-index: the tcp backend does not have it");
	refused("lat h --queue-pairs 4", "belongs to: bw");
	refused("serve --mtu 1024", "belongs to: lat, bw");
}

static void test_bad_choices(void **state) {
	(void) state;
	refused("lat h --connection dc", "rc, uc or ud");
	refused("lat h --ib-port 0", "out of range");
	refused("lat h --ib-port 256", "from 1 to 255");
	refused("lat h --gid-index -1", "--gid-index '-1'");
	refused("lat h --gid-index 256", "from 0 to 255");
	refused("lat h --mtu 1500", "256, 512, 1024, 2048 or 4096");
	refused("lat h --mtu 4K", "256, 512, 1024, 2048 or 4096");
	refused("lat h --mtu 0", "out of range");
	refused("lat h --sl 16", "0 to 15");
	refused("lat h --tos 256", "0 to 255");
	refused("bw h --queue-pairs 0", "1 to 1024");
	refused("bw h --queue-pairs 1025", "1 to 1024");
	refused("bw h --batch 0", "out of range");
	refused("bw h --cq-moderation 0", "out of range");
	refused("lat h --inline 65537", "0 to 65536");
	refused("lat h --inline auto", "not understood");
	refused("lat h --retry 8", "0 to 7");
	refused("lat h --rnr-retry 8", "0 to 7");
	refused("lat h --timeout-exponent 32", "0 to 31");
	refused("lat h --huge 4K", "2M or 1G");
	refused("lat h --huge", "--huge needs a value");
	refused("lat h --memory gpu", "cuda[:GPU]");
	refused("lat h --tx-memory huge:4K", "huge:2M");
	refused("lat h --rx-memory cuda:256", "rocm[:GPU]");
	refused("lat h --srq=1", "--srq takes no value");
}

static void test_token_environment(void **state) {
	(void) state;
	setenv("PERCH_TOKEN_FILE", "/from/environment", 1);
	assert_int_equal(parse("serve"), 0);
	assert_string_equal(options.token_file, "/from/environment");
	assert_int_equal(parse("serve --token-file /given"), 0);
	assert_string_equal(options.token_file, "/given");
	setenv("PERCH_TOKEN_FILE", "", 1);
	assert_int_equal(parse("serve"), 0);
	assert_string_equal(options.token_file, "");
	unsetenv("PERCH_TOKEN_FILE");
}

static void test_bad_values(void **state) {
	(void) state;
	refused("lat h --size 12Q", "--size '12Q'");
	refused("lat h --size 0", "out of range");
	refused("lat h --size 64K:1", "--size '64K:1' is a range whose MAX is below its MIN");
	refused("transfer h --batch 8:4", "--batch '8:4' is a range whose MAX is below its MIN");
	refused("lat h --size ", "--size ''");
	refused("lat h --size 1:1000:1", "too many");
	refused("lat h --iterations 0", "--iterations '0'");
	refused("lat h --iterations -5", "--iterations '-5'");
	refused("lat h --iterations 99999999999999999999", "out of range");
	refused("lat h --duration 0", "out of range");
	refused("lat h --duration 5x", "500ms, 10s");
	refused("lat h --timeout 0", "--timeout '0'");
	refused("lat h --timeout 25h", "out of range");
	refused("lat h --op put", "send, send-imm, write, write-imm, read, fetch-add, compare-swap");
	refused("lat h --completion sleep", "busy or event");
	refused("lat h --clock sun", "monotonic or cycles");
	refused("lat h --definition x", "auto, half_round_trip or completion");
	refused("lat h --rate 1000", "1000msg/s");
	refused("lat h --max-p99 0", "--max-p99 '0'");
	refused("lat h --port 65536", "1 to 65535");
	refused("lat h --port 0", "1 to 65535");
	refused("lat h --cpu -1", "--cpu '-1'");
	refused("lat h --cpu 1024", "out of range");
	refused("bw h --cpu 3-1", "auto, off, or CPU numbers and ranges from 0 to 1023");
	refused("bw h --cpu aut", "did you mean 'auto'");
	refused("transfer h --server-cpu 1,", "--server-cpu '1,'");
	refused("transfer h --numa 1024", "out of range");
	refused("lat h --server-numa 0-1", "auto, off, or the number of a NUMA node");
	refused("bw h --outstanding 16385", "1 to 16384");
	refused("bw h --provider aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "too long");
	refused("meet h --flow f --parties 0", "from 1");
	refused("hist --quantiles 1.5", "out of range");
}

static void test_bad_combinations(void **state) {
	(void) state;
	refused("lat h --iterations 5 --duration 5s", "exclude each other");
	refused("lat h --gap 5us --rate 5Gb/s", "both set the pace");
	refused("lat h --report-all --duration 5s", "--report-all");
	refused("lat h --report-all --iterations 10000001", "at most 10000000");
	refused("lat h --outstanding 2", "perch bw");
	refused("lat h --bidirectional", "belongs to: bw");
	refused("serve --size 8", "belongs to: lat, bw");
	refused("bw h --report-all", "belongs to: lat");
	refused("hist --port 5", "belongs to: serve, lat, bw, transfer, rate, meet");
	refused("meet h", "--flow");
	refused("meet --lines --flow f", "exclude each other");
	refused("meet --lines h", "takes no operand such as 'h'");
}

static void test_bad_words(void **state) {
	char *nothing[] = { (char *) "perch", NULL };

	(void) state;
	assert_true(options_parse(1, nothing, &options) < 0);
	refused("measure", "'measure' is no subcommand");
	refused("--json", "'--json' is no subcommand");
	refused("lat", "needs the host");
	refused("lat ", "empty");
	refused("lat a b", "'b' is a second operand");
	refused("serve host", "'host'");
	refused("lat h --frobnicate", "unknown option '--frobnicate'");
	refused("lat h -z", "unknown option '-z'");
	refused("lat h -zrs", "unknown option '-z'");
	refused("lat h -n", "--iterations needs a value");
	refused("lat h -q 4", "perch lat has no option -q (--queue-pairs); it belongs to: bw, transfer");
	refused("lat h -Fq4", "perch lat has no option -q (--queue-pairs); it belongs to: bw, transfer");
	refused("lat h --queue-pairs 4", "perch lat has no option --queue-pairs; it belongs to: bw, transfer");
	refused("lat h --iter 5", "unknown option '--iter'"); /* no shortening: names are a contract */
	refused("lat h --iterations", "--iterations needs a value");
	refused("lat h --json=yes", "--json takes no value");
}

static void test_did_you_mean(void **state) {
	(void) state;
	refused("lat h --sise 8", "unknown option '--sise', did you mean '--size'?");
	refused("lat h --sise=8", "unknown option '--sise', did you mean '--size'?");
	refused("lat h --iter 5", "did you mean '--iterations'?"); /* the only one that begins so */
	refused("bw h --queue-piars 4", "did you mean '--queue-pairs'?");
	refused("lat h --personalit x", "'perch lat --help-all' lists the options"); /* --personality is hidden */
	refused("lat h --frobnicate", "'perch lat --help-all' lists the options");
	refused("ltt h", "'ltt' is no subcommand, did you mean 'lat'?");
	refused("devcies", "did you mean 'devices'?");
	refused("--hlep", "'--hlep' is no subcommand, did you mean '--help'?");
	refused("--versoin", "did you mean '--version'?");
	refused("--json", "'--json' is no subcommand; give serve, lat,");
	refused("completion", "needs a shell; give bash or zsh");
	refused("completion fish", "no completion for 'fish'; give bash or zsh");
	refused("completion bsh", "did you mean 'bash'?");
	refused("completion bash zsh", "'zsh' is a second operand");

	refused("lat h --backend verb", "--backend 'verb' is not understood, did you mean 'verbs'?");
	refused("lat h --backend rdma", "give tcp, verbs, ofi, cxi or null");
	refused("lat h --backend OFI", "did you mean 'ofi'?");
	refused("lat h --op sedn", "did you mean 'send'?");
	refused("lat h --connection xrc", "did you mean 'rc'?");
	refused("lat h --completion evnt", "did you mean 'event'?");
	refused("lat h --traffic-class best-efort", "did you mean 'best-effort'?");
	refused("lat h --memory huge:2m", "did you mean 'huge:2M'?");
	refused("lat h --atomic-type uint23", "did you mean 'uint32'?");
}

static void test_letters_of_units(void **state) {
	(void) state;
	refused("lat h --size 64k", "--size '64k': K, M and G are upper case, did you mean '64K'?");
	refused("lat h --size 64k:1m", "did you mean '64K:1M'?");
	refused("lat h -s 64KB", "did you mean '64K'?");
	refused("lat h --size 8K:64kib:8k", "did you mean '8K:64K:8K'?");
	refused("bw h --rate 5gb/s", "did you mean '5Gb/s'?");
	refused("lat h --duration 5S", "--duration '5S': units are lower case, did you mean '5s'?");
	refused("lat h --size 5g", "--size '5g' is not understood"); /* 5G would be too much */
	refused("lat h --warmup 1.5", "--warmup '1.5' is not understood; give a time below a year such as 500ms");
	refused("lat h --warmup 9000h", "--warmup '9000h'");
	refused("lat h --warmup 2000000000000000", "--warmup '2000000000000000'");
	refused("lat h --size k", "--size 'k' is not understood");
}

static char *capture(void (*print)(FILE *f, enum command command), enum command command) {
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	assert_non_null(f);
	print(f, command);
	(void) fclose(f);
	return text;
}

/* As an entry of its own, not in a sentence; and "--gap" must not be found in "--gaps". */
static bool lists(const char *help, const struct option_entry *e) {
	char word[64];
	size_t n;

	if (e->letter)
		n = (size_t) snprintf(word, sizeof(word), "\n  -%c, --%s", e->letter, e->name);
	else
		n = (size_t) snprintf(word, sizeof(word), "\n      --%s", e->name);
	while ((help = strstr(help, word)) && help[n] != ' ' && help[n] != '\n')
		help += n;
	return help != NULL;
}

static void test_table_is_sound(void **state) {
	(void) state;
	for (size_t i = 0; option_at(i); i++) {
		const struct option_entry *e = option_at(i);
		bool takes_value = e->type != OPTION_FLAG && e->type != OPTION_PRINT;

		assert_non_null(e->help);
		assert_int_equal(e->help[strlen(e->help) - 1], '.');
		assert_true(takes_value == (e->metavar != NULL));
		assert_true(takes_value == (e->accepts || e->choices));
		for (size_t j = 0; e->type == OPTION_CUSTOM && e->choices && e->choices[j]; j++)
			if (option_store(e, e->choices[j], &options) < 0)
				fail_msg("--%s refuses %s", e->name, e->choices[j]);
		assert_true((e->section == SECTION_INFORMATION) == (e->commands == 0));
		for (size_t j = 0; j < i; j++) {
			assert_string_not_equal(e->name, option_at(j)->name);
			assert_true(!e->letter || e->letter != option_at(j)->letter);
		}
	}
}

static size_t lines_of(const char *text) {
	size_t n = 0;

	for (const char *line = text; *line; line = strchr(line, '\n') + 1) {
		assert_true(strcspn(line, "\n") <= 80);
		n++;
	}
	return n;
}

static void test_help_lists_every_option(void **state) {
	(void) state;
	for (int c = 0; c < COMMAND_MAX; c++) {
		_cleanup_free_ char *help = capture(options_print_help_all, (enum command) c);

		for (size_t i = 0; option_at(i); i++) {
			const struct option_entry *e = option_at(i);
			bool expected = !e->hidden && option_belongs(e, (enum command) c);

			if (lists(help, e) != expected)
				fail_msg("perch %s --help-all and --%s", command_name(c), e->name);
		}
		(void) lines_of(help);
	}
}

/* Ten options, each in one line, and all of it on a terminal of 24 lines. */
static void test_short_help_fits_a_screen(void **state) {
	(void) state;
	for (int c = -1; c < COMMAND_MAX; c++) {
		_cleanup_free_ char *help = capture(options_print_help, c < 0 ? COMMAND_INVALID : (enum command) c);
		size_t common = 0;

		if (lines_of(help) > (c < 0 || command_measures((enum command) c) ? 24 : 60))
			fail_msg("perch %s --help has %zu lines", c < 0 ? "" : command_name(c), lines_of(help));
		for (size_t i = 0; c >= 0 && option_at(i); i++) {
			const struct option_entry *e = option_at(i);
			bool is_common = e->common & 1u << c;

			assert_true(!is_common || (option_belongs(e, (enum command) c) && e->brief && lists(help, e)));
			common += is_common;
		}
		assert_true(c < 0 || common == (command_measures((enum command) c) ? 10 : 0));
		assert_non_null(strstr(help, "--help-all"));
	}
}

static void test_examples_are_right(void **state) {
	(void) state;
	for (int c = 0; c < COMMAND_MAX; c++) {
		const struct command_description *d = command_descriptions + c;

		assert_non_null(d->examples[0]);
		for (size_t i = 0; i < ELEMENTSOF(d->examples) && d->examples[i]; i++) {
			assert_int_equal(parse_line(d->examples[i]), 0);
			assert_int_equal(options.command, c);
			if (command_measures(options.command))
				assert_int_equal(options_validate(&options), 0);
		}
	}
}

static void test_manual_lists_everything(void **state) {
	_cleanup_free_ char *manual = capture(options_print_manual, COMMAND_INVALID);

	(void) state;
	for (size_t i = 0; option_at(i); i++) {
		const struct option_entry *e = option_at(i);
		char name[64], *p = name;

		for (const char *q = e->name; *q; q++) {
			if (*q == '-')
				*p++ = '\\';
			*p++ = *q;
		}
		memcpy(p, "\\fR", 4);
		if ((strstr(manual, name) != NULL) == e->hidden)
			fail_msg("the manual and --%s", e->name);
	}
	for (int c = 0; c < COMMAND_MAX; c++) {
		char entry[64];

		(void) snprintf(entry, sizeof(entry), ".TP\n.B %s\n", command_name(c));
		assert_non_null(strstr(manual, entry));
	}
}

static void test_commands(void **state) {
	(void) state;
	for (int c = 0; c < COMMAND_MAX; c++)
		assert_int_equal(command_from_name(command_name(c)), c);
	assert_int_equal(command_from_name("nothing"), COMMAND_INVALID);
	assert_null(command_name(COMMAND_INVALID));
	assert_null(command_name(COMMAND_MAX));
}

int main(void) {
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_every_value),
		cmocka_unit_test(test_choices),
		cmocka_unit_test(test_short_options),
		cmocka_unit_test(test_choices_of_other_backends),
		cmocka_unit_test(test_bad_choices),
		cmocka_unit_test(test_token_environment),
		cmocka_unit_test(test_bad_values),
		cmocka_unit_test(test_bad_combinations),
		cmocka_unit_test(test_bad_words),
		cmocka_unit_test(test_did_you_mean),
		cmocka_unit_test(test_letters_of_units),
		cmocka_unit_test(test_table_is_sound),
		cmocka_unit_test(test_help_lists_every_option),
		cmocka_unit_test(test_short_help_fits_a_screen),
		cmocka_unit_test(test_examples_are_right),
		cmocka_unit_test(test_manual_lists_everything),
		cmocka_unit_test(test_commands),
	};

	return cmocka_run_group_tests_name("options", tests, NULL, NULL);
}
