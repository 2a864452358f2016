/* SPDX-License-Identifier: MIT */
/*
 * Checks that span directives, or look at the machine: folders, files, users. Everything that is
 * wrong is added, with the place of the value. One thread.
 */
#pragma once

#include "config/bind.h"

/* Verifies a completed edition. */
void verify_edition(const struct bind *bind);
