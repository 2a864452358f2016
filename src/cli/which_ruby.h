/* SPDX-License-Identifier: MIT */
/*
 * Which Ruby a pool would run with, found out by asking it, for verbs that start nothing.
 */
#pragma once

#include "config/config.h"
#include "pool/ruby.h"

/* 0, or -1 with faults. variables are those of the server. */
int which_ruby(char *const *variables, const struct config *config, const struct config_pool *pool,
               struct ruby *ret_ruby, struct faults *faults);
