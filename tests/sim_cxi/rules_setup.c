/* SPDX-License-Identifier: Apache-2.0 */
/* Rules about what is offered, about keys and about addresses. */
#include "rules.h"

static int offered(struct fi_info *hints) {
	struct fi_info *list = NULL;
	int r = fi_getinfo(FI_VERSION(1, 15), NULL, NULL, 0, hints, &list);

	fi_freeinfo(list);
	return r;
}

static void endpoint_types(void) {
	const struct wish w = { 0 };
	struct fi_info *h = hints_of(&w);
	struct fid_ep *ep;
	struct end e;

	h->ep_attr->type = FI_EP_MSG;
	SAME(offered(h), -FI_ENODATA);
	h->ep_attr->type = FI_EP_DGRAM;
	SAME(offered(h), -FI_ENODATA);
	h->ep_attr->type = FI_EP_RDM;
	SAME(offered(h), 0);
	SAME(open_end(&e, &w), 0);
	e.info->ep_attr->type = FI_EP_MSG;
	SAME(fi_endpoint(e.domain, e.info, &ep, NULL), -FI_EINVAL);
	close_end(&e);
	fi_freeinfo(h);
}

static void identity(void) {
	const struct wish w = { .caps = FI_MSG | FI_RMA };
	struct fi_info *i, *h = hints_of(&w);

	SAME(info_of(&w, &i), 0);
	CHECK(strcmp(i->fabric_attr->prov_name, "cxi") == 0);
	CHECK(strncmp(i->domain_attr->name, "sim_", 4) == 0);
	SAME(i->ep_attr->protocol, FI_PROTO_CXI);
	SAME(i->addr_format, FI_ADDR_CXI);
	SAME(i->tx_attr->inject_size, 192);
	SAME(i->domain_attr->cq_data_size, 8);
	SAME(i->ep_attr->max_msg_size, 4294967295LL);
	SAME(i->tx_attr->iov_limit, 1);
	CHECK(!(i->domain_attr->mr_mode & (FI_MR_VIRT_ADDR | FI_MR_LOCAL)));
	CHECK(strcmp(i->nic->link_attr->network_type, "HPC Ethernet") == 0);
	h->tx_attr->inject_size = 193;
	SAME(offered(h), -FI_ENODATA);
	h->tx_attr->inject_size = 192;
	SAME(offered(h), 0);
	h->ep_attr->max_msg_size = 4294967296;
	SAME(offered(h), -FI_ENODATA);
	fi_freeinfo(h);
	fi_freeinfo(i);
}

static void region_modes(void) {
	struct wish w = { .mr_mode = FI_MR_ALLOCATED };
	struct fi_info *i;

	SAME(info_of(&w, &i), -FI_ENODATA);
	w.mr_mode = FI_MR_ENDPOINT;
	SAME(info_of(&w, &i), -FI_ENODATA);
	w.mr_mode = FI_MR_ENDPOINT | FI_MR_ALLOCATED;
	SAME(info_of(&w, &i), 0);
	SAME(i->domain_attr->mr_mode, FI_MR_ENDPOINT | FI_MR_ALLOCATED);
	SAME(i->domain_attr->mr_key_size, 4);
	fi_freeinfo(i);
	w.mr_mode |= FI_MR_PROV_KEY;
	SAME(info_of(&w, &i), 0);
	SAME(i->domain_attr->mr_mode, FI_MR_ENDPOINT | FI_MR_ALLOCATED | FI_MR_PROV_KEY);
	SAME(i->domain_attr->mr_key_size, 8);
	fi_freeinfo(i);
}

static void odp(void) {
	struct wish w = { .mr_mode = FI_MR_ENDPOINT };
	struct fi_info *i;

	SAME(info_of(&w, &i), 0);
	SAME(i->domain_attr->mr_mode, FI_MR_ENDPOINT);
	fi_freeinfo(i);
}

static void orders(void) {
	static const uint64_t refused[] = { FI_ORDER_RMA_RAW, FI_ORDER_RMA_WAR, FI_ORDER_ATOMIC_RAW,
					    FI_ORDER_ATOMIC_WAR, FI_ORDER_RAR };
	struct wish w = { 0 };
	struct fi_info *i;

	for (size_t n = 0; n < ELEMENTSOF(refused); n++) {
		w.order = refused[n];
		SAME(info_of(&w, &i), -FI_ENODATA);
	}
	w.order = FI_ORDER_SAS | FI_ORDER_RMA_WAW;
	SAME(info_of(&w, &i), 0);
	SAME(i->tx_attr->msg_order, w.order);
	fi_freeinfo(i);
	w.order = 0;
	SAME(info_of(&w, &i), 0);
	SAME(i->tx_attr->msg_order, 0);
	fi_freeinfo(i);
}

static int domain_with(uint32_t service, uint16_t vni) {
	const struct cxi_auth_key key = { .svc_id = service, .vni = vni };
	const struct wish w = { .key = &key };
	struct end e;
	int r = open_end(&e, &w);

	if (r == 0) {
		enable_end(&e);
		SAME(e.name.vni, vni);
	}
	close_end(&e);
	return r;
}

static void keys_checked(void) {
	const struct wish w = { 0 };
	struct fi_info *h = hints_of(&w);

	SAME(domain_with(99, 10), -FI_EINVAL);          /* unknown service */
	SAME(domain_with(6, 77), -FI_EINVAL);           /* disabled */
	SAME(domain_with(5, 10), -FI_EINVAL);           /* not its VNI */
	SAME(domain_with(7, 32), -FI_ENODEV);           /* no member */
	SAME(domain_with(5, 1025), 0);
	SAME(domain_with(1, 4711), 0);                  /* the default service restricts no VNI */
	h->domain_attr->auth_key = calloc(1, 4);
	h->domain_attr->auth_key_size = 4;
	SAME(offered(h), -FI_ENODATA);
	fi_freeinfo(h);
}

static void key_of_endpoint(void) {
	const struct cxi_auth_key key = { .svc_id = 5, .vni = 1024 }, other = { .svc_id = 5, .vni = 1025 };
	const struct wish w = { .key = &key };
	struct fid_ep *ep;
	struct end e;

	SAME(open_end(&e, &w), 0);
	e.info->ep_attr->auth_key = malloc(sizeof(key));
	e.info->ep_attr->auth_key_size = sizeof(key);
	memcpy(e.info->ep_attr->auth_key, &other, sizeof(other));
	SAME(fi_endpoint(e.domain, e.info, &ep, NULL), -FI_EINVAL);
	memcpy(e.info->ep_attr->auth_key, &key, sizeof(key));
	SAME(fi_endpoint(e.domain, e.info, &ep, NULL), 0);
	SAME(fi_close(&ep->fid), 0);
	close_end(&e);
}

static void expect_key(const char *device, const char *service, uint16_t vni) {
	const struct wish w = { .device = device };
	struct end e;

	SAME(open_end(&e, &w), 0);
	enable_end(&e);
	SAME(e.name.vni, vni);
	close_end(&e);
	CHECK(reported(service));
}

static void key_by_default(void) { expect_key("sim_cxi0", "\"svc_id\":1,", 10); }
static void key_default_vni(void) { expect_key("sim_cxi0", "\"svc_id\":1,", 321); }
static void key_of_user(void) { expect_key("sim_cxi0", "\"svc_id\":8,", 40); }
static void key_of_group(void) { expect_key("sim_cxi0", "\"svc_id\":9,", 41); }
static void key_of_launcher(void) { expect_key("sim_cxi1", "\"svc_id\":6,", 234); }

static void no_key(void) {
	const struct wish w = { 0 };
	struct end e;

	SAME(open_end(&e, &w), -FI_EINVAL);
	close_end(&e);
}

static void classes(void) {
	struct wish w = { .tclass = FI_TC_LOW_LATENCY };
	struct fi_info *i;
	struct end e;

	SAME(open_end(&e, &w), 0);
	SAME(e.info->domain_attr->tclass, FI_TC_LOW_LATENCY);
	close_end(&e);
	w.tclass = FI_TC_BULK_DATA;                     /* known, but not the service's */
	SAME(open_end(&e, &w), -FI_EINVAL);
	close_end(&e);
	w.tclass = 0x2ff;
	SAME(info_of(&w, &i), -FI_ENODATA);
}

static void names(void) {
	const struct wish w = { .device = "cxi0" };
	struct wish source = { .device = "sim_cxi1", .pid = "300" };
	struct cxi_addr name;
	size_t length = sizeof(name);
	struct fi_info *i;
	struct end a, b, c;

	SAME(open_end(&a, &w), 0);
	SAME(fi_getname(&a.ep->fid, &name, &length), -FI_EOPBADSTATE);
	enable_end(&a);
	length = 4;
	SAME(fi_getname(&a.ep->fid, &name, &length), -FI_ETOOSMALL);
	SAME(a.name.nic, 0x12);
	SAME(open_end(&b, &w), 0);
	enable_end(&b);
	CHECK(a.name.pid != b.name.pid && a.name.pid < 511);
	SAME(open_end(&c, &source), 0);
	enable_end(&c);
	SAME(c.name.pid, 300);
	SAME(c.name.nic, 0x13);
	close_pair(&a, &b);
	SAME(open_end(&a, &source), 0);
	SAME(fi_enable(a.ep), -FI_EADDRINUSE);
	close_end(&c);
	close_end(&a);
	source.pid = "511";
	CHECK(info_of(&source, &i) != 0);
}

static void ghosts(void) {
	const struct wish w = { .device = "sim_cxi0", .pid = "417" };
	int status, ready[2];
	struct end e;
	pid_t child;
	char byte;

	SAME(pipe(ready), 0);
	child = fork();
	if (child == 0) {
		(void) alarm(60); /* fork() does not pass it on */
		SAME(open_end(&e, &w), 0);
		enable_end(&e);
		(void) !write(ready[1], "x", 1);
		pause();
	}
	SAME(read(ready[0], &byte, 1), 1);
	SAME(kill(child, SIGKILL), 0);
	SAME(waitpid(child, &status, 0), child);
	SAME(open_end(&e, &w), 0);
	enable_end(&e);
	close_end(&e);
}

static void must_be_complete(void) {
	const struct wish w = { 0 };
	struct fid_ep *ep;
	struct end e;

	SAME(open_end(&e, &w), 0);
	SAME(fi_endpoint(e.domain, e.info, &ep, NULL), 0);
	SAME(fi_enable(ep), -FI_ENOAV);
	SAME(fi_ep_bind(ep, &e.av->fid, 0), 0);
	SAME(fi_enable(ep), -FI_ENOCQ);
	SAME(fi_send(ep, e.area, 8, NULL, 0, NULL), -FI_EOPBADSTATE);
	SAME(fi_close(&ep->fid), 0);
	enable_end(&e);
	close_end(&e);
}

static void read_once(void) {
	const struct wish w = { 0 };
	struct end e;

	SAME(open_end(&e, &w), 0);
	SAME(setenv("FI_CXI_LLRING_MODE", "always", 1), 0);
	SAME(setenv("FI_CXI_DISABLE_NON_INJECT_MSG_IDC", "1", 1), 0);
	enable_end(&e);
	close_end(&e);
	CHECK(reported("\"FI_CXI_LLRING_MODE\":\"never\""));
	CHECK(reported("\"FI_CXI_DISABLE_NON_INJECT_MSG_IDC\":\"0\""));
	CHECK(reported("\"FI_CXI_RDZV_THRESHOLD\":\"192\""));
	CHECK(reported("\"FI_CXI_RDZV_GET_MIN\":\"0\""));
}

static void devices(void) {
	const struct wish gone = { .device = "sim_cxi0" }, w = { .device = "cxi1" };
	struct fi_info *i;

	SAME(info_of(&gone, &i), -FI_ENODATA);
	SAME(info_of(&w, &i), 0);
	SAME(((const struct cxi_addr *) i->src_addr)->nic, 0x77);
	fi_freeinfo(i);
}

#define SERVICES "SIM_CXI_SERVICES=1,5:vni=1024+1025,6:disabled,7:vni=32:uid=65533:gid=65533"

const struct rule rules_setup[] = {
	{ "endpoints are reliable datagrams only", endpoint_types, { 0 } },
	{ "it is provider cxi with cxi's limits, on a domain whose name says that it is a simulation", identity,
	  { 0 } },
	{ "regions: FI_MR_ENDPOINT and FI_MR_ALLOCATED are required, FI_MR_PROV_KEY is a choice", region_modes, { 0 } },
	{ "FI_MR_ALLOCATED is not required with FI_CXI_ODP", odp, { "FI_CXI_ODP=1" } },
	{ "orders: write after write can be asked for, read after write or write after read cannot", orders, { 0 } },
	{ "keys: unknown service, foreign VNI, disabled service, no member: refused", keys_checked, { SERVICES } },
	{ "keys: an endpoint's key must be its domain's", key_of_endpoint, { SERVICES } },
	{ "keys: without one, the open service and VNI 10", key_by_default, { REPORT } },
	{ "keys: FI_CXI_DEFAULT_VNI is the VNI of a service that restricts none", key_default_vni,
	  { REPORT, "FI_CXI_DEFAULT_VNI=321" } },
	{ "keys: a service of the user comes before the open one", key_of_user,
	  { REPORT, "SIM_CXI_SERVICES=1,9:vni=41:gid=me,8:vni=40:uid=me" } },
	{ "keys: a service of the group comes before the open one", key_of_group,
	  { REPORT, "SIM_CXI_SERVICES=1,9:vni=41:gid=me" } },
	{ "keys: SLINGSHOT_VNIS, _DEVICES and _SVC_IDS come first, by the same index", key_of_launcher,
	  { REPORT, "SLINGSHOT_VNIS=234,235", "SLINGSHOT_DEVICES=cxi0,cxi1", "SLINGSHOT_SVC_IDS=5,6",
	    "SIM_CXI_SERVICES=1,5:vni=234,6:vni=234,8:uid=me" } },
	{ "keys: no service for this user is an error of fi_domain()", no_key,
	  { "SIM_CXI_SERVICES=5:uid=65533:gid=65533" } },
	{ "traffic classes: known ones are taken, others and those that the service lacks refused", classes,
	  { "SIM_CXI_SERVICES=1:tc=low-latency" } },
	{ "addresses are NIC, PID and VNI: PIDs are unique, can be asked for, and end at 510", names, { 0 } },
	{ "addresses: the PID of a killed process is free again", ghosts, { 0 } },
	{ "endpoints: no use before address vector, queue and fi_enable()", must_be_complete, { 0 } },
	{ "variables are read once, and FI_CXI_RDZV_THRESHOLD is raised to 192", read_once,
	  { REPORT, "FI_CXI_LLRING_MODE=never", "FI_CXI_RDZV_THRESHOLD=0", "FI_CXI_RDZV_GET_MIN=0" } },
	{ "devices: SIM_CXI_DEVICES and FI_CXI_DEVICE_NAME choose", devices,
	  { "SIM_CXI_DEVICES=sim_cxi0=0x12,sim_cxi1=0x77", "FI_CXI_DEVICE_NAME=cxi1" } },
	{ NULL, NULL, { 0 } },
};
