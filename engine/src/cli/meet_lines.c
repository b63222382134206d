/* SPDX-License-Identifier: Apache-2.0 */
/* meet --lines: a thread for each meeting under way, so that one process serves all meetings of an agent. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "meet.h"

enum {
	MEETINGS_MAX = 256,             /* as many as one server serves at a time */
	MEETING_STACK = 256 * 1024,     /* getaddrinfo(3) takes most of it */
	LINE_MAX_BYTES = 4096,
};

struct lines;

struct meeting {
	struct lines *lines;            /* NULL: this place is free */
	json_int_t id;
	char host[OPTIONS_HOST_MAX], flow[OPTIONS_FLOW_MAX];
	uint16_t port;
	uint32_t parties;
	uint64_t timeout_ns;
	struct control *control;        /* once it is connected; for who cancels it */
	bool cancelled;
};

struct lines {
	const struct options *options;
	const struct token *token;
	int out;
	pthread_mutex_t lock;           /* over the meetings and the output */
	pthread_cond_t ended;           /* one of them */
	struct meeting meetings[MEETINGS_MAX];
	unsigned n_meetings;
	_Atomic bool broken;            /* the reader of the answers is gone */
};

/* Under the lock. One write, so that a reader never waits for the rest of a line. */
static void write_answer(struct lines *l, json_t *answer) {
	_cleanup_free_ char *text = answer ? json_dumps(answer, JSON_COMPACT) : NULL;
	_cleanup_free_ char *line = NULL;
	int n = text ? asprintf(&line, "%s\n", text) : -1;

	json_decref(answer);
	for (int at = 0; at < n;) {
		ssize_t written = write(l->out, line + at, (size_t) (n - at));

		if (written < 0 && errno != EINTR)
			break;
		at += written > 0 ? (int) written : 0;
		if (at == n)
			return;
	}
	l->broken = true;
}

static json_t *refusal(json_int_t id, enum exit_code code, const char *message) {
	return json_pack("{s:I, s:i, s:s}", "id", id, "exit", (int) code, "message", message);
}

/* Of a line that is no request; `o` may be NULL. */
static void refuse_line(struct lines *l, const json_t *o, const char *message) {
	const json_t *id = json_object_get(o, "id");
	json_t *answer;

	answer = json_is_integer(id)
			 ? refusal(json_integer_value(id), EXIT_USAGE, message)
			 : json_pack("{s:i, s:s}", "exit", (int) EXIT_USAGE, "message", message);
	(void) pthread_mutex_lock(&l->lock);
	write_answer(l, answer);
	(void) pthread_mutex_unlock(&l->lock);
}

/* False: it was cancelled while it connected, and must not take part. */
static bool may_take_part(struct meeting *m, struct control *c) {
	bool may;

	(void) pthread_mutex_lock(&m->lines->lock);
	may = !m->cancelled;
	m->control = c;
	(void) pthread_mutex_unlock(&m->lines->lock);
	return may;
}

static void *take_part(void *argument) {
	struct meeting *m = argument;
	struct lines *l = m->lines;
	uint64_t deadline = monotonic_ns() + m->timeout_ns, now;
	struct control *c = NULL;
	bool same_machine = false;
	int e;

	failure_keep_apart(true);
	e = control_connect(m->host, m->port, l->options->bind, l->token, m->timeout_ns, &c);
	if (e == 0 && !may_take_part(m, c))
		e = failure(-ECANCELED, EXIT_PEER, "the meeting was cancelled");
	now = monotonic_ns();
	if (e == 0)
		e = meet_at(c, m->flow, m->parties, deadline > now ? deadline - now : 1, &same_machine);
	(void) pthread_mutex_lock(&l->lock);
	if (e == 0)
		write_answer(l, json_pack("{s:I, s:i, s:b}", "id", m->id, "exit", 0, "same_machine",
					   same_machine));
	else if (m->cancelled)
		write_answer(l, refusal(m->id, EXIT_PEER, "the meeting was cancelled"));
	else
		write_answer(l, refusal(m->id, failure_code(), failure_text()));
	(void) control_close(c);
	*m = (struct meeting) { 0 };
	l->n_meetings--;
	(void) pthread_cond_signal(&l->ended);
	(void) pthread_mutex_unlock(&l->lock);
	return NULL;
}

/* Its thread wakes up by the connection's end and answers. Under the lock. */
static void cancel(struct meeting *m) {
	m->cancelled = true;
	if (m->control)
		(void) shutdown(m->control->fd, SHUT_RDWR);
}

static void cancel_id(struct lines *l, json_int_t id) {
	(void) pthread_mutex_lock(&l->lock);
	for (size_t i = 0; i < MEETINGS_MAX; i++)
		if (l->meetings[i].lines && l->meetings[i].id == id)
			cancel(&l->meetings[i]);
	(void) pthread_mutex_unlock(&l->lock);
}

static struct meeting *free_meeting(struct lines *l) {
	for (size_t i = 0; i < MEETINGS_MAX; i++)
		if (!l->meetings[i].lines)
			return &l->meetings[i];
	return NULL;
}

static int start_thread(struct meeting *m) {
	pthread_attr_t attributes;
	pthread_t thread;
	int e;

	e = pthread_attr_init(&attributes);
	if (e != 0)
		return -e;
	(void) pthread_attr_setstacksize(&attributes, MEETING_STACK);
	(void) pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	e = pthread_create(&thread, &attributes, take_part, m);
	(void) pthread_attr_destroy(&attributes);
	return -e;
}

static void start(struct lines *l, const struct meeting *wanted) {
	struct meeting *m;

	(void) pthread_mutex_lock(&l->lock);
	m = free_meeting(l);
	if (m) {
		*m = *wanted;
		m->lines = l;
		if (start_thread(m) == 0)
			l->n_meetings++;
		else {
			*m = (struct meeting) { 0 };
			m = NULL;
		}
	}
	if (!m)
		write_answer(l, refusal(wanted->id, EXIT_HOST, "too many meetings at a time"));
	(void) pthread_mutex_unlock(&l->lock);
}

/* Whether the request can be one; the server checks it again. */
static bool read_request(const json_t *o, struct meeting *ret) {
	json_int_t port, parties = 2, timeout_ms;
	const char *host, *flow;
	struct meeting m = { 0 };

	if (json_unpack((json_t *) (uintptr_t) o, "{s:I, s:s, s:I, s:s, s?I, s:I!}", "id", &m.id, "host", &host, "port",
			&port, "flow", &flow, "parties", &parties, "timeout_ms", &timeout_ms) < 0)
		return false;
	if (!*host || copy_string(m.host, sizeof(m.host), host) < 0)
		return false;
	if (!*flow || copy_string(m.flow, sizeof(m.flow), flow) < 0)
		return false;
	if (port < 1 || port > UINT16_MAX || parties < 1 || parties > OPTIONS_PARTIES_MAX)
		return false;
	if (timeout_ms < 1 || timeout_ms > UINT32_MAX)
		return false;
	m.port = (uint16_t) port;
	m.parties = (uint32_t) parties;
	m.timeout_ns = (uint64_t) timeout_ms * NSEC_PER_MSEC;
	*ret = m;
	return true;
}

static void take_line(struct lines *l, const char *line, size_t length) {
	json_t *o = json_loadb(line, length, JSON_REJECT_DUPLICATES, NULL);
	struct meeting wanted;
	json_int_t id;

	if (json_unpack(o, "{s:I!}", "cancel", &id) == 0)
		cancel_id(l, id);
	else if (read_request(o, &wanted))
		start(l, &wanted);
	else
		refuse_line(l, o, "not a request: give id, host, port, flow and timeout_ms, or cancel");
	json_decref(o);
}

/* At the end of the requests: cancels each meeting and waits until all have ended. */
static void end_all(struct lines *l) {
	(void) pthread_mutex_lock(&l->lock);
	for (size_t i = 0; i < MEETINGS_MAX; i++)
		if (l->meetings[i].lines)
			cancel(&l->meetings[i]);
	while (l->n_meetings > 0)
		(void) pthread_cond_wait(&l->ended, &l->lock);
	(void) pthread_mutex_unlock(&l->lock);
}

static void read_lines(struct lines *l, FILE *f) {
	char *line = NULL;
	size_t size = 0;
	ssize_t n;

	while (!l->broken && (n = getline(&line, &size, f)) > 0) {
		if (n > LINE_MAX_BYTES)
			refuse_line(l, NULL, "not a request: the line has more than 4096 bytes");
		else
			take_line(l, line, (size_t) n);
	}
	free(line);
}

int meet_lines(const struct options *o, const struct token *token, int in, int out) {
	_cleanup_free_ struct lines *l = calloc(1, sizeof(*l));
	FILE *f = fdopen(fcntl(in, F_DUPFD_CLOEXEC, 0), "r");

	if (!l || !f) {
		(void) failure(-errno, EXIT_HOST, "cannot read requests for meetings: %s", strerror(errno));
		return (int) EXIT_HOST;
	}
	l->options = o;
	l->token = token;
	l->out = out;
	(void) pthread_mutex_init(&l->lock, NULL);
	(void) pthread_cond_init(&l->ended, NULL);
	read_lines(l, f);
	(void) fclose(f);
	end_all(l);
	return l->broken ? (int) EXIT_INTERNAL : (int) EXIT_MEASURED;
}
