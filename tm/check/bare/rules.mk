# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# The check of the port to bare harts.
CHECK_PROGRAMS += $(BUILD)/check/bare/port.elf

$(BUILD)/check/bare/port.elf: $(BUILD)/check/bare/port.o $(BARE_START) $(BUILD)/libtm-lock.a
	$(CC) $(LDFLAGS) $^ -o $@
