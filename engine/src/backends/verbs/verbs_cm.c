/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --rdma-cm: the queue pairs are our own, made like all others; the connection manager only carries
 * what brings them up (rdma_init_qp_attr(3)), as routed fabrics and some InfiniBand networks want it.
 * The server listens on a port of the manager's choice, which it tells the client over the control connection.
 */
#include "verbs.h"

#include <endian.h>
#include <fcntl.h>
#include <poll.h>
#include <netdb.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>

#include "base/message.h"
#include "host/netdev.h"
#include "verbs_sysfs.h"

/*
 * How much later than the peer's word on the control connection its last event may come:
 * a round trip and some scheduling.
 */
#define LAST_EVENT_NS NSEC_PER_SEC

struct verbs_cm {
	struct rdma_event_channel *events;
	struct rdma_cm_id *listener;            /* server */
	struct rdma_cm_id **ids;                /* one a queue pair; NULL: not connected yet */
	uint32_t n_ids;
	struct sockaddr_storage local;
	uint64_t deadline, heard;
};

/* With each request: proves that it comes from the peer of the control connection, and says for which queue pair. */
struct request {
	uint32_t key;
	uint32_t queue;
} __attribute__((packed));

/* An event, kept beyond its acknowledgement. */
struct cm_event {
	enum rdma_cm_event_type type;
	int status;
	struct rdma_cm_id *id;
	struct request request;
	bool has_request;
};

static int cm_failed(const struct verbs_session *v, const char *what, int error) {
	return failure(-error, EXIT_HOST, "verbs, device %s, --rdma-cm: cannot %s: %s%s", v->device.name, what,
		       strerror(error),
		       error == ENODEV || error == ENOENT ? "; is the kernel's module rdma_ucm loaded?"
		       : error == EACCES || error == EPERM ? "; may this user open /dev/infiniband/rdma_cm?" : "");
}

/* A GID of RoCE is an IP address of the port's interface. */
static void gid_address(const struct verbs_device *d, struct sockaddr_storage *ret) {
	const struct in6_addr *gid = (const void *) d->gid.raw;
	struct sockaddr_in *v4 = (void *) ret;
	struct sockaddr_in6 *v6 = (void *) ret;

	memset(ret, 0, sizeof(*ret));
	if (verbs_gid_is_ipv4(&d->gid)) {
		v4->sin_family = AF_INET;
		memcpy(&v4->sin_addr, gid->s6_addr + 12, sizeof(v4->sin_addr));
		return;
	}
	*v6 = (struct sockaddr_in6) { .sin6_family = AF_INET6, .sin6_addr = *gid };
	if (IN6_IS_ADDR_LINKLOCAL(gid))
		v6->sin6_scope_id = if_nametoindex(d->netdev);
}

/* The control connection's, without its port; a listener of both families has IPv4 mapped into IPv6. */
static void control_address(const struct sockaddr_storage *control, struct sockaddr_storage *ret) {
	struct sockaddr_in *v4 = (void *) ret;
	struct sockaddr_in6 *v6 = (void *) ret;
	struct in6_addr a;

	*ret = *control;
	if (ret->ss_family == AF_INET) {
		v4->sin_port = 0;
		return;
	}
	v6->sin6_port = 0;
	a = v6->sin6_addr;
	if (!IN6_IS_ADDR_V4MAPPED(&a))
		return;
	memset(ret, 0, sizeof(*ret));
	v4->sin_family = AF_INET;
	memcpy(&v4->sin_addr, a.s6_addr + 12, sizeof(v4->sin_addr));
}

/*
 * By which the manager comes to the same port. On InfiniBand that is an address of IPoIB, and no GID: the control
 * connection's where it uses an interface of the port, else that of the port's own interface.
 */
static void local_address(const struct verbs_session *v, const struct sockaddr_storage *control,
			  struct sockaddr_storage *ret) {
	const struct verbs_device *d = &v->device;
	char ipoib[IF_NAMESIZE];
	struct netdev n = { 0 };

	if (d->is_roce) {
		gid_address(d, ret);
		return;
	}
	(void) netdev_of_address(control, &n);
	verbs_sysfs_ipoib("", d->name, d->port, n.name, ipoib);
	if (!ipoib[0] || streq(ipoib, n.name) || netdev_address(ipoib, ret) < 0)
		control_address(control, ret);
}

static int address_failed(const struct verbs_session *v, const char *what, int error) {
	const struct verbs_cm *cm = v->cm;
	char text[INET6_ADDRSTRLEN + IF_NAMESIZE] = "?";

	if (v->device.is_roce || (error != ENODEV && error != EADDRNOTAVAIL))
		return cm_failed(v, what, error);
	(void) getnameinfo((const struct sockaddr *) &cm->local, sizeof(cm->local), text, sizeof(text), NULL, 0,
			   NI_NUMERICHOST);
	return failure(-error, EXIT_HOST, "verbs, device %s, --rdma-cm: cannot %s from %s: %s; "
		       "give the IPoIB interface of port %u an address", v->device.name, what, text, strerror(error),
		       v->device.port);
}

/* A manager that found another device than ours could not connect our queue pairs. */
static int check_device(const struct verbs_session *v, const struct rdma_cm_id *id) {
	char text[INET6_ADDRSTRLEN + IF_NAMESIZE] = "?";

	if (!id->verbs || streq(ibv_get_device_name(id->verbs->device), v->device.name))
		return 0;
	(void) getnameinfo((const struct sockaddr *) &v->cm->local, sizeof(v->cm->local), text, sizeof(text), NULL, 0,
			   NI_NUMERICHOST);
	return failure(-ENODEV, EXIT_HOST, "verbs, --rdma-cm: address %s belongs to device %s, not to %s; "
		       "choose that one%s", text, ibv_get_device_name(id->verbs->device), v->device.name,
		       v->device.is_roce ? ", or another --gid-index" : "");
}

static int listen_for_peer(struct verbs_session *v) {
	struct verbs_cm *cm = v->cm;
	int r;

	if (rdma_create_id(cm->events, &cm->listener, NULL, RDMA_PS_TCP) != 0)
		return cm_failed(v, "make an identifier", errno);
	if (rdma_bind_addr(cm->listener, (struct sockaddr *) &cm->local) != 0)
		return address_failed(v, "listen", errno);
	r = check_device(v, cm->listener);
	if (r < 0)
		return r;
	if (rdma_listen(cm->listener, (int) v->n_queues) != 0)
		return cm_failed(v, "listen", errno);
	return 0;
}

int verbs_cm_open(struct verbs_session *v, const struct sockaddr_storage *local) {
	struct verbs_cm *cm = calloc(1, sizeof(*cm));

	if (!cm)
		return failure(-ENOMEM, EXIT_HOST, "verbs: out of memory");
	v->cm = cm;
	cm->ids = calloc(v->n_queues, sizeof(struct rdma_cm_id *));
	cm->n_ids = v->n_queues;
	if (!cm->ids)
		return failure(-ENOMEM, EXIT_HOST, "verbs: out of memory for %u queue pairs", v->n_queues);
	local_address(v, local, &cm->local);
	cm->events = rdma_create_event_channel();
	if (!cm->events)
		return cm_failed(v, "open the connection manager", errno);
	(void) fcntl(cm->events->fd, F_SETFL, fcntl(cm->events->fd, F_GETFL) | O_NONBLOCK);
	return v->role == ROLE_SERVER ? listen_for_peer(v) : 0;
}

void verbs_cm_address(const struct verbs_session *v, struct sockaddr_storage *ret) {
	memset(ret, 0, sizeof(*ret));
	if (!v->cm->listener)
		return;
	*ret = v->cm->local;
	if (ret->ss_family == AF_INET6)
		((struct sockaddr_in6 *) (void *) ret)->sin6_port = rdma_get_src_port(v->cm->listener);
	else
		((struct sockaddr_in *) (void *) ret)->sin_port = rdma_get_src_port(v->cm->listener);
}

/* Sleeps for the next event, not longer than the peer is there and the deadline allows. */
static int next_event(struct verbs_session *v, struct cm_event *ret) {
	struct verbs_cm *cm = v->cm;
	struct pollfd p[] = { { .fd = cm->events->fd, .events = POLLIN },
			      { .fd = cm->heard ? -1 : v->wake_fd, .events = POLLIN } };
	struct rdma_cm_event *e;
	uint64_t now;

	while (rdma_get_cm_event(cm->events, &e) != 0) {
		if (errno != EAGAIN && errno != EINTR)
			return cm_failed(v, "get an event of the connection manager", errno);
		now = monotonic_ns();
		if (cm->heard && now - cm->heard > LAST_EVENT_NS)
			return failure(-ECONNABORTED, EXIT_PEER, "verbs, --rdma-cm: %s gave up while the two ends were "
				       "connecting; its own messages say why", v->peer_name);
		if (now >= cm->deadline)
			return failure(-ETIMEDOUT, EXIT_PEER, "verbs, device %s, --rdma-cm: "
				       "%s does not answer within --timeout; check the path between the two devices",
				       v->device.name, v->peer_name);
		(void) poll(p, ELEMENTSOF(p),
			    (int) MIN((cm->deadline - now) / NSEC_PER_MSEC + 1, LAST_EVENT_NS / NSEC_PER_MSEC / 4));
		if (p[1].revents) {
			cm->heard = monotonic_ns();
			p[1].fd = -1;
			p[1].revents = 0;
		}
	}
	*ret = (struct cm_event) { .type = e->event, .status = e->status, .id = e->id };
	ret->has_request = e->event == RDMA_CM_EVENT_CONNECT_REQUEST &&
		e->param.conn.private_data_len >= sizeof(ret->request);
	if (ret->has_request)
		memcpy(&ret->request, e->param.conn.private_data, sizeof(ret->request));
	(void) rdma_ack_cm_event(e);
	return 0;
}

static int expect(struct verbs_session *v, enum rdma_cm_event_type type) {
	struct cm_event e;
	int r;

	r = next_event(v, &e);
	if (r < 0 || e.type == type)
		return r;
	return failure(-ECONNREFUSED, EXIT_PEER, "verbs, device %s, --rdma-cm: no connection with %s: %s%s%s; "
		       "check the path between the two devices, or leave --rdma-cm out", v->device.name, v->peer_name,
		       rdma_event_str(e.type), e.status < 0 ? ": " : "", e.status < 0 ? strerror(-e.status) : "");
}

/*
 * The subnet manager (InfiniBand), or the host's own setting (RoCE), told the manager which lane to take:
 * only an option overrides it.
 */
static void choose_lane(struct verbs_session *v, struct ibv_ah_attr *path) {
	if (v->job->verbs.sl >= 0)
		path->sl = (uint8_t) v->job->verbs.sl;
	if (v->job->verbs.traffic_class >= 0)
		path->grh.traffic_class = (uint8_t) v->job->verbs.traffic_class;
	v->sl = path->sl;
	v->traffic_class = path->grh.traffic_class;
}

/* Its place in the port's table is the manager's choice, too. */
static void read_pkey(struct verbs_session *v, const struct ibv_qp_attr *a) {
	struct verbs_device *d = &v->device;
	uint16_t key;

	d->pkey_index = a->pkey_index;
	d->pkey = ibv_query_pkey(d->context, a->port_num, a->pkey_index, (__be16 *) &key) ? 0 : be16toh(key);
}

/*
 * A link between the ports may be smaller than both, which the subnet manager knows; on RoCE the manager knows the
 * client's port alone.
 */
static void choose_mtu(struct verbs_session *v, struct ibv_qp_attr *a) {
	if (!v->job->verbs.mtu)
		v->session.mtu = v->path_mtu = MIN(v->path_mtu, verbs_mtu_bytes(a->path_mtu));
	a->path_mtu = verbs_mtu_from_bytes(v->path_mtu);
}

/* What the manager found out of the path, and what the job says. */
static int bring_to(struct verbs_session *v, struct verbs_queue *q, struct rdma_cm_id *id, enum ibv_qp_state state) {
	struct ibv_qp_attr a = { .qp_state = state };
	int mask = 0, e;

	if (rdma_init_qp_attr(id, &a, &mask) != 0)
		return cm_failed(v, "ask how to bring up a queue pair", errno);
	a.qp_access_flags = (unsigned) verbs_access(v->job->op, false) & ~(unsigned) IBV_ACCESS_LOCAL_WRITE;
	a.min_rnr_timer = VERBS_MIN_RNR_TIMER;
	a.timeout = (uint8_t) v->job->verbs.timeout_exponent;
	a.retry_cnt = (uint8_t) v->job->verbs.retry;
	a.rnr_retry = (uint8_t) v->job->verbs.rnr_retry;
	if (mask & IBV_QP_PATH_MTU)
		choose_mtu(v, &a);
	/* the manager has what the peer's device answers at once, and does not ask what ours may begin */
	if (mask & IBV_QP_MAX_QP_RD_ATOMIC)
		a.max_rd_atomic = MIN(a.max_rd_atomic, v->read_depth);
	if (mask & IBV_QP_AV)
		choose_lane(v, &a.ah_attr);
	if (mask & IBV_QP_PKEY_INDEX)
		read_pkey(v, &a);
	e = ibv_modify_qp(q->qp, &a, mask);
	return e ? cm_failed(v, "bring up a queue pair", e) : 0;
}

static int bring_up(struct verbs_session *v, struct verbs_queue *q, struct rdma_cm_id *id) {
	static const enum ibv_qp_state states[] = { IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS };
	int r = 0;

	for (size_t i = 0; r == 0 && i < ELEMENTSOF(states); i++)
		r = bring_to(v, q, id, states[i]);
	return r;
}

static struct rdma_conn_param parameters(const struct verbs_session *v, const struct verbs_queue *q) {
	return (struct rdma_conn_param) {
		.responder_resources = (uint8_t) MIN(v->device.attr.max_qp_rd_atom, RDMA_MAX_RESP_RES),
		.initiator_depth = v->read_depth,
		.retry_count = (uint8_t) v->job->verbs.retry,
		.rnr_retry_count = (uint8_t) v->job->verbs.rnr_retry,
		.srq = v->srq != NULL,
		.qp_num = q->qp->qp_num,
	};
}

static int connect_queue(struct verbs_session *v, struct verbs_queue *q) {
	struct verbs_cm *cm = v->cm;
	const struct request request = { .key = htobe32(v->remote_queue_key), .queue = htobe32(q->number) };
	struct rdma_conn_param p = parameters(v, q);
	int timeout_ms = (int) MIN(v->job->timeout_ns / NSEC_PER_MSEC + 1, UINT64_C(60000)), r;
	struct sockaddr_storage local = cm->local;
	struct rdma_cm_id *id;

	if (rdma_create_id(cm->events, &id, NULL, RDMA_PS_TCP) != 0)
		return cm_failed(v, "make an identifier", errno);
	cm->ids[q->number] = id;
	if (rdma_resolve_addr(id, (struct sockaddr *) &local, (struct sockaddr *) &v->remote_cm, timeout_ms) != 0)
		return address_failed(v, "reach the peer's address", errno);
	r = expect(v, RDMA_CM_EVENT_ADDR_RESOLVED);
	if (r == 0)
		r = check_device(v, id);
	if (r < 0)
		return r;
	if (rdma_resolve_route(id, timeout_ms) != 0)
		return cm_failed(v, "resolve the route to the peer", errno);
	r = expect(v, RDMA_CM_EVENT_ROUTE_RESOLVED);
	if (r < 0)
		return r;
	p.private_data = &request;
	p.private_data_len = sizeof(request);
	if (rdma_connect(id, &p) != 0)
		return cm_failed(v, "connect", errno);
	r = expect(v, RDMA_CM_EVENT_CONNECT_RESPONSE);
	if (r == 0)
		r = bring_up(v, q, id);
	if (r < 0)
		return r;
	return rdma_establish(id) == 0 ? 0 : cm_failed(v, "confirm the connection", errno);
}

/* A stranger's request is turned away, and changes nothing. */
static int accept_request(struct verbs_session *v, const struct cm_event *e) {
	struct verbs_cm *cm = v->cm;
	uint32_t number = be32toh(e->request.queue);
	struct rdma_conn_param p;
	int r;

	if (!e->has_request || be32toh(e->request.key) != v->queue_key || number >= v->n_queues || cm->ids[number]) {
		(void) rdma_reject(e->id, NULL, 0);
		(void) rdma_destroy_id(e->id);
		return 0;
	}
	cm->ids[number] = e->id;
	p = parameters(v, v->queues + number);
	r = bring_up(v, v->queues + number, e->id);
	if (r < 0)
		return r;
	return rdma_accept(e->id, &p) == 0 ? 0 : cm_failed(v, "accept a connection", errno);
}

static int accept_all(struct verbs_session *v) {
	struct cm_event e;
	uint32_t established = 0;
	int r;

	while (established < v->n_queues) {
		r = next_event(v, &e);
		if (r < 0)
			return r;
		if (e.type == RDMA_CM_EVENT_CONNECT_REQUEST)
			r = accept_request(v, &e);
		else if (e.type == RDMA_CM_EVENT_ESTABLISHED)
			established++;
		else
			r = failure(-ECONNABORTED, EXIT_PEER, "verbs, device %s, --rdma-cm: no connection with %s: %s",
				    v->device.name, v->peer_name, rdma_event_str(e.type));
		if (r < 0)
			return r;
	}
	return 0;
}

int verbs_cm_connect(struct verbs_session *v) {
	int r = 0;

	v->cm->deadline = monotonic_ns() + v->job->timeout_ns;
	if (v->role == ROLE_SERVER)
		return accept_all(v);
	for (uint32_t i = 0; r == 0 && i < v->n_queues; i++)
		r = connect_queue(v, v->queues + i);
	return r;
}

void verbs_cm_close(struct verbs_session *v) {
	struct verbs_cm *cm = v->cm;

	if (!cm)
		return;
	for (uint32_t i = 0; cm->ids && i < cm->n_ids; i++)
		if (cm->ids[i])
			(void) rdma_destroy_id(cm->ids[i]);
	if (cm->listener)
		(void) rdma_destroy_id(cm->listener);
	if (cm->events)
		rdma_destroy_event_channel(cm->events);
	free(cm->ids);
	free(cm);
	v->cm = NULL;
}
