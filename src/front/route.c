/* SPDX-License-Identifier: MIT */
#include "front/route.h"

static bool is_reading(enum method method)
{
    return method == METHOD_GET || method == METHOD_HEAD;
}

enum route route_find(const struct site *site, const struct site_place *place, enum method method,
                      struct span path)
{
    if (site->pulse.size && is_reading(method) && span_equal(site->pulse, path))
        return ROUTE_PULSE;
    if (site->config->redirect)
        return ROUTE_REDIRECT;
    if (place->pool != SITE_NO_POOL)
        return place->has_root && is_reading(method) ? ROUTE_FILES_THEN_POOL : ROUTE_POOL;
    if (!place->has_root)
        return ROUTE_NOT_FOUND;
    return is_reading(method) ? ROUTE_FILES : ROUTE_NOT_ALLOWED;
}
