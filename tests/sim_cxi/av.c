/* SPDX-License-Identifier: Apache-2.0 */
/* The address vector: a table of NIC and PID, resolved to the inner provider's addresses when somebody is there. */
#include "sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int close_av(struct fid *fid) {
	struct sim_av *av = container(fid, struct sim_av, fid.fid);

	if (av->users > 0)
		return -FI_EBUSY;
	for (size_t i = 0; i < av->count; i++)
		sim_card_forget(av->peers[i].card);
	if (av->inner)
		(void) fi_close(&av->inner->fid);
	free(av->peers);
	av->domain->users--;
	free(av);
	return 0;
}

static bool resolve(struct sim_av *av, struct sim_peer *p, enum sim_rc *ret_why) {
	struct sim_address wanted = p->address;
	struct sim_card *card;

	/* who is addressed is known by NIC and PID; the VNI is always one's own */
	wanted.vni = av->vni;
	card = sim_card_find(wanted, ret_why);
	if (!card)
		return false;
	if (fi_av_insert(av->inner, card->inner, 1, &p->inner, 0, NULL) != 1) {
		sim_card_forget(card);
		*ret_why = RC_UNDELIVERABLE;
		return false;
	}
	p->card = card;
	return true;
}

static size_t free_place(struct sim_av *av) {
	struct sim_peer *more;
	size_t i;

	for (i = 0; i < av->count; i++)
		if (!av->peers[i].used)
			return i;
	more = reallocarray(av->peers, av->count + 1, sizeof(*more));
	if (!more)
		return SIZE_MAX;
	av->peers = more;
	av->count++;
	return i;
}

static int insert(struct fid_av *fid, const void *addr, size_t count, fi_addr_t *ret, uint64_t flags, void *context) {
	struct sim_av *av = container(fid, struct sim_av, fid);
	const struct sim_address *addresses = addr;
	enum sim_rc why;
	size_t done = 0;

	if (!addr || (flags & ~FI_MORE))
		return -FI_EINVAL;
	pthread_mutex_lock(&av->domain->lock);
	for (; done < count; done++) {
		size_t place = free_place(av);

		if (place == SIZE_MAX)
			break;
		av->peers[place] = (struct sim_peer) { .used = true };
		memcpy(&av->peers[place].address, addresses + done, sizeof(*addresses));
		/* nobody needs to be there yet: that shows when the address is used */
		(void) resolve(av, &av->peers[place], &why);
		if (ret)
			ret[done] = place;
	}
	pthread_mutex_unlock(&av->domain->lock);
	sim_count(CALL_fi_av_insert, 0);
	return (int) done;
}

static int insert_service(struct fid_av *fid, const char *node, const char *service, fi_addr_t *ret, uint64_t flags,
			  void *context) {
	return -FI_ENOSYS;
}

static int insert_symmetric(struct fid_av *fid, const char *node, size_t nodes, const char *service, size_t services,
			    fi_addr_t *ret, uint64_t flags, void *context) {
	return -FI_ENOSYS;
}

static int remove_peers(struct fid_av *fid, fi_addr_t *addresses, size_t count, uint64_t flags) {
	struct sim_av *av = container(fid, struct sim_av, fid);

	for (size_t i = 0; i < count; i++) {
		struct sim_peer *p = addresses[i] < av->count ? &av->peers[addresses[i]] : NULL;

		if (!p || !p->used)
			return -FI_EINVAL;
		if (p->card)
			(void) fi_av_remove(av->inner, &p->inner, 1, 0);
		sim_card_forget(p->card);
		*p = (struct sim_peer) { 0 };
	}
	return 0;
}

static int lookup(struct fid_av *fid, fi_addr_t address, void *addr, size_t *length) {
	struct sim_av *av = container(fid, struct sim_av, fid);

	if (address >= av->count || !av->peers[address].used)
		return -FI_EINVAL;
	memcpy(addr, &av->peers[address].address,
	       *length < sizeof(struct sim_address) ? *length : sizeof(struct sim_address));
	*length = sizeof(struct sim_address);
	return 0;
}

static const char *as_text(struct fid_av *fid, const void *addr, char *text, size_t *length) {
	struct sim_address a;
	int n;

	memcpy(&a, addr, sizeof(a));
	n = snprintf(text, *length, "fi_addr_cxi://0x%x:%u", a.nic, a.pid);
	*length = (size_t) n + 1;
	return text;
}

static struct fi_ops av_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = close_av,
	.bind = sim_no_bind,
	.control = sim_no_control,
	.ops_open = sim_no_ops_open,
};

static struct fi_ops_av av_ops = {
	.size = offsetof(struct fi_ops_av, av_set),
	.insert = insert,
	.insertsvc = insert_service,
	.insertsym = insert_symmetric,
	.remove = remove_peers,
	.lookup = lookup,
	.straddr = as_text,
};

int sim_av_open(struct fid_domain *domain, struct fi_av_attr *attr, struct fid_av **ret, void *context) {
	struct sim_domain *d = container(domain, struct sim_domain, fid);
	struct fi_av_attr inner = { .type = d->inner_info->domain_attr->av_type == FI_AV_MAP ? FI_AV_MAP
				    : FI_AV_TABLE };
	struct sim_av *av;
	int r;

	/* fi_cxi(7), "Address Vectors": no shared vectors, no events, no scalable endpoints' contexts */
	if (attr && (attr->name || attr->rx_ctx_bits || (attr->flags & ~FI_SYMMETRIC)))
		return -FI_ENOSYS;
	av = calloc(1, sizeof(*av));
	if (!av)
		return -FI_ENOMEM;
	av->domain = d;
	av->vni = d->key.vni;
	d->users++;
	av->fid.fid = (struct fid) { .fclass = FI_CLASS_AV, .context = context, .ops = &av_fid_ops };
	av->fid.ops = &av_ops;
	inner.count = attr ? attr->count : 0;
	r = fi_av_open(d->inner, &inner, &av->inner, NULL);
	if (r) {
		(void) close_av(&av->fid.fid);
		return r;
	}
	*ret = &av->fid;
	return 0;
}

int sim_reach(struct sim_endpoint *ep, fi_addr_t address, struct sim_peer **ret, enum sim_rc *ret_why) {
	struct sim_av *av = ep->av;
	struct sim_peer *p;

	if (!ep->enabled)
		return -FI_EOPBADSTATE;
	p = address < av->count ? &av->peers[address] : NULL;
	if (!p || !p->used)
		return -FI_EINVAL;
	if (!p->card && !resolve(av, p, ret_why))
		return 1;
	*ret = p;
	return 0;
}

fi_addr_t sim_inner_source(struct sim_endpoint *ep, fi_addr_t address) {
	struct sim_peer *p;
	enum sim_rc why;

	/* without FI_DIRECTED_RECV the source is not looked at (fi_msg(3)) */
	if (address == FI_ADDR_UNSPEC || !(ep->info->caps & FI_DIRECTED_RECV) || sim_reach(ep, address, &p, &why) != 0)
		return FI_ADDR_UNSPEC;
	return p->inner;
}

fi_addr_t sim_outer_source(struct sim_av *av, fi_addr_t inner) {
	for (size_t i = 0; av && inner != FI_ADDR_NOTAVAIL && i < av->count; i++)
		if (av->peers[i].card && av->peers[i].inner == inner)
			return i;
	return FI_ADDR_NOTAVAIL;
}
