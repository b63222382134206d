/* SPDX-License-Identifier: Apache-2.0 */
/* The words for a job's choices: on the command line, in the job's JSON and in records. */
#include "job_names.h"

const char *const op_names[OP_MAX + 1] = {
	[OP_SEND] = "send",
	[OP_SEND_IMM] = "send-imm",
	[OP_WRITE] = "write",
	[OP_WRITE_IMM] = "write-imm",
	[OP_READ] = "read",
	[OP_FETCH_ADD] = "fetch-add",
	[OP_COMPARE_SWAP] = "compare-swap",
	[OP_ATOMIC_OP] = "atomic-op",
	[OP_FETCH_ATOMIC] = "fetch-atomic",
	[OP_COMPARE_ATOMIC] = "compare-atomic",
};
const char *const kind_names[KIND_MAX + 1] = {
	[KIND_LATENCY] = "latency",
	[KIND_BANDWIDTH] = "bandwidth",
	[KIND_TRANSFER] = "transfer",
	[KIND_RATE] = "rate",
};
const char *const definition_names[DEFINITION_MAX + 1] = {
	[DEFINITION_AUTO] = "auto",
	[DEFINITION_HALF_ROUND_TRIP] = "half_round_trip",
	[DEFINITION_COMPLETION] = "completion",
};
const char *const completion_mode_names[COMPLETION_MODE_MAX + 1] = {
	[COMPLETION_BUSY] = "busy",
	[COMPLETION_EVENT] = "event",
};
const char *const clock_names[CLOCK_KIND_MAX + 1] = {
	[CLOCK_KIND_MONOTONIC] = "monotonic",
	[CLOCK_KIND_CYCLES] = "cycles",
};
const char *const rate_unit_names[RATE_UNIT_MAX + 1] = {
	[RATE_NONE] = "none",
	[RATE_MESSAGES] = "messages",
	[RATE_BITS] = "bits",
};

const char *const connection_names[CONNECTION_MAX + 1] = {
	[CONNECTION_RC] = "rc",
	[CONNECTION_UC] = "uc",
	[CONNECTION_UD] = "ud",
};

const char *const key_mode_names[KEYS_MAX + 1] = {
	[KEYS_CLIENT] = "client",
	[KEYS_MATCHING] = "matching",
	[KEYS_PROVIDER] = "provider",
};

const char *const relaxed_ordering_names[RELAXED_ORDERING_MAX + 1] = {
	[RELAXED_ORDERING_AUTO] = "auto",
	[RELAXED_ORDERING_OFF] = "off",
	[RELAXED_ORDERING_ON] = "on",
};

const char *const fabric_class_names[FABRIC_CLASS_MAX + 1] = {
	[FABRIC_CLASS_DEFAULT] = "default",
	[FABRIC_CLASS_BEST_EFFORT] = "best-effort",
	[FABRIC_CLASS_LOW_LATENCY] = "low-latency",
	[FABRIC_CLASS_DEDICATED_ACCESS] = "dedicated-access",
	[FABRIC_CLASS_BULK_DATA] = "bulk-data",
	[FABRIC_CLASS_NETWORK_CTRL] = "network-ctrl",
};

int name_index(const char *const *names, int max, const char *name) {
	for (int i = 0; i < max; i++)
		if (streq(names[i], name))
			return i;
	return -EINVAL;
}

const char *op_name(int op) {
	return op >= 0 && op < OP_MAX ? op_names[op] : "unknown";
}

int op_from_name(const char *name) {
	/* What cxi_atomic_* and perftest's ib_atomic_* measure by default. */
	return streq(name, "atomic") ? OP_FETCH_ADD : name_index(op_names, OP_MAX, name);
}

const char *kind_name(int kind) {
	return kind >= 0 && kind < KIND_MAX ? kind_names[kind] : "unknown";
}

const char *definition_name(int definition) {
	return definition >= 0 && definition < DEFINITION_MAX ? definition_names[definition] : "unknown";
}

const char *completion_mode_name(int mode) {
	return mode >= 0 && mode < COMPLETION_MODE_MAX ? completion_mode_names[mode] : "unknown";
}

const char *connection_name(int connection) {
	static const char *const shown[CONNECTION_MAX] = { [CONNECTION_RC] = "RC", [CONNECTION_UC] = "UC",
							   [CONNECTION_UD] = "UD" };

	return connection >= 0 && connection < CONNECTION_MAX ? shown[connection] : "unknown";
}

const char *key_mode_name(int mode) {
	return mode >= 0 && mode < KEYS_MAX ? key_mode_names[mode] : "unknown";
}

const char *fabric_class_name(int fabric_class) {
	return fabric_class >= 0 && fabric_class < FABRIC_CLASS_MAX ? fabric_class_names[fabric_class] : "unknown";
}

int fabric_class_from_name(const char *name) {
	int i = name_index(fabric_class_names, FABRIC_CLASS_MAX, name);

	/* not to be asked for: it is what leaving the option out means */
	return i == FABRIC_CLASS_DEFAULT ? -EINVAL : i;
}
