/* SPDX-License-Identifier: MIT */
/*
 * The version of this program, as `leat version`, status and the control socket say it. The gem has
 * the same in lib/leat/version.rb.
 */
#pragma once

#define LEAT_VERSION "0.1.0"
