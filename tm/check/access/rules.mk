# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
#   make check-access      what tm_load and tm_store of any type accept and refuse

check-access: $(BUILD)/libtm.a
	CC='$(CC)' RUN='$(RUN)' check/access/check $< $(BUILD)/check/access $(INCLUDES) $(OPTIONS)

.PHONY: check-access
