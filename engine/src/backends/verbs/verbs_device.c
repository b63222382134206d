/* SPDX-License-Identifier: Apache-2.0 */
/* Which device, port and GID a measurement uses: what was asked for, or the one that reaches the peer, and why. */
#include "verbs_device.h"

#include <endian.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/message.h"
#include "host/netdev.h"
#include "verbs_sysfs.h"

/* What one side of the job asks for. */
struct wanted {
	const char *name;               /* empty: any */
	uint32_t port;                  /* 0: any */
	int gid_index;                  /* -1: any */
	uint32_t pkey;                  /* 0: any */
	const struct sockaddr_storage *local;
	char netdev[IF_NAMESIZE];       /* that reaches the peer; empty: unknown */
	uint32_t flows;                 /* of the job, through the port */
};

/* A port that could be used, and how well it suits. */
struct candidate {
	struct verbs_device device;     /* its context belongs to whoever holds the candidate */
	unsigned rank;                  /* 0: not at all, and `reason` says why */
	int error;
	char reason[FAILURE_TEXT_MAX / 2];
};

/*
 * Beside verbs_gid_rank(): an InfiniBand port has no address to compare, only an interface (IPoIB) on the same device.
 */
enum { RANK_LID = 1, RANK_LID_NETDEV = 8 };

uint32_t verbs_mtu_bytes(enum ibv_mtu mtu) {
	return mtu >= IBV_MTU_256 && mtu <= IBV_MTU_4096 ? UINT32_C(128) << mtu : 0;
}

enum ibv_mtu verbs_mtu_from_bytes(uint32_t bytes) {
	for (int m = IBV_MTU_256; m <= IBV_MTU_4096; m++)
		if (verbs_mtu_bytes((enum ibv_mtu) m) == bytes)
			return (enum ibv_mtu) m;
	return (enum ibv_mtu) 0;
}

/* ibv_port_attr.active_speed ends with NDR; the next code is of ibv_query_port(3)'s newer active_speed_ex. */
enum { SPEED_SDR = 1, SPEED_NDR = 128, SPEED_XDR = 256 };

double verbs_rate_gbit_s(unsigned active_speed, unsigned active_width) {
	/*
	 * InfiniBand Architecture Specification, volume 1, PortInfo: signalling less 8b/10b up to QDR,
	 * 64b/66b from FDR10 on.
	 */
	static const struct {
		unsigned code;
		double value;
	} speeds[] = { { 1, 2 }, { 2, 4 }, { 4, 8 }, { 8, 10 }, { 16, 14.0625 * 64 / 66 }, { 32, 25 }, { 64, 50 },
		       { SPEED_NDR, 100 }, { SPEED_XDR, 200 } },
	  widths[] = { { 1, 1 }, { 2, 4 }, { 4, 8 }, { 8, 12 }, { 16, 2 } };
	double speed = 0, width = 0;

	for (size_t i = 0; i < ELEMENTSOF(speeds); i++)
		if (speeds[i].code == active_speed)
			speed = speeds[i].value;
	for (size_t i = 0; i < ELEMENTSOF(widths); i++)
		if (widths[i].code == active_width)
			width = widths[i].value;
	return speed * width;
}

/*
 * The interface knows better where there is one:
 * RoCE drivers report 2.5 Gb/s for every speed that InfiniBand does not name.
 */
double verbs_port_rate(const char *root, const struct verbs_port *port, uint32_t flows) {
	enum { WIDTH_1X = 1 };
	const struct ibv_port_attr *attr = port->attr;
	unsigned speed = attr->active_speed;
	struct netdev n = { 0 };

	if (attr->link_layer != IBV_LINK_LAYER_ETHERNET) {
		if (speed == SPEED_NDR && verbs_sysfs_is_xdr(root, port->device, port->number))
			speed = SPEED_XDR;
		return verbs_rate_gbit_s(speed, attr->active_width);
	}
	if (port->netdev[0])
		netdev_read(root, port->netdev, &n);
	if (n.rate_gbit_s > 0)
		return netdev_rate(&n, flows);
	return speed == SPEED_SDR && attr->active_width == WIDTH_1X ? 0 : verbs_rate_gbit_s(speed, attr->active_width);
}

static _printf_(3, 4) bool unfit(struct candidate *c, int error, const char *format, ...) {
	va_list ap;

	c->rank = 0;
	c->error = error;
	va_start(ap, format);
	(void) vsnprintf(c->reason, sizeof(c->reason), format, ap);
	va_end(ap);
	return false;
}

/* "0, 1, 3": the indices in use. */
static void list_indices(const struct verbs_gid *gids, int n, char *ret, size_t size) {
	size_t at = 0;

	ret[0] = '\0';
	for (int i = 0; i < n && at + 8 < size; i++)
		at += (size_t) snprintf(ret + at, size - at, "%s%d", i ? ", " : "", gids[i].index);
}

static bool take_gid(struct candidate *c, const struct verbs_gid *g) {
	struct verbs_device *d = &c->device;

	d->gid_index = g->index;
	d->gid = g->gid;
	d->use_grh = true;
	(void) snprintf(d->netdev, sizeof(d->netdev), "%s", g->netdev);
	verbs_gid_text(&g->gid, d->address);
	return true;
}

/* --gid-index: exactly this one, whatever it is. */
static bool use_named_gid(struct candidate *c, const struct wanted *w, const struct verbs_gid *gids, int n) {
	struct verbs_device *d = &c->device;
	char used[80];

	for (int i = 0; i < n; i++)
		if (gids[i].index == w->gid_index) {
			(void) take_gid(c, &gids[i]);
			(void) snprintf(d->why, sizeof(d->why), "GID %d (%s, %s) was asked for", d->gid_index,
					d->address, verbs_gid_type_name(gids[i].type));
			c->rank = MAX(verbs_gid_rank(&gids[i], w->local, w->netdev), 1u);
			return true;
		}
	list_indices(gids, n, used, sizeof(used));
	if (w->gid_index >= d->port_attr.gid_tbl_len)
		return unfit(c, -ERANGE, "%s port %u has no GID index %d: its table ends at %d; in use: %s; "
			     "'perch devices' shows them", d->name, d->port, w->gid_index, d->port_attr.gid_tbl_len - 1,
			     used[0] ? used : "none");
	return unfit(c, -ENOENT, "%s port %u: GID index %d is empty; in use: %s; 'perch devices' shows them", d->name,
		     d->port, w->gid_index, used[0] ? used : "none, so give its interface an address");
}

static bool choose_gid(struct candidate *c, const struct wanted *w) {
	_cleanup_free_ struct verbs_gid *gids = calloc(VERBS_GIDS_MAX, sizeof(*gids));
	struct verbs_device *d = &c->device;
	int n, at;

	if (!gids)
		return unfit(c, -ENOMEM, "%s: no memory for the GID table", d->name);
	n = verbs_gid_table(d->context, d->port, &d->port_attr, gids);
	if (n < 0)
		return unfit(c, n, "%s port %u: cannot read the GID table: %s", d->name, d->port, strerror(-n));
	if (w->gid_index >= 0)
		return use_named_gid(c, w, gids, n);
	if (!d->is_roce && d->port_attr.flags & IBV_QPF_GRH_REQUIRED) {
		/* A virtual function that shares its port's LID: a GID tells it from the others (ibv_query_port(3)). */
		if (n == 0)
			return unfit(c, -ENOENT,
				     "%s port %u requires a GID and has none; is a subnet manager running?", d->name,
				     d->port);
		(void) take_gid(c, &gids[0]);
		(void) snprintf(d->why, sizeof(d->why), "the port requires a GID; %d is its first", d->gid_index);
		c->rank = verbs_sysfs_has_netdev(d->name, w->netdev) ? RANK_LID_NETDEV : RANK_LID;
		return true;
	}
	if (!d->is_roce) {
		d->gid_index = -1;
		d->first_gid = n > 0 ? gids[0].index : -1;
		if (n > 0)
			d->gid = gids[0].gid;
		(void) snprintf(d->address, sizeof(d->address), "lid %u", d->port_attr.lid);
		(void) snprintf(d->why, sizeof(d->why), "InfiniBand reaches LID %u without a GID", d->port_attr.lid);
		c->rank = verbs_sysfs_has_netdev(d->name, w->netdev) ? RANK_LID_NETDEV : RANK_LID;
		return true;
	}
	at = verbs_gid_choose(gids, (size_t) n, w->local, w->netdev, d->why);
	if (at < 0)
		return unfit(c, -ENOENT, "%s port %u has no RoCE v2 GID (%d of other types); give its interface "
			     "an address, or name one of them with --gid-index", d->name, d->port, n);
	c->rank = verbs_gid_rank(&gids[at], w->local, w->netdev);
	return take_gid(c, &gids[at]);
}

/*
 * The partition that was asked for, else the first in which the port is a full member: a limited one reaches full
 * members only (InfiniBand Architecture Specification, volume 1, 10.9.3). Clouds have the tenant's at any index.
 */
static bool choose_pkey(struct candidate *c, const struct wanted *w) {
	struct verbs_device *d = &c->device;
	char has[80] = "";
	size_t at = 0;

	d->pkey = 0;
	for (int i = 0; i < d->port_attr.pkey_tbl_len; i++) {
		uint16_t key;

		if (ibv_query_pkey(d->context, d->port, i, (__be16 *) &key))
			return unfit(c, -EIO, "%s port %u: partition key %d cannot be read: %s", d->name, d->port, i,
				     strerror(errno));
		key = be16toh(key);
		if (!(key & JOB_PKEY_PARTITION))
			continue; /* an empty place */
		if (at + 8 < sizeof(has))
			at += (size_t) snprintf(has + at, sizeof(has) - at, "%s0x%04x", at ? ", " : "", key);
		if (w->pkey && (key ^ w->pkey) & JOB_PKEY_PARTITION)
			continue;
		if (!d->pkey || (key > d->pkey && key > JOB_PKEY_PARTITION && d->pkey <= JOB_PKEY_PARTITION)) {
			d->pkey = key;
			d->pkey_index = (uint16_t) i;
		}
	}
	return !w->pkey || d->pkey || unfit(c, -ENOENT, "%s port %u is not in the partition of --pkey 0x%04x; "
					    "it has the keys %s; the subnet manager assigns them", d->name, d->port,
					    w->pkey, has[0] ? has : "(none)");
}

static bool check_port(struct candidate *c) {
	struct verbs_device *d = &c->device;
	char netdev[IF_NAMESIZE] = "";

	if (d->port_attr.state == IBV_PORT_ACTIVE)
		return true;
	if (d->port_attr.link_layer != IBV_LINK_LAYER_ETHERNET)
		return unfit(c, -ENETDOWN, "%s port %u is %s, not active; "
			     "look at cable and switch, and at the subnet manager (opensm), which activates ports",
			     d->name, d->port, verbs_port_state_name(d->port_attr.state));
	verbs_sysfs_netdev(d->name, d->port, netdev);
	return unfit(c, -ENETDOWN,
		     "%s port %u is %s; bring its interface up (ip link set %s up), and look at cable and switch",
		     d->name, d->port, verbs_port_state_name(d->port_attr.state), netdev[0] ? netdev : "INTERFACE");
}

/* Everything about one port. True: it could be used. */
static bool consider_port(struct candidate *c, const struct wanted *w) {
	struct verbs_device *d = &c->device;
	int r;

	r = ibv_query_port(d->context, d->port, &d->port_attr);
	if (r)
		return unfit(c, -EIO, "%s port %u cannot be read: %s", d->name, d->port, strerror(r > 0 ? r : errno));
	d->is_roce = d->port_attr.link_layer == IBV_LINK_LAYER_ETHERNET;
	if (!check_port(c) || !choose_pkey(c, w) || !choose_gid(c, w))
		return false;
	d->rate_gbit_s = verbs_port_rate("", &(struct verbs_port) { d->name, d->port, &d->port_attr, d->netdev },
					 w->flows);
	return true;
}

/* Not all that libibverbs lists can be a queue pair's end. */
static bool check_transport(struct candidate *c, const struct ibv_device *device) {
	if (device->transport_type == IBV_TRANSPORT_IB)
		return true;
	/* Its connections begin in the kernel, and a read's sink there must be open to writes (RFC 5040, 5.1). */
	if (device->transport_type == IBV_TRANSPORT_IWARP)
		return unfit(c, -EOPNOTSUPP, "%s is an iWARP device, which perch cannot use; if it has a RoCE mode, "
			     "switch to that, else --backend tcp measures its path", c->device.name);
	return unfit(c, -EOPNOTSUPP,
		     "%s is neither an InfiniBand nor a RoCE device; --backend ofi may have a provider for it",
		     c->device.name);
}

static bool open_device(struct candidate *c, struct ibv_device *device) {
	struct verbs_device *d = &c->device;
	char remedy[VERBS_WHY_MAX];
	int r;

	errno = 0;
	d->context = ibv_open_device(device);
	if (!d->context) {
		r = errno ? errno : EIO;
		r = verbs_open_remedy(device, r, remedy, sizeof(remedy));
		return unfit(c, -r, "cannot open %s: %s; %s", d->name, strerror(r), remedy);
	}
	r = ibv_query_device(d->context, &d->attr);
	return r == 0 || unfit(c, -EIO, "%s cannot be read: %s", d->name, strerror(r > 0 ? r : errno));
}

/* Replaces `best` where the port suits better; the first reason against any is kept while none suits. */
static void compare(struct candidate *best, const struct candidate *c) {
	if (c->rank > best->rank || (best->rank == 0 && !best->reason[0]))
		*best = *c;
}

/* The best port of one device. The context of *ret is the caller's to close, whatever the answer. */
static void consider_device(struct ibv_device *device, const struct wanted *w, struct candidate *ret) {
	struct candidate c = { .device.gid_index = -1 };
	unsigned first, last;

	*ret = (struct candidate) { .rank = 0 };
	(void) snprintf(c.device.name, sizeof(c.device.name), "%s", ibv_get_device_name(device));
	if (!check_transport(&c, device) || !open_device(&c, device)) {
		*ret = c;
		return;
	}
	first = w->port ? w->port : 1;
	last = w->port ? w->port : c.device.attr.phys_port_cnt;
	if (first > c.device.attr.phys_port_cnt)
		(void) unfit(&c, -ENODEV, "%s has no port %u; it has %s%u", c.device.name, first,
			     c.device.attr.phys_port_cnt > 1 ? "ports 1 to " : "only port ",
			     c.device.attr.phys_port_cnt);
	for (unsigned p = first; p <= MIN(last, (unsigned) c.device.attr.phys_port_cnt); p++) {
		c.device.port = (uint8_t) p;
		(void) consider_port(&c, w);
		compare(ret, &c);
	}
	if (!ret->rank && !ret->reason[0])
		*ret = c;
	ret->device.context = c.device.context; /* `unfit` before the first port leaves *ret without one */
}

/* None was even listed: is there hardware, and what is missing? */
static int no_device(const struct wanted *w, struct ibv_device *const *list) {
	char names[FAILURE_TEXT_MAX / 2] = "";
	size_t at = 0;

	for (size_t i = 0; list[i] && at + JOB_NAME_MAX + 2 < sizeof(names); i++)
		at += (size_t) snprintf(names + at, sizeof(names) - at, "%s%s", i ? ", " : "",
					ibv_get_device_name(list[i]));
	if (w->name[0] && names[0])
		return failure(-ENODEV, EXIT_HOST, "no RDMA device %s; this host has %s", w->name, names);
	if (verbs_sysfs_devices(names, sizeof(names)) > 0)
		return failure(-ENODEV, EXIT_HOST, "the kernel has RDMA devices (%s), but programs cannot reach them; "
			       "load ib_uverbs (modprobe ib_uverbs), "
			       "and install their user-space drivers (package ibverbs-providers, or rdma-core)", names);
	return failure(-ENODEV, EXIT_HOST, "%s%s%sthis host has no RDMA device; load its driver (such as mlx5_ib), "
		       "or for a software one: modprobe rdma_rxe; rdma link add rxe0 type rxe netdev INTERFACE",
		       w->name[0] ? "no RDMA device " : "", w->name, w->name[0] ? ": " : "");
}

static int choose_device(struct ibv_device *const *list, const struct wanted *w, struct candidate *ret) {
	struct candidate best = { .rank = 0 }, c;
	unsigned seen = 0, usable = 0;

	for (size_t i = 0; list[i]; i++) {
		if (w->name[0] && !streq(w->name, ibv_get_device_name(list[i])))
			continue;
		seen++;
		consider_device(list[i], w, &c);
		usable += c.rank > 0;
		if (c.rank > best.rank || (!best.rank && !best.reason[0])) {
			verbs_device_close(&best.device);
			best = c;
		} else
			verbs_device_close(&c.device);
	}
	if (!seen)
		return no_device(w, list);
	if (!best.rank) {
		verbs_device_close(&best.device);
		return failure(best.error, EXIT_HOST, "%s%s",
			       seen > 1 ? "no RDMA device of this host can be used: " : "", best.reason);
	}
	if (!w->name[0] && usable > 1 && best.rank < RANK_LID_NETDEV) {
		size_t n = strlen(best.device.why);

		(void) snprintf(best.device.why + n, sizeof(best.device.why) - n,
				"; %u devices would do, --device chooses", usable);
	}
	*ret = best;
	return 0;
}

static int find_device(const struct open_arguments *a, struct candidate *ret) {
	const struct job *j = a->job;
	bool server = a->role == ROLE_SERVER;
	struct wanted w = {
		.name = server ? j->server_device : j->device,
		.port = server ? j->verbs.server_ib_port : j->verbs.ib_port,
		.gid_index = server ? j->verbs.server_gid_index : j->verbs.gid_index,
		.local = a->local,
		.pkey = j->verbs.pkey,
		.flows = job_flows(j),
	};
	struct ibv_device **list;
	struct netdev n;
	int r;

	if (netdev_of_address(a->local, &n) == 0)
		(void) snprintf(w.netdev, sizeof(w.netdev), "%s", n.name);
	errno = 0;
	list = ibv_get_device_list(NULL);
	if (!list) /* ENOSYS: a kernel without any RDMA */
		return errno == ENOSYS || errno == ENOENT || errno == 0
			       ? no_device(&w, (struct ibv_device *[]) { NULL })
			       : failure(-errno, EXIT_HOST, "cannot list RDMA devices: %s", strerror(errno));
	r = choose_device(list, &w, ret);
	ibv_free_device_list(list);
	return r;
}

int verbs_device_near(const struct open_arguments *a, char ret[JOB_NAME_MAX]) {
	struct candidate best;
	int r = find_device(a, &best);

	if (r < 0)
		return r;
	(void) snprintf(ret, JOB_NAME_MAX, "%s", best.device.name);
	verbs_device_close(&best.device);
	return 0;
}

int verbs_device_open(const struct open_arguments *a, struct verbs_device *ret) {
	struct candidate best;
	int r = find_device(a, &best);

	if (r < 0)
		return r;
	/* what was chosen is said, so that nobody wonders which way the messages went */
	if ((a->role == ROLE_SERVER ? a->job->verbs.server_gid_index : a->job->verbs.gid_index) < 0)
		notice("%s port %u: %s", best.device.name, best.device.port, best.device.why);
	*ret = best.device;
	return 0;
}

void verbs_device_close(struct verbs_device *d) {
	if (!d || !d->context)
		return;
	(void) ibv_close_device(d->context);
	d->context = NULL;
}
