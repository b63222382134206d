/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The data path's vtable: one file (or one family of files) a backend, one `struct backend` with designated
 * initialisers. null/null.c is the commented skeleton: start there to write another.
 *
 * The tests (latency, bandwidth) are written once over these hooks. A backend moves messages between slots; it knows
 * nothing of clocks, histograms, warm-up or control frames.
 */
#pragma once

#include <jansson.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include "job/backend_facts.h"
#include "memory/memory.h"
#include "slingshot.h"

enum { BACKEND_VERSION = 1 };

enum role {
	ROLE_CLIENT,            /* measures */
	ROLE_SERVER,            /* echoes, receives, or lends its memory */
};

/* A message to start. Slots number the places of the two arenas; both ends use the same numbering. */
struct work {
	enum op op;
	uint32_t slot;          /* payload: own tx slot for send, write; own rx slot for read, atomic results */
	uint64_t size;          /* bytes */
	/* write only: the target must see a COMPLETION_RECEIVE of this slot (remote CQ data, or a stamp) */
	bool notify;
	bool more;              /* another of the same channel follows at once: the doorbell may wait for it */
	/* nothing may follow: the completions of this and all before it must come by themselves */
	bool flush;
	uint64_t operand;       /* atomics: what to add, or to swap in */
	uint64_t compare;       /* compare-swap */
};

/* A post list of perch rate: slots that follow each other, which rings one doorbell. */
struct list {
	enum op op;
	uint32_t channel, slot, n;
	uint64_t size;          /* bytes of each message */
	bool signal;            /* the completion of the last one, and of all before it, must come by itself */
};

enum completion_kind {
	COMPLETION_LOCAL,       /* a posted work is complete as far as session.level says */
	COMPLETION_RECEIVE,     /* a message (or a notified write) has arrived in rx slot `slot` */
};

struct completion {
	enum completion_kind kind;
	uint32_t slot;
	/* with several queue pairs: messages keep their order within a channel only (job_channel()) */
	uint32_t channel;
	uint32_t more;          /* rate: it stands for so many messages of its channel beside the one */
};

/*
 * Where a job has several queue pairs, slots are dealt out to them in turn, a run to each: whole lists of --batch,
 * and as many of them as --cq-moderation lets complete at once. Queue pair by queue pair costs less than message
 * by message (perftest does so, too). At most --outstanding (job_validate()).
 */
static inline uint32_t job_run(const struct job *job) {
	return MAX(job->cq_moderation / job->batch, 1u) * job->batch;
}

/* The number of slots is a multiple of one turn of all queue pairs, so that a slot always goes through the same one. */
static inline uint32_t job_channel(const struct job *job, uint32_t slot) {
	return slot / job_run(job) % job->queue_pairs;
}

/* The place in the whole sequence of message `number` of a channel. */
static inline uint64_t job_sequence(const struct job *job, uint32_t channel, uint64_t number) {
	uint32_t run = job_run(job);

	return (number / run * job->queue_pairs + channel) * run + number % run;
}

/*
 * Whether message `number`, with which `left` remain to be posted, is the last of its queue pair:
 * in the last turn of all queue pairs, the last of each run.
 */
static inline bool job_is_last(const struct job *job, uint64_t number, uint64_t left) {
	uint32_t run = job_run(job);

	return left <= (uint64_t) run * job->queue_pairs && (left == 1 || (number + 1) % run == 0);
}

/* What a completion of a write or send says about the payload (fi_cq(3)'s levels). */
enum completion_level {
	LEVEL_NONE,             /* the question makes no sense (null) */
	LEVEL_INJECT,           /* the buffer may be used again */
	LEVEL_TRANSMIT,         /* it has left, or the peer acknowledged it on the wire */
	LEVEL_DELIVERY,         /* it is in the peer's memory, visible */
	LEVEL_MAX,
};

/* bytes; the longest is verbs': 3 for each of 1024 queue pairs, and a header below 128 */
enum { ADDRESS_MAX = 4096 };

/* What one end tells the other: opaque to everybody but the backend. */
struct address {
	size_t length;
	uint8_t bytes[ADDRESS_MAX];
};

/*
 * Bounds of a provider's environment, ends included: each byte escaped (6 for 1),
 * it fits into a frame beside the longest address.
 */
enum { ENVIRONMENT_NAME_MAX = 64, ENVIRONMENT_VALUE_MAX = 256, ENVIRONMENT_VARIABLES_MAX = 32 };

/*
 * Every backend's own session begins with this; the tests read it, the backend's open fills it. What only one backend
 * knows of a session is in its own, and gets into records by describe().
 */
struct session {
	const struct backend *backend;
	enum completion_level level;
	bool can_notify;                /* the target can see a write arrive: half_round_trip is possible for write */
	/* why it cannot, for messages; NULL: it can, or there is no more to say than that */
	const char *no_notify;
	/* notified writes: their last byte is a count that the backend writes, and polls for */
	bool stamps;
	/* a poll that finds nothing reads memory only: a look at the control connection costs a hundred */
	bool cheap_poll;
	/* the target of one-sided operations need not poll: its device serves them alone */
	bool passive;
	bool lossy;                     /* messages may be lost without an error (UC, UD) */
	uint32_t inline_bytes;          /* messages up to this size need no completion; 0: none, or unknown */
	char provider[JOB_NAME_MAX];    /* as found; empty where the backend has none */
	char device[JOB_NAME_MAX];      /* as found: an interface, a domain */
	char address[INET6_ADDRSTRLEN + 64];
	char layer[16];                 /* ethernet, loopback, shm, infiniband, slingshot, none */
	uint32_t mtu;                   /* bytes; 0: unknown */
	double rate_gbit_s;             /* of the link; 0: unknown */
	const char *connection;         /* "stream", "rdm", ... ; NULL: none */
	/* jobs with lanes: the calls that hand their lists to the device; NULL: there is no choice */
	const char *post_api;
	char driver[32];                /* the kernel's, of the device; empty: unknown, or no RDMA device */
	bool simulated;                 /* no device moves the data: a test's provider plays one */
	const char *gpu_path;           /* how the device reaches a GPU's memory; NULL: no GPU, or --bounce */
	const struct slingshot *slingshot;      /* of cxi; NULL: no other backend has it (slingshot.h) */
};

struct open_arguments {
	const struct job *job;
	enum role role;
	const struct arena *arena;              /* memory of both directions, already touched */
	/* of the control connection: names the interface that reaches the peer */
	const struct sockaddr_storage *local;
	const struct sockaddr_storage *peer;
	uint32_t lane;                          /* of the job; 0 where it has but one, or none */
	uint32_t channel;                       /* lanes: the queue pair that the session is, where it is but one */
	bool same_host;                         /* both ends share kernel, /dev/shm and process ids */
	bool same_machine;                      /* the kernel, and so the processors */
	/* wait() also wakes when this becomes readable (the peer says something); -1: none */
	int wake_fd;
};

/* One entry of a port's GID table, as `perch devices` shows it. */
struct device_gid {
	int index;
	char gid[INET6_ADDRSTRLEN], type[16];
	char netdev[IF_NAMESIZE];       /* empty: none */
};

/* What a device can do, as it answered when it was asked. */
struct device_capabilities {
	bool rc, uc, ud;                /* types of queue pairs */
	bool atomics, srq, dmabuf;
	bool peer_memory;               /* a module makes a GPU's memory known by its addresses */
	uint32_t inline_bytes;          /* of a send, at most */
};

/* What only an RDMA device has. */
struct device_rdma {
	unsigned port;
	char firmware[64], driver[32];  /* empty: unknown */
	uint32_t lid;                   /* 0: none */
	const struct device_gid *gids;
	size_t n_gids;
	const struct device_capabilities *can;  /* NULL: unknown */
};

/* One line of `perch devices`. */
struct device {
	char backend[JOB_NAME_MAX], provider[JOB_NAME_MAX], name[JOB_NAME_MAX], layer[16], state[16];
	char address[INET6_ADDRSTRLEN + 64];
	char netdev[IF_NAMESIZE];       /* empty: the kernel's own word (device_netdev) */
	uint32_t mtu;
	double rate_gbit_s;
	const struct device_rdma *rdma; /* NULL: is none; only valid during the callback */
	const char *remedy;             /* NULL: it can be used; else what to do before it can */
};

typedef int (*device_callback)(const struct device *device, void *userdata);

enum { BACKEND_ALARMS = 2 };     /* descriptors of one session: its completions, and news of its device */

/* Hooks that only jobs with lanes need; null/null.c says what each must do. */
struct lane_hooks {
	void (*place)(struct session *s, uint32_t slot, uint32_t channel, uint64_t offset, uint64_t size);
	int (*post_list)(struct session *s, const struct list *list);
	int (*arm)(struct session *s, struct completion *ret, unsigned max, struct pollfd alarms[BACKEND_ALARMS]);
};

/* null/null.c says what each hook must do, and which may be NULL. */
struct backend {
	const struct backend_facts *facts;      /* what it can ever do; what this host can is open's business */
	unsigned version;                       /* BACKEND_VERSION */

	int (*probe)(device_callback callback, void *userdata);
	int (*resolve)(struct job *job, const struct open_arguments *arguments);
	int (*open)(const struct open_arguments *arguments, struct session **ret);
	uint32_t (*slots)(const struct job *job);
	int (*local_address)(struct session *s, struct address *ret);
	int (*connect)(struct session *s, const struct address *peer);
	void (*begin)(struct session *s, uint64_t size);
	const struct lane_hooks *lanes;         /* exactly where it has BACKEND_LANES */
	int (*post)(struct session *s, const struct work *work);
	int (*post_receive)(struct session *s, uint32_t slot, uint64_t size);
	int (*poll)(struct session *s, struct completion *ret, unsigned max);
	int (*wait)(struct session *s, struct completion *ret, unsigned max, uint64_t timeout_ns);
	int (*check)(struct session *s);
	void (*describe)(struct session *s, json_t *record);
	struct session *(*close)(struct session *s);
	/* the last one, so that the hooks of the hot loop share a line of the cache */
	int (*near)(const struct open_arguments *arguments, char ret[JOB_NAME_MAX]);
};

/* Checks the vtable once, so that the hot loop never has to. -EINVAL (said). */
int backend_check(const struct backend *b);

/* post_list() where a list is no more than its messages: each by post(). */
int backend_post_each(struct session *s, const struct list *list);

/* An alarm that is not set: poll(2) passes over it. */
static inline void alarms_clear(struct pollfd *alarms, size_t n) {
	for (size_t i = 0; i < n; i++)
		alarms[i] = (struct pollfd) { .fd = -1 };
}

/* Sleeps for one of the alarms, at most so long. 0 or negative (said). */
int backend_sleep(struct pollfd *alarms, size_t n, uint64_t timeout_ns);

/* wait() where a session can be armed: sleeps for its alarms, and for `wake_fd` (-1: none). */
int backend_wait(struct session *s, struct completion *ret, unsigned max, uint64_t timeout_ns, int wake_fd);

const char *level_name(int level);
