/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#define PERCH_VERSION "0.2.0"
/* of the release, as in CHANGELOG.md: a constant, so that two builds give the same manual */
#define PERCH_DATE "2026-11-29"
