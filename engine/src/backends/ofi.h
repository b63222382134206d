/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ofi backend's own parts. One reliable datagram endpoint, one completion queue for both directions, one region over
 * the whole arena:
 *
 *     ofi.c           vtable; opens, connects and closes the endpoint
 *     ofi_provider.c  which provider, domain and source address
 *     ofi_memory.c    registration, and the address that tells the peer where our memory is
 *     ofi_data.c      the hot path: post, poll, wait
 *     ofi_error.c     libfabric's errors in words
 *     ofi_device.c    facts about domains; `perch devices`
 *     ofi_library.c   libfabric itself, loaded on first use
 */
#pragma once

#include "../backend.h"
#include "ofi_library.h"

/* The oldest interface that has all we use; Debian 12 ships exactly this, and every 2.x still answers to it. */
#define OFI_VERSION FI_VERSION(1, 17)

/* The demands of a provider that this backend can meet; one that demands more is not offered to us (fi_getinfo(3)). */
#define OFI_MODES (FI_CONTEXT | FI_CONTEXT2 | FI_RX_CQ_DATA)
/* FI_MR_MMU_NOTIFY and FI_MR_RMA_EVENT ask for nothing here: our pages stay mapped, and no counters are bound. */
#define OFI_MR_MODES \
	(FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT | FI_MR_MMU_NOTIFY | FI_MR_RMA_EVENT)

enum {
	OFI_NAME_MAX = 512,     /* of an endpoint: libfabric's longest, FI_ADDR_STR, stays below 256 */
	OFI_POLL_BATCH = 32,    /* completions a read: what fits in a page of stack with room to spare */
	OFI_HELLO_BYTES = 64,   /* a cache line each, so that the two greetings never share one */
	OFI_QUEUE_SPARE = 2,    /* receives and sends beside the test's: the greeting, one of each */
	OFI_QUEUE_MIN = 64,     /* layers split large messages into several entries of their own */
};

/* Where a slot's bytes are, here and at the peer; computed once, so that posting needs no division. */
struct ofi_place {
	uint8_t *tx, *rx, *compare;
	uint64_t remote_tx, remote_rx;
};

struct ofi_session {
	struct session session;         /* must be first */

	/* hot */
	struct fid_ep *ep;
	struct fid_cq *cq;
	fi_addr_t peer;
	uint64_t remote_key;
	void *desc, *scratch_desc;      /* NULL where the provider needs no local registration */
	uint64_t inject_below;          /* shorter messages are injected; 0: none */
	struct fi_context2 *contexts;   /* slots for tx, slots for rx, then the greeting's two; a pointer is kind and slot */
	struct ofi_place *places;
	uint32_t slots;
	bool notified;                  /* the completion queue carries remote data */
	bool messages;                  /* lent slots receive messages: --op send */
	bool feeds;                     /* FI_RX_CQ_DATA: notified writes use up receives */
	bool broken;                    /* an operation has failed: what libfabric holds of it may not be torn down */
	uint32_t under_way;             /* posts whose completion has not come */
	uint32_t next_feed;
	struct fid_fabric *fabric;
	int wait_fd, wake_fd;

	/* cold */
	const struct job *job;
	enum role role;
	struct arena arena;
	struct fi_info *info;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_mr *mr, *scratch_mr;
	uint8_t *scratch;               /* the greeting's two buffers, then what compare-swap compares with */
	size_t scratch_length;
};

static inline struct ofi_session *ofi_session(struct session *s) {
	return (struct ofi_session *) s;
}

static inline uint8_t *ofi_compare_area(const struct ofi_session *o) {
	return o->scratch + 2 * OFI_HELLO_BYTES;
}

/* ofi_provider.c. Answers one fi_info, to be freed with fi_freeinfo(). Negative: said. */
int ofi_choose(const struct open_arguments *arguments, uint64_t op_flags, struct fi_info **ret);
bool ofi_is_host_local(const struct fi_info *info);
int ofi_resolve(struct job *job, const struct open_arguments *arguments);

/* ofi_memory.c */
int ofi_memory_open(struct ofi_session *o);
int ofi_memory_enable(struct ofi_session *o);
void ofi_memory_close(struct ofi_session *o);
void ofi_scratch_close(struct ofi_session *o);
int ofi_address_write(const struct ofi_session *o, struct address *ret);
int ofi_address_read(struct ofi_session *o, const struct address *peer);

/* ofi_data.c */
int ofi_post(struct session *s, const struct work *work);
int ofi_post_receive(struct session *s, uint32_t slot, uint64_t size);
int ofi_poll(struct session *s, struct completion *ret, unsigned max);
int ofi_wait(struct session *s, struct completion *ret, unsigned max, uint64_t timeout_ns);

/* ofi_error.c. `error` is libfabric's, positive or negative; all answer a negative errno. */
int ofi_failed(const struct ofi_session *o, const char *what, int error, const char *detail);
int ofi_open_failed(const struct ofi_session *o, const char *what, int error);
int ofi_cq_failed(struct ofi_session *o, ssize_t error);

/* ofi_device.c */
int ofi_probe(device_callback callback, void *userdata);
void ofi_facts(const struct fi_info *info, const void *own, size_t own_length, struct device *ret);
void ofi_address_text(uint32_t format, const void *address, size_t length, char *ret, size_t size);
bool ofi_is_ip(const struct fi_info *info);
bool ofi_core_is(const struct fi_info *info, const char *name);
