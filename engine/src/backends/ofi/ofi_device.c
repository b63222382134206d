/* SPDX-License-Identifier: Apache-2.0 */
/* Facts about a provider's domains: from libfabric's own NIC attributes where it has them, else from the interface. */
#include "ofi.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <strings.h>

#include "base/message.h"
#include "host/netdev.h"

bool ofi_is_ip(const struct fi_info *info) {
	return info->addr_format == FI_SOCKADDR || info->addr_format == FI_SOCKADDR_IN ||
	       info->addr_format == FI_SOCKADDR_IN6;
}

/* "tcp;ofi_rxm": the core provider is what moves the data; the rest are layers on it. */
bool ofi_core_is(const struct fi_info *info, const char *name) {
	const char *p = info->fabric_attr->prov_name;
	size_t n = strlen(name);

	return strncmp(p, name, n) == 0 && (p[n] == '\0' || p[n] == ';');
}

/*
 * CXI's: 9 bits of PID, then 20 of NIC (struct cxip_addr of the provider).
 * The highest PID means that none is assigned yet.
 */
static void cxi_address_text(const void *address, size_t length, char *ret, size_t size) {
	uint32_t bits, pid;

	if (length < sizeof(bits))
		return;
	memcpy(&bits, address, sizeof(bits));
	pid = bits & OFI_CXI_PID_ANY;
	if (pid == OFI_CXI_PID_ANY)
		(void) snprintf(ret, size, "NIC 0x%x", bits >> OFI_CXI_PID_BITS & OFI_CXI_NIC_MASK);
	else
		(void) snprintf(ret, size, "NIC 0x%x PID %u", bits >> OFI_CXI_PID_BITS & OFI_CXI_NIC_MASK, pid);
}

void ofi_address_text(uint32_t format, const void *address, size_t length, char *ret, size_t size) {
	const struct sockaddr *sa = address;

	ret[0] = '\0';
	if (!address || length == 0)
		return;
	switch (format) {
	case FI_SOCKADDR:
	case FI_SOCKADDR_IN:
	case FI_SOCKADDR_IN6:
		if (length >= sizeof(struct sockaddr_in) && sa->sa_family == AF_INET)
			(void) inet_ntop(AF_INET, &((const struct sockaddr_in *) address)->sin_addr, ret,
					 (socklen_t) size);
		else if (length >= sizeof(struct sockaddr_in6) && sa->sa_family == AF_INET6)
			(void) inet_ntop(AF_INET6, &((const struct sockaddr_in6 *) address)->sin6_addr, ret,
					 (socklen_t) size);
		return;
	case FI_ADDR_STR:
		(void) snprintf(ret, size, "%.*s", (int) strnlen(address, length), (const char *) address);
		return;
	case FI_ADDR_CXI:
		cxi_address_text(address, length, ret, size);
		return;
	default:
		/* Native addresses are bit fields of the device: their bytes are what its tools print. */
		for (size_t i = 0; i < MIN(length, (size_t) 16) && 2 * i + 3 <= size; i++)
			(void) snprintf(ret + 2 * i, size - 2 * i, "%02x", ((const uint8_t *) address)[i]);
	}
}

/*
 * Where a source address was asked for, libfabric names the domain after the provider:
 * the interface is the better name.
 */
static void facts_of_interface(const void *own, size_t length, struct device *ret) {
	struct sockaddr_storage address = { 0 };
	struct netdev n;

	if (!own || length > sizeof(address))
		return;
	memcpy(&address, own, length);
	if (netdev_of_address(&address, &n) < 0)
		return;
	(void) copy_string(ret->name, sizeof(ret->name), n.name);
	(void) copy_string(ret->layer, sizeof(ret->layer), n.layer);
	(void) copy_string(ret->state, sizeof(ret->state), n.up ? "up" : "down");
	ret->mtu = n.mtu;
	ret->rate_gbit_s = n.rate_gbit_s;
}

static void facts_of_nic(const struct fid_nic *nic, struct device *ret) {
	const struct fi_link_attr *l = nic->link_attr;

	if (!l)
		return;
	if (l->network_type && strcasestr(l->network_type, "infiniband"))
		(void) copy_string(ret->layer, sizeof(ret->layer), "infiniband");
	else if (l->network_type && strcasestr(l->network_type, "hpc ethernet"))
		(void) copy_string(ret->layer, sizeof(ret->layer), "slingshot"); /* what CXI calls its link */
	else if (l->network_type && strcasestr(l->network_type, "ethernet"))
		(void) copy_string(ret->layer, sizeof(ret->layer), "ethernet");
	if (l->state == FI_LINK_UP || l->state == FI_LINK_DOWN)
		(void) copy_string(ret->state, sizeof(ret->state), l->state == FI_LINK_UP ? "up" : "down");
	if (l->mtu > 0 && l->mtu <= UINT32_MAX)
		ret->mtu = (uint32_t) l->mtu;
	if (l->speed > 0)
		ret->rate_gbit_s = (double) l->speed / 1e9; /* bits a second */
	if (ret->address[0] == '\0' && l->address)
		(void) copy_string(ret->address, sizeof(ret->address), l->address);
}

void ofi_facts(const struct fi_info *info, const void *own, size_t own_length, struct device *ret) {
	*ret = (struct device) { .backend = "ofi", .layer = "none", .state = "unknown" };
	(void) copy_string(ret->provider, sizeof(ret->provider), info->fabric_attr->prov_name);
	if (info->domain_attr->name)
		(void) copy_string(ret->name, sizeof(ret->name), info->domain_attr->name);
	ofi_address_text(info->addr_format, own, own_length, ret->address, sizeof(ret->address));

	if (ofi_is_host_local(info)) {
		(void) copy_string(ret->layer, sizeof(ret->layer), "shm");
		(void) copy_string(ret->state, sizeof(ret->state), "up");
	} else if (info->nic)
		facts_of_nic(info->nic, ret);
	else if (ofi_is_ip(info))
		facts_of_interface(own, own_length, ret);
	if (info->ep_attr->protocol == FI_PROTO_CXI)
		(void) copy_string(ret->layer, sizeof(ret->layer), "slingshot");
}

/* Layers list a domain once for each kind of core below them. */
static bool seen_before(const struct fi_info *list, const struct fi_info *info) {
	for (const struct fi_info *i = list; i != info; i = i->next)
		if (streq(i->fabric_attr->prov_name, info->fabric_attr->prov_name) &&
		    streq(i->domain_attr->name, info->domain_attr->name) && i->src_addrlen == info->src_addrlen &&
		    (i->src_addrlen == 0 || memcmp(i->src_addr, info->src_addr, i->src_addrlen) == 0))
			return true;
	return false;
}

int ofi_probe_provider(const char *backend, const char *provider, device_callback callback, void *userdata) {
	struct fi_info *hints, *list = NULL;
	int r;

	r = ofi_library_load();
	if (r < 0)
		return r;
	hints = fi_allocinfo();
	if (!hints)
		return failure(-ENOMEM, EXIT_INTERNAL, "out of memory");
	hints->ep_attr->type = FI_EP_RDM;
	hints->caps = FI_MSG;
	hints->mode = OFI_MODES;
	hints->domain_attr->mr_mode = OFI_MR_MODES;
	r = fi_getinfo(OFI_VERSION, NULL, NULL, 0, hints, &list);
	fi_freeinfo(hints);
	if (r == -FI_ENODATA)
		return 0;
	if (r)
		return failure(-EIO, EXIT_HOST, "%s: cannot list libfabric's providers: %s", backend, fi_strerror(-r));

	r = 0;
	for (const struct fi_info *i = list; i && r >= 0; i = i->next) {
		struct device d;

		if (!i->domain_attr->name || seen_before(list, i) || (provider && !ofi_core_is(i, provider)))
			continue;
		ofi_facts(i, i->src_addr, i->src_addrlen, &d);
		(void) copy_string(d.backend, sizeof(d.backend), backend);
		if (ofi_is_host_local(i))
			d.address[0] = '\0'; /* this process's own: nobody else's address */
		r = callback(&d, userdata);
	}
	fi_freeinfo(list);
	return r < 0 ? r : 0;
}

int ofi_probe(device_callback callback, void *userdata) {
	return ofi_probe_provider("ofi", NULL, callback, userdata);
}
