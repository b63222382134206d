/* SPDX-License-Identifier: Apache-2.0 */
/* fi_getinfo(): what cxi offers for each device, held against the hints; the numbers are of cxip_info.c. */
#include "sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DATA_CAPS \
	(FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_READ | FI_WRITE | FI_SEND | FI_RECV | FI_REMOTE_READ | \
	 FI_REMOTE_WRITE)
#define CAPS \
	(DATA_CAPS | FI_MULTI_RECV | FI_DIRECTED_RECV | FI_SOURCE | FI_RMA_EVENT | FI_FENCE | FI_HMEM | \
	 FI_LOCAL_COMM | FI_REMOTE_COMM)
#define TX_FLAGS (FI_INJECT | FI_COMPLETION | SIM_LEVELS | FI_REMOTE_CQ_DATA | FI_MORE | FI_FENCE)
#define RX_FLAGS (FI_COMPLETION | FI_MULTI_RECV | FI_MORE)
/* What costs and therefore is only there for who asks for it. */
#define ON_DEMAND (FI_RMA_EVENT | FI_SOURCE | FI_HMEM)

/* The NIC's part of fi_info: freed by fi_freeinfo() through its own close(). */
static int close_nic(struct fid *fid) {
	struct fid_nic *nic = container(fid, struct fid_nic, fid);

	free(nic->device_attr->name);
	free(nic->device_attr->device_id);
	free(nic->device_attr->device_version);
	free(nic->device_attr->vendor_id);
	free(nic->device_attr->driver);
	free(nic->device_attr->firmware);
	free(nic->link_attr->address);
	free(nic->link_attr->network_type);
	free(nic->device_attr);
	free(nic->bus_attr);
	free(nic->link_attr);
	free(nic);
	return 0;
}

static struct fid_nic *make_nic(const struct sim_device *device);

/* fi_dupinfo() asks the NIC to copy itself; where that fails both copies share it, and it is freed twice. */
static int control_nic(struct fid *fid, int command, void *arg) {
	struct fid_nic *nic = container(fid, struct fid_nic, fid), *copy;

	if (command != FI_DUP)
		return -FI_ENOSYS;
	copy = make_nic(sim_device_named(nic->device_attr->name));
	if (!copy)
		return -FI_ENOMEM;
	*(struct fid_nic **) arg = copy;
	return 0;
}

static struct fi_ops nic_ops = {
	.size = sizeof(struct fi_ops),
	.close = close_nic,
	.bind = sim_no_bind,
	.control = control_nic,
	.ops_open = sim_no_ops_open,
};

static struct fid_nic *empty_nic(void) {
	struct fid_nic *nic = calloc(1, sizeof(*nic));

	if (!nic)
		return NULL;
	nic->fid.fclass = FI_CLASS_NIC;
	nic->fid.ops = &nic_ops;
	nic->device_attr = calloc(1, sizeof(*nic->device_attr));
	nic->bus_attr = calloc(1, sizeof(*nic->bus_attr));
	nic->link_attr = calloc(1, sizeof(*nic->link_attr));
	if (nic->device_attr && nic->bus_attr && nic->link_attr)
		return nic;
	free(nic->device_attr);
	free(nic->bus_attr);
	free(nic->link_attr);
	free(nic);
	return NULL;
}

static struct fid_nic *make_nic(const struct sim_device *device) {
	struct fid_nic *nic = empty_nic();
	char nic_address[16];

	if (!nic)
		return NULL;
	nic->device_attr->name = strdup(device->name);
	nic->device_attr->device_id = strdup("0x501");          /* Cassini; vendor: HPE */
	nic->device_attr->vendor_id = strdup("0x17db");
	nic->device_attr->device_version = strdup("simulated");
	nic->device_attr->driver = strdup("sim_cxi");
	nic->bus_attr->bus_type = FI_BUS_UNKNOWN;
	(void) snprintf(nic_address, sizeof(nic_address), "0x%x", device->nic);
	nic->link_attr->address = strdup(nic_address);
	nic->link_attr->mtu = 2048;                             /* Slingshot's packet payload for RDMA */
	nic->link_attr->speed = 200000000000;                   /* Slingshot 11: 200 Gb/s */
	nic->link_attr->state = FI_LINK_UP;
	nic->link_attr->network_type = strdup("HPC Ethernet");
	return nic;
}

static bool needs_region(uint64_t caps) {
	return caps & (FI_RMA | FI_ATOMIC);
}

static void fill_domain(struct fi_domain_attr *d, const struct sim_device *device, bool provider_key, bool odp) {
	d->name = strdup(device->name);
	d->threading = FI_THREAD_SAFE;
	d->control_progress = d->data_progress = FI_PROGRESS_MANUAL;
	d->resource_mgmt = FI_RM_ENABLED;
	d->av_type = FI_AV_UNSPEC;
	d->mr_mode = FI_MR_ENDPOINT | (provider_key ? FI_MR_PROV_KEY : 0) | (odp ? 0 : FI_MR_ALLOCATED);
	d->mr_key_size = provider_key ? sizeof(uint64_t) : sizeof(uint32_t);
	d->cq_data_size = 8;
	d->cq_cnt = 32;
	d->ep_cnt = 128;
	d->tx_ctx_cnt = d->rx_ctx_cnt = d->max_ep_tx_ctx = d->max_ep_rx_ctx = 1;
	d->cntr_cnt = 16;
	d->mr_iov_limit = 1;
	d->mr_cnt = 100;
	d->caps = FI_LOCAL_COMM | FI_REMOTE_COMM;
}

static struct fi_info *make_info(const struct sim_device *device, bool provider_key, bool odp) {
	struct sim_address address = { .nic = device->nic & 0xfffff, .pid = SIM_PID_ANY };
	struct fi_info *i = fi_allocinfo();

	if (!i)
		return NULL;
	i->caps = CAPS;
	i->addr_format = FI_ADDR_CXI;
	i->src_addr = malloc(sizeof(address));
	if (i->src_addr) {
		memcpy(i->src_addr, &address, sizeof(address));
		i->src_addrlen = sizeof(address);
	}
	i->tx_attr->caps = CAPS & ~(FI_RECV | FI_REMOTE_READ | FI_REMOTE_WRITE | FI_MULTI_RECV | FI_DIRECTED_RECV |
				    FI_SOURCE | FI_RMA_EVENT | FI_LOCAL_COMM | FI_REMOTE_COMM);
	i->tx_attr->op_flags = TX_FLAGS;
	i->tx_attr->msg_order = i->rx_attr->msg_order = SIM_MSG_ORDER;
	i->tx_attr->inject_size = SIM_INJECT_SIZE;
	i->tx_attr->size = i->rx_attr->size = SIM_QUEUE_DEFAULT;
	i->tx_attr->iov_limit = i->tx_attr->rma_iov_limit = i->rx_attr->iov_limit = 1;
	i->rx_attr->caps = CAPS & ~(FI_SEND | FI_READ | FI_WRITE | FI_FENCE | FI_LOCAL_COMM | FI_REMOTE_COMM);
	i->rx_attr->op_flags = RX_FLAGS;
	i->ep_attr->type = FI_EP_RDM;
	i->ep_attr->protocol = FI_PROTO_CXI;
	i->ep_attr->protocol_version = 1;
	i->ep_attr->max_msg_size = SIM_MESSAGE_MAX;
	i->ep_attr->max_order_waw_size = SIZE_MAX;              /* raw and war: not ordered, hence 0 */
	i->ep_attr->mem_tag_format = 0xaaaaaaaaaaaaaaaaull >> 16;     /* 48 bits of tag */
	i->ep_attr->tx_ctx_cnt = i->ep_attr->rx_ctx_cnt = 1;
	fill_domain(i->domain_attr, device, provider_key, odp);
	i->fabric_attr->name = strdup("cxi");
	i->nic = make_nic(device);
	return i;
}

static bool level_ok(size_t asked, size_t offered) {
	return asked == 0 || asked <= offered;
}

static bool class_ok(uint32_t tclass) {
	return tclass == FI_TC_UNSPEC || (tclass & FI_TC_DSCP) ||
	       (tclass >= FI_TC_BEST_EFFORT && tclass <= FI_TC_NETWORK_CTRL);
}

static bool endpoint_ok(const struct fi_ep_attr *h) {
	return !h ||
	       ((h->type == FI_EP_UNSPEC || h->type == FI_EP_RDM) &&
		(h->protocol == FI_PROTO_UNSPEC || h->protocol == FI_PROTO_CXI) && h->max_msg_size <= SIM_MESSAGE_MAX &&
		h->msg_prefix_size == 0 && level_ok(h->tx_ctx_cnt, 1) && level_ok(h->rx_ctx_cnt, 1));
}

static bool queues_ok(const struct fi_tx_attr *tx, const struct fi_rx_attr *rx) {
	if (tx && ((tx->msg_order & ~SIM_MSG_ORDER) || tx->inject_size > SIM_INJECT_SIZE ||
		   tx->size > SIM_TX_SIZE_MAX || tx->iov_limit > 1 || tx->rma_iov_limit > 1 ||
		   (tx->op_flags & ~TX_FLAGS) || (tx->caps & ~CAPS) || !class_ok(tx->tclass)))
		return false;
	return !rx || !((rx->msg_order & ~SIM_MSG_ORDER) || rx->size > SIM_RX_SIZE_MAX || rx->iov_limit > 1 ||
			(rx->op_flags & ~RX_FLAGS) || (rx->caps & ~CAPS));
}

/* What the provider needs of the application (its mr_mode) must be among what the application says it can do. */
static bool domain_ok(const struct fi_domain_attr *h, const struct fi_domain_attr *ours, uint64_t caps) {
	if (!h)
		return true;
	if (needs_region(caps) && (ours->mr_mode & ~h->mr_mode))
		return false;
	if (h->control_progress == FI_PROGRESS_AUTO || h->data_progress == FI_PROGRESS_AUTO)
		return false;
	if (h->name) {
		const struct sim_device *device = sim_device_named(h->name);

		if (!device || strcmp(device->name, ours->name) != 0)
			return false;
	}
	return h->cq_data_size <= ours->cq_data_size && h->mr_key_size <= ours->mr_key_size && class_ok(h->tclass) &&
	       level_ok(h->ep_cnt, ours->ep_cnt) && level_ok(h->cq_cnt, ours->cq_cnt);
}

static bool hints_ok(const struct fi_info *h, const struct fi_info *ours) {
	if (!h)
		return true;
	if ((h->caps & ~CAPS) || (h->addr_format != FI_FORMAT_UNSPEC && h->addr_format != FI_ADDR_CXI))
		return false;
	if (h->fabric_attr && h->fabric_attr->name && strcmp(h->fabric_attr->name, "cxi") != 0)
		return false;
	return endpoint_ok(h->ep_attr) && queues_ok(h->tx_attr, h->rx_attr) &&
	       domain_ok(h->domain_attr, ours->domain_attr, h->caps ? h->caps : CAPS);
}

static int copy_key(const struct fi_domain_attr *h, struct fi_domain_attr *to) {
	if (!h || !h->auth_key)
		return 0;
	if (h->auth_key_size != sizeof(struct sim_auth_key)) {
		SIM_WARN(FI_LOG_FABRIC, "Invalid domain auth_key: %zu bytes\n", h->auth_key_size);
		return -FI_EINVAL;
	}
	to->auth_key = malloc(h->auth_key_size);
	if (!to->auth_key)
		return -FI_ENOMEM;
	memcpy(to->auth_key, h->auth_key, h->auth_key_size);
	to->auth_key_size = h->auth_key_size;
	return 0;
}

/* Orders and costly capabilities are exactly those asked for: both keep restricted packets from being used. */
static int apply_hints(const struct fi_info *h, struct fi_info *i) {
	uint64_t unwanted;

	if (!h)
		return 0;
	if (h->caps) {
		unwanted = ON_DEMAND & ~h->caps;
		/* primary capabilities are granted as asked, with their default directions */
		if (!(h->caps & FI_ATOMIC))
			unwanted |= FI_ATOMIC;
		if (!(h->caps & FI_RMA))
			unwanted |= FI_RMA;
		if (!(h->caps & FI_MSG))
			unwanted |= FI_MSG;
		if (!(h->caps & FI_TAGGED))
			unwanted |= FI_TAGGED;
		i->caps &= ~unwanted;
		i->tx_attr->caps &= ~unwanted;
		i->rx_attr->caps &= ~unwanted;
		if (!needs_region(h->caps))
			i->domain_attr->mr_mode = 0;
	}
	if (h->tx_attr) {
		i->tx_attr->msg_order = h->tx_attr->msg_order;
		i->tx_attr->op_flags = h->tx_attr->op_flags;
		i->tx_attr->tclass = h->tx_attr->tclass;
		if (h->tx_attr->size)
			i->tx_attr->size = h->tx_attr->size;
	}
	if (h->rx_attr) {
		i->rx_attr->msg_order = h->rx_attr->msg_order;
		i->rx_attr->op_flags = h->rx_attr->op_flags;
		if (h->rx_attr->size)
			i->rx_attr->size = h->rx_attr->size;
	}
	if (h->domain_attr) {
		i->domain_attr->tclass = h->domain_attr->tclass;
		if (h->domain_attr->av_type != FI_AV_UNSPEC)
			i->domain_attr->av_type = h->domain_attr->av_type;
		if (h->domain_attr->threading != FI_THREAD_UNSPEC)
			i->domain_attr->threading = h->domain_attr->threading;
	}
	return copy_key(h->domain_attr, i->domain_attr);
}

struct names {
	const struct sim_device *device;        /* of FI_SOURCE */
	bool has_nic, has_pid;
	uint32_t nic, pid;
};

/* A node is a device's name or a NIC address, a service a PID. */
static int read_names(const char *node, const char *service, uint64_t flags, struct names *ret) {
	char *end;

	*ret = (struct names) { .pid = SIM_PID_ANY };
	if ((flags & FI_SOURCE) && !node && !service)
		return -FI_EINVAL;
	if (node) {
		ret->device = sim_device_named(node);
		ret->nic = ret->device ? ret->device->nic : (uint32_t) strtoul(node, &end, 0);
		if (!ret->device && (end == node || *end))
			return -FI_ENODATA;
		if (!ret->device && (flags & FI_SOURCE) && !(ret->device = sim_device_at(ret->nic)))
			return -FI_ENODATA;
		ret->has_nic = true;
	}
	if (service) {
		unsigned long pid = strtoul(service, &end, 0);

		if (end == service || *end || pid >= SIM_PID_ANY)
			return -FI_EINVAL;
		ret->pid = (uint32_t) pid;
		ret->has_pid = true;
	}
	return 0;
}

static int copy_address(void **to, size_t *to_length, const void *from, size_t length) {
	void *copy = malloc(length);

	if (!copy)
		return -FI_ENOMEM;
	memcpy(copy, from, length);
	free(*to);
	*to = copy;
	*to_length = length;
	return 0;
}

static int apply_names(const struct names *n, uint64_t flags, const struct fi_info *h, struct fi_info *i) {
	struct sim_address *source = i->src_addr,
		other = { .nic = n->nic & 0xfffff, .pid = n->has_pid ? n->pid & 0x1ff : 0 };
	int r = 0;

	if ((flags & FI_SOURCE) && n->has_pid)
		source->pid = n->pid & 0x1ff;
	if (!(flags & FI_SOURCE) && n->has_nic)
		r = copy_address(&i->dest_addr, &i->dest_addrlen, &other, sizeof(other));
	else if (h && h->dest_addr && h->dest_addrlen == sizeof(other))
		r = copy_address(&i->dest_addr, &i->dest_addrlen, h->dest_addr, h->dest_addrlen);
	if (r == 0 && !(flags & FI_SOURCE) && h && h->src_addr && h->src_addrlen == sizeof(other))
		r = copy_address(&i->src_addr, &i->src_addrlen, h->src_addr, h->src_addrlen);
	return r;
}

/* The order is the real one's: what it thinks fastest comes first. */
int sim_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags, const struct fi_info *hints,
		struct fi_info **ret) {
	static const struct { bool provider_key, odp; } kinds[] = { { true, false }, { false, false }, { true, true },
								    { false, true } };
	struct fi_info *list = NULL, **tail = &list;
	struct names names;
	int r;

	r = read_names(node, service, flags, &names);
	if (r < 0)
		return r;
	for (unsigned d = 0; d < sim_device_count; d++)
		for (size_t k = 0; k < ELEMENTSOF(kinds); k++) {
			struct fi_info *i;

			if ((kinds[k].odp && !sim_variables.odp) ||
			    ((flags & FI_SOURCE) && names.device && names.device != &sim_devices[d]))
				continue;
			i = make_info(&sim_devices[d], kinds[k].provider_key, kinds[k].odp);
			if (!i)
				r = -FI_ENOMEM;
			else if (!hints_ok(hints, i)) {
				fi_freeinfo(i);
				continue;
			} else {
				*tail = i;
				tail = &i->next;
				r = apply_hints(hints, i);
				if (r == 0)
					r = apply_names(&names, flags, hints, i);
			}
			if (r < 0) {
				fi_freeinfo(list);
				return r;
			}
		}
	if (!list)
		return -FI_ENODATA;
	*ret = list;
	return 0;
}
