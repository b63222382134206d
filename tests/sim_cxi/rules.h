/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the rules share: each runs in a process of its own, since a provider reads its variables once. */
#ifndef SIM_RULES_H
#define SIM_RULES_H

#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#define ELEMENTSOF(a) (sizeof(a) / sizeof((a)[0]))

/* As a program declares them that was built without fi_cxi_ext.h. */
struct cxi_auth_key {
	uint32_t svc_id;
	uint16_t vni;
};
struct cxi_addr {
	uint32_t pid : 9;
	uint32_t nic : 20;
	uint32_t pad : 3;
	uint16_t vni;
};
#define FI_CXI_HRP (1ULL << 60)
#define FI_CXI_UNRELIABLE (1ULL << 61)

struct rule {
	const char *name;
	void (*run)(void);
	const char *environment[6];     /* NAME=VALUE */
};
extern const struct rule rules_setup[], rules_memory[], rules_data[], rules_atomics[];

/* A failed check says where, and ends the test. */
#define CHECK(condition) check((condition), #condition, __FILE__, __LINE__)
/* A call that the provider cannot take yet (-FI_EAGAIN) is repeated, and every end driven meanwhile. */
#define SAME(value, expected) \
	do { \
		long long expected_ = (long long) (expected), value_; \
\
		do \
			value_ = (long long) (value); \
		while (value_ == -FI_EAGAIN && expected_ != -FI_EAGAIN && drive()); \
		same(value_, expected_, #value, __FILE__, __LINE__); \
	} while (0)
void check(bool ok, const char *what, const char *file, int line);
void same(long long value, long long expected, const char *what, const char *file, int line);
bool drive(void);                       /* answers true */

enum { AREA = 8192 };

struct wish {
	uint64_t caps;                  /* 0: messages, RMA and atomics */
	uint64_t mr_mode;               /* 0: client keys */
	uint64_t order, op_flags;
	const char *device, *pid;
	const struct cxi_auth_key *key;
	enum fi_wait_obj wait;
	uint32_t tclass;
};

/* One end: everything from fi_info to an enabled endpoint. */
struct end {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	struct fid_mr *mr;
	struct cxi_addr name;
	fi_addr_t peer;
	uint8_t *area;
};

struct fi_info *hints_of(const struct wish *w);
int info_of(const struct wish *w, struct fi_info **ret);
/* fi_domain()'s answer; what follows is only done when it is 0. */
int open_end(struct end *e, const struct wish *w);
void enable_end(struct end *e);
void region(struct end *e, uint64_t key, uint64_t access, uint64_t flags);
void close_end(struct end *e);
void meet(struct end *a, struct end *b);
/* Two ends, on sim_cxi0 and sim_cxi1 if the wish names no device; both with a region of that key (UINT64_MAX: none). */
void open_pair(struct end *a, struct end *b, const struct wish *w, uint64_t key);
void close_pair(struct end *a, struct end *b);

/* Waits, driving both ends: 0 and the entry of a's queue, or the error's number. */
int completion(struct end *a, struct end *b, struct fi_cq_tagged_entry *ret, struct fi_cq_err_entry *error);
int done(struct end *a, struct end *b);
int write_to(struct end *a, struct end *b, uint64_t offset, size_t length, uint64_t key);
uint64_t key_of(const struct end *e);
/* Is that text in the report (SIM_CXI_REPORT=REPORT) that closing the domain has written? */
bool reported(const char *text);
#define REPORT "SIM_CXI_REPORT=/dev/shm/sim_cxi_rules.%p"

#endif
