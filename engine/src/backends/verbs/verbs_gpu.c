/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of GPUs, registered in the first of these ways that works:
 *
 *     data_direct   mlx5 reaches a dmabuf by a PCI function beside its own, straight to the GPU and not through the
 *                   processor's link to it (mlx5dv_reg_dmabuf_mr(3))
 *     dmabuf_pcie   a dmabuf that is mapped over PCIe, where the GPU has another link, too
 *     dmabuf        a dmabuf as the GPU's driver exports it by itself (Linux 5.12, ibv_reg_dmabuf_mr(3))
 *     peer_memory   by its address, which a module of the GPU's maker makes known to the kernel (nvidia-peermem; amdgpu
 *                   with MLNX_OFED)
 */
#include "verbs.h"

#include <dlfcn.h>
#include <limits.h>

#include "base/message.h"

enum { MLX5DV_REG_DMABUF_ACCESS_DATA_DIRECT = 1 };      /* mlx5dv.h */

/* Calls of libmlx5 itself, which older versions do not have. */
struct data_direct {
	int (*get_path)(struct ibv_context *context, char *ret, size_t size);
	struct ibv_mr *(*reg)(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova, int fd, int access,
			      int mlx5_access);
};

static const struct way {
	const char *name;
	enum gpu_mapping mapping;
	bool direct;
} ways[] = {
	{ "data_direct", GPU_MAPPING_PCIE, true },
	{ "dmabuf_pcie", GPU_MAPPING_PCIE, false },
	{ "dmabuf", GPU_MAPPING_DEFAULT, false },
};

/* Only in a library that libibverbs has loaded for a device; it refuses devices of other makers. */
static bool find_data_direct(struct ibv_context *context, struct data_direct *ret) {
	void *handle = dlopen("libmlx5.so.1", RTLD_NOW | RTLD_NOLOAD), *get_path, *reg;
	char path[PATH_MAX];

	if (!handle)
		return false;
	get_path = dlsym(handle, "mlx5dv_get_data_direct_sysfs_path");
	reg = dlsym(handle, "mlx5dv_reg_dmabuf_mr");
	memcpy(&ret->get_path, &get_path, sizeof(get_path));
	memcpy(&ret->reg, &reg, sizeof(reg));
	(void) dlclose(handle); /* libibverbs still holds it */
	return get_path && reg && ret->get_path(context, path, sizeof(path)) == 0;
}

/* NULL: `*ret_why` says why, where the memory could be exported at all. */
static struct ibv_mr *register_dmabuf(struct verbs_session *v, const struct region *region, int access,
				      const struct way *way, const char **ret_why) {
	const uint64_t address = (uintptr_t) region->base;
	struct gpu *g = region->gpu;
	struct data_direct direct;
	struct ibv_mr *mr;
	uint64_t offset = 0;
	int fd = -1;

	if (way->direct && !find_data_direct(v->device.context, &direct))
		return NULL;
	if (g->runtime->export(g, region->base, region->length, way->mapping, &fd, &offset) < 0)
		return NULL;
	mr = way->direct ? direct.reg(v->pd, offset, region->length, address, fd, access,
				      MLX5DV_REG_DMABUF_ACCESS_DATA_DIRECT)
			 : ibv_reg_dmabuf_mr(v->pd, offset, region->length, address, fd, access);
	*ret_why = strerror(errno);
	(void) close(fd); /* a registration holds what it needs of it */
	return mr;
}

struct ibv_mr *verbs_gpu_register(struct verbs_session *v, const struct region *region, int access) {
	const struct gpu *g = region->gpu;
	const char *path = NULL, *dmabuf = "the GPU's driver exports none";
	struct ibv_mr *mr = NULL;

	for (size_t i = 0; i < ELEMENTSOF(ways) && !mr; i++) {
		path = ways[i].name;
		mr = register_dmabuf(v, region, access, &ways[i], &dmabuf);
	}
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
			       "on Linux 5.12 or newer%s", v->device.name, g->runtime->name, g->ordinal, g->name,
			       dmabuf, strerror(errno), job_bounce_advice(v->job));
	return mr;
}
