/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * tm_load, tm_store and tm_store_local for objects of any type that has a form: integers, enumerations, pointers and
 * floating-point numbers of 1, 2, 4 or 8 bytes. The type that `address` points to decides how many bytes are accessed,
 * a load has this type, and a stored value is converted to it as an assignment does. Anything else does not compile.
 * <tm/tm.h> includes this header.
 *
 * The form is chosen by the size, where _Generic would choose by the type: it has no way to name all pointers.
 */
#ifndef TM_ACCESS_H
#define TM_ACCESS_H

#include <tm/tm.h>

/* What __builtin_classify_type answers: integers, characters, enumerations, truth values, pointers, real numbers. */
#define TM_POINTER_CLASS_ 5
#define TM_IS_SCALAR_(class) (((class) >= 1 && (class) <= TM_POINTER_CLASS_) || (class) == 8)
#define TM_IS_SIZE_(bytes) ((bytes) == 1 || (bytes) == 2 || (bytes) == 4 || (bytes) == 8)
#define TM_NO_FORM_ \
    "the object has no form in a transaction: it is no integer, enumeration, pointer or floating-point number of 1, 2, 4 or 8 bytes"
#define TM_CONSTANT_ "the object that is stored to is constant"
#define TM_NO_POINTER_ "the object is no pointer"

#ifdef __cplusplus

template <typename T> struct tm_type {
    typedef T plain;
    static constexpr bool is_constant = false, is_array = false;
};
template <typename T> struct tm_type<const T> : tm_type<T> {
    static constexpr bool is_constant = true;
};
template <typename T> struct tm_type<volatile T> : tm_type<T> {
};
template <typename T> struct tm_type<const volatile T> : tm_type<T> {
    static constexpr bool is_constant = true;
};
template <typename T, decltype(sizeof 0) count> struct tm_type<T[count]> : tm_type<T> {
    static constexpr bool is_array = true;
};

template <typename T> constexpr int tm_class()
{
    return tm_type<T>::is_array ? -1 : __builtin_classify_type(*static_cast<typename tm_type<T>::plain *>(nullptr));
}
template <typename T> constexpr bool tm_has_form()
{
    return TM_IS_SCALAR_(tm_class<T>()) && TM_IS_SIZE_(sizeof(T));
}

template <typename T> inline typename tm_type<T>::plain tm_load(T *address)
{
    static_assert(tm_has_form<T>(), TM_NO_FORM_);
    uintptr_t at = reinterpret_cast<uintptr_t>(address);
    typename tm_type<T>::plain value;
    if (sizeof(T) == 1) {
        uint8_t bits = tm_load8(reinterpret_cast<const uint8_t *>(at));
        __builtin_memcpy(&value, &bits, 1);
    } else if (sizeof(T) == 2) {
        uint16_t bits = tm_load16(reinterpret_cast<const uint16_t *>(at));
        __builtin_memcpy(&value, &bits, 2);
    } else if (sizeof(T) == 4) {
        uint32_t bits = tm_load32(reinterpret_cast<const uint32_t *>(at));
        __builtin_memcpy(&value, &bits, 4);
    } else {
        uint64_t bits = tm_load64(reinterpret_cast<const uint64_t *>(at));
        __builtin_memcpy(&value, &bits, 8);
    }
    return value;
}

/* tm_store and tm_store_local. The second parameter takes no part in finding T. */
#define TM_DEFINE_STORE_(store) \
    template <typename T> inline void store(T *address, typename tm_type<T>::plain value) \
    { \
        static_assert(tm_has_form<T>(), TM_NO_FORM_); \
        static_assert(!tm_type<T>::is_constant, TM_CONSTANT_); \
        uintptr_t at = reinterpret_cast<uintptr_t>(address); \
        uint64_t bits = 0; \
        __builtin_memcpy(&bits, &value, sizeof(T)); \
        if (sizeof(T) == 1) \
            store##8(reinterpret_cast<uint8_t *>(at), static_cast<uint8_t>(bits)); \
        else if (sizeof(T) == 2) \
            store##16(reinterpret_cast<uint16_t *>(at), static_cast<uint16_t>(bits)); \
        else if (sizeof(T) == 4) \
            store##32(reinterpret_cast<uint32_t *>(at), static_cast<uint32_t>(bits)); \
        else \
            store##64(reinterpret_cast<uint64_t *>(at), bits); \
    }
TM_DEFINE_STORE_(tm_store)
TM_DEFINE_STORE_(tm_store_local)
#undef TM_DEFINE_STORE_

template <typename T> inline typename tm_type<T>::plain tm_load_pointer(T *address)
{
    static_assert(tm_class<T>() == TM_POINTER_CLASS_, TM_NO_POINTER_);
    return tm_load(address);
}

template <typename T> inline void tm_store_pointer(T *address, typename tm_type<T>::plain value)
{
    static_assert(tm_class<T>() == TM_POINTER_CLASS_, TM_NO_POINTER_);
    tm_store(address, value);
}

#else

/* Operands of a comma are values: arrays and functions have become pointers. */
#define TM_IS_VALUE_(object) __builtin_types_compatible_p(__typeof__(object), __typeof__(((void)0, (object))))
#define TM_HAS_FORM_(object) \
    (TM_IS_SCALAR_(__builtin_classify_type(object)) && TM_IS_SIZE_(sizeof(object)) && TM_IS_VALUE_(object))
#define TM_IS_CONSTANT_(object) __builtin_types_compatible_p(const __typeof__(object) *, __typeof__(&(object)))
#define TM_IS_POINTER_(object) (__builtin_classify_type(object) == TM_POINTER_CLASS_ && TM_IS_VALUE_(object))

/* A value of the type of *address, and its bits. */
#define TM_BITS_OF_(address) \
    union { \
        __typeof__(*address) value; \
        uint8_t bits8; \
        uint16_t bits16; \
        uint32_t bits32; \
        uint64_t bits64; \
    }

/*
 * `needs` and `text` are what the object has to be, and what the compiler says if it is not. The counter makes the names
 * unique where accesses are the arguments of others.
 */
#define tm_load(address) TM_LOAD_(address, TM_HAS_FORM_, TM_NO_FORM_, __COUNTER__)
#define tm_load_pointer(address) TM_LOAD_(address, TM_IS_POINTER_, TM_NO_POINTER_, __COUNTER__)
#define TM_LOAD_(address, needs, text, count) TM_LOAD_COUNTED_(address, needs, text, count)
#define TM_LOAD_COUNTED_(address, needs, text, count) \
    TM_LOAD_NAMED_(address, needs, text, tm_address_##count##_, tm_loaded_##count##_)
#define TM_LOAD_NAMED_(address, needs, text, at, loaded) \
    (__extension__({ \
        __auto_type at = (address); \
        TM_STATIC_ASSERT(needs(*at), text); \
        TM_BITS_OF_(at) loaded; \
        if (sizeof(*at) == 1) \
            loaded.bits8 = tm_load8((const uint8_t *)(uintptr_t)at); \
        else if (sizeof(*at) == 2) \
            loaded.bits16 = tm_load16((const uint16_t *)(uintptr_t)at); \
        else if (sizeof(*at) == 4) \
            loaded.bits32 = tm_load32((const uint32_t *)(uintptr_t)at); \
        else \
            loaded.bits64 = tm_load64((const uint64_t *)(uintptr_t)at); \
        loaded.value; \
    }))

#define tm_store(address, value) TM_STORE_(tm_store, address, value, TM_HAS_FORM_, TM_NO_FORM_, __COUNTER__)
#define tm_store_pointer(address, value) \
    TM_STORE_(tm_store, address, value, TM_IS_POINTER_, TM_NO_POINTER_, __COUNTER__)
#define tm_store_local(address, value) TM_STORE_(tm_store_local, address, value, TM_HAS_FORM_, TM_NO_FORM_, __COUNTER__)
#define TM_STORE_(store, address, new_value, needs, text, count) \
    TM_STORE_COUNTED_(store, address, new_value, needs, text, count)
#define TM_STORE_COUNTED_(store, address, new_value, needs, text, count) \
    TM_STORE_NAMED_(store, address, new_value, needs, text, tm_address_##count##_, tm_stored_##count##_)
#define TM_STORE_NAMED_(store, address, new_value, needs, text, at, stored) \
    (__extension__({ \
        __auto_type at = (address); \
        TM_STATIC_ASSERT(needs(*at), text); \
        TM_STATIC_ASSERT(!TM_IS_CONSTANT_(*at), TM_CONSTANT_); \
        TM_BITS_OF_(at) stored = {.value = (new_value)}; \
        if (sizeof(*at) == 1) \
            store##8((uint8_t *)(uintptr_t)at, stored.bits8); \
        else if (sizeof(*at) == 2) \
            store##16((uint16_t *)(uintptr_t)at, stored.bits16); \
        else if (sizeof(*at) == 4) \
            store##32((uint32_t *)(uintptr_t)at, stored.bits32); \
        else \
            store##64((uint64_t *)(uintptr_t)at, stored.bits64); \
    }))

#endif

#endif
