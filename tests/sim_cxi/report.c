/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was called, as JSON: SIM_CXI_REPORT names the file ("%p" in it becomes the process's id).
 * Written when a domain is closed, and once more when the provider is unloaded.
 */
#include "sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FLAG_SETS = 32 };

static atomic_ulong calls[CALL_COUNT], retries[CALL_COUNT], refusals[CALL_COUNT], modelled[MODEL_COUNT];
static struct {
	atomic_ulong count;
	enum sim_call call;
	uint64_t flags;
} flag_sets[FLAG_SETS];
static unsigned flag_set_count;
static pthread_mutex_t flag_lock = PTHREAD_MUTEX_INITIALIZER;
static bool domain_seen;

#define X(name) #name,
static const char *const call_names[] = { SIM_CALLS(X) };
static const char *const model_names[] = { SIM_MODELLED(X) };
#undef X

/* A call that the provider could not take now is repeated by its caller: it is no message, and counted apart. */
void sim_count(enum sim_call call, ssize_t result) {
	atomic_ulong *which = result == -FI_EAGAIN ? retries : result < 0 && result != -FI_EAVAIL ? refusals : calls;

	(void) atomic_fetch_add_explicit(&which[call], 1, memory_order_relaxed);
}

void sim_count_flags(enum sim_call call, uint64_t flags, ssize_t result) {
	unsigned i;

	sim_count(call, result);
	if (result != 0 || !sim_variables.report)
		return;
	pthread_mutex_lock(&flag_lock);
	for (i = 0; i < flag_set_count; i++)
		if (flag_sets[i].call == call && flag_sets[i].flags == flags)
			break;
	if (i == flag_set_count && i < FLAG_SETS) {
		flag_sets[i].call = call;
		flag_sets[i].flags = flags;
		flag_set_count++;
	}
	if (i < FLAG_SETS)
		flag_sets[i].count++;
	pthread_mutex_unlock(&flag_lock);
}

void sim_model(enum sim_modelled what) {
	(void) atomic_fetch_add_explicit(&modelled[what], 1, memory_order_relaxed);
}

static void write_counts(FILE *f, const char *name, atomic_ulong *counts, const char *const *names, size_t n) {
	const char *comma = "";

	(void) fprintf(f, ",\"%s\":{", name);
	for (size_t i = 0; i < n; i++)
		if (counts[i] > 0) {
			(void) fprintf(f, "%s\"%s\":%lu", comma, names[i], counts[i]);
			comma = ",";
		}
	(void) fputs("}", f);
}

static void write_flags(FILE *f) {
	static const struct { uint64_t bit; const char *name; } bits[] = {
		{ FI_INJECT, "FI_INJECT" }, { FI_COMPLETION, "FI_COMPLETION" }, { FI_MORE, "FI_MORE" },
		{ FI_FENCE, "FI_FENCE" },
		{ FI_REMOTE_CQ_DATA, "FI_REMOTE_CQ_DATA" }, { FI_INJECT_COMPLETE, "FI_INJECT_COMPLETE" },
		{ FI_TRANSMIT_COMPLETE, "FI_TRANSMIT_COMPLETE" }, { FI_DELIVERY_COMPLETE, "FI_DELIVERY_COMPLETE" },
		{ FI_MATCH_COMPLETE, "FI_MATCH_COMPLETE" }, { FI_MULTI_RECV, "FI_MULTI_RECV" },
		{ SIM_HRP, "FI_CXI_HRP" },
		{ SIM_UNRELIABLE, "FI_CXI_UNRELIABLE" }, { SIM_WEAK_FENCE, "FI_CXI_WEAK_FENCE" },
	};

	(void) fputs(",\"flags\":[", f);
	for (unsigned i = 0; i < flag_set_count; i++) {
		const char *comma = "";

		(void) fprintf(f, "%s{\"call\":\"%s\",\"count\":%lu,\"flags\":[", i ? "," : "",
			       call_names[flag_sets[i].call], flag_sets[i].count);
		for (size_t b = 0; b < ELEMENTSOF(bits); b++)
			if (flag_sets[i].flags & bits[b].bit) {
				(void) fprintf(f, "%s\"%s\"", comma, bits[b].name);
				comma = ",";
			}
		(void) fputs("]}", f);
	}
	(void) fputs("]", f);
}

static void write_variable(void *to, const char *name, const char *value) {
	FILE *f = to;

	(void) fprintf(f, "%s\"%s\":\"%s\"", strcmp(name, "FI_CXI_DISABLE_NON_INJECT_MSG_IDC") == 0 ? "" : ",", name,
		       value);
}

static void expand(const char *pattern, char *ret, size_t size) {
	const char *mark = strstr(pattern, "%p");

	if (mark)
		(void) snprintf(ret, size, "%.*s%ld%s", (int) (mark - pattern), pattern, (long) getpid(), mark + 2);
	else
		(void) snprintf(ret, size, "%s", pattern);
}

/* NULL: the process ends; there is something to say only if it had a domain. The last domain's device and key stay. */
void sim_report_write(const struct sim_domain *domain) {
	static char device[SIM_NAME_MAX];
	static struct sim_auth_key key;
	static uint32_t nic;
	char path[512];
	FILE *f;

	if (domain) {
		(void) snprintf(device, sizeof(device), "%s", domain->device->name);
		key = domain->key;
		nic = domain->device->nic;
		domain_seen = true;
	}
	if (!sim_variables.report || !domain_seen)
		return;
	expand(sim_variables.report, path, sizeof(path));
	f = fopen(path, "we");
	if (!f) {
		SIM_WARN(FI_LOG_CORE, "SIM_CXI_REPORT: cannot write %s\n", path);
		return;
	}
	(void) fprintf(f, "{\"simulated\":true,\"process\":%ld,\"device\":\"%s\",\"nic\":%u,\"svc_id\":%u,\"vni\":%u",
		       (long) getpid(), device, nic, key.svc_id, key.vni);
	write_counts(f, "calls", calls, call_names, CALL_COUNT);
	write_counts(f, "retries", retries, call_names, CALL_COUNT);
	write_counts(f, "refused", refusals, call_names, CALL_COUNT);
	write_counts(f, "modelled", modelled, model_names, MODEL_COUNT);
	write_flags(f);
	(void) fputs(",\"variables\":{", f);
	sim_variables_list(write_variable, f);
	(void) fputs("}}\n", f);
	(void) fclose(f);
}
