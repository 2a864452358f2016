/* SPDX-License-Identifier: MIT */
/*
 * The service behind every connection: the steps of an exchange from its head to its log line (step.def),
 * and the choice of what answers it.
 */
#pragma once

#include "front/process.h"

extern const struct service serve_service;

/* What the racks of a loop call back; data: the struct rack_link of loop and pool. */
extern const struct rack_owner serve_rack_owner;

struct rack_link {
    struct front_loop *loop;
    uint32_t pool;
};

/* No file was found for the exchange: the application, or a page of ours. */
void serve_no_file(struct exchange *exchange);

/* Whether a worker of the pool is ready to take requests. */
bool serve_is_pool_ready(const struct front *front, uint32_t pool);
