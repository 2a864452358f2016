/* SPDX-License-Identifier: MIT */
/*
 * What can be seen of a process's memory from outside, also of another user's.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

/* Resident bytes of a process, shared pages included; UINT64_MAX when they cannot be read. */
uint64_t memory_resident(pid_t pid);
