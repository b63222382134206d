/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RDMA devices of this host: which one, which port and which GID a measurement uses, and why. The choice is made here
 * once, for latency and bandwidth, client and server, `perch devices` and the real thing.
 */
#pragma once

#include <infiniband/verbs.h>
#include <net/if.h>

#include "backends/backend.h"

enum {
	VERBS_WHY_MAX = 256,
	VERBS_GIDS_MAX = 256,           /* an index is 8 bits wide in an address vector (ibv_global_route.sgid_index) */
};

struct verbs_device {
	struct ibv_context *context;    /* NULL: not open */
	struct ibv_device_attr attr;
	uint8_t port;                   /* from 1 */
	struct ibv_port_attr port_attr;
	int gid_index;                  /* -1: none is needed (InfiniBand by LID) */
	union ibv_gid gid;              /* all zero where gid_index is -1, and first_gid, too */
	uint16_t pkey, pkey_index;      /* the partition, and its place in the port's table */
	bool is_roce;
	bool use_grh;                   /* RoCE always; InfiniBand where --gid-index, a port or the peer requires it */
	int first_gid;                  /* InfiniBand: for a peer that requires it; -1: none */
	char name[JOB_NAME_MAX];
	char netdev[IF_NAMESIZE];       /* the interface of the GID; empty: unknown, or InfiniBand without one */
	char address[INET6_ADDRSTRLEN]; /* the GID as text: 10.0.0.1, fe80::1; InfiniBand without a GID: "lid 5" */
	double rate_gbit_s;             /* of the port, for the flows of the job; 0: unknown */
	/* one sentence: why this device, port and GID. verbs_device_open() says it where it chose */
	char why[VERBS_WHY_MAX];
};

/*
 * One entry of a GID table, as the choice sees it. Kept apart from ibv_gid_entry,
 * so that the choice is a pure function of what was read, whichever way it was read.
 */
struct verbs_gid {
	int index;
	union ibv_gid gid;
	enum ibv_gid_type type;
	char netdev[IF_NAMESIZE];       /* empty: none */
};

/* verbs_device.c. Opens the device, port and GID of this side's part of the job (device or server_device,
 * by a->role), or chooses them. EXIT_HOST, with device and remedy: no device, none of that name, port down or absent,
 * GID out of range, no permission. On failure *ret is untouched. */
int verbs_device_open(const struct open_arguments *a, struct verbs_device *ret);

/* The name of that device. */
int verbs_device_near(const struct open_arguments *a, char ret[JOB_NAME_MAX]);
void verbs_device_close(struct verbs_device *d);        /* takes NULL, and what was never opened */

/* verbs_probe.c, for struct backend: one call for each port of each device. */
int verbs_probe(device_callback callback, void *userdata);

/* 256..4096 bytes and back; 0: none. */
uint32_t verbs_mtu_bytes(enum ibv_mtu mtu);
enum ibv_mtu verbs_mtu_from_bytes(uint32_t bytes);

/* Gb/s that a port carries after its line code: what users call its speed. 0: unknown. */
double verbs_rate_gbit_s(unsigned active_speed, unsigned active_width);

struct verbs_port {
	const char *device;
	unsigned number;                /* from 1 */
	const struct ibv_port_attr *attr;
	const char *netdev;             /* empty: unknown, or none */
};

/*
 * The same for so many flows through a port: a RoCE port's interface knows its speed better, and a bond's has several
 * links. `root`: "" or a copied host's files.
 */
double verbs_port_rate(const char *root, const struct verbs_port *port, uint32_t flows);

/* verbs_gid.c */

/* What a port has, in the order of its indices; empty entries are left out. Their number, or a negative errno. */
int verbs_gid_table(struct ibv_context *context, uint8_t port, const struct ibv_port_attr *attr,
		    struct verbs_gid ret[VERBS_GIDS_MAX]);

/*
 * The entry of the table that reaches the peer: RoCEv2, of the interface `netdev`, with the address `local` before all
 * others, IPv4-mapped before IPv6, link-local last. Its place, or -ENOENT: none is of RoCEv2. `why` gets the reason.
 */
int verbs_gid_choose(const struct verbs_gid *gids, size_t n, const struct sockaddr_storage *local, const char *netdev,
		     char why[VERBS_WHY_MAX]);

/* How well an entry suits, for comparing those of different devices; 0: not at all. */
unsigned verbs_gid_rank(const struct verbs_gid *g, const struct sockaddr_storage *local, const char *netdev);

const char *verbs_gid_type_name(enum ibv_gid_type type);        /* "RoCE v2", "RoCE v1", "IB" */
void verbs_gid_text(const union ibv_gid *gid, char ret[INET6_ADDRSTRLEN]);      /* IPv4-mapped ones as IPv4 */
bool verbs_gid_is_ipv4(const union ibv_gid *gid);
