/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of GPUs as libfabric knows it (fi_mr(3), FI_HMEM): the provider must have been built for the maker's runtime,
 * and a registration says whose memory it is.
 */
#include "ofi.h"

#include <sys/uio.h>

#include "base/message.h"

static const struct {
	enum fi_hmem_iface iface;
	const char *configure;          /* what libfabric must have been built with */
} interfaces[MEMORY_TYPE_MAX] = {
	[MEMORY_CUDA] = { FI_HMEM_CUDA, "--with-cuda" },
	[MEMORY_ROCM] = { FI_HMEM_ROCR, "--with-rocr" },
	[MEMORY_ZE] = { FI_HMEM_ZE, "--with-ze" },
};

void ofi_gpu_hints(struct fi_info *hints) {
	hints->caps |= FI_HMEM;
	hints->domain_attr->mr_mode |= FI_MR_HMEM;
}

int ofi_gpu_absent(const struct job *job, const char *provider) {
	return failure(-EOPNOTSUPP, EXIT_HOST,
		       "%s: provider %s does not reach the memory of GPUs on this host; it has no FI_HMEM, "
		       "or libfabric was built without a GPU runtime%s", job->backend, provider,
		       job_bounce_advice(job));
}

int ofi_gpu_register(struct ofi_session *o, const struct region *region, uint64_t access, uint64_t key,
		     struct fid_mr **ret) {
	const struct gpu *g = region->gpu;
	const enum fi_hmem_iface iface = interfaces[g->runtime->type].iface;
	const struct iovec iov = { .iov_base = region->base, .iov_len = region->length };
	struct fi_mr_attr attr = {
		.mr_iov = &iov,
		.iov_count = 1,
		.access = access,
		.requested_key = o->first_key + key,
		.iface = iface,
	};
	int r;

	/* ROCr tells its GPUs apart by the address; the others are ints in one union. */
	if (iface == FI_HMEM_CUDA)
		attr.device.cuda = (int) g->fabric_device;
	else if (iface == FI_HMEM_ZE)
		attr.device.ze = (int) g->fabric_device;
	r = fi_mr_regattr(o->domain, &attr, 0, ret);
	if (r == 0) {
		o->session.gpu_path = "fi_hmem";
		return 0;
	}
	return failure(r, EXIT_HOST,
		       "%s, provider %s, device %s: cannot register the memory of %s:%u (%s): %s; "
		       "this libfabric must be built %s, and the device reach the GPU%s",
		       o->job->backend, o->session.provider, o->session.device, g->runtime->name, g->ordinal, g->name,
		       fi_strerror(-r), interfaces[g->runtime->type].configure, job_bounce_advice(o->job));
}
