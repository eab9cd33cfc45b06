/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Transactional Locking II (tm/stm/tl2.c, over tm/stm/reading.c and the rest): stores go to the write set; the commit
 * owns records, validates the reads, and writes back.
 *
 * Right: safety FIRST=EVERY OTHERS=EVERY
 * Right: safety FIRST=EVERY OTHERS=EVERY PESSIMISTIC_MIN=0
 * Right: safety FIRST=AGAIN OTHERS=EVERY
 * Right: safety FIRST=OBSTINATES OTHERS=EVERY+OBSTINATES
 * Right: safety FIRST=HIDER OTHERS=SHARERS
 * Right: safety FIRST=SHOWER OTHERS=WATCHER
 * Right: safety FIRST=BOTH+ALL_ALONE OTHERS=EVERY STORES=3
 * Right: safety FIRST=HIDER OTHERS=SHARERS STORES=3
 * Right: safety FIRST=SHOWER OTHERS=WATCHER STORES=3
 * Right: safety FIRST=BOTH OTHERS=ADDER HANDLER=OBSTINATE_BOTH
 * Right: safety FIRST=BOTH+IRREVOCABLES OTHERS=ALL_ALONE HANDLER=OBSTINATES
 * Right: progress FIRST=BOTH+ALL_ALONE+IRREVOCABLES OTHERS=EVERY+OBSTINATES
 * Long: safety FIRST=EVERY OTHERS=EVERY RESTARTS_MAX=2
 * Long: safety FIRST=EVERY OTHERS=EVERY STORES=3
 * Long: safety FIRST=BOTH+CANCELLER+IRREVOCABLES OTHERS=BOTH+READER+OBSTINATES HANDLER=OBSTINATES
 * Long: safety THREADS=3 FIRST=HIDER OTHERS=SHARERS
 * Long: safety THREADS=3 FIRST=BOTH OTHERS=READER+ADDER
 * Long: progress FIRST=BOTH OTHERS=ADDER HANDLER=OBSTINATE_BOTH
 * Wrong: safety FIRST=EVERY OTHERS=EVERY NO_VALIDATION: assertion violated
 * Wrong: safety FIRST=BOTH OTHERS=EVERY NO_SECOND_LOOK: assertion violated (found==1)
 * Wrong: safety FIRST=BOTH OTHERS=EVERY EXTEND_WITHOUT_LOOKING: assertion violated (found==1)
 * Wrong: safety FIRST=BOTH OTHERS=EVERY OWN_WITHOUT_LOOKING: assertion violated
 * Wrong: safety FIRST=AGAIN OTHERS=EVERY FRESH_RECORDS_PASS: assertion violated (found==1)
 * Wrong: safety FIRST=ALL_ALONE OTHERS=EVERY FIRST_WITHOUT_SERIAL: assertion violated (found==1)
 * Wrong: safety FIRST=ALL_ALONE OTHERS=EVERY OWN_WITHOUT_SERIAL: assertion violated
 * Wrong: safety FIRST=ALL_ALONE OTHERS=EVERY NOT_ALONE: assertion violated
 * Wrong: safety FIRST=HIDER OTHERS=SHARERS NO_WAIT_FOR_READERS: assertion violated (memory[1]==y_of[(states-1)])
 * Wrong: safety FIRST=IRREVOCABLES OTHERS=OBSTINATES PESSIMISTIC_MIN=0 SERIAL_UNHEEDED: invalid end state
 * Wrong: safety FIRST=ALL_ALONE OTHERS=EVERY STORES=3 VISIBLE_WITHOUT_FENCE: assertion violated
 * Wrong: safety FIRST=BOTH OTHERS=EVERY STORES=3 RELEASE_WITHOUT_RELEASE: assertion violated
 * Wrong: safety FIRST=BOTH OTHERS=BOTH HANDLER=OBSTINATE_BOTH UNGUARDED: assertion violated
 * Wrong: safety FIRST=BOTH OTHERS=OBSTINATE_BOTH HANDLER=OBSTINATE_BOTH ASKED_UNHEEDED: invalid end state
 * Wrong: safety FIRST=BOTH OTHERS=EVERY RELEASE_BEFORE_STORES: assertion violated
 * Wrong: safety FIRST=BOTH OTHERS=ADDER HANDLER=OBSTINATE_BOTH FINISH_ALL: assertion violated
 */
#define TL2
#include "transaction.pml"
