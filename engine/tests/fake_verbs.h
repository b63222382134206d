/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fake of libibverbs, linked in its place: devices, ports, GIDs and queue pairs that exist only in this process.
 * It is stricter than hardware (keys, states, masks and depths are checked at once), and fails where it is told to.
 * It shows how the backend deals with what Soft-RoCE cannot show; it proves nothing of the verbs path itself,
 * and tests over it say so in their names.
 */
#pragma once

#include <infiniband/verbs.h>
#include <sys/socket.h>

#include "base/util.h"

enum fake_call {
	FAKE_GET_DEVICE_LIST,
	FAKE_OPEN_DEVICE,
	FAKE_QUERY_DEVICE,
	FAKE_QUERY_PORT,
	FAKE_QUERY_GID,
	FAKE_ALLOC_PD,
	FAKE_REG_MR,
	FAKE_REG_DMABUF_MR,
	FAKE_CREATE_CHANNEL,
	FAKE_CREATE_CQ,
	FAKE_CREATE_SRQ,
	FAKE_CREATE_QP,
	FAKE_CREATE_QP_EX,
	FAKE_MODIFY_QP,
	FAKE_CREATE_AH,
	FAKE_POST_SEND,
	FAKE_WR_COMPLETE,
	FAKE_POST_RECEIVE,
	FAKE_POLL_CQ,
	FAKE_REQ_NOTIFY,
	FAKE_CALL_MAX,
};

enum { FAKE_DEVICES = 4, FAKE_PORTS = 2, FAKE_GIDS = 256, FAKE_PKEYS = 4 };

struct fake_gid {
	union ibv_gid gid;      /* zero: empty */
	enum ibv_gid_type type;
	unsigned ifindex;
	int error;              /* what reading it answers */
};

struct fake_device {
	struct ibv_device device;
	struct ibv_device_attr attr;
	struct ibv_port_attr ports[FAKE_PORTS];
	struct fake_gid gids[FAKE_PORTS][FAKE_GIDS];
	uint16_t pkeys[FAKE_PORTS][FAKE_PKEYS]; /* 0: an empty place */
	uint32_t max_inline;
	int n_vectors;          /* of completions */
	bool inline_less;       /* more is not refused, but less is given */
	bool no_uc;             /* it has no unreliable connections */
	bool out_of_order;      /* it does not say that a message's last byte is written last */
	bool no_wr;             /* its provider does not know the ibv_wr calls */
	int open_error;
	const char *ipoib;      /* the address of its InfiniBand ports' interface; NULL: none */
};

struct fake {
	struct fake_device devices[FAKE_DEVICES];
	unsigned n_devices;
	struct {
		int error;              /* what the call fails with; 0: it does not */
		unsigned skip;          /* so many calls go well before */
	} fail[FAKE_CALL_MAX];
	unsigned calls[FAKE_CALL_MAX];
	enum ibv_wc_status next_status; /* of the next work request of a send queue, once */
	unsigned status_skip;           /* so many go well before */
	unsigned lose_every;            /* UC and UD: every nth message; 0: none */
	bool corrupt;                   /* one byte of the next message, once */
	struct ibv_ah_attr cm_path;     /* what the connection manager finds */
	struct sockaddr_storage cm_bound;       /* where the connection manager listens */
	unsigned access;                /* flags of the memory region that was registered last */
	uint16_t cm_pkey_index;
	enum ibv_mtu cm_mtu;            /* of the path, as the connection manager finds it; 0: 4096 */
	uint8_t cm_reads;               /* that the peer's device answers at once, as it says; 0: 16 */
	unsigned not_ready;             /* times that a reliable sender found no receive */
	unsigned sent;                  /* completions of send queues that were put into completion queues */
	unsigned live;                  /* objects that were made and not destroyed */
	/* what a backend must never do, such as overrun a queue; said on standard error */
	unsigned violations;
};

extern struct fake fake;

/* No devices, no failures; forgets what an earlier test has left. */
void fake_reset(void);

/* An active RoCE device with one port of MTU 4096, and generous limits; its GID table is empty. */
struct fake_device *fake_add(const char *name);

/* "10.0.0.1" becomes an IPv4-mapped GID, "fe80::1" stays. */
void fake_set_gid(struct fake_device *d, unsigned port, int index, const char *address, enum ibv_gid_type type,
		  const char *netdev);

/* The call after `skip` more fails with this errno. */
void fake_fail(enum fake_call call, int error, unsigned skip);

/* An asynchronous event, as the device of a context would raise it. */
void fake_raise(struct ibv_context *context, enum ibv_event_type type, int port);
