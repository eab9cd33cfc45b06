# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
#   make check-itm      programs compiled with -fgnu-tm, over both libraries, at -O2, -O0 and -O3; and the names of
#                       the interface
#   make check-itm-cxx  programs in C++, alone and with the allocator of AddressSanitizer, if there is a compiler
#
# For another processor than the host's: CROSS_COMPILE=riscv64-linux-gnu- LDFLAGS='-pthread -static' RUN=qemu-riscv64

# What compiles transactions: as programs do (install.mk). -Wclobbered is about setjmp.
CFLAGS_GNU_TM = $(GNU_TM) -Wno-clobbered

ITM_SUITES = accesses blocks nesting locals irrevocable clones memory logs calls torture main
ITM_SUITES_x86_64 = vectors
ITM_LEVELS = O2 O0 O3
ITM_LIBRARIES = tl2 2pl
ITM_PROGRAMS = $(foreach level,$(ITM_LEVELS),$(ITM_LIBRARIES:%=$(BUILD)/check/itm/$(level)/itm-%$(ELF)))
ITM_PROGRAMS_user = $(ITM_LIBRARIES:%=$(BUILD)/check/itm/O2/bad-%)
CHECK_PROGRAMS += $(ITM_PROGRAMS) $(ITM_PROGRAMS_$(HOST))

# What programs use of the C library, where there is none.
CHECK_LIBC_bare = $(BUILD)/check/bare/libc.o
# Quadruple precision is the compiler's library's.
ITM_LDLIBS_bare = -lgcc

# itm_level,LEVEL: objects of this optimization, and programs of them. The compiler has to know malloc and memcpy as
# such.
define itm_level
ITM_OBJECTS_$(1) = $$(patsubst %,$$(BUILD)/check/itm/$(1)/%.o,$$(ITM_SUITES) $$(ITM_SUITES_$$(ARCH)))

$$(BUILD)/check/itm/$(1)/%.o: check/itm/%.c
	@mkdir -p $$(@D)
	$$(CC) $$(CFLAGS) $$(CFLAGS_GNU_TM) -fbuiltin -$(1) $$(ITM_CFLAGS_$$*) -c $$< -o $$@

$$(BUILD)/check/itm/$(1)/itm-%$$(ELF): $$(ITM_OBJECTS_$(1)) $$(CHECK_HOST_OBJECTS) $$(CHECK_LIBC_$$(HOST)) \
		$$(BUILD)/libtm-%.a
	$$(CC) $$(LDFLAGS) $$^ $$(ITM_LDLIBS_$$(HOST)) -o $$@

$$(BUILD)/check/itm/$(1)/bad-%: $$(BUILD)/check/itm/$(1)/bad.o $$(BUILD)/libtm-%.a
	$$(CC) $$(LDFLAGS) $$^ -o $$@
endef
$(foreach level,$(ITM_LEVELS),$(eval $(call itm_level,$(level))))

ITM_CFLAGS_vectors = -mavx -Wno-psabi
ITM_CFLAGS_bad = -fhosted

READELF = $(CROSS_COMPILE)readelf

# RUN: what runs programs of another processor. No program may have taken GCC's own library.
check-itm-c: $(ITM_PROGRAMS) $(ITM_PROGRAMS_$(HOST))
	@set -e; for program in $^; do \
		if $(READELF) --dynamic $$program | grep --quiet libitm; then echo "$$program needs libitm"; exit 1; fi; \
		$(RUN) $$program; \
	done

# In C++. AddressSanitizer and -fgnu-tm exclude each other in a compilation: it watches memory and finds what is lost.
CXX = $(CROSS_COMPILE)g++
ITM_CXX_OBJECTS = $(patsubst %,$(BUILD)/check/itm/cxx/%.o,main exceptions memory operators)
ITM_CXX_PROGRAMS = $(foreach library,$(ITM_LIBRARIES),$(addprefix $(BUILD)/check/itm/cxx/,cxx-$(library) cxx-asan-$(library)))
CXXFLAGS = -std=c++17 -O2 -g -Wall -Wextra -Werror $(INCLUDES) -MMD -MP

# The program's own operators new and delete are ordinary functions.
$(BUILD)/check/itm/cxx/%.o: check/itm/cxx/%.cc
	@mkdir -p $(@D)
	$(CXX) $(CXXFLAGS) $(if $(filter operators,$*),-Wno-attributes,$(CFLAGS_GNU_TM)) -c $< -o $@

$(BUILD)/check/itm/cxx/cxx-%: $(ITM_CXX_OBJECTS) $(BUILD)/libtm-%.a
	$(CXX) $(LDFLAGS) $^ -o $@

$(BUILD)/check/itm/cxx/cxx-asan-%: $(ITM_CXX_OBJECTS) $(BUILD)/libtm-%.a
	$(CXX) $(LDFLAGS) -fsanitize=address $^ -o $@

check-itm-cxx: $(if $(shell command -v $(CXX)),$(ITM_CXX_PROGRAMS))
	@$(if $^,set -e; for program in $^; do $(RUN) $$program; done,echo 'check-itm-cxx: there is no $(CXX)')

check-itm-symbols: $(ITM_LIBRARIES:%=$(BUILD)/libtm-%.a)
	CC='$(CC)' check/itm/symbols $^

check-itm: check-itm-c check-itm-cxx check-itm-symbols

.PHONY: check-itm check-itm-c check-itm-cxx check-itm-symbols
