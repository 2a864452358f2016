/* SPDX-License-Identifier: MIT */
/*
 * The running systemd, when there is one, through its own command.
 */
#pragma once

#include <stdbool.h>

/* Whether the system's manager, or the one of this user, runs here. */
bool systemd_is_running(bool for_user);

/* Whether that user's manager runs without a login. */
bool systemd_lingers(const char *user);

/* Runs `systemctl [--user] WORDS`, at most four of them behind which NULL stands; false when it failed,
 * which has been said. */
bool systemd_run(bool for_user, const char *const *words);
