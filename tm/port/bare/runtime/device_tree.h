/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Reading the flattened device tree that a machine hands to its boot hart. */
#pragma once

#include "bare.h"

/*
 * The value of a property, and its length: of the first node of this name (without its unit address) at this depth, where the root is
 * at depth 1. Null when there is none, and when `tree` is no device tree.
 */
const u8 *device_tree_property(const u8 *tree, int depth, const char *node, const char *property, u32 *length_bytes);

/* Whether the harts have an extension: whether `riscv,isa-extensions` of the first one names it. */
int device_tree_has_extension(const u8 *tree, const char *name);
