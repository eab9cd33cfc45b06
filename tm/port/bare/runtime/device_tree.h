/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Reading the flattened device tree that a machine hands to its boot hart. */
#pragma once

#include "bare.h"

/*
 * Returns the value of a property, and its length, in the first node of this name (without its unit address) at this
 * depth. The root is at depth 1. Returns null if there is no such property, or if `tree` is no device tree.
 */
const u8 *device_tree_property(const u8 *tree, int depth, const char *node, const char *property, u32 *length_bytes);

/* Returns whether `riscv,isa-extensions` of the first hart names an extension. */
int device_tree_has_extension(const u8 *tree, const char *name);
