/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of GPUs, registered in one of two ways: as a dmabuf that the GPU's driver exports (Linux 5.12,
 * ibv_reg_dmabuf_mr(3)), or by its address, which a module of the GPU's maker makes known to the kernel
 * (nvidia-peermem; amdgpu with MLNX_OFED).
 */
#include "verbs.h"

#include "base/message.h"

struct ibv_mr *verbs_gpu_register(struct verbs_session *v, const struct region *region, int access) {
	struct gpu *g = region->gpu;
	const char *path, *dmabuf = "the GPU's driver exports none";
	struct ibv_mr *mr = NULL;
	uint64_t offset = 0;
	int fd = -1;

	if (g->runtime->export(g, region->base, region->length, &fd, &offset) == 0) {
		mr = ibv_reg_dmabuf_mr(v->pd, offset, region->length, (uintptr_t) region->base, fd, access);
		dmabuf = strerror(errno);
		(void) close(fd); /* a registration holds what it needs of it */
	}
	path = "dmabuf";
	if (!mr) {
		path = "peer_memory";
		mr = ibv_reg_mr(v->pd, region->base, region->length, (unsigned) access);
	}
	if (mr)
		v->session.gpu_path = v->session.gpu_path && !streq(v->session.gpu_path, path) ? "mixed" : path;
	else
		(void) failure(-EOPNOTSUPP, EXIT_HOST,
			       "verbs, device %s: cannot register the memory of %s:%u (%s), neither as a dmabuf (%s) "
			       "nor by its address (%s); load nvidia-peermem, or the GPU's open kernel modules "
			       "on Linux 5.12 or newer; --bounce copies through host memory instead", v->device.name,
			       g->runtime->name, g->ordinal, g->name, dmabuf, strerror(errno));
	return mr;
}
