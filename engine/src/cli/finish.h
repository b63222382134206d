/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a process that may have printed results. */
#pragma once

/* Results that could not be written are no results (EXIT_INTERNAL, said); `code` stands where all were. */
int finish(int code);
