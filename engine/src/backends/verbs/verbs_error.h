/* SPDX-License-Identifier: Apache-2.0 */
/* What a failed completion, call or asynchronous event of libibverbs means, in words: what, where, why, what to do. */
#pragma once

#include "verbs_device.h"

/*
 * A work completion that failed: says so with its likely cause and remedy, remembers the exit code (the peer
 * and the way to it: EXIT_PEER; this host: EXIT_INTERNAL) and answers a negative errno:
 *   -ETIMEDOUT retries exceeded (peer gone, network cut, MTU, GID) · -ENOBUFS receiver not ready ·
 *   -EREMOTEIO the peer refused · -ECONNRESET flushed: the queue pair had ended already · -EIO this host.
 * A flush is only the consequence of what came before it: hand the first failed completion in.
 */
int verbs_wc_failure(const struct ibv_wc *wc, const struct verbs_device *d, const char *peer_name);

/*
 * Whether a status only says that nobody answered, or that the queue had ended: the cause may be this host's own port.
 */
bool verbs_wc_is_silence(enum ibv_wc_status status);

/*
 * Whether this host has lost what its queue pairs use: negative, said (EXIT_INTERNAL, with interface and remedy),
 * where the port is down or the GID has gone or changed; 0 where both are still there.
 */
int verbs_local_failure(const struct verbs_device *d);

/*
 * A call that failed: `what` completes "cannot ...", such as "make queue pair 3 of 4"; `error` is the positive errno.
 * EXIT_HOST, with the remedy where there is one (ENOMEM: the limit of locked memory, EPERM and EACCES: rights, EINVAL:
 * beyond the device's limits).
 */
int verbs_call_failure(int error, const struct verbs_device *d, const char *what);

/*
 * An asynchronous event: 0 where it is only news (a path migrated; the port going down or up, which is said),
 * else negative, said: the device or a queue is lost in the middle of a measurement (EXIT_INTERNAL).
 * Does not acknowledge it.
 */
int verbs_event_failure(const struct ibv_async_event *event, const struct verbs_device *d);

/* The likely cause and the remedy alone; "" for success. For tests, and for docs/options.md. */
const char *verbs_wc_cause(enum ibv_wc_status status);
