/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of the backends that are libfabric: ofi, over any provider, and cxi (cxi.h), over one.
 * One reliable datagram endpoint, one completion queue for both directions, one region over each stretch of the arena:
 *
 *     ofi.c           vtable; opens, connects and closes the endpoint
 *     ofi_provider.c  which provider, domain and source address
 *     ofi_memory.c    registration, and the address that tells the peer where our memory is
 *     ofi_gpu.c       the same for memory of GPUs
 *     ofi_data.c      the hot path: post, poll, wait
 *     ofi_rate.c      receives and credits of message rates
 *     ofi_atomic.c    atomics: what the provider has of them, and their posting
 *     ofi_error.c     libfabric's errors in words
 *     ofi_device.c    facts about domains; `perch devices`
 *     ofi_library.c   libfabric itself, loaded on first use
 */
#pragma once

#include "backends/backend.h"
#include "ofi_library.h"

/* The oldest interface that has all we use; Debian 12 ships exactly this, and every 2.x still answers to it. */
#define OFI_VERSION FI_VERSION(1, 17)

/* The demands of a provider that this backend can meet; one that demands more is not offered to us (fi_getinfo(3)). */
#define OFI_MODES (FI_CONTEXT | FI_CONTEXT2 | FI_RX_CQ_DATA)
/* FI_MR_MMU_NOTIFY and FI_MR_RMA_EVENT ask for nothing here: our pages stay mapped, and no counters are bound. */
#define OFI_MR_MODES \
	(FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT | FI_MR_MMU_NOTIFY | \
	 FI_MR_RMA_EVENT)

enum {
	OFI_CXI_PID_BITS = 9,   /* struct cxip_addr: PID, NIC, and since libfabric 1.18 the VNI in a second word */
	OFI_CXI_PID_ANY = 511,
	OFI_CXI_NIC_MASK = 0xfffff,
	OFI_NAME_MAX = 512,     /* of an endpoint: libfabric's longest, FI_ADDR_STR, stays below 256 */
	OFI_POLL_BATCH = 32,    /* completions a read: what fits in a page of stack with room to spare */
	OFI_HELLO_BYTES = 64,   /* a cache line each, so that the two greetings never share one */
	OFI_QUEUE_SPARE = 2,    /* receives and sends beside the test's: the greeting, one of each */
	OFI_QUEUE_MIN = 64,     /* layers split large messages into several entries of their own */
};

/* Where a slot's bytes are, here and at the peer; computed once, so that posting needs no division. */
struct ofi_place {
	uint8_t *tx, *rx, *compare;
	uint64_t remote;                /* of the half that the operation works on */
};

struct ofi_session;

/* What one backend does otherwise than another. Hooks may be NULL. */
struct ofi_kind {
	const struct backend *backend;
	size_t session_size;            /* of its own session, which begins with struct ofi_session */
	const char *provider;           /* the only one; NULL: --provider, or the best */
	/* writes that nobody sees arrive are complete when they are visible at the target */
	bool asks_delivery;
	int mr_modes;                   /* of OFI_MR_MODES, what may be met */

	/* Adds what the job asks of a provider. */
	void (*ask)(const struct job *job, struct fi_info *hints);

	/* The provider is chosen, nothing is open: may still change o->info. Negative: said. */
	int (*fit)(struct ofi_session *o);

	/*
	 * Why nothing was found, where that is known better than from libfabric's lists. 0: it is not; negative: said.
	 */
	int (*explain_absence)(const struct open_arguments *arguments);

	/*
	 * Why the domain could not be opened, or the endpoint enabled; `error` is positive.
	 * 0: nothing is known; negative: said.
	 */
	int (*explain_refusal)(const struct ofi_session *o, int error);

	/* The endpoint is open, and has its name. */
	void (*know)(struct ofi_session *o, const void *name, size_t length);

	/* The peer's name has the format of ours: may it be reached? Negative: said. */
	int (*check_peer)(const struct ofi_session *o, const void *name, size_t length);

	/* Frees what is only its own session's. */
	void (*forget)(struct ofi_session *o);
};

struct ofi_session {
	struct session session;         /* must be first */

	/* hot */
	struct fid_ep *ep;
	struct fid_cq *cq;
	fi_addr_t peer;
	uint64_t remote_key, remote_base;       /* base: of the half that the operation works on */
	/* of transmit and of receive memory; NULL where the provider needs no local registration */
	void *desc, *rx_desc;
	void *scratch_desc;
	uint64_t inject_below;          /* shorter messages are injected; 0: none */
	/* what calls with flags of their own must say, since the endpoint's do not count then */
	uint64_t message_flags;
	uint64_t write_flags;           /* more of them, for plain writes of less than... */
	uint64_t write_flags_below;     /* ... so many bytes; 0: none */
	int (*post_atomic)(struct ofi_session *o, const struct work *work);
	enum fi_datatype datatype;      /* of atomics: */
	enum fi_op atomic;
	uint32_t word;                  /* bytes */
	/* slots for tx, slots for rx, then the greeting's two; a pointer is kind and slot */
	struct fi_context2 *contexts;
	struct ofi_place *places;
	uint32_t slots;
	bool notified;                  /* the completion queue carries remote data */
	bool messages;                  /* lent slots receive messages: --op send */
	bool feeds;                     /* FI_RX_CQ_DATA: notified writes use up receives */
	bool broken;                    /* an operation has failed: what libfabric holds of it may not be torn down */
	uint32_t under_way;             /* posts whose completion has not come */
	uint32_t next_feed;
	struct ofi_rate *rate;          /* of rates of sends; else NULL */
	bool credited;                  /* its sender has been told of more receives since this was cleared */
	struct fid_fabric *fabric;
	int wait_fd, wake_fd;

	/* cold */
	const struct ofi_kind *kind;
	const struct job *job;
	uint64_t first_key;             /* of our regions, where the keys are ours */
	enum role role;
	struct arena arena;
	struct fi_info *info;
	struct fid_domain *domain;
	struct fid_av *av;
	/* of the arena's regions; the second is NULL where one serves both halves */
	struct fid_mr *mr[2], *scratch_mr;
	uint8_t *scratch;               /* the greeting's two buffers, then what compare-swap compares with */
	size_t scratch_length;
};

static inline struct ofi_session *ofi_session(struct session *s) {
	return (struct ofi_session *) s;
}

static inline uint8_t *ofi_compare_area(const struct ofi_session *o) {
	return o->scratch + 2 * OFI_HELLO_BYTES;
}

/* fi_domain(3)'s number of a class; FI_TC_UNSPEC for the default. */
uint32_t ofi_class(enum fabric_class fabric_class);

/* ofi.c, for every kind: what its backend's vtable has under these names. */
int ofi_open_as(const struct ofi_kind *kind, const struct open_arguments *arguments, struct session **ret);
int ofi_local_address(struct session *s, struct address *ret);
int ofi_connect(struct session *s, const struct address *peer);
struct session *ofi_close(struct session *s);

/* ofi_provider.c. Answers one fi_info, to be freed with fi_freeinfo(). Negative: said. */
int ofi_choose(const struct ofi_kind *kind, const struct open_arguments *arguments, uint64_t op_flags,
	       struct fi_info **ret);
bool ofi_is_host_local(const struct fi_info *info);

/* "cxi0" names "sim_cxi0", too: what works on the device works on its simulation. */
bool ofi_device_is(const struct fi_info *info, const char *name);

/* ofi_memory.c */
int ofi_memory_open(struct ofi_session *o);
int ofi_memory_enable(struct ofi_session *o);
void ofi_memory_close(struct ofi_session *o);
void ofi_scratch_close(struct ofi_session *o);
int ofi_address_write(const struct ofi_session *o, struct address *ret);
int ofi_address_read(struct ofi_session *o, const struct address *peer);

/* ofi_gpu.c: a GPU's memory, as FI_HMEM */
void ofi_gpu_hints(struct fi_info *hints);
int ofi_gpu_absent(const struct job *job, const char *provider);         /* says why nothing was found */
int ofi_gpu_register(struct ofi_session *o, const struct region *region, uint64_t access, uint64_t key,
		     struct fid_mr **ret);

/* ofi_data.c */
void ofi_place(struct session *s, uint32_t slot, uint32_t channel, uint64_t offset, uint64_t size);
int ofi_post(struct session *s, const struct work *work);
int ofi_post_receive(struct session *s, uint32_t slot, uint64_t size);
int ofi_poll(struct session *s, struct completion *ret, unsigned max);
int ofi_arm(struct session *s, struct completion *ret, unsigned max, struct pollfd alarms[BACKEND_ALARMS]);
int ofi_wait(struct session *s, struct completion *ret, unsigned max, uint64_t timeout_ns);
int ofi_started(struct ofi_session *o, const char *what, ssize_t r);

/* ofi_rate.c. All but posting is for sends alone; negative: said. */
uint32_t ofi_rate_receives(const struct job *job, enum role role);      /* lent at a time; 0: no such job */
size_t ofi_rate_scratch(const struct job *job);                         /* bytes behind the greetings */
int ofi_rate_open(struct ofi_session *o, uint32_t channel);
int ofi_rate_begin(struct ofi_session *o);                              /* when the peer is connected */
void ofi_rate_close(struct ofi_session *o);
int ofi_rate_poll(struct ofi_session *o, struct completion *ret, unsigned max);
int ofi_post_list(struct session *s, const struct list *list);

/* ofi_atomic.c: whether the endpoint has what the job asks for. Negative: said. */
int ofi_atomic_open(struct ofi_session *o);

/*
 * ofi_error.c. Messages begin with the backend's name. `error` is libfabric's, positive or negative;
 * all answer a negative errno.
 */
int ofi_failed(const struct ofi_session *o, const char *what, int error, const char *detail);
int ofi_open_failed(const struct ofi_session *o, const char *what, int error);
int ofi_cq_failed(struct ofi_session *o, ssize_t error);

/* ofi_device.c */
int ofi_probe(device_callback callback, void *userdata);
/* NULL: all */
int ofi_probe_provider(const char *backend, const char *provider, device_callback callback, void *userdata);
void ofi_facts(const struct fi_info *info, const void *own, size_t own_length, struct device *ret);
void ofi_address_text(uint32_t format, const void *address, size_t length, char *ret, size_t size);
bool ofi_is_ip(const struct fi_info *info);
bool ofi_core_is(const struct fi_info *info, const char *name);
