/* SPDX-License-Identifier: Apache-2.0 */
#include "soak.h"

#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#include "measure/exchange.h"
#include "output/soak_file.h"
#include "stats/soak_total.h"
#include "version.h"

/* Between two attempts to connect: doubled from the first to the last, so that a server that is back soon costs little,
 * and one that stays away is not hammered by a thousand hosts. */
#define BACK_OFF_FIRST_NS (100 * NSEC_PER_MSEC)
#define BACK_OFF_LAST_NS (5 * NSEC_PER_SEC)

/*
 * After SIGTERM: RUN_STOP_NS for what is under way, a little for both ends to agree; a soak has to end within a second.
 */
#define KILL_NS (800 * NSEC_PER_MSEC)

/*
 * Ten years, ten times the longest soak (JOB_TIME_MAX): whatever a file says,
 * the time that has passed can be told in nanoseconds.
 */
#define AWAY_MAX_MS ((int64_t) 10 * 365 * 86400 * 1000)

/* Of one line: a histogram's text, and as much again for everything else. */
enum { LINE_MAX_BYTES = 2 * HISTOGRAM_TEXT_MAX };

struct keeper {
	const struct options *options;
	struct soak_file file;
	struct soak_total total;
	json_t *head;                   /* the soak's own line */
	struct soak soak;
	bool resumed;                   /* the file was begun by another process */
	int signals;
	bool stopping, over;
	uint64_t stop_ns;               /* when it was asked to */
	/* The process that measures. */
	pid_t child;
	int pipe;
	char *text;                     /* the beginning of a line; LINE_MAX_BYTES */
	size_t n_text;
	bool connected;                 /* it has said so */
	uint64_t child_ns;              /* when it was started */
	unsigned failures;              /* connections in a row that were not made, or had no whole interval */
	/* Since the connection was lost. */
	bool lost;
	uint64_t lost_ns;
	unsigned attempts;
	char reason[FAILURE_TEXT_MAX];
	int code;
};

static double now_s(const struct keeper *k) {
	return soak_seconds(&k->soak, monotonic_ns());
}

/* False: neither the disk nor the memory has room for it. */
static bool keep(struct keeper *k, const json_t *line) {
	_cleanup_free_ char *text = record_text(line);

	return text && soak_file_append(&k->file, text);
}

static int64_t milliseconds(const struct timespec *t) {
	return (int64_t) t->tv_sec * 1000 + t->tv_nsec / (int64_t) NSEC_PER_MSEC;
}

/*
 * When it began is filled in as soon as it does. As a reader of the file has it:
 * what is written has nine digits, and is compared later.
 */
static json_t *head_json(const struct options *o) {
	_cleanup_free_ char *text = NULL;
	json_t *head, *job;

	if (job_to_json(&o->job, &job) < 0)
		return NULL;
	head = json_pack("{s:s, s:s, s:{s:s, s:s}, s:n, s:n, s:f, s:f, s:f, s:f, s:s, s:o}", "schema", "perch.record/1",
			 "kind", "soak", "tool", "name", "perch", "version", PERCH_VERSION, "started", "started_ms",
			 "duration_s", (double) o->job.duration_ns / 1e9, "interval_s",
			 (double) o->job.interval_ns / 1e9, "stall_s", (double) o->stall_ns / 1e9, "reconnect_s",
			 (double) o->reconnect_ns / 1e9, "server", o->host, "job", job);
	text = record_text(head);
	json_decref(head);
	return text ? json_loads(text, 0, NULL) : NULL;
}

/* The first line of a file that is there already: the same soak, or none that could be continued. */
static int take_head(struct keeper *k, const json_t *line) {
	static const char *const same[] = { "duration_s", "interval_s", "server", "job" };
	const char *kind = json_string_value(json_object_get(line, "kind"));

	if (!kind || !streq(kind, "soak") || !json_is_integer(json_object_get(line, "started_ms")))
		return failure(-EINVAL, EXIT_USAGE, "'%s' exists but is not a soak file; choose another path",
			       k->options->soak_file);
	for (size_t i = 0; i < ELEMENTSOF(same); i++)
		if (!json_equal(json_object_get(line, same[i]), json_object_get(k->head, same[i])))
			return failure(-EINVAL, EXIT_USAGE, "--soak %s: the file was started with another %s; "
				       "choose another path, or repeat its options", k->options->soak_file,
				       streq(same[i], "job") ? "job" : same[i]);
	json_decref(k->head);
	k->head = json_deep_copy(line);
	k->resumed = true;
	return 0;
}

static int take_old(const json_t *line, void *userdata) {
	struct keeper *k = userdata;

	if (!k->resumed)
		return take_head(k, line);
	if (k->total.over)
		return failure(-EINVAL, EXIT_USAGE, "--soak %s: lines follow the end of it; give another file",
			       k->options->soak_file);
	return soak_total_add(&k->total, line);
}

/* A time as time_json() writes it, in ms since 1970; of what is none, `otherwise`. */
static int64_t milliseconds_of(const json_t *time, int64_t otherwise) {
	const char *text = json_string_value(time), *rest;
	struct tm tm = { 0 };
	unsigned ms;

	rest = text ? strptime(text, "%Y-%m-%dT%H:%M:%S", &tm) : NULL;
	return rest && sscanf(rest, ".%3uZ", &ms) == 1 ? (int64_t) timegm(&tm) * 1000 + ms : otherwise;
}

/*
 * How long the soak of the file has lasted. Within the boot of the last connection its own clock goes
 * on while nobody counts. Across boots only the wall's does, and that since the last line alone:
 * one that was set before is no time that passed, and one that was set back does not make two intervals of one time.
 */
static int64_t passed_ns(const struct keeper *k) {
	const json_t *last = k->total.connection ? k->total.connection : k->head,
		*epoch = json_object_get(last, "epoch_ns");
	const char *counted_in = json_string_value(json_object_get(last, "boot_id"));
	int64_t now = (int64_t) monotonic_ns(), began = json_integer_value(epoch),
		known = (int64_t) (MIN(k->total.end_s, AWAY_MAX_MS / 1e3) * 1e9), away_ms;
	struct timespec wall = clock_wall_at((uint64_t) now);
	char boot[BOOT_ID_MAX];

	host_boot_id(boot);
	/* It may have begun before that boot. */
	if (json_is_integer(epoch) && counted_in && boot[0] && streq(boot, counted_in) && began <= now &&
	    began >= now - 2 * AWAY_MAX_MS * (int64_t) NSEC_PER_MSEC)
		return MAX(now - began, known);
	away_ms = milliseconds(&wall) - milliseconds_of(k->total.ended,
							json_integer_value(json_object_get(k->head, "started_ms")));
	return known + MIN(MAX(away_ms, (int64_t) 0), AWAY_MAX_MS) * (int64_t) NSEC_PER_MSEC;
}

static void set_epoch(struct keeper *k) {
	k->soak.epoch_ns = (int64_t) monotonic_ns() - (k->resumed ? passed_ns(k) : 0);
	k->soak.begins = !k->resumed;
	k->soak.connection = (unsigned) k->total.connections;
}

static int open_soak(struct keeper *k) {
	int e;

	k->head = head_json(k->options);
	k->text = malloc(LINE_MAX_BYTES);
	if (!k->head || !k->text)
		return failure(-ENOMEM, EXIT_HOST, "no memory for a soak");
	e = soak_total_new(&k->total);
	if (e == 0)
		e = soak_file_open(k->options->soak_file, take_old, k, &k->file);
	if (e < 0)
		return e;
	if (k->total.over)
		return failure(-EEXIST, EXIT_USAGE, "--soak %s: this soak has ended; give another file",
			       k->options->soak_file);
	set_epoch(k);
	if (k->resumed) {
		k->lost = true;
		k->lost_ns = monotonic_ns();
		(void) snprintf(k->reason, sizeof(k->reason), "perch was stopped and restarted");
	}
	return 0;
}

static void ask_to_stop(int signal) {
	(void) signal;
	run_ask_to_stop();
}

/* The process that measures: what it prints goes to the keeper. */
static void run_child(struct keeper *k, int out, pid_t keeper) {
	struct sigaction stop = { .sa_handler = ask_to_stop };
	sigset_t none;
	int code;

	/* It ends with its keeper; had that ended before this, no signal would come. */
	(void) prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != keeper)
		_exit(EXIT_INTERNAL);
	(void) prctl(PR_SET_NAME, "perch-soak");
	(void) sigaction(SIGTERM, &stop, NULL);
	(void) sigaction(SIGINT, &stop, NULL);
	(void) sigemptyset(&none);
	(void) sigprocmask(SIG_SETMASK, &none, NULL);
	(void) dup2(out, STDOUT_FILENO);
	(void) close_fd(out);
	(void) close_fd(k->file.fd); /* and with it the lock, which is the keeper's */
	(void) close_fd(k->signals);
	failure_reset();
	code = command_soak_measure(k->options, &k->soak);
	(void) fflush(stdout);
	_exit(code);
}

static int start_child(struct keeper *k) {
	pid_t keeper = getpid();
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return failure(-errno, EXIT_HOST, "cannot make a pipe: %s", strerror(errno));
	/* A disk that takes its time must not hold up who measures: some hundred intervals fit. Less is no error. */
	(void) fcntl(ends[0], F_SETPIPE_SZ, 1 << 20);
	k->soak.connection++;
	k->connected = false;
	k->child_ns = monotonic_ns();
	k->n_text = 0;
	k->child = fork();
	if (k->child == 0) {
		(void) close_fd(ends[0]);
		run_child(k, ends[1], keeper);
	}
	(void) close_fd(ends[1]);
	k->pipe = ends[0];
	if (k->child < 0) {
		k->pipe = close_fd(k->pipe);
		return failure(-errno, EXIT_HOST, "cannot start a process: %s", strerror(errno));
	}
	return 0;
}

/* From the last that was measured to now. */
static void keep_gap(struct keeper *k, double end_s) {
	struct timespec start, end;
	double start_s = k->total.end_s;
	uint64_t now = monotonic_ns();
	json_t *gap;

	end = clock_wall_at(now - (uint64_t) (MAX(now_s(k) - end_s, 0.0) * 1e9));
	/* before the host's own start where it was booted since */
	start = clock_wall_at(now - (uint64_t) (MAX(now_s(k) - start_s, 0.0) * 1e9));
	gap = json_pack("{s:s, s:s, s:f, s:f, s:o, s:o, s:I, s:s}", "schema", "perch.record/1", "kind", "gap",
			"start_s", start_s, "end_s", end_s, "started", time_json(&start), "ended", time_json(&end),
			"attempts", (json_int_t) k->attempts, "reason", k->reason);
	(void) keep(k, gap);
	(void) soak_total_add(&k->total, gap);
	json_decref(gap);
	k->lost = false;
}

static void begin(struct keeper *k, const json_t *line) {
	struct timespec wall;

	(void) json_object_set(k->head, "boot_id", json_object_get(line, "boot_id"));
	(void) json_object_set(k->head, "epoch_ns", json_object_get(line, "epoch_ns"));
	k->soak.epoch_ns = json_integer_value(json_object_get(line, "epoch_ns"));
	k->soak.begins = false;
	wall = clock_wall_at((uint64_t) k->soak.epoch_ns);
	(void) json_object_set_new(k->head, "started", time_json(&wall));
	(void) json_object_set_new(k->head, "started_ms", json_integer(milliseconds(&wall)));
	(void) keep(k, k->head);
}

static void connection_stands(struct keeper *k, json_t *line) {
	if (k->soak.begins)
		begin(k, line);
	if (k->lost) {
		keep_gap(k, json_real_value(json_object_get(line, "start_s")));
		notice("the soak goes on: connection %u, after %u attempts", k->soak.connection, k->attempts);
	}
	k->connected = true;
	k->attempts = 0;
}

/* Both ends have agreed on it, be it on corrupted bytes. */
static bool interval_is_whole(const json_t *line) {
	const json_t *error = json_object_get(line, "error");

	return !json_is_object(error) || json_integer_value(json_object_get(error, "code")) == EXIT_CORRUPT;
}

static void take_interval(struct keeper *k, json_t *line) {
	int64_t resident = footprint_now().resident_bytes;

	(void) json_object_set_new(json_object_get(line, "memory"), "keeper_bytes",
				   resident >= 0 ? json_integer(resident) : json_null());
	if (interval_is_whole(line))
		k->failures = 0;
}

static void take_line(struct keeper *k, size_t n) {
	json_t *line = json_loadb(k->text, n, 0, NULL);
	const char *kind = json_string_value(json_object_get(line, "kind"));

	if (!kind)
		notice("measurement process wrote an invalid line: %.200s", k->text);
	else if (streq(kind, "over"))
		k->over = true;
	else if (streq(kind, "lost")) {
		(void) snprintf(k->reason, sizeof(k->reason), "%s", json_string_value(json_object_get(line, "reason")));
		k->code = (int) json_integer_value(json_object_get(line, "code"));
	} else {
		if (streq(kind, "connection"))
			connection_stands(k, line);
		if (streq(kind, "interval"))
			take_interval(k, line);
		(void) keep(k, line);
		(void) soak_total_add(&k->total, line);
	}
	json_decref(line);
}

/* False: the process has closed its end. */
static bool hear_child(struct keeper *k) {
	ssize_t n = read(k->pipe, k->text + k->n_text, LINE_MAX_BYTES - k->n_text);
	char *end;

	if (n <= 0)
		return n < 0 && errno == EINTR;
	k->n_text += (size_t) n;
	while ((end = memchr(k->text, '\n', k->n_text))) {
		size_t length = (size_t) (end - k->text);

		*end = '\0';
		take_line(k, length);
		k->n_text -= length + 1;
		memmove(k->text, end + 1, k->n_text);
	}
	if (k->n_text == LINE_MAX_BYTES)
		k->n_text = 0; /* no line of ours */
	return true;
}

static void hear_signals(struct keeper *k) {
	struct signalfd_siginfo info;

	while (read(k->signals, &info, sizeof(info)) == sizeof(info)) {
		if (!k->stopping)
			k->stop_ns = monotonic_ns();
		k->stopping = true;
		if (k->child > 0)
			(void) kill(k->child, SIGTERM);
	}
}

/* In how many ms the process that measures has to be ended: a second after it was asked to,
 * or where a library hangs while it connects, for which a measurement's watchdog is not there yet. Negative: never. */
static int patience_ms(const struct keeper *k) {
	uint64_t limit = k->stopping ? KILL_NS : k->options->reconnect_ns,
		since = monotonic_ns() - (k->stopping ? k->stop_ns : k->child_ns);

	if (!k->stopping && k->connected)
		return -1;
	return since >= limit ? 0 : (int) MIN((limit - since) / NSEC_PER_MSEC + 1, (uint64_t) INT_MAX);
}

/* Until its end of the pipe is closed. */
static void follow_child(struct keeper *k) {
	struct pollfd p[2] = { { .fd = k->pipe, .events = POLLIN }, { .fd = k->signals, .events = POLLIN } };

	for (;;) {
		int ms = patience_ms(k);

		if (ms == 0)
			(void) kill(k->child, SIGKILL);
		if (poll(p, 2, ms == 0 ? 1 : ms) < 0)
			continue;
		if (p[1].revents)
			hear_signals(k);
		if (p[0].revents && !hear_child(k))
			return;
	}
}

/* One connection, from its beginning to its end. Negative (said): it cannot even be tried. */
static int run_connection(struct keeper *k) {
	int status = 0, e;

	k->code = EXIT_INTERNAL;
	e = start_child(k);
	if (e < 0)
		return e;
	follow_child(k);
	k->pipe = close_fd(k->pipe);
	while (waitpid(k->child, &status, 0) < 0 && errno == EINTR)
		;
	k->child = 0;
	if (WIFSIGNALED(status) && !k->stopping) {
		(void) snprintf(k->reason, sizeof(k->reason), "the process that measures ended by signal %d (%s)",
				WTERMSIG(status), strsignal(WTERMSIG(status)));
		notice("%s", k->reason);
	}
	return 0;
}

/* Sleeps before the next attempt, at most until somebody asks to stop.
 * A server that breaks each connection at once is none that is back: hours of that would fill the disk with gaps. */
static void wait_before(struct keeper *k) {
	unsigned doublings = MIN(k->failures > 0 ? k->failures - 1 : 0, 10u);
	uint64_t ns = MIN(BACK_OFF_FIRST_NS << doublings, BACK_OFF_LAST_NS);
	struct pollfd p = { .fd = k->signals, .events = POLLIN };

	if (poll(&p, 1, (int) (ns / NSEC_PER_MSEC)) > 0)
		hear_signals(k);
}

static bool time_is_over(const struct keeper *k) {
	return !k->soak.begins && now_s(k) * 1e9 >= (double) k->options->job.duration_ns;
}

/* Connection after connection. 0: the time is over, or somebody has asked to stop; negative (said): it cannot go on. */
static int keep_measuring(struct keeper *k) {
	int e;

	while (!k->over && !k->stopping && !time_is_over(k)) {
		k->attempts += k->lost;
		e = run_connection(k);
		if (e < 0)
			return e;
		if (k->over || k->stopping)
			break;
		/*
		 * Before the first connection a failure is no loss:
		 * the words of the process that tried are on standard error.
		 */
		if (k->soak.begins)
			return failure_quiet(-ENOTCONN, (enum exit_code) k->code, "%s", k->reason);
		if (!k->lost) {
			k->lost = true;
			k->lost_ns = monotonic_ns();
			notice("the soak lost its connection; trying to reconnect for up to %.0f s",
			       (double) k->options->reconnect_ns / 1e9);
		}
		if (monotonic_ns() - k->lost_ns >= k->options->reconnect_ns)
			return failure(-ETIMEDOUT, EXIT_PEER,
				       "cannot reconnect within %.0f s (limit: --reconnect); the last attempt: %s",
				       (double) k->options->reconnect_ns / 1e9, k->reason);
		k->failures++;
		wait_before(k);
	}
	return 0;
}

/* Now, and no later than was planned: a host that is back days later has not soaked until then. */
static double end_by_plan(const struct keeper *k) {
	return MIN(now_s(k), MAX((double) k->options->job.duration_ns / 1e9, k->total.end_s));
}

static json_t *soak_json(const struct keeper *k) {
	const struct soak_total *t = &k->total;
	/*
	 * Until the last interval's end; what the two ends then take to part,
	 * which may be a while on a busy host, is no part of it.
	 */
	double passed_s = k->over ? t->end_s : end_by_plan(k);

	return json_pack("{s:f, s:f, s:f, s:I, s:I, s:I, s:f, s:I, s:f, s:b, s:b, s:I}", "planned_s",
			 (double) k->options->job.duration_ns / 1e9, "passed_s", passed_s, "interval_s",
			 (double) k->options->job.interval_ns / 1e9, "intervals", (json_int_t) t->intervals,
			 "connections", (json_int_t) t->connections, "gaps", (json_int_t) t->gaps, "gap_s", t->gap_s,
			 "stalls", (json_int_t) t->stalls, "stall_s", t->stall_s, "stopped", k->stopping, "resumed",
			 k->resumed, "dropped_lines", (json_int_t) k->file.dropped);
}

/*
 * The whole, after the last interval: in the file, and on standard output, which also gets what the disk did not take.
 */
static int end_soak(struct keeper *k) {
	const struct soak_total *t = &k->total;
	json_t *error = json_null(), *record;
	const char *kept;
	char text[FAILURE_TEXT_MAX];
	bool has_room;

	/* What did not come back ends with the soak. One that was lost when all of it was measured has no gap. */
	if (k->lost && end_by_plan(k) > k->total.end_s)
		keep_gap(k, end_by_plan(k));
	if (t->messages == 0 && !failure_text()[0])
		(void) failure(-ENODATA, EXIT_INTERNAL, "the soak was ended before a message was measured");
	if (t->bad_bytes > 0)
		(void) snprintf(text, sizeof(text), "payload corrupted: %llu of %llu bytes; the intervals say when",
				(unsigned long long) t->bad_bytes, (unsigned long long) t->checked_bytes);
	else
		(void) snprintf(text, sizeof(text), "%s", failure_text());
	if (t->bad_bytes > 0 || text[0])
		error = json_pack("{s:i, s:s, s:b}", "code", (int) (t->bad_bytes > 0 ? EXIT_CORRUPT : failure_code()),
				  "message", text, "traffic", t->messages > 0);
	record = soak_total_record(t, &k->options->job, soak_json(k), error);
	has_room = keep(k, record);
	kept = soak_file_kept(&k->file);
	if (kept && fputs(kept, stdout) >= 0)
		(void) failure(-ENOSPC, EXIT_INTERNAL,
			       "--soak %s: its last lines could not be written; they are on standard output",
			       k->options->soak_file);
	if (kept && has_room)
		json_decref(record); /* it was among them */
	else
		write_line(record);
	return t->bad_bytes > 0 ? EXIT_CORRUPT : failure_text()[0] ? (int) failure_code() : EXIT_MEASURED;
}

static int open_signals(void) {
	sigset_t set;

	(void) sigemptyset(&set);
	(void) sigaddset(&set, SIGTERM);
	(void) sigaddset(&set, SIGINT);
	(void) sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

int command_soak(const struct options *o) {
	struct keeper k = { .options = o, .file.fd = -1, .pipe = -1, .signals = open_signals() };
	int e, code;

	e = job_validate(&o->job);
	if (e == 0)
		e = open_soak(&k);
	if (e == 0)
		e = keep_measuring(&k);
	if (e == 0 && k.total.connections == 0)
		e = failure(-ECANCELED, EXIT_INTERNAL,
			    "the soak was ended before its first connection stood; nothing was measured");
	if (k.file.fd >= 0 && k.total.connections > 0 && !k.total.over)
		code = end_soak(&k);
	else
		code = e < 0 ? (int) failure_code() : EXIT_MEASURED;
	/* Nothing was measured: then there is nothing to continue either. */
	if (k.file.fd >= 0 && k.total.connections == 0 && !k.resumed)
		(void) unlink(o->soak_file);
	soak_file_close(&k.file);
	soak_total_done(&k.total);
	json_decref(k.head);
	free(k.text);
	k.signals = close_fd(k.signals);
	return code;
}
