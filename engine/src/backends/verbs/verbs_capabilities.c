/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a device can do. Attributes do not tell of queue pairs and of dmabufs: these are asked for, and given back.
 */
#include "verbs.h"
#include "verbs_sysfs.h"

/* Inline limits of known drivers, in falling order: mlx5, hns, qedr, irdma (101), bnxt_re and erdma (96), ... */
static const uint32_t inline_sizes[] = { 1024, 512, 256, 220, 128, 101, 96, 64, 48, 32, 16 };

uint32_t verbs_less_inline(uint32_t bytes) {
	for (size_t i = 0; i < ELEMENTSOF(inline_sizes); i++)
		if (inline_sizes[i] < bytes)
			return inline_sizes[i];
	return 0;
}

/* `inline_bytes`: NULL: none; else how much is asked for, and what it really takes. */
static bool takes_queue(struct ibv_pd *pd, struct ibv_cq *cq, enum ibv_qp_type type, uint32_t *inline_bytes) {
	struct ibv_qp_init_attr a = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = type,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1,
			 .max_inline_data = inline_bytes ? *inline_bytes : 0 },
	};
	struct ibv_qp *qp = ibv_create_qp(pd, &a);

	if (!qp)
		return false;
	if (inline_bytes)
		*inline_bytes = a.cap.max_inline_data;
	(void) ibv_destroy_qp(qp);
	return true;
}

static uint32_t most_inline(struct ibv_pd *pd, struct ibv_cq *cq) {
	uint32_t asked = inline_sizes[0], bytes = asked;

	while (asked > 0 && !takes_queue(pd, cq, IBV_QPT_RC, &bytes))
		bytes = asked = verbs_less_inline(asked);
	return bytes;
}

/* A file descriptor that is none: a driver with dmabufs says that, another one that it has none (NCCL asks so, too). */
static bool takes_dmabuf(struct ibv_pd *pd) {
	struct ibv_mr *mr = ibv_reg_dmabuf_mr(pd, 0, 0, 0, -1, 0);

	if (mr) {
		(void) ibv_dereg_mr(mr);
		return true;
	}
	return errno != EOPNOTSUPP && errno != EPROTONOSUPPORT && errno != ENOSYS;
}

/* Modules that register it: NVIDIA's by two names; amdgpu's way goes through OFED's ib_core. */
static bool has_peer_memory(void) {
	return access("/sys/module/nvidia_peermem", F_OK) == 0 || access("/sys/module/nv_peer_mem", F_OK) == 0 ||
	       (access("/sys/module/amdgpu", F_OK) == 0 && access("/sys/module/mlx_compat", F_OK) == 0);
}

bool verbs_capabilities(struct ibv_context *context, const struct ibv_device_attr *attr,
			struct device_capabilities *ret) {
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct ibv_cq *cq = pd ? ibv_create_cq(context, 2, NULL, NULL, 0) : NULL;

	if (cq)
		*ret = (struct device_capabilities) {
			.rc = takes_queue(pd, cq, IBV_QPT_RC, NULL),
			.uc = takes_queue(pd, cq, IBV_QPT_UC, NULL),
			.ud = takes_queue(pd, cq, IBV_QPT_UD, NULL),
			.atomics = attr->atomic_cap != IBV_ATOMIC_NONE,
			.srq = attr->max_srq > 0,
			.inline_bytes = most_inline(pd, cq),
			.dmabuf = takes_dmabuf(pd),
			.peer_memory = has_peer_memory(),
		};
	if (cq)
		(void) ibv_destroy_cq(cq);
	if (pd)
		(void) ibv_dealloc_pd(pd);
	return cq != NULL;
}
