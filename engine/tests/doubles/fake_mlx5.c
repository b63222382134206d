/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Test double of libmlx5.so.1, only with the calls of data direct; it registers as the fake device of the test
 * (fake_verbs.c). It proves nothing about a device.
 *
 *     PERCH_FAKE_MLX5=no|refuse     the device has no data direct; or has it, and registers nothing in that way
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define API __attribute__((visibility("default")))

API int mlx5dv_get_data_direct_sysfs_path(struct ibv_context *context, char *ret, size_t size);
API struct ibv_mr *mlx5dv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova, int fd,
					int access, int mlx5_access);

static int is(const char *word) {
	const char *text = getenv("PERCH_FAKE_MLX5");

	return text && strcmp(text, word) == 0;
}

int mlx5dv_get_data_direct_sysfs_path(struct ibv_context *context, char *ret, size_t size) {
	if (!context || size < 64)
		abort();
	if (is("no"))
		return ENODEV;
	(void) snprintf(ret, size, "/devices/pci0009:00/0009:00:00.0/0009:01:00.0");
	return 0;
}

struct ibv_mr *mlx5dv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova, int fd,
				    int access, int mlx5_access) {
	/* MLX5DV_REG_DMABUF_ACCESS_DATA_DIRECT */
	if (mlx5_access != 1)
		abort();
	if (is("refuse")) {
		errno = EINVAL;
		return NULL;
	}
	return ibv_reg_dmabuf_mr(pd, offset, length, iova, fd, access);
}
