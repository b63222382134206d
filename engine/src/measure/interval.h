/* SPDX-License-Identifier: Apache-2.0 */
/* Time marks of a phase: its end, the intervals that are printed, the windows that give peak and minimum. */
#pragma once

#include "run.h"

void intervals_begin(struct run *r);
