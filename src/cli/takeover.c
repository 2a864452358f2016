/* SPDX-License-Identifier: MIT */
#include "cli/takeover.h"

#include "base/version.h"
#include "front/message.h"
#include "master/takeover.h"

#include <stdio.h>

/* What takeover_find found, for the one call of this process. */
static enum takeover kind;
static struct saved *saved;

bool cli_is_takeover(void)
{
    kind = takeover_find(&saved);
    return kind != TAKEOVER_NONE;
}

static int check(const struct cli_call *call)
{
    struct config *config = cli_load(call);
    struct faults faults = {.size = 0};
    bool able = config && takeover_check(config, saved, &faults);

    cli_print_faults(&faults);
    config_free(config);
    saved_free(saved);
    if (able)
        (void)printf("%s%s, dialect %u\n", TAKEOVER_ABLE, LEAT_VERSION, front_message_dialect());
    return able ? CLI_OK : CLI_FAILED;
}

/* Whatever verb it was (`restart` starts, too): now it serves, from the folder where it was started, and
 * in the background if it was there. */
int cli_take_over(const struct cli_call *call)
{
    struct cli_call again = *call;
    struct saved_in root;

    if (kind == TAKEOVER_BROKEN) {
        cli_complain("what the former program left cannot be read");
        return CLI_FAILED;
    }
    root = saved_root(saved);
    again.options.daemonize = saved_number(&root, "daemonize", 1, 0) == 1;
    if (saved_get(&root, "cwd"))
        again.options.cwd = saved_get(&root, "cwd");
    if (again.argc)
        again.options.target = again.argv[0];
    return kind == TAKEOVER_ASKED ? check(&again) : cli_serve(&again, saved);
}
