/* Sizes computed from sizes: postfix expressions over 64-bit integers that notice overflow.
 *
 * `SizeOp` in program.py is the compiler's view of the operations; a test compares the two. */
#ifndef TILEWRIGHT_EXPRESSION_H
#define TILEWRIGHT_EXPRESSION_H

#include <stdbool.h>
#include <stdint.h>

#define TW_EXPRESSION_DEPTH 32 /* values on the stack at most */

typedef enum tw_size_op {
    TW_CONST, /* push the operand */
    TW_SIZE,  /* push the size of this number */
    TW_ADD,
    TW_SUB,
    TW_MUL,
    TW_FLOORDIV,
    TW_MOD,
    TW_MIN,
    TW_MAX,
    TW_EQ,
    TW_NE,
    TW_LT,
    TW_LE,
    TW_AND,
    TW_OR,
    TW_NOT,
    TW_SELECT, /* condition, if true, if false */
} tw_size_op;

typedef struct tw_operation {
    int64_t op; /* a tw_size_op */
    int64_t operand;
} tw_operation;

/* Operations `start` … `start + count` of a table. */
typedef struct tw_expression {
    int64_t start, count;
} tw_expression;

/* False: a value does not fit 64 bits, or something is divided by zero. The expression is well
 * formed and not empty. */
bool tw_evaluate(
    const tw_operation *table, tw_expression expression, const int64_t *sizes, int64_t *value
);

#endif
