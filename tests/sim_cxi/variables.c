/* SPDX-License-Identifier: Apache-2.0 */
/* The variables, read once when libfabric loads the provider, as the real one does: later changes have no effect. */
#include "sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

struct sim_variables sim_variables = {
	.idc_message = true,
	.idc_rma = true,
	.idc_amo = true,
	.optimized_regions = true,
	.rendezvous_threshold = 16384,  /* the man page's default */
	.rendezvous_get_min = 2049,     /* CXIP's default: "avoid single packet gets" */
	.default_vni = 10,
	.llring = "idle",
	.wait_objects = true,
};

static struct {
	bool disable_message, disable_rma, disable_amo;
} raw;

bool sim_truth(const char *text, bool otherwise) {
	static const char *const yes[] = { "1", "true", "yes", "on" }, *const no[] = { "0", "false", "no", "off" };

	for (size_t i = 0; text && i < ELEMENTSOF(yes); i++) {
		if (strcasecmp(text, yes[i]) == 0)
			return true;
		if (strcasecmp(text, no[i]) == 0)
			return false;
	}
	return otherwise;
}

/* Defined too, so that `fi_info -p cxi -e` lists them as it does on the device. */
static void read_truth(const char *name, bool *value, const char *help) {
	int given;

	(void) fi_param_define(&sim_provider, name, FI_PARAM_BOOL, "%s", help);
	if (fi_param_get_bool(&sim_provider, name, &given) == 0)
		*value = given != 0;
}

static void read_size(const char *name, size_t *value, const char *help) {
	(void) fi_param_define(&sim_provider, name, FI_PARAM_SIZE_T, "%s", help);
	(void) fi_param_get_size_t(&sim_provider, name, value);
}

static void read_rendezvous(void) {
	struct sim_variables *v = &sim_variables;

	read_size("rdzv_threshold", &v->rendezvous_threshold, "Message size threshold for rendezvous protocol.");
	read_size("rdzv_get_min", &v->rendezvous_get_min, "Minimum rendezvous Get payload size.");
	if (v->rendezvous_threshold < SIM_INJECT_SIZE) {
		SIM_WARN(FI_LOG_CORE, "FI_CXI_RDZV_THRESHOLD=%zu raised to %d\n", v->rendezvous_threshold,
			 SIM_INJECT_SIZE);
		v->rendezvous_threshold = SIM_INJECT_SIZE;
	}
}

static void read_llring(void) {
	struct sim_variables *v = &sim_variables;
	char *text = NULL;

	(void) fi_param_define(&sim_provider, "llring_mode", FI_PARAM_STRING,
			       "Set low-latency command queue ring mode.");
	if (fi_param_get_str(&sim_provider, "llring_mode", &text) != 0)
		return;
	if (strcmp(text, "idle") == 0 || strcmp(text, "always") == 0 || strcmp(text, "never") == 0)
		(void) snprintf(v->llring, sizeof(v->llring), "%s", text);
	else
		SIM_WARN(FI_LOG_CORE, "Unrecognized llring_mode: %s\n", text);
}

static const char *default_folder(void) {
	static char path[64];

	(void) snprintf(path, sizeof(path), "/dev/shm/sim_cxi.%u", (unsigned) getuid());
	return path;
}

void sim_variables_read(void) {
	struct sim_variables *v = &sim_variables;
	const char *folder = getenv("SIM_CXI_FABRIC");

	read_truth("disable_non_inject_msg_idc", &raw.disable_message,
		   "Disables IDC for messages that are not injected.");
	read_truth("disable_non_inject_rma_idc", &raw.disable_rma, "Disables IDC for writes that are not injected.");
	read_truth("disable_non_inject_amo_idc", &raw.disable_amo, "Disables IDC for atomics that are not injected.");
	v->idc_message = !raw.disable_message;
	v->idc_rma = !raw.disable_rma;
	v->idc_amo = !raw.disable_amo;
	read_truth("optimized_mrs", &v->optimized_regions, "Enables optimized memory regions.");
	read_truth("odp", &v->odp, "Enables on-demand paging.");
	read_rendezvous();
	read_llring();
	read_size("default_vni", &v->default_vni,
		  "Default VNI value used only for service IDs where the VNI is not restricted.");
	v->default_vni &= UINT16_MAX;
	(void) fi_param_define(&sim_provider, "device_name", FI_PARAM_STRING,
			       "Restrict CXI provider to specific CXI devices.");
	(void) fi_param_get_str(&sim_provider, "device_name", &v->device_names);

	v->wait_objects = sim_truth(getenv("SIM_CXI_WAIT"), true);
	v->refuse_memory = sim_truth(getenv("SIM_CXI_REFUSE_MEMORY"), false);
	v->writedata = sim_truth(getenv("SIM_CXI_WRITEDATA"), false);
	v->reorder = sim_truth(getenv("SIM_CXI_REORDER"), false);
	v->inner = getenv("SIM_CXI_INNER");
	v->inner_address = getenv("SIM_CXI_ADDRESS");
	v->folder = folder ? folder : default_folder();
	v->report = getenv("SIM_CXI_REPORT");
}

void sim_variables_list(void (*each)(void *to, const char *name, const char *value), void *to) {
	const struct sim_variables *v = &sim_variables;
	char text[32];

	each(to, "FI_CXI_DISABLE_NON_INJECT_MSG_IDC", v->idc_message ? "0" : "1");
	each(to, "FI_CXI_DISABLE_NON_INJECT_RMA_IDC", v->idc_rma ? "0" : "1");
	each(to, "FI_CXI_DISABLE_NON_INJECT_AMO_IDC", v->idc_amo ? "0" : "1");
	each(to, "FI_CXI_OPTIMIZED_MRS", v->optimized_regions ? "1" : "0");
	each(to, "FI_CXI_ODP", v->odp ? "1" : "0");
	(void) snprintf(text, sizeof(text), "%zu", v->rendezvous_threshold);
	each(to, "FI_CXI_RDZV_THRESHOLD", text);
	(void) snprintf(text, sizeof(text), "%zu", v->rendezvous_get_min);
	each(to, "FI_CXI_RDZV_GET_MIN", text);
	each(to, "FI_CXI_LLRING_MODE", v->llring);
	(void) snprintf(text, sizeof(text), "%zu", v->default_vni);
	each(to, "FI_CXI_DEFAULT_VNI", text);
}
