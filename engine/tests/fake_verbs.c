/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See fake_verbs.h. Objects begin with what libibverbs would answer; numbers and keys are places in tables,
 * so that wrong ones are seen.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <net/if.h>
#include <stdio.h>
#include <unistd.h>

#include "fake_verbs_internal.h"

/* Macros of verbs.h that stand before the functions we define. */
#undef ibv_query_port
#undef ibv_reg_mr

struct fake fake;
struct fake_qp *fake_queue_pairs[FAKE_QP_MAX];
static struct fake_mr regions[MR_MAX];

void fake_violation(const char *what) {
	fake.violations++;
	fprintf(stderr, "fake verbs: %s\n", what);
}

int fake_told(enum fake_call call) {
	fake.calls[call]++;
	if (!fake.fail[call].error || fake.fail[call].skip-- > 0)
		return 0;
	return fake.fail[call].error;
}

static bool refuses(enum fake_call call) {
	int e = fake_told(call);

	if (e)
		errno = e;
	return e != 0;
}

static void *make(size_t size) {
	void *p = calloc(1, size);

	if (!p)
		abort();
	fake.live++;
	return p;
}

static void unmake(void *p) {
	fake.live--;
	free(p);
}

void fake_reset(void) {
	/* What a failed test has left behind must not fail those after it. */
	fake = (struct fake) { .n_devices = 0 };
	memset(fake_queue_pairs, 0, sizeof(fake_queue_pairs));
	memset(regions, 0, sizeof(regions));
}

void fake_fail(enum fake_call call, int error, unsigned skip) {
	fake.fail[call].error = error;
	fake.fail[call].skip = skip;
}

struct fake_device *fake_add(const char *name) {
	struct fake_device *d = &fake.devices[fake.n_devices++];

	*d = (struct fake_device) {
		.device = { .node_type = IBV_NODE_CA, .transport_type = IBV_TRANSPORT_IB },
		.attr = {
			.fw_ver = "1.2.3", .max_qp = 4096, .max_qp_wr = 16384, .max_sge = 4, .max_cq = 16,
			.max_cqe = 1 << 22, .max_mr = MR_MAX,
			.max_qp_rd_atom = 16, .max_qp_init_rd_atom = 16, .atomic_cap = IBV_ATOMIC_HCA, .max_srq = 4,
			.max_srq_wr = 1 << 16,
			.phys_port_cnt = 1,
		},
		.max_inline = 256,
		.n_vectors = 1,
	};
	for (unsigned i = 0; i < FAKE_PORTS; i++) {
		d->pkeys[i][0] = 0xffff;
		d->ports[i] = (struct ibv_port_attr) {
			.state = IBV_PORT_ACTIVE, .max_mtu = IBV_MTU_4096, .active_mtu = IBV_MTU_4096,
			.gid_tbl_len = 16, .pkey_tbl_len = FAKE_PKEYS, .max_msg_sz = 1u << 30,
			/* 100 Gb/s: 4 x 25 */
			.link_layer = IBV_LINK_LAYER_ETHERNET, .active_speed = 32, .active_width = 2,
		};
	}
	(void) snprintf(d->device.name, sizeof(d->device.name), "%s", name);
	(void) snprintf(d->device.dev_name, sizeof(d->device.dev_name), "uverbs%u", fake.n_devices - 1);
	return d;
}

void fake_set_gid(struct fake_device *d, unsigned port, int index, const char *address, enum ibv_gid_type type,
		  const char *netdev) {
	struct fake_gid *g = &d->gids[port - 1][index];

	*g = (struct fake_gid) { .type = type, .ifindex = netdev ? if_nametoindex(netdev) : 0 };
	if (inet_pton(AF_INET6, address, g->gid.raw) == 1)
		return;
	g->gid.raw[10] = g->gid.raw[11] = 0xff;
	if (inet_pton(AF_INET, address, g->gid.raw + 12) != 1)
		abort();
}

/* Devices */

struct ibv_device **ibv_get_device_list(int *n) {
	struct ibv_device **list;

	if (refuses(FAKE_GET_DEVICE_LIST))
		return NULL;
	list = make((fake.n_devices + 1) * sizeof(*list));
	for (unsigned i = 0; i < fake.n_devices; i++)
		list[i] = &fake.devices[i].device;
	if (n)
		*n = (int) fake.n_devices;
	return list;
}

void ibv_free_device_list(struct ibv_device **list) {
	unmake(list);
}

const char *ibv_get_device_name(struct ibv_device *d) {
	return d->name;
}

struct ibv_context *ibv_open_device(struct ibv_device *device) {
	struct fake_device *d = (struct fake_device *) device;
	struct fake_context *c;

	if (d->open_error) {
		errno = d->open_error;
		return NULL;
	}
	if (refuses(FAKE_OPEN_DEVICE))
		return NULL;
	c = make(sizeof(*c));
	c->device = d;
	if (pipe(c->event_pipe) < 0)
		abort();
	c->verbs.sz = sizeof(c->verbs);
	c->verbs.create_qp_ex = d->no_wr ? NULL : fake_create_qp_ex;
	c->verbs.context = (struct ibv_context) {
		.device = device,
		.async_fd = c->event_pipe[0],
		.num_comp_vectors = d->n_vectors,
		.abi_compat = __VERBS_ABI_IS_EXTENDED,
		.ops = { .post_send = fake_post_send, .post_recv = fake_post_recv, .post_srq_recv = fake_post_srq_recv,
			 .poll_cq = fake_poll_cq, .req_notify_cq = fake_req_notify_cq },
	};
	return &c->verbs.context;
}

int ibv_close_device(struct ibv_context *context) {
	struct fake_context *c = fake_context(context);

	(void) close(c->event_pipe[0]);
	(void) close(c->event_pipe[1]);
	unmake(c);
	return 0;
}

static struct fake_device *device_of(const struct ibv_context *context) {
	return fake_context(context)->device;
}

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *ret) {
	int e = fake_told(FAKE_QUERY_DEVICE);

	if (!e)
		*ret = device_of(context)->attr;
	return e;
}

/* verbs.h comes here for contexts whose extensions do not have it, with room for all but the newest member. */
int ibv_query_port(struct ibv_context *context, uint8_t port, struct _compat_ibv_port_attr *ret) {
	const struct fake_device *d = device_of(context);
	int e = fake_told(FAKE_QUERY_PORT);

	if (port < 1 || port > d->attr.phys_port_cnt)
		return EINVAL;
	if (!e)
		memcpy(ret, &d->ports[port - 1], offsetof(struct ibv_port_attr, port_cap_flags2));
	return e;
}

int ibv_query_pkey(struct ibv_context *context, uint8_t port, int index, __be16 *ret) {
	if (index < 0 || index >= FAKE_PKEYS) {
		errno = EINVAL;
		return -1;
	}
	*ret = htobe16(device_of(context)->pkeys[port - 1][index]);
	return 0;
}

int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port, uint32_t index, struct ibv_gid_entry *ret,
		      uint32_t flags, size_t size) {
	const struct fake_device *d = device_of(context);
	static const union ibv_gid zero;
	const struct fake_gid *g;
	int e = fake_told(FAKE_QUERY_GID);

	(void) flags;
	if (e)
		return e;
	if (port < 1 || port > d->attr.phys_port_cnt || (int) index >= d->ports[port - 1].gid_tbl_len ||
	    size != sizeof(*ret))
		return EINVAL;
	g = &d->gids[port - 1][index];
	if (g->error || memcmp(&g->gid, &zero, sizeof(zero)) == 0)
		return g->error ? g->error : ENODATA;
	*ret = (struct ibv_gid_entry) { .gid = g->gid, .gid_index = index, .port_num = port, .gid_type = g->type,
					.ndev_ifindex = g->ifindex };
	return 0;
}

void fake_raise(struct ibv_context *context, enum ibv_event_type type, int port) {
	const struct ibv_async_event e = { .event_type = type, .element.port_num = port };

	if (write(fake_context(context)->event_pipe[1], &e, sizeof(e)) != sizeof(e))
		abort();
}

int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *ret) {
	if (read(context->async_fd, ret, sizeof(*ret)) != sizeof(*ret))
		return -1;
	fake.live++; /* until it is acknowledged */
	return 0;
}

void ibv_ack_async_event(struct ibv_async_event *event) {
	(void) event;
	fake.live--;
}

/* Memory */

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context) {
	struct ibv_pd *pd;

	if (refuses(FAKE_ALLOC_PD))
		return NULL;
	pd = make(sizeof(*pd));
	pd->context = context;
	return pd;
}

int ibv_dealloc_pd(struct ibv_pd *pd) {
	unmake(pd);
	return 0;
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned int access) {
	if (refuses(FAKE_REG_MR))
		return NULL;
	if (iova != (uintptr_t) addr)
		fake_violation("a region is registered at another address");
	for (uint32_t i = 0; i < MR_MAX; i++)
		if (!regions[i].used) {
			regions[i] = (struct fake_mr) {
				.mr = { .context = pd->context, .pd = pd, .addr = addr, .length = length,
					.lkey = KEY + i, .rkey = KEY + i },
				.access = access,
				.used = true,
			};
			fake.live++;
			fake.access = access;
			return &regions[i].mr;
		}
	errno = ENOMEM;
	return NULL;
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access) {
	return ibv_reg_mr_iova2(pd, addr, length, (uintptr_t) addr, (unsigned) access);
}

/* The descriptor is only looked at: the fake device works on the addresses themselves, as with all memory. */
struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova, int fd, int access) {
	struct ibv_mr *mr;

	if (refuses(FAKE_REG_DMABUF_MR))
		return NULL;
	if (fd < 0) {
		errno = EBADF;
		return NULL;
	}
	if (lseek(fd, 0, SEEK_END) < (off_t) (offset + length))
		fake_violation("a dmabuf is registered beyond its end");
	mr = ibv_reg_mr_iova2(pd, (void *) (uintptr_t) iova, length, iova, (unsigned) access);
	fake.calls[FAKE_REG_MR]--;
	return mr;
}

int ibv_dereg_mr(struct ibv_mr *mr) {
	((struct fake_mr *) mr)->used = false;
	fake.live--;
	return 0;
}

bool fake_reaches(uint32_t key, uint64_t address, uint64_t length, unsigned access) {
	const struct fake_mr *m = key - KEY < MR_MAX ? &regions[key - KEY] : NULL;
	uint64_t begin = m ? (uintptr_t) m->mr.addr : 0;

	return m && m->used && (m->access & access) == access && address >= begin && length <= m->mr.length &&
	       address - begin <= m->mr.length - length;
}

/* Completion queues */

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context) {
	struct fake_channel *c;
	int ends[2];

	if (refuses(FAKE_CREATE_CHANNEL))
		return NULL;
	if (pipe(ends) < 0)
		abort();
	c = make(sizeof(*c));
	c->channel = (struct ibv_comp_channel) { .context = context, .fd = ends[0] };
	c->pipe_write = ends[1];
	return &c->channel;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *channel) {
	struct fake_channel *c = (struct fake_channel *) channel;

	(void) close(c->channel.fd);
	(void) close(c->pipe_write);
	unmake(c);
	return 0;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context, struct ibv_comp_channel *channel,
			     int vector) {
	struct fake_cq *c;

	if (refuses(FAKE_CREATE_CQ))
		return NULL;
	if (vector < 0 || vector >= MAX(context->num_comp_vectors, 1) || cqe < 1 ||
	    cqe > device_of(context)->attr.max_cqe) {
		errno = EINVAL;
		return NULL;
	}
	c = make(sizeof(*c));
	c->cq = (struct ibv_cq) { .context = context, .channel = channel, .cq_context = cq_context, .cqe = cqe };
	c->vector = vector;
	c->ring = calloc((size_t) cqe, sizeof(*c->ring));
	if (channel)
		((struct fake_channel *) channel)->cq = &c->cq;
	return &c->cq;
}

int ibv_destroy_cq(struct ibv_cq *cq) {
	struct fake_cq *c = (struct fake_cq *) cq;

	if (cq->comp_events_completed)
		/* the real one waits for ever */
		fake_violation("a completion queue is destroyed with unacknowledged events");
	free(c->ring);
	unmake(c);
	return 0;
}

int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context) {
	char byte;

	if (read(channel->fd, &byte, 1) != 1)
		return -1;
	*cq = ((struct fake_channel *) channel)->cq;
	*cq_context = (*cq)->cq_context;
	(*cq)->comp_events_completed++;
	return 0;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int n) {
	if (n > cq->comp_events_completed)
		fake_violation("more events are acknowledged than there were");
	cq->comp_events_completed -= MIN(n, cq->comp_events_completed);
}

/* Queue pairs */

static void open_receives(struct receive_queue *q, uint32_t depth, uint32_t max_sge) {
	*q = (struct receive_queue) { .ring = calloc(MAX(depth, 1u), sizeof(*q->ring)), .depth = depth,
				      .max_sge = max_sge };
}

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *a) {
	struct fake_srq *s;

	if (refuses(FAKE_CREATE_SRQ))
		return NULL;
	s = make(sizeof(*s));
	s->srq = (struct ibv_srq) { .context = pd->context, .pd = pd };
	open_receives(&s->queue, a->attr.max_wr, a->attr.max_sge);
	return &s->srq;
}

int ibv_destroy_srq(struct ibv_srq *srq) {
	struct fake_srq *s = (struct fake_srq *) srq;

	free(s->queue.ring);
	unmake(s);
	return 0;
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *a) {
	const struct fake_device *d = device_of(pd->context);
	uint32_t number = 0;
	struct fake_qp *q;

	if (refuses(FAKE_CREATE_QP))
		return NULL;
	while (number < FAKE_QP_MAX && fake_queue_pairs[number])
		number++;
	if (number == FAKE_QP_MAX || (int) a->cap.max_send_wr > d->attr.max_qp_wr ||
	    (int) a->cap.max_recv_wr > d->attr.max_qp_wr ||
	    (a->cap.max_inline_data > d->max_inline && !d->inline_less)) {
		errno = number == FAKE_QP_MAX ? ENOMEM : EINVAL;
		return NULL;
	}
	if (a->qp_type == IBV_QPT_UC && d->no_uc) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	a->cap.max_inline_data = MIN(a->cap.max_inline_data, d->max_inline);
	q = make(sizeof(*q));
	q->qp = (struct ibv_qp) {
		.context = pd->context, .pd = pd, .send_cq = a->send_cq, .recv_cq = a->recv_cq, .srq = a->srq,
		.qp_num = FIRST_QP_NUMBER + number, .state = IBV_QPS_RESET, .qp_type = a->qp_type,
	};
	q->cap = a->cap;
	q->sends = calloc(MAX(a->cap.max_send_wr, 1u), sizeof(*q->sends));
	open_receives(&q->receives, a->cap.max_recv_wr, a->cap.max_recv_sge);
	fake_queue_pairs[number] = q;
	return &q->qp;
}

int ibv_destroy_qp(struct ibv_qp *qp) {
	struct fake_qp *q = (struct fake_qp *) qp;

	if (q->list)
		fake_violation("a queue pair is destroyed within ibv_wr_start() and ibv_wr_complete()");
	for (; q->tail != q->head; q->tail++)
		free(q->sends[q->tail % q->cap.max_send_wr].copy);
	fake_queue_pairs[qp->qp_num - FIRST_QP_NUMBER] = NULL;
	free(q->sends);
	free(q->receives.ring);
	unmake(q);
	return 0;
}

/*
 * What each step must bring, and may bring no more than (qp_state_table
 * of the kernel's drivers/infiniband/core/verbs.c).
 */
int fake_required_mask(enum ibv_qp_type type, enum ibv_qp_state to) {
	bool rc = type == IBV_QPT_RC, ud = type == IBV_QPT_UD;

	switch (to) {
	case IBV_QPS_INIT:
		return IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | (ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS);
	case IBV_QPS_RTR:
		return IBV_QP_STATE | (ud ? 0 : IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN) |
		       (rc ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0);
	case IBV_QPS_RTS:
		return IBV_QP_STATE | IBV_QP_SQ_PSN |
		       (rc ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC : 0);
	default:
		return IBV_QP_STATE;
	}
}

int ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags) {
	if (op != IBV_WR_RDMA_WRITE || flags != 0 || qp->state < IBV_QPS_RTR)
		fake_violation("the order of data is asked of a queue pair that cannot say it");
	return !device_of(qp->context)->out_of_order;
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *a, int mask) {
	struct fake_qp *q = (struct fake_qp *) qp;
	int e = fake_told(FAKE_MODIFY_QP);

	if (e)
		return e;
	if (mask != fake_required_mask(qp->qp_type, a->qp_state) ||
	    (a->qp_state != IBV_QPS_ERR && a->qp_state != qp->state + 1)) {
		fake_violation("a queue pair is modified with the wrong mask, or from the wrong state");
		return EINVAL;
	}
	if (a->qp_state == IBV_QPS_INIT) {
		q->access = a->qp_access_flags;
		q->qkey = a->qkey;
		if (a->port_num < 1 || a->port_num > device_of(qp->context)->attr.phys_port_cnt ||
		    a->pkey_index >= FAKE_PKEYS)
			return EINVAL;
		q->pkey = device_of(qp->context)->pkeys[a->port_num - 1][a->pkey_index];
	}
	if (a->qp_state == IBV_QPS_RTR && qp->qp_type != IBV_QPT_UD) {
		const struct fake_device *d = device_of(qp->context);

		if (d->ports[a->ah_attr.port_num - 1].link_layer == IBV_LINK_LAYER_ETHERNET && !a->ah_attr.is_global)
			fake_violation("RoCE without a global route header");
		if (d->ports[a->ah_attr.port_num - 1].flags & IBV_QPF_GRH_REQUIRED && !a->ah_attr.is_global)
			fake_violation("no global route header, which the port requires");
		if (a->path_mtu < IBV_MTU_256 || a->path_mtu > d->ports[a->ah_attr.port_num - 1].active_mtu)
			return EINVAL;
		q->destination = a->dest_qp_num;
		q->path = a->ah_attr;
		q->path_mtu = a->path_mtu;
	}
	if (mask & IBV_QP_MAX_QP_RD_ATOMIC) {
		if (a->max_rd_atomic > device_of(qp->context)->attr.max_qp_init_rd_atom)
			return EINVAL;
		q->reads = a->max_rd_atomic;
	}
	qp->state = a->qp_state;
	return 0;
}

struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *a) {
	struct fake_ah *h;

	if (refuses(FAKE_CREATE_AH))
		return NULL;
	h = make(sizeof(*h));
	h->ah = (struct ibv_ah) { .context = pd->context, .pd = pd };
	h->attr = *a;
	return &h->ah;
}

int ibv_destroy_ah(struct ibv_ah *ah) {
	unmake(ah);
	return 0;
}

/* Words */

const char *ibv_wc_status_str(enum ibv_wc_status status) {
	static char text[32];

	(void) snprintf(text, sizeof(text), "fake status %d", (int) status);
	return text;
}

const char *ibv_event_type_str(enum ibv_event_type type) {
	static char text[32];

	(void) snprintf(text, sizeof(text), "fake event %d", (int) type);
	return text;
}
