/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The target of transfers over tcp. No device serves them, so its thread does, in poll() and arm():
 * it puts what comes where the requests say, and sends what they ask for straight from the buffer.
 * What it reads is checked as what a stranger may have sent.
 */
#include <endian.h>
#include <limits.h>
#include <poll.h>

#include "base/message.h"
#include "tcp.h"

enum {
	STAGE = 64 << 10,               /* requests and small payloads are read so many at a time */
	/* from here on copying out of the stage costs more than a system call of its own (0.5 us) */
	DIRECT = 8 << 10,
	ANSWERS = IOV_MAX,              /* reads under way: as many as one call sends */
};

struct tcp_target {
	uint8_t *base;
	uint64_t length;
	enum op op;
	uint8_t stage[STAGE];
	size_t begin, end;              /* in the stage: what has come, and is not used yet */
	bool empty;                     /* the socket, when last read */
	bool ended;                     /* the initiator has closed the connection, between two requests */

	uint8_t *into;                  /* the write that is arriving: where its next byte goes, */
	uint64_t left;                  /* and how many are missing */
	bool acknowledge;
	/* sends: where they land in turn, of which queue pair, the next one, and the bytes of each */
	struct places places;
	uint32_t channel, place;
	uint64_t size;

	uint64_t written, owed, said;   /* writes and sends in memory; those to be acknowledged; those that were */
	uint8_t word[TCP_ACKNOWLEDGEMENT];
	size_t word_left;               /* of it, to be sent */

	struct {
		uint64_t offset, size;
	} answers[ANSWERS];             /* ring: reads that the kernel has not taken whole */
	uint64_t asked, answered;
	uint64_t answered_bytes;        /* of the next one */
};

/* Requests lie in the stage: there is no room for their answers yet. */
static inline bool is_behind(const struct tcp_target *t) {
	return t->end - t->begin >= TCP_REQUEST;
}

static void written(struct tcp_target *t) {
	t->written++;
	if (t->acknowledge)
		t->owed = t->written;
}

/* Where what is asked for begins, which may be no longer than its place. Negative: said. */
static int read_request(struct tcp_target *t, struct tcp_request *ret) {
	const bool sent = t->op == OP_SEND;
	int e = tcp_request_read(t->stage + t->begin, t->op, sent ? t->size : t->length, ret);

	if (e < 0 || !sent)
		return e;
	ret->offset = place_offset(&t->places, t->channel, t->place);
	if (++t->place == t->places.n)
		t->place = 0;
	return 0;
}

/* Uses what lies in the stage. 0 or negative. */
static int use_stage(struct tcp_target *t) {
	struct tcp_request r;
	int e;

	for (;;) {
		size_t n = MIN(t->end - t->begin, t->left);

		memcpy(t->into, t->stage + t->begin, n);
		t->into += n;
		t->begin += n;
		t->left -= n;
		if (n > 0 && t->left == 0)
			written(t);
		if (t->left > 0 || !is_behind(t) || t->asked - t->answered == ANSWERS)
			return 0;
		e = read_request(t, &r);
		if (e < 0)
			return e;
		t->begin += TCP_REQUEST;
		if (r.op == OP_READ) {
			t->answers[t->asked % ANSWERS].offset = r.offset;
			t->answers[t->asked++ % ANSWERS].size = r.size;
			continue;
		}
		t->into = t->base + r.offset;
		t->left = r.size;
		t->acknowledge = r.acknowledge;
	}
}

/* Reads once: a write's payload goes where it belongs, what follows it to the stage. 1: something came; 0; negative. */
static int take(struct tcp_session *s) {
	struct tcp_target *t = s->target;
	/* Behind much payload lies as much again: of what follows only the request is wanted in the stage. */
	size_t follows = t->left >= DIRECT ? TCP_REQUEST : STAGE;
	struct iovec iov[2];
	uint64_t direct;
	int64_t n;

	if (t->ended || is_behind(t))
		return 0;
	memmove(t->stage, t->stage + t->begin, t->end - t->begin);
	t->end -= t->begin;
	t->begin = 0;
	iov[0] = (struct iovec) { .iov_base = t->into, .iov_len = t->left };
	iov[1] = (struct iovec) { .iov_base = t->stage + t->end, .iov_len = follows - t->end };
	n = tcp_receive_some(s, iov, 2, "serving transfers");
	t->empty = n < (int64_t) (iov[0].iov_len + iov[1].iov_len);
	if (n == -ENODATA && t->left == 0 && t->end == 0 && t->asked == t->answered) {
		t->ended = true; /* whether that is all right, its control connection says */
		return 0;
	}
	if (n <= 0)
		return n == -ENODATA ? tcp_lost(0, "serving transfers") : (int) n;
	direct = MIN((uint64_t) n, t->left);
	t->into += direct;
	t->left -= direct;
	t->end += (uint64_t) n - direct;
	if (direct > 0 && t->left == 0)
		written(t);
	return 1;
}

/* 1: something was sent; 0; negative. */
static int acknowledge(struct tcp_session *s) {
	struct tcp_target *t = s->target;
	struct iovec iov;
	uint64_t count;
	int64_t n;

	if (t->word_left == 0) {
		count = htobe64(t->owed);
		memcpy(t->word, &count, sizeof(count));
		t->word_left = sizeof(t->word);
		t->said = t->owed;
	}
	iov = (struct iovec) { .iov_base = t->word + sizeof(t->word) - t->word_left, .iov_len = t->word_left };
	n = tcp_send_some(s, &iov, 1, t->word_left);
	if (n <= 0)
		return (int) n;
	t->word_left -= (size_t) n;
	return 1;
}

/* 1: something was sent; 0; negative. */
static int answer(struct tcp_session *s) {
	struct tcp_target *t = s->target;
	uint64_t skip = t->answered_bytes, total = 0;
	struct iovec iov[ANSWERS];
	size_t n = 0;
	int64_t r;

	for (uint64_t k = t->answered; k < t->asked && total < TCP_GATHER_BYTES; k++, skip = 0) {
		iov[n] = (struct iovec) { .iov_base = t->base + t->answers[k % ANSWERS].offset + skip,
					  .iov_len = t->answers[k % ANSWERS].size - skip };
		total += iov[n++].iov_len;
	}
	r = tcp_send_some(s, iov, n, total);
	if (r <= 0)
		return (int) r;
	for (t->answered_bytes += (uint64_t) r; t->answered < t->asked; t->answered++) {
		uint64_t size = t->answers[t->answered % ANSWERS].size;

		if (t->answered_bytes < size)
			break;
		t->answered_bytes -= size;
	}
	return 1;
}

static inline bool owes(const struct tcp_target *t) {
	return t->owed > t->said || t->word_left > 0 || t->answered < t->asked;
}

/* One turn. 1: something has moved; 0; negative. */
static int serve(struct tcp_session *s) {
	struct tcp_target *t = s->target;
	int taken, r;

	taken = take(s);
	if (unlikely(taken < 0))
		return taken;
	r = use_stage(t);
	if (r == 0 && owes(t))
		r = t->op == OP_READ ? answer(s) : acknowledge(s);
	return r == 0 ? taken : r;
}

static int target_poll(struct session *session, struct completion *ret, unsigned max) {
	int r = serve(tcp(session));

	(void) ret;
	(void) max;
	return MIN(r, 0);
}

int tcp_target_arm(struct tcp_session *s, struct pollfd *alarm) {
	struct tcp_target *t = s->target;
	int r = !alarm->revents && t->empty && !owes(t) && !is_behind(t) ? 0 : serve(s);

	*alarm = tcp_alarm(s, r == 0 && !t->ended && !is_behind(t), r == 0 && owes(t));
	return r > 0 ? -EAGAIN : r;
}

static int target_post(struct session *session, const struct work *w) {
	(void) session;
	return failure(-EOPNOTSUPP, EXIT_INTERNAL, "a target of transfers was asked for a %s of its own",
		       op_name((int) w->op));
}

struct tcp_target *tcp_target_close(struct tcp_target *t) {
	free(t);
	return NULL;
}

int tcp_target_open(struct tcp_session *s, const struct job *job, uint32_t channel) {
	struct tcp_target *t = calloc(1, sizeof(*t));

	if (!t)
		return failure(-ENOMEM, EXIT_HOST, "no memory for a tcp session");
	t->base = t->into = s->arena.tx;
	t->length = s->arena.slot_bytes;
	t->op = job->op;
	s->target = t;
	t->channel = channel;
	t->size = job_largest_size(job);
	if (job->op == OP_SEND)
		job_rate_places(job, &t->places);
	s->vtable.post = target_post;
	s->vtable.poll = target_poll;
	s->vtable.wait = NULL; /* lanes are armed */
	return 0;
}
