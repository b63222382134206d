/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A simulation of libfabric's cxi provider, for tests only: it carries data over another provider (the inner one) and
 * enforces what fi_cxi(7) requires. README.md lists the rules and what is not simulated.
 */
#ifndef SIM_CXI_H
#define SIM_CXI_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>

#define ELEMENTSOF(a) (sizeof(a) / sizeof((a)[0]))
#define container(pointer, type, member) ((type *) (void *) ((char *) (pointer) - offsetof(type, member)))

/* Numbers of the real provider: fi_cxi(7), and prov/cxi/include/cxip/{common,mr}.h of libfabric. */
enum {
	SIM_INJECT_SIZE = 192,          /* C_MAX_IDC_PAYLOAD_UNR */
	SIM_IDC_RESTRICTED = 224,       /* C_MAX_IDC_PAYLOAD_RES */
	SIM_OPTIMIZED_KEYS = 100,       /* client keys below are optimized */
	SIM_PID_ANY = 511,              /* valid PIDs are 0 to 510 */
	SIM_TX_SIZE_MAX = 16384,
	SIM_RX_SIZE_MAX = 15360,
	SIM_QUEUE_DEFAULT = 1024,       /* FI_CXI_DEFAULT_TX_SIZE, _RX_SIZE */
	SIM_DEVICES_MAX = 8,
	SIM_VNIS_MAX = 4,               /* "the number of VNIs supported by a single CXI service" */
	SIM_SERVICES_MAX = 16,
	SIM_REGIONS_MAX = 256,          /* of one endpoint; the device has 64k, its documents promise 100 (mr_cnt) */
	SIM_NAME_MAX = 64,
	SIM_INNER_ADDRESS_MAX = 128,
};

#define SIM_MESSAGE_MAX 4294967295ull                   /* 4 GiB - 1 */
#define SIM_KEY_PROVIDER (1ull << 63)                   /* CXIP_IS_PROV_MR_KEY_BIT */
#define SIM_KEY_EVENTS (1ull << 60)                     /* struct cxip_mr_key.events */
#define SIM_KEY_CLIENT_MAX 0xffffffffull                /* client keys have 32 bits */
#define SIM_HRP (1ull << 60)                            /* FI_CXI_HRP of fi_cxi_ext.h */
#define SIM_UNRELIABLE (1ull << 61)                     /* FI_CXI_UNRELIABLE */
#define SIM_WEAK_FENCE (1ull << 63)                     /* FI_CXI_WEAK_FENCE */
#define SIM_MSG_ORDER \
	(FI_ORDER_SAS | FI_ORDER_WAW | FI_ORDER_RMA_WAW | FI_ORDER_RMA_RAR | FI_ORDER_ATOMIC_WAW | FI_ORDER_ATOMIC_RAR)
#define SIM_LEVELS (FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE)

/*
 * What a failed operation says as prov_errno: names of the hardware's return codes; the numbers are this simulation's.
 */
enum sim_rc {
	RC_OK,
	RC_UNDELIVERABLE = 0x5101,      /* above what inner providers use. This one: no such NIC: FI_EHOSTUNREACH */
	RC_VNI_NOT_FOUND,               /* that NIC has the PID, but not in our VNI: FI_ENOTCONN; all others: FI_EIO */
	RC_PTLTE_NOT_FOUND,             /* nobody has that PID */
	RC_ENTRY_NOT_FOUND,             /* no region with that key, or not enabled */
	RC_PERM_VIOLATION,              /* the region does not allow it */
	RC_OUT_OF_BOUNDS,
	RC_AMO_ALIGN_ERROR,
};

/* As fi_cxi_ext.h has it; Debian 12 lacks the header. */
struct sim_auth_key {
	uint32_t svc_id;
	uint16_t vni;
};

/* As prov/cxi/include/cxip/addr.h has it: what fi_getname() answers. */
struct sim_address {
	uint32_t pid : 9;
	uint32_t nic : 20;
	uint32_t pad : 3;
	uint16_t vni;
};

/* variables.c: what the provider reads once, at its start. */
struct sim_variables {
	bool idc_message, idc_rma, idc_amo;     /* FI_CXI_DISABLE_NON_INJECT_{MSG,RMA,AMO}_IDC, negated */
	bool optimized_regions;                 /* FI_CXI_OPTIMIZED_MRS */
	bool odp;                               /* FI_CXI_ODP */
	size_t rendezvous_threshold;            /* FI_CXI_RDZV_THRESHOLD, raised to 192 */
	size_t rendezvous_get_min;              /* FI_CXI_RDZV_GET_MIN */
	size_t default_vni;                     /* FI_CXI_DEFAULT_VNI */
	char llring[8];                         /* FI_CXI_LLRING_MODE: idle, always, never */
	char *device_names;                     /* FI_CXI_DEVICE_NAME */

	bool refuse_memory;                     /* SIM_CXI_REFUSE_MEMORY: no region can be registered */
	bool wait_objects;                      /* SIM_CXI_WAIT; libfabric before 1.18's cxi has none */
	bool writedata;                         /* SIM_CXI_WRITEDATA; only the newest cxi has fi_writedata() */
	bool reorder;                           /* SIM_CXI_REORDER: let unordered writes overtake each other */
	const char *inner, *inner_address;      /* SIM_CXI_INNER, SIM_CXI_ADDRESS */
	const char *folder, *report;            /* SIM_CXI_FABRIC, SIM_CXI_REPORT */
};
extern struct sim_variables sim_variables;
extern struct fi_provider sim_provider;

void sim_variables_read(void);
bool sim_truth(const char *text, bool otherwise);
/* Calls `each` for every variable of the provider: its name, and the value in force as text. */
void sim_variables_list(void (*each)(void *to, const char *name, const char *value), void *to);

/* services.c */
struct sim_device {
	char name[SIM_NAME_MAX];
	uint32_t nic;
	char source[64];                /* of the inner provider; empty: sim_variables.inner_address */
};
struct sim_service {
	uint32_t id;
	uint16_t vnis[SIM_VNIS_MAX];
	unsigned vni_count;             /* 0: any VNI */
	long uid, gid;                  /* -1: any */
	bool enabled, only_low_latency;
};
extern struct sim_device sim_devices[SIM_DEVICES_MAX];
extern unsigned sim_device_count;

void sim_services_read(void);
/* "sim_cxi0" or "cxi0" (the same); NULL: there is none. */
const struct sim_device *sim_device_named(const char *name);
const struct sim_device *sim_device_at(uint32_t nic);
/* A key for that device, by the order that fi_cxi(7) gives. -FI_EINVAL: there is none. */
int sim_key_generate(const struct sim_device *device, struct sim_auth_key *ret);
/* -FI_EINVAL: unknown or disabled service, or a VNI that is not the service's; -FI_ENODEV: the user is no member. */
int sim_key_check(const struct sim_auth_key *key, const struct sim_device *device, uint32_t tclass);

/* registry.c: the fabric is a folder; each enabled endpoint is a locked file there, mapped by those who address it. */
struct sim_region {
	atomic_bool enabled;
	bool optimized, events;
	uint64_t key, access, length;
	uint64_t base;                  /* virtual address, for the alignment of atomics */
	uint64_t inner_key, inner_base;
};
struct sim_card {
	struct sim_address address;
	uint32_t inner_length;
	uint8_t inner[SIM_INNER_ADDRESS_MAX];
	struct sim_region regions[SIM_REGIONS_MAX];
};
struct sim_seat {                       /* an own card, with its lock */
	struct sim_card *card;
	int fd;
	char path[256];
};

/* address->pid of SIM_PID_ANY: the first that is free is taken. -FI_EADDRINUSE: the PID is taken, or all are. */
int sim_seat_take(struct sim_address address, struct sim_seat *ret);
void sim_seat_leave(struct sim_seat *seat);
/* The card of a living endpoint, mapped; else NULL and why. */
struct sim_card *sim_card_find(struct sim_address address, enum sim_rc *ret_why);
void sim_card_forget(struct sim_card *card);

/* Objects. Each begins with libfabric's own part, by which it is found again. */
struct sim_fabric {
	struct fid_fabric fid;
	atomic_int users;
};

struct sim_domain {
	struct fid_domain fid;
	struct sim_fabric *fabric;
	struct fi_info *info, *inner_info;
	struct fid_fabric *inner_fabric;
	struct fid_domain *inner;
	const struct sim_device *device;
	struct sim_auth_key key;
	struct sim_memory *memories;    /* every region of the domain */
	uint64_t next_inner_key, next_key;
	pthread_mutex_t lock;           /* the provider is FI_THREAD_SAFE: one lock is enough for a simulation */
	atomic_int users;
};

struct sim_peer {
	struct sim_address address;
	struct sim_card *card;          /* NULL: not found yet */
	fi_addr_t inner;
	bool used;
};

struct sim_av {
	struct fid_av fid;
	struct sim_domain *domain;
	struct fid_av *inner;
	struct sim_peer *peers;
	size_t count;
	uint16_t vni;
	atomic_int users;
};

struct sim_failure {
	struct sim_failure *next;
	struct fi_cq_err_entry entry;
};

/*
 * An injected message that the inner provider cannot inject, or another operation whose completion is not the user's.
 */
struct sim_shadow {
	struct sim_shadow *next_free;
	void *context;                  /* the user's */
	bool report;                    /* pass its completion on, with the user's context */
	uint8_t bytes[SIM_IDC_RESTRICTED];
};

enum { SIM_SHADOWS = 512 };

struct sim_cq {
	struct fid_cq fid;
	struct sim_domain *domain;
	struct fid_cq *inner;
	size_t entry_size;
	struct sim_failure *failures;
	struct sim_shadow shadows[SIM_SHADOWS], *free_shadow;
	struct sim_endpoint *endpoints; /* that transmit to it */
	atomic_int users;
};

/* A write that waits to be overtaken (SIM_CXI_REORDER). */
struct sim_delayed {
	bool waiting;
	struct fi_msg_rma message;
	struct iovec iov;
	struct fi_rma_iov rma;
	uint64_t flags;
};

struct sim_endpoint {
	struct fid_ep fid;
	struct sim_domain *domain;
	struct fi_info *info;
	struct fid_ep *inner;
	struct sim_av *av;
	struct sim_cq *tx, *rx;
	struct sim_endpoint *next_of_cq;
	struct sim_seat seat;
	struct sim_delayed delayed;
	size_t inner_inject;
	uint64_t op_flags;              /* of the calls that carry none */
	bool enabled, tx_selective, rx_selective;
	atomic_int users;               /* regions bound to it */
};

struct sim_memory {
	struct fid_mr fid;
	struct sim_memory *next;
	struct sim_domain *domain;
	struct sim_endpoint *endpoint;
	struct fid_mr *inner;
	struct sim_region region;       /* what will be in the card */
	struct sim_region *slot;        /* there, once enabled */
};

/* provider.c, info.c, fabric.c, domain.c, av.c, endpoint.c, memory.c, queue.c */
int sim_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags, const struct fi_info *hints,
		struct fi_info **ret);
int sim_fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **ret, void *context);
int sim_domain_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **ret, void *context);
int sim_av_open(struct fid_domain *domain, struct fi_av_attr *attr, struct fid_av **ret, void *context);
int sim_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **ret, void *context);
int sim_endpoint_open(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ret, void *context);
int sim_query_atomic(struct fid_domain *domain, enum fi_datatype type, enum fi_op op, struct fi_atomic_attr *attr,
		     uint64_t flags);
extern struct fi_ops_mr sim_mr_ops;
extern struct fi_ops_msg sim_message_ops;
extern struct fi_ops_tagged sim_tagged_ops;
extern struct fi_ops_rma sim_rma_ops;
extern struct fi_ops_atomic sim_atomic_ops;

bool sim_wait_object_ok(enum fi_wait_obj wait);
int sim_no_bind(struct fid *fid, struct fid *other, uint64_t flags);
int sim_no_control(struct fid *fid, int command, void *arg);
int sim_no_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops, void *context);

/*
 * The peer of an address. -FI_EINVAL: the address vector has no such entry, -FI_EOPBADSTATE: not enabled.
 * 1: nobody is there; as on the device that is no return code but an error completion, see sim_fail().
 */
int sim_reach(struct sim_endpoint *ep, fi_addr_t address, struct sim_peer **ret, enum sim_rc *ret_why);
/* Of a receive: anybody, or one peer. */
fi_addr_t sim_inner_source(struct sim_endpoint *ep, fi_addr_t address);
fi_addr_t sim_outer_source(struct sim_av *av, fi_addr_t inner);
/* The region that [offset, offset + length) of that key is in, if it may be accessed so. */
const struct sim_region *sim_target(const struct sim_peer *peer, uint64_t key, uint64_t offset, uint64_t length,
				    uint64_t access, enum sim_rc *ret_why);
/* Puts an error completion into the transmit queue; answers 0, as the call that caused it does. */
ssize_t sim_fail(struct sim_endpoint *ep, void *context, uint64_t flags, enum sim_rc why);
const char *sim_rc_text(int rc);

/* A copy of the bytes, to outlive the call; NULL: -FI_EAGAIN. */
struct sim_shadow *sim_shadow_take(struct sim_cq *cq, const void *bytes, size_t length, void *context, bool report);
void sim_shadow_return(struct sim_cq *cq, struct sim_shadow *shadow);
void sim_delayed_flush(struct sim_endpoint *ep);

static inline struct sim_endpoint *sim_endpoint(struct fid_ep *ep) {
	return container(ep, struct sim_endpoint, fid);
}
static inline bool sim_completes(const struct sim_endpoint *ep, uint64_t flags) {
	return !ep->tx_selective || (flags & FI_COMPLETION);
}

/* report.c: counts every call, and what the device would have done for it. */
#define SIM_CALLS(X) \
	X(fi_recv) X(fi_recvv) X(fi_recvmsg) X(fi_send) X(fi_sendv) X(fi_sendmsg) X(fi_inject) X(fi_senddata) \
	X(fi_injectdata) X(fi_trecv) X(fi_trecvv) X(fi_trecvmsg) X(fi_tsend) X(fi_tsendv) X(fi_tsendmsg) \
	X(fi_tinject) X(fi_tsenddata) X(fi_tinjectdata) X(fi_read) X(fi_readv) X(fi_readmsg) X(fi_write) \
	X(fi_writev) X(fi_writemsg) X(fi_inject_write) X(fi_writedata) X(fi_inject_writedata) X(fi_atomic) \
	X(fi_atomicv) X(fi_atomicmsg) X(fi_inject_atomic) X(fi_fetch_atomic) X(fi_fetch_atomicv) \
	X(fi_fetch_atomicmsg) X(fi_compare_atomic) X(fi_compare_atomicv) X(fi_compare_atomicmsg) X(fi_cq_read) \
	X(fi_cq_readfrom) X(fi_cq_readerr) X(fi_cq_sread) X(fi_cq_sreadfrom) X(fi_trywait) X(fi_mr_reg) \
	X(fi_mr_bind) X(fi_mr_enable) X(fi_av_insert)
#define SIM_MODELLED(X) \
	X(idc_message) X(idc_rma) X(idc_amo) X(dma_message_eager) X(dma_message_rendezvous) X(dma_write) X(dma_read) \
	X(dma_amo) X(restricted_write) X(unrestricted_write) X(restricted_read) X(unrestricted_read) X(hrp_write) \
	X(hrp_ignored) X(device_memory_region)

#define X(name) CALL_##name,
enum sim_call { SIM_CALLS(X) CALL_COUNT };
#undef X
#define X(name) MODEL_##name,
enum sim_modelled { SIM_MODELLED(X) MODEL_COUNT };
#undef X

void sim_count(enum sim_call call, ssize_t result);
void sim_count_flags(enum sim_call call, uint64_t flags, ssize_t result);
void sim_model(enum sim_modelled what);
void sim_report_write(const struct sim_domain *domain);

#define SIM_WARN(subsystem, ...) FI_WARN(&sim_provider, subsystem, __VA_ARGS__)

#endif
