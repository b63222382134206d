/* SPDX-License-Identifier: Apache-2.0 */
/* libfabric's errors in words: what failed, on which provider and device, its likely cause, and what to do. */
#include "ofi.h"

#include <stdio.h>

#include "base/message.h"

enum blame {
	BLAME_PEER,
	BLAME_DEVICE,
	BLAME_SELF,
};

struct cause {
	int error;              /* positive */
	enum blame blame;
	const char *hint;
};

static const struct cause causes[] = {
	{ FI_ECONNRESET, BLAME_PEER, "the peer's process has gone; its own messages say why" },
	{ FI_ECONNABORTED, BLAME_PEER, "the peer's process has gone; its own messages say why" },
	{ FI_ENOTCONN, BLAME_PEER, "the peer has closed, or was never reached; its own messages say why" },
	{ FI_ESHUTDOWN, BLAME_PEER, "the peer has closed; its own messages say why" },
	{ EPIPE, BLAME_PEER, "the peer has closed; its own messages say why" },
	{ FI_ECONNREFUSED, BLAME_PEER, "the peer does not listen: a firewall, or its process has gone" },
	{ FI_ETIMEDOUT, BLAME_PEER, "the peer does not answer: check the path between the two devices" },
	{ FI_EHOSTUNREACH, BLAME_PEER, "no route to the peer: check addresses and routes of the two devices" },
	{ FI_ENETUNREACH, BLAME_PEER, "no route to the peer: check addresses and routes of the two devices" },
	{ FI_EHOSTDOWN, BLAME_PEER, "the peer's host is down" },
	{ FI_ENORX, BLAME_PEER, "the peer had lent no buffer for it" },
	{ FI_ENODEV, BLAME_DEVICE, "the device has gone: see the kernel's log" },
	{ ENXIO, BLAME_DEVICE, "the device has gone: see the kernel's log" },
	{ FI_ENETDOWN, BLAME_DEVICE, "the device is down: see the kernel's log" },
	{ FI_ETRUNC, BLAME_SELF, "a message was longer than the buffer lent for it" },
	{ FI_EOVERRUN, BLAME_SELF, "the completion queue overran: lower --outstanding" },
	{ FI_ENOMEM, BLAME_SELF, "the provider ran out of memory: lower --outstanding or --size" },
	{ FI_EACCES, BLAME_SELF, "memory access was refused: a key or an address does not match" },
	{ FI_EKEYREJECTED, BLAME_SELF, "memory access was refused: a key or an address does not match" },
	{ FI_EIO, BLAME_SELF, "the device or the path failed: see the kernel's log on both hosts" },
};

static const struct cause *find_cause(int error) {
	for (size_t i = 0; i < ELEMENTSOF(causes); i++)
		if (causes[i].error == error)
			return causes + i;
	return NULL;
}

int ofi_failed(const struct ofi_session *o, const char *what, int error, const char *detail) {
	const struct cause *c = find_cause(error < 0 ? -error : error);
	const char *text = fi_strerror(error < 0 ? -error : error);
	bool more = detail && detail[0] != '\0' && !streq(detail, text);

	return failure(!c || c->blame == BLAME_SELF ? -EIO : c->blame == BLAME_PEER ? -ECONNRESET : -ENODEV,
		       c && c->blame == BLAME_PEER ? EXIT_PEER : EXIT_INTERNAL,
		       "%s, provider %s, device %s: %s failed: %s%s%s%s%s%s", o->job->backend, o->session.provider,
		       o->session.device, what, text, more ? " (" : "", more ? detail : "", more ? ")" : "",
		       c ? "; " : "", c ? c->hint : "");
}

int ofi_open_failed(const struct ofi_session *o, const char *what, int error) {
	int e = error < 0 ? -error : error;
	const char *hint = "";

	if (e == FI_EADDRINUSE)
		hint = "; another process uses this address: give FI_* port settings a free one, or none";
	else if (e == FI_ENOMEM)
		hint = "; not enough (lockable) memory: raise `ulimit -l`, or lower --size or --outstanding";
	else if (e == FI_EACCES || e == FI_EPERM)
		hint = "; this user may not use the device: check the permissions of its device file";
	else if (e == FI_EINVAL && strstr(o->session.provider, "verbs") && strstr(o->session.provider, "rxm"))
		/*
		 * Soft-RoCE has less room in a queue pair, and no such shared queue, as the layer asks for by default.
		 */
		hint = "; the device may not have the queues that ofi_rxm needs; "
			"use --backend verbs, or set on both hosts FI_OFI_RXM_USE_SRX=0 FI_OFI_RXM_MSG_RX_SIZE=64 "
			"FI_OFI_RXM_MSG_TX_SIZE=64 FI_UNIVERSE_SIZE=2 (fi_rxm(7))";

	return failure(e < FI_ERRNO_OFFSET ? -e : -EIO, EXIT_HOST, "%s, provider %s, device %s: cannot %s: %s%s",
		       o->job->backend, o->session.provider, o->session.device, what, fi_strerror(e), hint);
}

static const char *operation_name(uint64_t flags) {
	/* The order matters: an incoming write may carry FI_RECV beside FI_REMOTE_WRITE. */
	if (flags & FI_REMOTE_WRITE)
		return "a write from the peer";
	if (flags & FI_REMOTE_READ)
		return "a read by the peer";
	if (flags & FI_RECV)
		return "a receive";
	if (flags & FI_ATOMIC)
		return "an atomic operation";
	if (flags & FI_READ)
		return "a read";
	if (flags & FI_WRITE)
		return "a write";
	if (flags & FI_SEND)
		return "a send";
	return "an operation";
}

/* An operation that was cancelled because its connection broke: the provider's own number tells. */
static int cause_of(const struct fi_cq_err_entry *entry) {
	const struct cause *c = find_cause(abs(entry->prov_errno));

	return (entry->err == FI_ECANCELED || entry->err == FI_EIO || entry->err == FI_EOTHER) && c &&
	       c->blame != BLAME_SELF ? abs(entry->prov_errno) : entry->err;
}

int ofi_cq_failed(struct ofi_session *o, ssize_t error) {
	struct fi_cq_err_entry entry = { 0 };
	char detail[128] = "";
	const char *text;
	ssize_t n;

	o->broken = true;
	if (error != -FI_EAVAIL)
		return ofi_failed(o, "reading completions", (int) error, NULL);

	n = fi_cq_readerr(o->cq, &entry, 0);
	if (n < 0)
		return ofi_failed(o, "an operation (its error could not be read)", (int) n, NULL);

	/* Some providers leave there what errno last was: nothing, or "try again", explains no failure. */
	text = entry.prov_errno == 0 || abs(entry.prov_errno) == EAGAIN ? NULL :
		fi_cq_strerror(o->cq, entry.prov_errno, entry.err_data, detail, sizeof(detail));
	return ofi_failed(o, operation_name(entry.flags), cause_of(&entry), text);
}
