/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * For whoever enters interrupt handlers that contain transactions: what a host's port calls. Programs use the port's own functions.
 */
#ifndef TM_INTERRUPT_H
#define TM_INTERRUPT_H

#include <tm/port.h>

struct tm_transaction;

/*
 * The context of an interrupt level, made beforehand, becomes the current one. `program_counter`: of the interrupted code, which may be
 * set back by a few instructions; null where the host's guarded stores cannot be interrupted. `stack_pointer`: of the interrupted code.
 *
 * A level is entered only while it is not in use, and left in the reverse order, on the same processor (or thread).
 */
void tm_interrupt_enter(struct tm_transaction *level, uintptr_t *program_counter, uintptr_t stack_pointer);
void tm_interrupt_leave(struct tm_transaction *level);

/*
 * Makes a context with its sets, of a thread or an interrupt level, or finds one whose thread has gone; null without memory. May allocate.
 * `levels`: the interrupt levels that can interrupt it, linked, or null.
 */
struct tm_transaction *tm_transaction_create(bool is_interrupt_level);
void tm_transaction_add_level(struct tm_transaction *transaction, struct tm_transaction *level);

/*
 * Its thread ends. An open transaction is taken back, and the answer is false: what it had not committed has not happened. Of the stack up
 * to `stack_end`, which is on its way out, nothing is.
 */
bool tm_transaction_destroy(struct tm_transaction *transaction, uintptr_t stack_end);

/* Frees what handlers of a level have freed in their transactions. On the level's own processor, outside of its handlers. May wait. */
void tm_level_drain(struct tm_transaction *level);

/* Gives back the memory of all contexts, of which none is in use. */
void tm_contexts_free(void);

#endif
