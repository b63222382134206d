/* SPDX-License-Identifier: Apache-2.0 */
/* The entry point that libfabric calls when it loads the file, and what every object shares. */
#include "sim.h"

static void cleanup(void) {
	sim_report_write(NULL);
}

struct fi_provider sim_provider = {
	.name = "cxi",
	/* The real one's version is 0.1; the third-party marker "sim" is in every domain's name. */
	.version = FI_VERSION(0, 1),
	.fi_version = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION),
	.getinfo = sim_getinfo,
	.fabric = sim_fabric_open,
	.cleanup = cleanup,
};

/* libfabric holds its lock here: nothing may call fi_getinfo() yet. */
__attribute__((visibility("default"))) struct fi_provider *fi_prov_ini(void);

struct fi_provider *fi_prov_ini(void) {
	sim_variables_read();
	sim_services_read();
	return &sim_provider;
}

int sim_no_bind(struct fid *fid, struct fid *other, uint64_t flags) {
	return -FI_ENOSYS;
}

int sim_no_control(struct fid *fid, int command, void *arg) {
	return -FI_ENOSYS;
}

int sim_no_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops, void *context) {
	return -FI_ENOSYS;
}

const char *sim_rc_text(int rc) {
	static const char *const texts[] = {
		[RC_UNDELIVERABLE - RC_UNDELIVERABLE] = "UNDELIVERABLE",
		[RC_VNI_NOT_FOUND - RC_UNDELIVERABLE] = "VNI_NOT_FOUND",
		[RC_PTLTE_NOT_FOUND - RC_UNDELIVERABLE] = "PTLTE_NOT_FOUND",
		[RC_ENTRY_NOT_FOUND - RC_UNDELIVERABLE] = "ENTRY_NOT_FOUND",
		[RC_PERM_VIOLATION - RC_UNDELIVERABLE] = "PERM_VIOLATION",
		[RC_OUT_OF_BOUNDS - RC_UNDELIVERABLE] = "MST_INVALID: outside the region",
		[RC_AMO_ALIGN_ERROR - RC_UNDELIVERABLE] = "AMO_ALIGN_ERROR",
	};

	return rc >= RC_UNDELIVERABLE && rc <= RC_AMO_ALIGN_ERROR ? texts[rc - RC_UNDELIVERABLE] : "unknown";
}
