/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the parts of the fake share: fake_verbs.c makes and destroys, fake_verbs_data.c moves,
 * fake_verbs_wr.c has the ibv_wr calls.
 */
#pragma once

#include "fake_verbs.h"

enum {
	FAKE_QP_MAX = 2100,          /* two ends of 1024 */
	MR_MAX = 64,
	FIRST_QP_NUMBER = 0x10, /* 0 and 1 are special on InfiniBand */
	KEY = 0x5a00,
};

struct fake_context {
	struct fake_device *device;
	int event_pipe[2];
	struct verbs_context verbs;     /* ends with what programs know as the context */
};

static inline struct fake_context *fake_context(const struct ibv_context *context) {
	return (struct fake_context *) ((uintptr_t) context - offsetof(struct fake_context, verbs.context));
}

struct fake_mr {
	struct ibv_mr mr;
	unsigned access;
	bool used;
};

struct entry {
	struct ibv_wc wc;
	struct fake_qp *sender; /* NULL: a receive */
	uint32_t covers;        /* work requests of the send queue that are over with it */
};

struct fake_cq {
	struct ibv_cq cq;
	struct entry *ring;
	uint32_t head, tail;
	bool armed;
	int pipe_write;
	int vector;
};

struct receive {
	uint64_t wr_id;
	struct ibv_sge sge[2];
	int n;
};

struct receive_queue {
	struct receive *ring;
	uint32_t depth, head, tail, max_sge;
};

struct fake_srq {
	struct ibv_srq srq;
	struct receive_queue queue;
};

struct sending {
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	uint8_t *copy;          /* inline */
	uint32_t covers;
};

struct fake_qp {
	union {
		struct ibv_qp qp;
		struct ibv_qp_ex ex;    /* begins with the other */
	};
	uint64_t wr_ops;        /* that it was made for; 0: it has no ibv_wr calls */
	struct fake_list *list; /* under construction by them; NULL: none */
	struct ibv_qp_cap cap;
	struct receive_queue receives;
	struct sending *sends;  /* ring of those not executed: the receiver was not ready */
	uint32_t head, tail, busy, unsignalled;
	uint32_t destination, qkey, lost;
	uint16_t pkey;          /* 0: the connection manager's */
	struct ibv_ah_attr path;        /* RC and UC: to the peer */
	enum ibv_mtu path_mtu;
	uint8_t reads;                  /* RC: that it may have under way */
	unsigned access;
};

struct fake_ah {
	struct ibv_ah ah;
	struct ibv_ah_attr attr;
};

struct fake_channel {
	struct ibv_comp_channel channel;
	int pipe_write;
	struct ibv_cq *cq;
};

extern struct fake_qp *fake_queue_pairs[FAKE_QP_MAX];

/* Said on standard error, and counted. */
void fake_violation(const char *what);

/* The error that a call was told to fail with, else 0. */
int fake_told(enum fake_call call);

/* Whether a region of that key holds the bytes, with those rights. */
bool fake_reaches(uint32_t key, uint64_t address, uint64_t length, unsigned access);

/* What a queue pair of this type must be given on its way to a state, and no more. */
int fake_required_mask(enum ibv_qp_type type, enum ibv_qp_state to);

/* fake_verbs_wr.c */
struct ibv_qp *fake_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr);

/* Posts without being told to fail. */
int fake_post_list(struct fake_qp *q, struct ibv_send_wr *wr, struct ibv_send_wr **bad);

/* The calls that go through struct ibv_context_ops. */
int fake_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int fake_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int fake_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int fake_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *ret);
int fake_req_notify_cq(struct ibv_cq *cq, int solicited);
