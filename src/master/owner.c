/* SPDX-License-Identifier: MIT */
#include "master/owner.h"

#include <stdio.h>

int owner_find(const struct config *config, struct account *ret_account, char ret_path[PATH_MAX],
               struct faults *faults)
{
    const struct config_pool *pool = config->pool_size ? config->pools[0] : NULL;

    if (!pool)
        (void)snprintf(ret_path, PATH_MAX, "%s", config->folder);
    else if (pool->rackup && *pool->rackup == '/')
        (void)snprintf(ret_path, PATH_MAX, "%s", pool->rackup);
    else
        (void)snprintf(ret_path, PATH_MAX, "%s/%s", pool->app,
                       pool->rackup ? pool->rackup : "config.ru");
    return account_find(config->user, config->group, ret_path, "user", ret_account, faults);
}
