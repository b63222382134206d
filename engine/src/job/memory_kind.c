/* SPDX-License-Identifier: Apache-2.0 */
#include "memory_kind.h"

#include <stdio.h>

#include "backend_facts.h"
#include "base/message.h"
#include "parse.h"

static const char *const type_names[MEMORY_TYPE_MAX] = {
	[MEMORY_HOST] = "host",
	[MEMORY_HUGE] = "huge",
	[MEMORY_CUDA] = "cuda",
	[MEMORY_ROCM] = "rocm",
	[MEMORY_ZE] = "ze",
};

static int parse_gpu(const char *text, struct memory_kind *kind) {
	uint64_t n;

	kind->near = streq(text, "near");
	if (kind->near || pci_address_read(text, kind->address))
		return 0;
	if (strlen(text) >= sizeof("255") || parse_u64(text, &n) < 0 || n > MEMORY_ORDINAL_MAX)
		return -EINVAL;
	kind->ordinal = (uint32_t) n;
	return 0;
}

static int parse_detail(const char *text, struct memory_kind *kind) {
	if (kind->type == MEMORY_HUGE) {
		kind->huge = streq(text, "2M") ? JOB_HUGE_2M : streq(text, "1G") ? JOB_HUGE_1G : 0;
		return kind->huge ? 0 : -EINVAL;
	}
	if (!memory_is_gpu(kind->type))
		return -EINVAL;
	for (size_t length, i = 0;; i++, text += length + 1) {
		struct memory_kind gpu = { .type = kind->type };
		char one[PCI_ADDRESS_MAX];
		int r;

		length = strcspn(text, ",");
		if (length >= sizeof(one))
			return -EINVAL;
		memcpy(one, text, length);
		one[length] = '\0';
		r = parse_gpu(one, &gpu);
		if (r < 0)
			return r;
		if (i == 0)
			*kind = gpu;
		if (!text[length])
			return 0;
	}
}

int memory_kind_parse(const char *text, struct memory_kind *ret) {
	const char *colon = strchr(text, ':');
	size_t length = colon ? (size_t) (colon - text) : strlen(text);

	for (int t = 0; t < MEMORY_TYPE_MAX; t++) {
		struct memory_kind kind = { .type = (enum memory_type) t };

		if (strlen(type_names[t]) != length || strncmp(text, type_names[t], length) != 0)
			continue;
		/* Huge pages have no size that goes without saying. */
		if (colon ? parse_detail(colon + 1, &kind) < 0 : t == MEMORY_HUGE)
			return -EINVAL;
		*ret = kind;
		return 0;
	}
	return -EINVAL;
}

void memory_kind_format(const struct memory_kind *kind, char ret[JOB_MEMORY_TEXT]) {
	const char *name = type_names[kind->type];

	if (kind->type == MEMORY_HUGE)
		(void) snprintf(ret, JOB_MEMORY_TEXT, "%s:%s", name, kind->huge == JOB_HUGE_1G ? "1G" : "2M");
	else if (kind->near || kind->address[0])
		(void) snprintf(ret, JOB_MEMORY_TEXT, "%s:%s", name, kind->near ? "near" : kind->address);
	else if (memory_is_gpu(kind->type))
		(void) snprintf(ret, JOB_MEMORY_TEXT, "%s:%u", name, kind->ordinal);
	else
		(void) snprintf(ret, JOB_MEMORY_TEXT, "%s", name);
}

uint32_t memory_list_length(const char *text) {
	uint32_t n = 1;

	for (; *text; text++)
		n += *text == ',';
	return n;
}

void memory_of_pair(char name[JOB_MEMORY_TEXT], uint32_t pair) {
	const uint32_t n = memory_list_length(name);
	char *number = strchr(name, ':');
	const char *from;
	size_t length;

	if (n == 1)
		return;
	from = ++number;
	for (pair %= n; pair > 0; pair--)
		from += strcspn(from, ",") + 1;
	length = strcspn(from, ",");
	memmove(number, from, length);
	number[length] = '\0';
}

static struct memory_kind known(const struct job *job, const char *text) {
	struct memory_kind kind = { .type = MEMORY_HOST };

	(void) memory_kind_parse(text, &kind);
	/* Else a host that makes huge pages by itself would measure the same with --huge and without. */
	kind.small = kind.type == MEMORY_HOST && job->footprint > 0;
	return kind;
}

struct memory_kind job_tx_memory(const struct job *job) {
	return known(job, job->tx_memory);
}

struct memory_kind job_rx_memory(const struct job *job) {
	return known(job, job->rx_memory);
}

bool job_sends_from_gpu(const struct job *job) {
	return memory_is_gpu(job_tx_memory(job).type);
}

bool job_uses_gpu(const struct job *job) {
	return job_sends_from_gpu(job) || memory_is_gpu(job_rx_memory(job).type);
}

uint64_t job_huge(const struct job *job) {
	return MAX(job_tx_memory(job).huge, job_rx_memory(job).huge);
}

/*
 * A bounce copy is a part of the way, and so of the time. That holds only where an end that is awake makes it:
 * the memory that a one-sided operation works on belongs to an end that does not see it happen.
 */
static bool op_can_bounce(const struct job *job) {
	bool tx = job_sends_from_gpu(job), rx = memory_is_gpu(job_rx_memory(job).type);

	return !op_is_atomic(job->op) && !(job->op == OP_READ && tx) && !(job->op == OP_WRITE && rx);
}

const char *job_bounce_advice(const struct job *job) {
	return job_has_lanes(job) || !op_can_bounce(job) ? "" : "; --bounce copies through host memory instead";
}

static int validate_bounce(const struct job *job) {
	if (!job_uses_gpu(job))
		return failure(-EINVAL, EXIT_USAGE, "--bounce: the buffers are in host memory already; "
			       "it belongs to --memory cuda, rocm or ze");
	if (!op_can_bounce(job))
		return failure(-EINVAL, EXIT_USAGE, "--bounce with --op %s: no process runs at the end of the %s "
			       "memory to time the copy; use --op send, or omit --bounce", op_name((int) job->op),
			       job->op == OP_READ ? job->tx_memory : job->rx_memory);
	return 0;
}

static int validate_gpu(const struct job *job, const struct backend_facts *b) {
	const char *gpu = job_sends_from_gpu(job) ? job->tx_memory : job->rx_memory;

	if (!(b->flags & (BACKEND_GPU | BACKEND_BOUNCE)))
		return failure(-EINVAL, EXIT_USAGE, "--memory %s: the %s backend takes host memory and huge pages only",
			       gpu, b->name);
	if (job_has_lanes(job) && !(b->flags & BACKEND_GPU))
		return failure(-EINVAL, EXIT_USAGE, "--memory %s: the %s backend moves host memory only; "
			       "give --backend verbs, ofi or cxi", gpu, b->name);
	if (!job->bounce && !(b->flags & BACKEND_GPU))
		return failure(-EINVAL, EXIT_USAGE, "--memory %s: the %s backend reaches host memory only; "
			       "--bounce lets each message be copied through it, and the copy is a part of the time",
			       gpu, b->name);
	if (op_is_atomic(job->op) && job_sends_from_gpu(job))
		return failure(-EINVAL, EXIT_USAGE,
			       "--tx-memory %s with --op %s: its operands are made by the host; give --rx-memory alone",
			       gpu, op_name((int) job->op));
	if (job->verbs.inline_bytes > 0 && job_sends_from_gpu(job))
		return failure(-EINVAL, EXIT_USAGE, "--inline %lld with --tx-memory %s: the host cannot copy a GPU's "
			       "memory into a work request; leave --inline out",
			       (long long) job->verbs.inline_bytes, gpu);
	return 0;
}

int memory_validate(const struct job *job, const struct backend_facts *backend) {
	const struct {
		const char *option, *value;
	} each[] = { { "tx-memory", job->tx_memory }, { "rx-memory", job->rx_memory } };
	struct memory_kind kind;
	int r;

	for (size_t i = 0; i < ELEMENTSOF(each); i++)
		if (memory_kind_parse(each[i].value, &kind) < 0)
			return failure(-EINVAL, EXIT_USAGE, "--%s %s: there is no such memory; give " MEMORY_KINDS
				       "; " MEMORY_GPUS,
				       each[i].option, each[i].value);
	for (size_t i = 0; i < ELEMENTSOF(each); i++) {
		const uint32_t gpus = memory_list_length(each[i].value), pairs = job_pairs(job);

		if (gpus > 1 && (job->kind != KIND_TRANSFER || gpus > pairs))
			return failure(-EINVAL, EXIT_USAGE, "--%s %s lists %u GPUs, and there %s %u pair%s of devices; "
				       "a list is for the --devices of transfers", each[i].option, each[i].value, gpus,
				       pairs == 1 ? "is" : "are", pairs, pairs == 1 ? "" : "s");
	}
	r = job_uses_gpu(job) ? validate_gpu(job, backend) : 0;
	return r == 0 && job->bounce ? validate_bounce(job) : r;
}
