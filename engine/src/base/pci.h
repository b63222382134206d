/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses of PCI functions, as sysfs writes them: "0000:17:00.0". */
#pragma once

#include <ctype.h>

#include "util.h"

enum { PCI_ADDRESS_MAX = 16 };

static inline bool is_pci_address(const char *text) {
	static const char form[] = "xxxx:xx:xx.x";

	for (size_t i = 0; i < sizeof(form) - 1; i++)
		if (form[i] == 'x' ? !isxdigit((unsigned char) text[i]) : text[i] != form[i])
			return false;
	return text[sizeof(form) - 1] == '\0';
}

/* The same address as sysfs spells it: runtimes of GPUs have capital letters. False: `text` is none. */
static inline bool pci_address_read(const char *text, char ret[PCI_ADDRESS_MAX]) {
	if (!is_pci_address(text))
		return false;
	for (size_t i = 0; i < PCI_ADDRESS_MAX && (i == 0 || text[i - 1]); i++)
		ret[i] = (char) tolower((unsigned char) text[i]);
	return true;
}
