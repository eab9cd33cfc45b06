/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* The flattened device tree: Devicetree Specification 0.4, chapter 5. */
#include "device_tree.h"

#define FDT_MAGIC 0xd00dfeed
#define FDT_BEGIN_NODE 1
#define FDT_END_NODE 2
#define FDT_PROPERTY 3
#define FDT_NOP 4

#define DEPTH_CPU 3

static u32 big_endian(const u8 *bytes)
{
    return (u32)bytes[0] << 24 | (u32)bytes[1] << 16 | (u32)bytes[2] << 8 | bytes[3];
}

/* Returns whether `text` is `other`, followed by a zero or by `end`. */
static int equals(const u8 *text, const char *other, char end)
{
    while (*other && *text == (u8)*other)
        text++, other++;
    return *other == 0 && (*text == 0 || *text == (u8)end);
}

const u8 *device_tree_property(const u8 *tree, int depth, const char *node, const char *property, u32 *length_bytes)
{
    if (!tree || big_endian(tree) != FDT_MAGIC)
        return 0;
    const u8 *structure = tree + big_endian(tree + 8);
    const u8 *strings = tree + big_endian(tree + 12);
    const u8 *end = structure + big_endian(tree + 36);
    int depth_here = 0;
    int in_node = 0;
    while (structure < end) {
        u32 token = big_endian(structure);
        structure += 4;
        if (token == FDT_BEGIN_NODE) {
            if (++depth_here == depth)
                in_node = equals(structure, node, '@');
            while (*structure++)
                ;
        } else if (token == FDT_END_NODE) {
            depth_here--;
        } else if (token == FDT_PROPERTY) {
            *length_bytes = big_endian(structure);
            if (depth_here == depth && in_node && equals(strings + big_endian(structure + 4), property, 0))
                return structure + 8;
            structure += 8 + *length_bytes;
        } else if (token != FDT_NOP) {
            return 0;
        }
        structure = (const u8 *)(((u64)structure + 3) & ~3UL);
    }
    return 0;
}

int device_tree_has_extension(const u8 *tree, const char *name)
{
    u32 length_bytes;
    const u8 *text = device_tree_property(tree, DEPTH_CPU, "cpu", "riscv,isa-extensions", &length_bytes);
    if (!text)
        return 0;
    /* The value is a sequence of names, each ended by a zero. */
    for (const u8 *end = text + length_bytes; text < end; text++) {
        if (equals(text, name, 0))
            return 1;
        while (*text)
            text++;
    }
    return 0;
}
