/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fake of librdmacm, linked in its place: one listener, whose peer is in this process.
 * Each call answers at once with the event that the real manager would send,
 * so that one thread can open the client's end and then the server's; the queue pairs' numbers are not exchanged.
 */
#include <arpa/inet.h>
#include <rdma/rdma_cma.h>
#include <unistd.h>

#include "fake_verbs_internal.h"

struct fake_events {
	struct rdma_event_channel channel;      /* the end that is read */
	int write_fd;
};

static struct rdma_cm_id *listener;

struct rdma_event_channel *rdma_create_event_channel(void) {
	struct fake_events *e = calloc(1, sizeof(*e));
	int ends[2];

	if (!e || pipe(ends) < 0)
		abort();
	e->channel.fd = ends[0];
	e->write_fd = ends[1];
	fake.live++;
	return &e->channel;
}

void rdma_destroy_event_channel(struct rdma_event_channel *channel) {
	struct fake_events *e = (struct fake_events *) channel;

	(void) close(e->channel.fd);
	(void) close(e->write_fd);
	free(e);
	fake.live--;
}

/* What comes with it stays the caller's. */
static int tell(struct rdma_cm_id *id, enum rdma_cm_event_type type, const struct rdma_conn_param *param) {
	struct rdma_cm_event e = { .id = id, .event = type };

	if (param)
		e.param.conn = *param;
	if (write(((struct fake_events *) id->channel)->write_fd, &e, sizeof(e)) != sizeof(e))
		abort();
	return 0;
}

int rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **ret) {
	struct rdma_cm_event *e = calloc(1, sizeof(*e));

	if (!e)
		abort();
	if (read(channel->fd, e, sizeof(*e)) != sizeof(*e)) {
		free(e);
		return -1;
	}
	fake.live++; /* until it is acknowledged */
	*ret = e;
	return 0;
}

int rdma_ack_cm_event(struct rdma_cm_event *e) {
	free((void *) (uintptr_t) e->param.conn.private_data);
	free(e);
	fake.live--;
	return 0;
}

const char *rdma_event_str(enum rdma_cm_event_type type) {
	(void) type;
	return "fake event";
}

int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **ret, void *context,
		   enum rdma_port_space space) {
	struct rdma_cm_id *id = calloc(1, sizeof(*id));

	if (!id)
		abort();
	id->channel = channel;
	id->context = context;
	id->ps = space;
	fake.live++;
	*ret = id;
	return 0;
}

int rdma_destroy_id(struct rdma_cm_id *id) {
	if (id == listener)
		listener = NULL;
	free(id);
	fake.live--;
	return 0;
}

/* As a GID would have it: an IPv4 address mapped. */
static union ibv_gid as_gid(const struct sockaddr *address) {
	union ibv_gid ret = { .raw = { [10] = 0xff, [11] = 0xff } };

	if (address->sa_family == AF_INET)
		memcpy(ret.raw + 12, &((const struct sockaddr_in *) (const void *) address)->sin_addr, 4);
	else
		memcpy(ret.raw, &((const struct sockaddr_in6 *) (const void *) address)->sin6_addr, 16);
	return ret;
}

/* RoCE: each GID is one; InfiniBand: that of IPoIB alone. */
static bool device_has(const struct fake_device *d, const struct sockaddr *address) {
	const union ibv_gid wanted = as_gid(address);
	char text[INET6_ADDRSTRLEN] = "";

	if (d->ports[0].link_layer == IBV_LINK_LAYER_INFINIBAND) {
		(void) inet_ntop(address->sa_family, address->sa_family == AF_INET
				 ? (const void *) &((const struct sockaddr_in *) (const void *) address)->sin_addr
				 : &((const struct sockaddr_in6 *) (const void *) address)->sin6_addr, text,
				 sizeof(text));
		return d->ipoib && streq(d->ipoib, text);
	}
	for (unsigned i = 0; i < FAKE_GIDS; i++)
		if (memcmp(&d->gids[0][i].gid, &wanted, sizeof(wanted)) == 0)
			return true;
	return false;
}

/* The kernel's rdma_bind_addr() and rdma_resolve_addr() take an address only that an interface of the host has. */
static int check_local(const struct sockaddr *address) {
	for (unsigned i = 0; i < fake.n_devices; i++)
		if (device_has(&fake.devices[i], address))
			return 0;
	errno = EADDRNOTAVAIL;
	return -1;
}

int rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *address) {
	(void) id;
	if (check_local(address) < 0)
		return -1;
	memcpy(&fake.cm_bound, address,
	       address->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6));
	return 0;
}

int rdma_listen(struct rdma_cm_id *id, int backlog) {
	(void) backlog;
	listener = id;
	return 0;
}

uint16_t rdma_get_src_port(struct rdma_cm_id *id) {
	(void) id;
	return htons(4791);
}

int rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *from, struct sockaddr *to, int timeout_ms) {
	(void) to;
	(void) timeout_ms;
	if (check_local(from) < 0)
		return -1;
	return tell(id, RDMA_CM_EVENT_ADDR_RESOLVED, NULL);
}

int rdma_resolve_route(struct rdma_cm_id *id, int timeout_ms) {
	(void) timeout_ms;
	return tell(id, RDMA_CM_EVENT_ROUTE_RESOLVED, NULL);
}

int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *param) {
	struct rdma_conn_param copy = *param;
	struct rdma_cm_id *request;
	void *data = malloc(param->private_data_len);

	if (!data || !listener)
		abort();
	copy.private_data = memcpy(data, param->private_data, param->private_data_len);
	(void) rdma_create_id(listener->channel, &request, NULL, RDMA_PS_TCP);
	(void) tell(request, RDMA_CM_EVENT_CONNECT_REQUEST, &copy);
	return tell(id, RDMA_CM_EVENT_CONNECT_RESPONSE, NULL);
}

int rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *param) {
	(void) param;
	return tell(id, RDMA_CM_EVENT_ESTABLISHED, NULL);
}

int rdma_establish(struct rdma_cm_id *id) {
	(void) id;
	return 0;
}

int rdma_reject(struct rdma_cm_id *id, const void *data, uint8_t length) {
	(void) id;
	(void) data;
	(void) length;
	fake_violation("a request is rejected");
	return 0;
}

int rdma_init_qp_attr(struct rdma_cm_id *id, struct ibv_qp_attr *attr, int *mask) {
	(void) id;
	*mask = fake_required_mask(IBV_QPT_RC, attr->qp_state);
	attr->port_num = 1;
	attr->pkey_index = fake.cm_pkey_index;
	attr->ah_attr = fake.cm_path;
	attr->path_mtu = fake.cm_mtu ? fake.cm_mtu : IBV_MTU_4096;
	attr->max_rd_atomic = fake.cm_reads ? fake.cm_reads : 16;
	return 0;
}
