/* SPDX-License-Identifier: MIT */
/*
 * The functions behind the verbs, each in a file of its name. A verb prints what its user must know
 * and returns the exit status.
 */
#pragma once

struct cli_call;

int cli_start(const struct cli_call *call);
int cli_stop(const struct cli_call *call);
int cli_restart(const struct cli_call *call);
int cli_reload(const struct cli_call *call);
int cli_reopen(const struct cli_call *call);
int cli_upgrade(const struct cli_call *call);
int cli_status(const struct cli_call *call);
int cli_backtrace(const struct cli_call *call);
int cli_requests(const struct cli_call *call);
int cli_top(const struct cli_call *call);
int cli_memory(const struct cli_call *call);
int cli_install(const struct cli_call *call);
int cli_uninstall(const struct cli_call *call);
int cli_healthcheck(const struct cli_call *call);
int cli_check(const struct cli_call *call);
int cli_print(const struct cli_call *call);
int cli_version(const struct cli_call *call);
int cli_help(const struct cli_call *call);

/* Verbs that this version knows but cannot do. */
int cli_not_yet(const struct cli_call *call);
