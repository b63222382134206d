/* SPDX-License-Identifier: Apache-2.0 */
/* Fabric and domain. The inner provider is chosen and opened with the domain. */
#include "sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * The layer over tcp offers everything that cxi does, atomics included,
 * between processes and between network namespaces; shm (one machine) or sockets can be named instead.
 */
#define INNER_DEFAULT "tcp;ofi_rxm"

static int close_fabric(struct fid *fid) {
	struct sim_fabric *f = container(fid, struct sim_fabric, fid.fid);

	if (f->users > 0)
		return -FI_EBUSY;
	free(f);
	return 0;
}

static int no_passive(struct fid_fabric *fabric, struct fi_info *info, struct fid_pep **ret, void *context) {
	return -FI_ENOSYS;
}

/* An event queue can be opened, since programs open one whatever their endpoint needs; nothing here ever fills it. */
static int close_eq(struct fid *fid) {
	free(container(fid, struct fid_eq, fid));
	return 0;
}

static ssize_t eq_read(struct fid_eq *eq, uint32_t *event, void *buffer, size_t length, uint64_t flags) {
	return -FI_EAGAIN;
}

static ssize_t eq_readerr(struct fid_eq *eq, struct fi_eq_err_entry *buffer, uint64_t flags) {
	return -FI_EAGAIN;
}

static struct fi_ops eq_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = close_eq,
	.bind = sim_no_bind,
	.control = sim_no_control,
	.ops_open = sim_no_ops_open,
};

static struct fi_ops_eq eq_ops = {
	.size = offsetof(struct fi_ops_eq, write),
	.read = eq_read,
	.readerr = eq_readerr,
};

static int open_eq(struct fid_fabric *fabric, struct fi_eq_attr *attr, struct fid_eq **ret, void *context) {
	struct fid_eq *eq = calloc(1, sizeof(*eq));

	if (!eq)
		return -FI_ENOMEM;
	eq->fid = (struct fid) { .fclass = FI_CLASS_EQ, .context = context, .ops = &eq_fid_ops };
	eq->ops = &eq_ops;
	*ret = eq;
	return 0;
}

static int no_wait(struct fid_fabric *fabric, struct fi_wait_attr *attr, struct fid_wait **ret) {
	return -FI_ENOSYS;
}

/* A failure that waits in a queue of ours is nothing that the inner provider would wake anybody for. */
static int trywait(struct fid_fabric *fabric, struct fid **fids, int count) {
	int r = 0;

	for (int i = 0; i < count && r == 0; i++) {
		struct sim_cq *cq = container(fids[i], struct sim_cq, fid.fid);
		struct fid *inner;

		if (fids[i]->fclass != FI_CLASS_CQ)
			return -FI_ENOSYS;
		inner = &cq->inner->fid;
		pthread_mutex_lock(&cq->domain->lock);
		r = cq->failures ? -FI_EAGAIN : fi_trywait(cq->domain->inner_fabric, &inner, 1);
		pthread_mutex_unlock(&cq->domain->lock);
	}
	sim_count(CALL_fi_trywait, r);
	return r;
}

static struct fi_ops fabric_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = close_fabric,
	.bind = sim_no_bind,
	.control = sim_no_control,
	.ops_open = sim_no_ops_open,
};

static struct fi_ops_fabric fabric_ops = {
	.size = offsetof(struct fi_ops_fabric, domain2),
	.domain = sim_domain_open,
	.passive_ep = no_passive,
	.eq_open = open_eq,
	.wait_open = no_wait,
	.trywait = trywait,
};

int sim_fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **ret, void *context) {
	struct sim_fabric *f;

	if (attr->name && strcmp(attr->name, "cxi") != 0)
		return -FI_EINVAL;
	f = calloc(1, sizeof(*f));
	if (!f)
		return -FI_ENOMEM;
	f->fid.fid = (struct fid) { .fclass = FI_CLASS_FABRIC, .context = context, .ops = &fabric_fid_ops };
	f->fid.ops = &fabric_ops;
	f->fid.api_version = attr->api_version;
	*ret = &f->fid;
	return 0;
}

/* Only what the simulation passes through is asked for; the rest is checked by it. */
static struct fi_info *inner_info(const struct fi_info *info, const struct sim_device *device) {
	const char *name = sim_variables.inner ? sim_variables.inner : INNER_DEFAULT,
		*source = device->source[0] ? device->source : sim_variables.inner_address;
	struct fi_info *h = fi_allocinfo(), *list = NULL;
	int r;

	if (!h)
		return NULL;
	h->ep_attr->type = FI_EP_RDM;
	h->caps = info->caps & (FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_MULTI_RECV | FI_DIRECTED_RECV | FI_SOURCE);
	h->mode = 0;
	h->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	h->domain_attr->threading = FI_THREAD_SAFE;
	h->tx_attr->msg_order = h->rx_attr->msg_order = FI_ORDER_SAS;
	h->tx_attr->op_flags = info->tx_attr->op_flags & (FI_DELIVERY_COMPLETE | FI_TRANSMIT_COMPLETE |
							  FI_INJECT_COMPLETE | FI_COMPLETION);
	h->rx_attr->op_flags = info->rx_attr->op_flags & (FI_COMPLETION | FI_MULTI_RECV);
	h->tx_attr->size = info->tx_attr->size;
	h->rx_attr->size = info->rx_attr->size;
	h->fabric_attr->prov_name = strdup(name);
	r = fi_getinfo(FI_VERSION(1, 15), source, NULL, source ? FI_SOURCE : 0, h, &list);
	fi_freeinfo(h);
	if (r) {
		SIM_WARN(FI_LOG_DOMAIN, "the inner provider %s has nothing to offer: %s; does FI_PROVIDER forbid it?\n",
			 name, fi_strerror(-r));
		return NULL;
	}
	return list;
}

static int close_domain(struct fid *fid) {
	struct sim_domain *d = container(fid, struct sim_domain, fid.fid);

	if (d->users > 0)
		return -FI_EBUSY;
	if (d->inner) {
		sim_report_write(d);
		(void) fi_close(&d->inner->fid);
	}
	if (d->inner_fabric)
		(void) fi_close(&d->inner_fabric->fid);
	fi_freeinfo(d->inner_info);
	fi_freeinfo(d->info);
	d->fabric->users--;
	(void) pthread_mutex_destroy(&d->lock);
	free(d);
	return 0;
}

static int no_scalable(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ret, void *context) {
	return -FI_ENOSYS;
}

static int no_cntr(struct fid_domain *domain, struct fi_cntr_attr *attr, struct fid_cntr **ret, void *context) {
	return -FI_ENOSYS;
}

static int no_poll(struct fid_domain *domain, struct fi_poll_attr *attr, struct fid_poll **ret) {
	return -FI_ENOSYS;
}

static int no_stx(struct fid_domain *domain, struct fi_tx_attr *attr, struct fid_stx **ret, void *context) {
	return -FI_ENOSYS;
}

static int no_srx(struct fid_domain *domain, struct fi_rx_attr *attr, struct fid_ep **ret, void *context) {
	return -FI_ENOSYS;
}

static int no_collective(struct fid_domain *domain, enum fi_collective_op op, struct fi_collective_attr *attr,
			 uint64_t flags) {
	return -FI_ENOSYS;
}

static struct fi_ops domain_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = close_domain,
	.bind = sim_no_bind,
	.control = sim_no_control,
	.ops_open = sim_no_ops_open,
};

static struct fi_ops_domain domain_ops = {
	.size = offsetof(struct fi_ops_domain, endpoint2),
	.av_open = sim_av_open,
	.cq_open = sim_cq_open,
	.endpoint = sim_endpoint_open,
	.scalable_ep = no_scalable,
	.cntr_open = no_cntr,
	.poll_open = no_poll,
	.stx_ctx = no_stx,
	.srx_ctx = no_srx,
	.query_atomic = sim_query_atomic,
	.query_collective = no_collective,
};

/* fi_cxi(7): a key given with the domain is used after it has been verified; without one the provider looks for one. */
static int choose_key(struct sim_domain *d) {
	const struct fi_domain_attr *a = d->info->domain_attr;
	uint32_t tclass = a->tclass ? a->tclass : FI_TC_BEST_EFFORT;
	int r;

	if (!a->auth_key) {
		r = sim_key_generate(d->device, &d->key);
		if (r < 0)
			return r;
	} else {
		if (a->auth_key_size != sizeof(d->key))
			return -FI_EINVAL;
		memcpy(&d->key, a->auth_key, sizeof(d->key));
	}
	return sim_key_check(&d->key, d->device, tclass);
}

static int open_inner(struct sim_domain *d) {
	int r;

	d->inner_info = inner_info(d->info, d->device);
	if (!d->inner_info)
		return -FI_ENODEV;
	r = fi_fabric(d->inner_info->fabric_attr, &d->inner_fabric, NULL);
	return r ? r : fi_domain(d->inner_fabric, d->inner_info, &d->inner, NULL);
}

int sim_domain_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **ret, void *context) {
	struct sim_domain *d;
	int r;

	if (!info || !info->domain_attr || !info->domain_attr->name)
		return -FI_EINVAL;
	d = calloc(1, sizeof(*d));
	if (!d)
		return -FI_ENOMEM;
	(void) pthread_mutex_init(&d->lock, NULL);
	d->fabric = container(fabric, struct sim_fabric, fid);
	d->fabric->users++;
	d->device = sim_device_named(info->domain_attr->name);
	d->info = fi_dupinfo(info);
	d->fid.fid = (struct fid) { .fclass = FI_CLASS_DOMAIN, .context = context, .ops = &domain_fid_ops };
	d->fid.ops = &domain_ops;
	d->fid.mr = &sim_mr_ops;
	r = !d->info ? -FI_ENOMEM : !d->device ? -FI_EINVAL : choose_key(d);
	if (r == 0)
		r = open_inner(d);
	if (r < 0) {
		(void) close_domain(&d->fid.fid);
		return r;
	}
	*ret = &d->fid;
	return 0;
}
