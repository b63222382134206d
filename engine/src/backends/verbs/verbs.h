/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verbs backend's own parts. One region over the whole arena, one completion queue for both directions, and as many
 * queue pairs as the job says:
 *
 *     verbs.c           vtable; opens and closes; limits
 *     verbs_memory.c    registration, and the address that tells the peer where our queue pairs and our memory are
 *     verbs_gpu.c       the same for memory of GPUs
 *     verbs_queue.c     completion queue, shared receive queue, queue pairs
 *     verbs_connect.c   brings the queue pairs to "ready to send" with what the peer's address says
 *     verbs_cm.c        the same by the connection manager (--rdma-cm)
 *     verbs_data.c      the hot path: begin, post, post_receive, poll, wait
 *     verbs_transfer.c  place, and post of messages that are only payload, by the ibv_wr calls or linked lists
 *     verbs_rate.c      lists of message rates, their completions, and receives with credits
 *     verbs_device.c    which device, port and GID (verbs_device.h)
 *     verbs_error.c     errors in words (verbs_error.h)
 */
#pragma once

#include <infiniband/verbs.h>

#include "verbs_device.h"
#include "verbs_error.h"

enum {
	VERBS_POLL_BATCH = 16,          /* completions a call: as perftest(1) polls; 48 bytes each */
	/* in front of each received datagram (InfiniBand Architecture Specification, 11.4.1.2) */
	VERBS_GRH_BYTES = 40,
	/* send queue of lat: as perftest(1)'s tx-depth; a signalled one in each quarter */
	VERBS_LATENCY_DEPTH = 128,
	/* parts of a rate's receives, each of which the sender is told of when it is lent again */
	VERBS_CREDITS = 4,
	VERBS_RECEIVES = 512,           /* as perftest(1)'s rx-depth: a receiver this far behind is not ready */
	VERBS_RECEIVES_ALL = 8192,      /* of all queue pairs together: 16 of that depth, and fewer of each beyond */
	/* acknowledging takes a mutex, so not each event by itself (ibv_get_cq_event(3)) */
	VERBS_ACK_EVENTS = 64,
	VERBS_HOP_LIMIT = 64,           /* Linux' default time to live (ip_default_ttl): enough for any routed fabric */
	/* 0.64 ms, as perftest(1): what a sender waits for a receiver that was not ready */
	VERBS_MIN_RNR_TIMER = 12,
};

/* wr_id: a receive's slot below the mark; else the queue pair's number above, its position in the ring below. */
#define VERBS_ID_RECEIVE (UINT64_C(1) << 63)
#define VERBS_NO_SLOT UINT32_MAX        /* in a ring: reported as complete when it was posted */

/* Packet sequence numbers have 24 bits (InfiniBand Architecture Specification 1.6, section 9.2.10). */
enum { PSN_MASK = 0xffffff };

/*
 * One queue pair. Positions run freely; the ring holds the slots under way,
 * since a completion also completes all before it.
 */
struct verbs_queue {
	struct ibv_qp *qp;
	uint32_t *ring;
	uint32_t head, tail;
	uint32_t unsignalled;                   /* posted since the last signalled one */
	struct ibv_send_wr *first, *last;       /* a post list under construction; NULL: none */
	struct ibv_qp_ex *wr;                   /* moves, ibv_wr calls: the same queue pair; else NULL */
	bool building;                          /* ibv_wr_start() is waiting for its ibv_wr_complete() */
	struct ibv_send_wr *requests;           /* moves, linked lists: one for each place of the ring; */
	struct ibv_sge *places;                 /* the same */
	uint32_t number;                        /* its place among the queue pairs */
	uint64_t arrivals;                      /* in this phase, with immediate data */
	/*
	 * Rates of sends, ever: messages that came, receives lent, and what the sender has been told of these;
	 * and the place of the next receive.
	 */
	uint32_t taken, lent, credit, place;

	/* cold */
	struct ibv_ah *ah;                      /* UD */
	uint32_t remote_number;                 /* the peer's queue pair */
};

/* One message that is only payload: all that its post needs beside what is the same for all of them. */
struct verbs_move {
	uint64_t offset;                        /* into this end's memory and the peer's */
	uint32_t bytes;
	uint16_t channel;                       /* its queue pair */
};

struct verbs_cm;

struct verbs_session {
	struct session session;                 /* must be first */

	/* hot */
	struct ibv_cq *cq;
	struct verbs_queue *queues;
	struct ibv_send_wr *requests;           /* one a slot, prepared when a phase begins */
	struct ibv_sge *places;                 /* one a slot */
	uint16_t *channels;                     /* one a slot: its queue pair; NULL: lanes */
	struct verbs_move *moves;               /* one a slot, in the place of requests; NULL: verbs_has_moves() */
	uint8_t *local;                         /* moves: the half that they leave from or land in, */
	uint32_t local_key;                     /* and its key */
	uint32_t tx_key, rx_key;                /* local ones of both halves */
	uint32_t slots, ring_mask, send_depth;
	uint32_t moderation;                    /* every Nth is signalled */
	unsigned send_flags;                    /* of each: inline, or none */
	bool silent;                            /* inline, and its completion tells nobody anything: none is reported */
	bool immediate;                         /* arrivals carry the slot that was meant */
	bool datagrams, reliable, lossy, atomics;
	bool use_wr;                            /* moves: by the ibv_wr calls */
	bool counts;                            /* a rate: completions are counted, not looked at one by one */
	bool credits;                           /* of sends, at their initiator, */
	bool credited;                          /* which has been told of more receives since this was cleared */
	/* rates of sends, at their target: where receives lie, and the bytes of each */
	struct places receive_places;
	uint32_t receive_bytes;
	/* what each arrival must have; 0: a write, whose length the initiator knows */
	uint32_t received_bytes;
	struct ibv_send_wr *bad;                /* ibv_post_send(3)'s; on the stack it would cost each post a guard */
	struct ibv_wc completions[VERBS_POLL_BATCH];
	unsigned next_completion, n_completions;        /* taken from the queue, and not yet handed out */

	/* write with half_round_trip: the last byte of each message counts 1 to 255, and its target polls for it */
	uint64_t stamp_offset;                  /* within a slot */
	uint64_t stamps_seen, stamps_sent;      /* messages of this phase */
	bool in_order;                          /* the device says that it writes the last byte last */

	/* event completion */
	struct ibv_comp_channel *channel;
	bool armed;
	unsigned events;                        /* to be acknowledged */
	int wake_fd;
	uint32_t empty_polls;

	/* cold */
	const struct job *job;
	enum role role;
	struct arena arena;
	struct verbs_device device;
	struct ibv_pd *pd;
	/* of the arena's regions; the second is NULL where one serves both halves */
	struct ibv_mr *mr[2], *grh_mr;
	struct ibv_srq *srq;
	uint8_t *grh;                           /* where the headers of all datagrams go: nobody reads them */
	uint32_t lane;
	uint32_t n_queues, receive_depth;
	uint32_t inline_bytes;
	uint32_t first_psn, queue_key;
	int sl, traffic_class;                  /* in use; -1: not known yet */
	/* SRQ: by queue pair number & number_mask, 1 more than the place in queues; 0: none */
	uint16_t *channel_of_number;
	uint32_t number_mask;
	char peer_name[INET6_ADDRSTRLEN + 64];
	struct verbs_cm *cm;                    /* --rdma-cm */

	/* the peer's, checked */
	uint32_t remote_key, remote_psn, remote_queue_key;
	uint64_t remote_base;                   /* of the half that the operation works on */
	uint16_t remote_lid;
	uint8_t remote_port;
	union ibv_gid remote_gid;
	uint32_t path_mtu;                      /* bytes */
	uint8_t read_depth;                     /* reads and atomics under way, as initiator */
	struct sockaddr_storage remote_cm;      /* where its connection manager listens */
};

static inline struct verbs_session *verbs_session(struct session *s) {
	return (struct verbs_session *) s;
}

/* verbs_memory.c */
int verbs_memory_open(struct verbs_session *v);
void verbs_memory_close(struct verbs_session *v);
int verbs_address_write(const struct verbs_session *v, struct address *ret);
int verbs_address_read(struct verbs_session *v, const struct address *peer);

/* verbs_gpu.c: NULL: said */
struct ibv_mr *verbs_gpu_register(struct verbs_session *v, const struct region *region, int access);

/* verbs_queue.c */
int verbs_queues_open(struct verbs_session *v);
void verbs_queues_close(struct verbs_session *v);
enum ibv_qp_type verbs_qp_type(enum connection connection);
int verbs_access(enum op op, bool relaxed);

/* verbs_capabilities.c: the next smaller number of bytes inline that some device takes at most; 0: none is smaller */
uint32_t verbs_less_inline(uint32_t bytes);

/* verbs_transfer.c */
bool verbs_has_moves(const struct verbs_session *v);    /* whether all that this end posts is only payload */
int verbs_transfer_open(struct verbs_session *v);       /* when there are queues */
void verbs_place(struct session *s, uint32_t slot, uint32_t channel, uint64_t offset, uint64_t size);
int verbs_transfer_post(struct verbs_session *v, const struct work *work);
int verbs_transfer_list(struct verbs_session *v, struct verbs_queue *q, const struct verbs_move *m, uint32_t n,
			bool signalled);

/* verbs_rate.c */
uint32_t verbs_rate_receives(const struct verbs_session *v);    /* depth of a receive queue */
int verbs_rate_lend(struct verbs_session *v);                   /* when the queues are connected */
int verbs_rate_count(struct verbs_session *v, struct completion *ret, unsigned max);
int verbs_post_list(struct session *s, const struct list *list);

/* verbs_connect.c */
int verbs_init_queues(struct verbs_session *v);         /* receives may be posted after it */
int verbs_connect_queues(struct verbs_session *v);

/* verbs_cm.c. Opening listens at the server, so that its address can be told; connecting brings all queue pairs up. */
int verbs_cm_open(struct verbs_session *v, const struct sockaddr_storage *local);
int verbs_cm_connect(struct verbs_session *v);
void verbs_cm_close(struct verbs_session *v);
void verbs_cm_address(const struct verbs_session *v, struct sockaddr_storage *ret);

/* verbs_data.c */
void verbs_begin(struct session *s, uint64_t size);
int verbs_post(struct session *s, const struct work *work);
int verbs_ring_doorbell(struct verbs_session *v, struct verbs_queue *q);
int verbs_post_failed(struct verbs_session *v, const char *what, int error);    /* `error`: errno */
int verbs_work_failed(struct verbs_session *v, const struct ibv_wc *first);
enum ibv_wr_opcode verbs_opcode(enum op op);
int verbs_post_receive(struct session *s, uint32_t slot, uint64_t size);
int verbs_poll(struct session *s, struct completion *ret, unsigned max);
int verbs_check(struct session *s);
int verbs_arm(struct session *s, struct completion *ret, unsigned max, struct pollfd alarms[BACKEND_ALARMS]);
int verbs_wait(struct session *s, struct completion *ret, unsigned max, uint64_t timeout_ns);
