/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HPE Slingshot: the ofi backend over libfabric's provider cxi, with what only that has (fi_cxi(7)):
 * authorization keys, the provider's variables, kinds of memory keys, restricted and high-rate puts.
 * Messages go the same way as ofi's, call by call.
 */
#include "cxi.h"

#include <stdio.h>

#include "backends/registry.h"
#include "base/message.h"
#include "backends/ofi/ofi.h"

/* Installed by libfabrics that were built with the provider. */
#if __has_include(<rdma/fi_cxi_ext.h>)
#include <time.h>

#include <rdma/fi_cxi_ext.h>
#elif defined(PERCH_TEST_HOOKS)
#define FI_CXI_HRP (UINT64_C(1) << 60) /* as there; the simulated provider knows it */
#endif

enum {
	/* client keys from here on are found through a match list: fi_cxi(7), "Optimized MRs" */
	MATCHED_KEY = 100,
	HRP_BYTES = 2048,       /* cxi_write_bw(1): high-rate puts by default up to here */
	/* the provider raises FI_CXI_RDZV_THRESHOLD to its inject size, so that sends up to it stay eager */
	RDZV_EAGER = 192,
	DEFAULT_VNI = 10,       /* the provider's, where FI_CXI_DEFAULT_VNI does not say otherwise */
};

/* fi_cxi(7), "Authorization Keys"; declared here, since not every libfabric has the header. */
struct auth_key {
	uint32_t svc_id;
	uint16_t vni;
};

struct cxi_session {
	struct ofi_session ofi;
	struct slingshot facts;
	uint16_t usual_vni;             /* the one that the provider would choose */
};

extern char **environ;

static struct cxi_session *cxi_session(struct ofi_session *o) {
	return (struct cxi_session *) o;
}

/* The provider reads its variables once, when it is loaded: a job has a process of its own for that. */
static void set_variable(const char *name, const char *value, const char *cause) {
	const char *before = getenv(name);

	if (before && !streq(before, value))
		notice("%s=%s of the environment gives way to %s: it is %s for this measurement", name, before, cause,
		       value);
	(void) setenv(name, value, 1);
}

static void prepare(const struct job *job) {
	if (job->cxi.no_idc || job_sends_from_gpu(job)) {
		const char *cause = job->cxi.no_idc ? "--no-idc"
						: "the memory of a GPU, which the host cannot put into a command";

		set_variable("FI_CXI_DISABLE_NON_INJECT_MSG_IDC", "1", cause);
		set_variable("FI_CXI_DISABLE_NON_INJECT_RMA_IDC", "1", cause);
		set_variable("FI_CXI_DISABLE_NON_INJECT_AMO_IDC", "1", cause);
	}
	if (job->cxi.no_ll)
		set_variable("FI_CXI_LLRING_MODE", "never", "--no-ll");
	if (job->cxi.rdzv) {
		set_variable("FI_CXI_RDZV_THRESHOLD", "0", "--rdzv");
		set_variable("FI_CXI_RDZV_GET_MIN", "0", "--rdzv");
	}
}

/* All that the provider may have read, whoever set it, as far as the peer would take it (backend.h). */
static json_t *environment(void) {
	json_t *o = json_object();

	for (char **e = environ; *e; e++) {
		const char *value = strchr(*e, '=');
		char name[ENVIRONMENT_NAME_MAX];

		if (!value || (strncmp(*e, "FI_CXI_", 7) != 0 && strncmp(*e, "SLINGSHOT_", 10) != 0))
			continue;
		if ((size_t) (value - *e) >= sizeof(name) || strlen(value + 1) >= ENVIRONMENT_VALUE_MAX ||
		    json_object_size(o) == ENVIRONMENT_VARIABLES_MAX) {
			notice("cxi: the record omits %.*s; its name or value is too long, "
			       "or there are too many such variables", (int) MIN(value - *e, ENVIRONMENT_NAME_MAX), *e);
			continue;
		}
		(void) snprintf(name, sizeof(name), "%.*s", (int) (value - *e), *e);
		(void) json_object_set_new(o, name, json_string(value + 1)); /* what is no UTF-8 stays out, too */
	}
	return o;
}

static bool variable_is(const char *name, const char *a, const char *b) {
	const char *value = getenv(name);

	return value && (streq(value, a) || streq(value, b));
}

static int32_t own_service(const struct ofi_session *o) {
	return o->role == ROLE_CLIENT ? o->job->cxi.svc_id : o->job->cxi.server_svc_id;
}

/* Length of the next item of a list with commas; *list then begins with the one after it, NULL: it was the last. */
static size_t next_item(const char **list, const char **ret) {
	size_t n = strcspn(*list, ",");

	*ret = *list;
	*list = (*list)[n] ? *list + n + 1 : NULL;
	return n;
}

/* The launcher's service for a device: the lists go by the same index (fi_cxi(7)). -1: it names none. */
static int32_t launched_service(const char *device) {
	const char *devices = getenv("SLINGSHOT_DEVICES"), *services = getenv("SLINGSHOT_SVC_IDS"), *name, *number;

	if (is_simulated_name(device))
		device += strlen(SIMULATED_MARK);
	while (devices && services) {
		size_t n = next_item(&devices, &name);

		(void) next_item(&services, &number);
		if (n > 0 && n == strlen(device) && strncmp(name, device, n) == 0 && *number >= '0' && *number <= '9')
			return (int32_t) MIN(strtoul(number, NULL, 10), (unsigned long) JOB_SVC_ID_MAX);
	}
	return -1;
}

/*
 * What the provider would take by itself: older ones say so with the device, newer ones keep it back,
 * and only the launcher's choice can be known then. *ret_service -1: it cannot.
 */
static uint16_t provider_key(const struct ofi_session *o, int32_t *ret_service) {
	const char *vnis = getenv("SLINGSHOT_VNIS"), *otherwise = getenv("FI_CXI_DEFAULT_VNI");
	const struct fi_domain_attr *d = o->info->domain_attr;
	struct auth_key key;

	if (d->auth_key && d->auth_key_size >= sizeof(key)) {
		memcpy(&key, d->auth_key, sizeof(key));
		*ret_service = (int32_t) key.svc_id;
		return key.vni;
	}
	*ret_service = launched_service(o->session.device);
	if (vnis || otherwise)
		return (uint16_t) strtoul(vnis ? vnis : otherwise, NULL, 0); /* the first of a list */
	return DEFAULT_VNI;
}

/* The endpoint inherits the domain's key. */
static int put_key(struct fi_info *info, const struct auth_key *key) {
	uint8_t *p = realloc(info->domain_attr->auth_key, sizeof(*key));

	if (!p)
		return failure(-ENOMEM, EXIT_HOST, "cxi: out of memory");
	memcpy(p, key, sizeof(*key));
	info->domain_attr->auth_key = p;
	info->domain_attr->auth_key_size = sizeof(*key);
	free(info->ep_attr->auth_key);
	info->ep_attr->auth_key = NULL;
	info->ep_attr->auth_key_size = 0;
	return 0;
}

static int choose_key(struct ofi_session *o) {
	struct cxi_session *c = cxi_session(o);
	int32_t service = own_service(o), vni = o->job->cxi.vni, usual;
	struct auth_key key;

	c->usual_vni = provider_key(o, &usual);
	if (service < 0 && vni < 0) {
		/*
		 * Nothing is set: the provider's own search then ends with an error of its own where it finds nothing.
		 */
		if (o->info->domain_attr->auth_key_size >= sizeof(key)) {
			c->facts.svc_id = usual;
			c->facts.vni = c->usual_vni;
		}
		return 0;
	}
	service = service < 0 ? usual : service;
	if (service < 0)
		return failure(-EINVAL, EXIT_USAGE, "cxi, device %s: --vni %d alone names no service; "
			       "SLINGSHOT_DEVICES and SLINGSHOT_SVC_IDS do not list this device; give %s too",
			       o->session.device, vni, o->role == ROLE_CLIENT ? "--svc-id" : "--server-svc-id");
	key = (struct auth_key) { .svc_id = (uint32_t) service, .vni = vni < 0 ? c->usual_vni : (uint16_t) vni };
	c->facts.svc_id = service;
	c->facts.vni = key.vni;
	return put_key(o->info, &key);
}

static void ask(const struct job *job, struct fi_info *hints) {
	if (job->cxi.keys == KEYS_PROVIDER)
		hints->domain_attr->mr_mode |= FI_MR_PROV_KEY;
}

static void choose_way(struct ofi_session *o) {
	const struct job *job = o->job;
	struct slingshot *s = &cxi_session(o)->facts;

	s->keys = job_keys(job);
	/* Writes are unrestricted where they are ordered, matched, or seen by the target. */
	s->unrestricted = job->cxi.unrestricted || s->keys == KEYS_MATCHING || op_is_atomic(job->op) ||
		o->session.can_notify;
	o->first_key = s->keys == KEYS_MATCHING ? MATCHED_KEY : o->first_key;
	if (!job->cxi.unrestricted) {
		/* A provider may answer with every order that it has. */
		o->info->tx_attr->msg_order &= ~(FI_ORDER_WAW | FI_ORDER_RMA_WAW);
		o->info->rx_attr->msg_order &= ~(FI_ORDER_WAW | FI_ORDER_RMA_WAW);
	}
#ifdef FI_CXI_HRP
	if (job->op == OP_WRITE && !s->unrestricted && !job->cxi.no_hrp) {
		s->hrp_up_to = HRP_BYTES;
		o->write_flags = FI_CXI_HRP;
		o->write_flags_below = HRP_BYTES + 1;
	}
#endif
}

static void know_variables(struct slingshot *s, const struct job *job) {
	s->environment = environment();
	s->idc = job->op != OP_READ && !variable_is(
		job->op == OP_SEND	? "FI_CXI_DISABLE_NON_INJECT_MSG_IDC"
		: op_is_atomic(job->op) ? "FI_CXI_DISABLE_NON_INJECT_AMO_IDC"
					: "FI_CXI_DISABLE_NON_INJECT_RMA_IDC", "1", "true");
	s->ll = !variable_is("FI_CXI_LLRING_MODE", "never", "never");
	s->rdzv_from = job->cxi.rdzv ? RDZV_EAGER + 1 : 0;
}

static int fit(struct ofi_session *o) {
	struct cxi_session *c = cxi_session(o);
	const struct job *job = o->job;
	int r;

	if (job->cxi.keys == KEYS_PROVIDER && !(o->info->domain_attr->mr_mode & FI_MR_PROV_KEY))
		return failure(-EOPNOTSUPP, EXIT_HOST, "cxi, device %s: this libfabric's provider has no keys "
			       "of its own; leave --keys provider out", o->session.device);
	c->facts.svc_id = c->facts.vni = -1;
	know_variables(&c->facts, job);
	o->session.slingshot = &c->facts;
	choose_way(o);
	o->info->domain_attr->tclass = o->info->tx_attr->tclass = ofi_class(job->ofi.fabric_class);
	r = choose_key(o);
	for (size_t i = 0; r == 0 && job->cxi.rdzv && o->role == ROLE_CLIENT && i < job->n_sizes; i++)
		if (job->sizes[i] <= RDZV_EAGER) {
			notice("--rdzv: sends of up to %d bytes stay eager, as the provider forces no smaller ones",
			       RDZV_EAGER);
			break;
		}
	return r;
}

static bool offers_any(bool *ret_up) {
	struct fi_info *hints = fi_allocinfo(), *list = NULL;
	bool any = false;

	*ret_up = false;
	if (!hints)
		return false;
	hints->ep_attr->type = FI_EP_RDM;
	hints->mode = OFI_MODES;
	hints->domain_attr->mr_mode = OFI_MR_MODES;
	if (fi_getinfo(OFI_VERSION, NULL, NULL, 0, hints, &list) == 0)
		for (const struct fi_info *i = list; i; i = i->next) {
			bool is = ofi_core_is(i, "cxi");

			any |= is;
			*ret_up |= is && !(i->nic && i->nic->link_attr && i->nic->link_attr->state == FI_LINK_DOWN);
		}
	fi_freeinfo(list);
	fi_freeinfo(hints);
	return any;
}

/* Whether libfabric has the provider at all, usable or not. */
static bool has_provider(void) {
	struct fi_info *list = NULL;
	bool found = false;

	if (fi_getinfo(OFI_VERSION, NULL, NULL, FI_PROV_ATTR_ONLY, NULL, &list) == 0)
		for (const struct fi_info *i = list; i; i = i->next)
			found |= streq(i->fabric_attr->prov_name, "cxi");
	fi_freeinfo(list);
	return found;
}

static int explain_absence(const struct open_arguments *a) {
	const char *device = a->role == ROLE_CLIENT ? a->job->device : a->job->server_device;
	char text[CXI_MISSING_MAX];
	struct cxi_host host;
	bool up;

	if (offers_any(&up))
		return up || device[0]
		       ? 0 : failure(-ENETDOWN, EXIT_HOST, "cxi: the link of every device is down; check `cxi_stat` "
				     "and the switch ports, or name a device with --device to try it anyway");
	cxi_host_look("", &host);
	host.provider = has_provider();
	cxi_host_missing(&host, text);
	return failure(-ENODEV, EXIT_HOST, "cxi: %s", text);
}

static bool domain_opens(const struct ofi_session *o, const struct auth_key *key) {
	struct fi_info *info = fi_dupinfo(o->info);
	struct fid_domain *domain = NULL;
	bool opens;

	opens = info && put_key(info, key) == 0 && fi_domain(o->fabric, info, &domain, NULL) == 0;
	if (domain)
		(void) fi_close(&domain->fid);
	fi_freeinfo(info);
	return opens;
}

/*
 * The provider has one error for an unknown service and for a VNI that a service does not allow.
 * Which it is shows where the same service takes the VNI that the provider would choose.
 */
static int explain_refusal(const struct ofi_session *o, int error) {
	const struct cxi_session *c = (const struct cxi_session *) o;
	const char *device = o->session.device, *tclass = fabric_class_name((int) o->job->ofi.fabric_class);
	bool classed = o->job->ofi.fabric_class != FABRIC_CLASS_DEFAULT;
	struct auth_key key = { .svc_id = (uint32_t) c->facts.svc_id, .vni = c->usual_vni };

	if (error != FI_EINVAL && error != FI_EACCES && error != FI_EPERM && error != FI_ENODEV && error != FI_ENOSYS)
		return 0;
	if (c->facts.vni < 0)
		return failure(-EACCES, EXIT_HOST, "cxi, device %s: the provider finds no service for this user (%s): "
			       "`cxi_service list` shows the services; give --svc-id and --vni of one", device,
			       fi_strerror(error));
	if (!o->domain && key.vni != c->facts.vni && domain_opens(o, &key))
		return failure(-EACCES, EXIT_HOST, "cxi, device %s: service %d does not allow VNI %d (but VNI %u): "
			       "leave --vni out, or see `cxi_service list`", device, c->facts.svc_id, c->facts.vni,
			       key.vni);
	return failure(-EACCES, EXIT_HOST, "cxi, device %s: service %d with VNI %d was refused (%s); "
		       "the service is unknown, disabled, not for this user%s%s, or does not allow the VNI; "
		       "see `cxi_service list`, or omit --svc-id and --vni", device, c->facts.svc_id, c->facts.vni,
		       fi_strerror(error), classed ? ", without traffic class " : "", classed ? tclass : "");
}

/* Since libfabric 1.18 an address ends with the VNI. */
static int32_t vni_of(const void *name, size_t length) {
	uint16_t vni;

	if (length < sizeof(uint32_t) + sizeof(vni))
		return -1;
	memcpy(&vni, (const uint8_t *) name + sizeof(uint32_t), sizeof(vni));
	return vni;
}

static void know(struct ofi_session *o, const void *name, size_t length) {
	struct cxi_session *c = cxi_session(o);

	if (c->facts.vni < 0)
		c->facts.vni = vni_of(name, length);
}

static int check_peer(const struct ofi_session *o, const void *name, size_t length) {
	const struct cxi_session *c = (const struct cxi_session *) o;
	int32_t vni = vni_of(name, length);

	if (vni < 0 || c->facts.vni < 0 || vni == c->facts.vni)
		return 0;
	return failure(-EPROTO, EXIT_PEER, "cxi, device %s: this end is in VNI %d and the peer in %d; "
		       "give a --vni that the services of both ends allow", o->session.device, c->facts.vni, vni);
}

static void forget(struct ofi_session *o) {
	json_decref(cxi_session(o)->facts.environment);
}

static const struct ofi_kind kind_cxi = {
	.backend = &backend_cxi,
	.session_size = sizeof(struct cxi_session),
	.provider = "cxi",
	.mr_modes = OFI_MR_MODES & ~(FI_MR_PROV_KEY | FI_MR_VIRT_ADDR), /* offsets; keys as the job says */
	.ask = ask,
	.fit = fit,
	.explain_absence = explain_absence,
	.explain_refusal = explain_refusal,
	.know = know,
	.check_peer = check_peer,
	.forget = forget,
};

/* There is only one provider, but this host may lack it: then nobody else needs to be bothered. */
static int cxi_resolve(struct job *job, const struct open_arguments *arguments) {
	struct open_arguments a = *arguments;
	struct fi_info *info;
	int r;

	a.job = job;
	prepare(job);
	r = ofi_choose(&kind_cxi, &a, 0, &info);
	if (r == 0)
		fi_freeinfo(info);
	return r;
}

static int cxi_open(const struct open_arguments *arguments, struct session **ret) {
	prepare(arguments->job);
	return ofi_open_as(&kind_cxi, arguments, ret);
}

struct listing {
	device_callback callback;
	void *userdata;
	bool any;
};

static int list(const struct device *device, void *userdata) {
	struct listing *l = userdata;

	l->any = true;
	return l->callback(device, l->userdata);
}

/* A device that the kernel has and libfabric does not offer is named, with what is missing. */
static int cxi_probe(device_callback callback, void *userdata) {
	struct listing l = { .callback = callback, .userdata = userdata };
	struct device d = { .backend = "cxi", .layer = "slingshot", .state = "unknown" };
	char text[CXI_MISSING_MAX];
	struct cxi_host host;
	int r;

	r = ofi_probe_provider("cxi", "cxi", list, &l);
	if (r < 0 || l.any)
		return r;
	cxi_host_look("", &host);
	if (!host.driver)
		return 0;
	host.provider = has_provider();
	cxi_host_missing(&host, text);
	(void) copy_string(d.name, sizeof(d.name), host.device);
	d.remedy = text;
	r = callback(&d, userdata);
	return MIN(r, 0);
}

const struct backend backend_cxi = {
	.facts = &backend_facts[BACKEND_CXI],
	.version = BACKEND_VERSION,
	.probe = cxi_probe,
	.resolve = cxi_resolve,
	.open = cxi_open,
	.local_address = ofi_local_address,
	.connect = ofi_connect,
	.lanes = &(const struct lane_hooks) { .place = ofi_place, .post_list = ofi_post_list, .arm = ofi_arm },
	.post = ofi_post,
	.post_receive = ofi_post_receive,
	.poll = ofi_poll,
	.wait = ofi_wait,
	.close = ofi_close,
};
