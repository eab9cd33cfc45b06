# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
#   make check-sections        checks the locks whose sections may be transactions, with and without them
#   make check-sections-tsan   the same under ThreadSanitizer, without

CHECK_PROGRAMS += $(BUILD)/check/sections/sections$(ELF)

$(BUILD)/check/sections/sections-%.o: check/sections/sections.c check/sections/%.h
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -include check/sections/$*.h -c $< -o $@

$(BUILD)/check/sections/sections$(ELF): $(call objects,check/sections/sections_main.c) $(BUILD)/check/sections/sections-cx.o \
		$(BUILD)/check/sections/sections-tx.o $(CHECK_HOST_OBJECTS) $(BUILD)/libtm-lock.a
	$(CC) $(LDFLAGS) $^ -o $@

check-sections: check-sections-built
	$(MAKE) BUILD=$(BUILD)/sections-checking OPTIONS='$(OPTIONS) $(OPTIONS_CHECKING)' check-sections-built

check-sections-built: $(BUILD)/check/sections/sections$(ELF)
	$< sections=20000
	$< sections=20000 htm=off

# ThreadSanitizer knows no hardware transactions.
check-sections-tsan:
	$(MAKE) BUILD=$(BUILD)/sections-tsan OPTIONS='$(OPTIONS) -fsanitize=thread -DTM_HTM_OFF' \
		LDFLAGS='$(LDFLAGS) -fsanitize=thread' check-sections-built

.PHONY: check-sections check-sections-built check-sections-tsan
