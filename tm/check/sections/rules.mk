# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
#   make check-sections     checks the locks whose sections may be transactions, with and without them

CHECK_PROGRAMS += $(BUILD)/check/sections/sections$(ELF)

$(BUILD)/check/sections/sections-%.o: check/sections/sections.c check/sections/%.h
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -include check/sections/$*.h -c $< -o $@

$(BUILD)/check/sections/sections$(ELF): $(call objects,check/sections/sections_main.c) $(BUILD)/check/sections/sections-cx.o \
		$(BUILD)/check/sections/sections-tx.o $(CHECK_HOST_OBJECTS) $(BUILD)/libtm-lock.a
	$(CC) $(LDFLAGS) $^ -o $@

check-sections: $(BUILD)/check/sections/sections$(ELF)
	$< sections=20000
	$< sections=20000 htm=off

.PHONY: check-sections
