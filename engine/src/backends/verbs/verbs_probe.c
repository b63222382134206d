/* SPDX-License-Identifier: Apache-2.0 */
/* `perch devices`: every port of every RDMA device, and what keeps one from being used. */
#include <stdio.h>

#include "base/message.h"
#include "verbs_sysfs.h"

static size_t shown_gids(struct ibv_context *context, uint8_t port, const struct ibv_port_attr *attr,
			 struct verbs_gid *gids, struct device_gid *ret) {
	int n = verbs_gid_table(context, port, attr, gids);

	for (int i = 0; i < n; i++) {
		ret[i] = (struct device_gid) { .index = gids[i].index };
		verbs_gid_text(&gids[i].gid, ret[i].gid);
		(void) snprintf(ret[i].type, sizeof(ret[i].type), "%s", verbs_gid_type_name(gids[i].type));
		(void) snprintf(ret[i].netdev, sizeof(ret[i].netdev), "%s", gids[i].netdev);
	}
	return n > 0 ? (size_t) n : 0;
}

static const char *layer_name(const struct ibv_device *device, uint8_t link_layer) {
	if (device->transport_type == IBV_TRANSPORT_IWARP)
		return "iwarp";
	return link_layer == IBV_LINK_LAYER_ETHERNET ? "ethernet" : link_layer == IBV_LINK_LAYER_INFINIBAND
	       ? "infiniband" : "unknown";
}

/*
 * The address that --gid-index -1 would most likely mean: the first RoCE v2 GID with an IPv4 address,
 * else the first; or the LID.
 */
static void set_address(struct device *d, const struct verbs_gid *gids, size_t n, const struct ibv_port_attr *attr,
			char netdev[IF_NAMESIZE]) {
	const struct sockaddr_storage none = { .ss_family = AF_UNSPEC };
	char why[VERBS_WHY_MAX];
	int at = verbs_gid_choose(gids, n, &none, "", why);

	netdev[0] = '\0';
	if (attr->link_layer != IBV_LINK_LAYER_ETHERNET)
		(void) snprintf(d->address, sizeof(d->address), "lid %u", attr->lid);
	else if (at >= 0) {
		verbs_gid_text(&gids[at].gid, d->address);
		(void) snprintf(netdev, IF_NAMESIZE, "%s", gids[at].netdev);
	}
}

static int probe_port(struct ibv_context *context, uint8_t port, struct device *d, struct device_rdma *rdma,
		      device_callback callback, void *userdata) {
	_cleanup_free_ struct verbs_gid *gids = calloc(VERBS_GIDS_MAX, sizeof(*gids));
	_cleanup_free_ struct device_gid *shown = calloc(VERBS_GIDS_MAX, sizeof(*shown));
	struct ibv_port_attr attr;
	char netdev[IF_NAMESIZE], remedy[VERBS_WHY_MAX];
	int r;

	if (!gids || !shown)
		return failure(-ENOMEM, EXIT_INTERNAL, "out of memory");
	rdma->port = port;
	d->rdma = rdma;
	r = ibv_query_port(context, port, &attr);
	if (r) {
		(void) snprintf(remedy, sizeof(remedy), "the port cannot be read (%s): see the kernel's log (dmesg)",
				strerror(r > 0 ? r : errno));
		d->remedy = remedy;
		return callback(d, userdata);
	}
	(void) snprintf(d->layer, sizeof(d->layer), "%s", layer_name(context->device, attr.link_layer));
	(void) snprintf(d->state, sizeof(d->state), "%s", verbs_port_state_name(attr.state));
	rdma->n_gids = shown_gids(context, port, &attr, gids, shown);
	rdma->gids = shown;
	rdma->lid = attr.link_layer == IBV_LINK_LAYER_INFINIBAND ? attr.lid : 0;
	set_address(d, gids, rdma->n_gids, &attr, netdev);
	d->mtu = verbs_mtu_bytes(attr.active_mtu);
	d->rate_gbit_s = verbs_port_rate("", &(struct verbs_port) { d->name, port, &attr, netdev }, UINT32_MAX);
	if (!netdev[0])
		verbs_sysfs_netdev(d->name, port, netdev);
	(void) snprintf(d->netdev, sizeof(d->netdev), "%s", netdev);
	if (attr.state != IBV_PORT_ACTIVE) {
		(void) snprintf(remedy, sizeof(remedy), attr.link_layer == IBV_LINK_LAYER_ETHERNET
				? "bring its interface up (ip link set %s up), and look at cable and switch"
				: "look at cable and switch, and at the subnet manager",
				netdev[0] ? netdev : "INTERFACE");
		d->remedy = remedy;
	}
	return callback(d, userdata);
}

static int probe_device(struct ibv_device *device, device_callback callback, void *userdata) {
	struct device_capabilities can;
	struct device_rdma rdma = { 0 };
	struct device d = { .backend = "verbs", .state = "unknown", .rdma = &rdma };
	struct ibv_device_attr attr;
	struct ibv_context *context;
	char remedy[VERBS_WHY_MAX];
	int r;

	(void) snprintf(d.name, sizeof(d.name), "%s", ibv_get_device_name(device));
	verbs_sysfs_driver(device, rdma.driver);
	errno = 0;
	context = ibv_open_device(device);
	r = context ? ibv_query_device(context, &attr) : errno;
	if (!context || r) {
		(void) verbs_open_remedy(device, r, remedy, sizeof(remedy));
		d.remedy = remedy;
		r = callback(&d, userdata);
	} else {
		(void) snprintf(rdma.firmware, sizeof(rdma.firmware), "%.63s", attr.fw_ver);
		rdma.can = verbs_capabilities(context, &attr, &can) ? &can : NULL;
		for (unsigned p = 1; p <= attr.phys_port_cnt && r == 0; p++) {
			struct device of_port = d;
			struct device_rdma rdma_of_port = rdma;

			r = probe_port(context, (uint8_t) p, &of_port, &rdma_of_port, callback, userdata);
		}
	}
	if (context)
		(void) ibv_close_device(context);
	return r < 0 ? r : 0;
}

/* What the kernel has and libibverbs does not list is shown with its remedy, rather than not at all. */
static int probe_unreachable(device_callback callback, void *userdata) {
	char names[JOB_NAME_MAX];
	struct device d = {
		.backend = "verbs",
		.state = "unknown",
		.remedy = "programs cannot reach it: "
			  "load ib_uverbs (modprobe ib_uverbs), and install its user-space driver (ibverbs-providers)",
	};

	if (verbs_sysfs_devices(names, sizeof(names)) == 0)
		return 0;
	(void) snprintf(d.name, sizeof(d.name), "%s", names);
	return callback(&d, userdata);
}

int verbs_probe(device_callback callback, void *userdata) {
	struct ibv_device **list = ibv_get_device_list(NULL);
	int r = 0;

	if (!list || !list[0])
		r = probe_unreachable(callback, userdata);
	for (size_t i = 0; list && list[i] && r >= 0; i++)
		r = probe_device(list[i], callback, userdata);
	if (list)
		ibv_free_device_list(list);
	return r < 0 ? r : 0;
}
