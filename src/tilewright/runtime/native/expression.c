#include "expression.h"

static bool divide(int64_t a, int64_t b, int64_t *quotient, int64_t *rest) {
    if (b == 0 || (a == INT64_MIN && b == -1))
        return false;
    *quotient = a / b;
    *rest = a % b;
    if (*rest != 0 && (*rest < 0) != (b < 0)) { /* C rounds towards zero, sizes round down */
        *quotient -= 1;
        *rest += b;
    }
    return true;
}

static bool apply(int64_t op, int64_t a, int64_t b, int64_t *value) {
    int64_t other;
    switch (op) {
    case TW_ADD:
        return !__builtin_add_overflow(a, b, value);
    case TW_SUB:
        return !__builtin_sub_overflow(a, b, value);
    case TW_MUL:
        return !__builtin_mul_overflow(a, b, value);
    case TW_FLOORDIV:
        return divide(a, b, value, &other);
    case TW_MOD:
        return divide(a, b, &other, value);
    case TW_MIN:
        *value = a < b ? a : b;
        return true;
    case TW_MAX:
        *value = a > b ? a : b;
        return true;
    case TW_EQ:
        *value = a == b;
        return true;
    case TW_NE:
        *value = a != b;
        return true;
    case TW_LT:
        *value = a < b;
        return true;
    case TW_LE:
        *value = a <= b;
        return true;
    case TW_AND:
        *value = a != 0 && b != 0;
        return true;
    case TW_OR:
        *value = a != 0 || b != 0;
        return true;
    default:
        return false;
    }
}

bool tw_evaluate(
    const tw_operation *table, tw_expression expression, const int64_t *sizes, int64_t *value
) {
    int64_t stack[TW_EXPRESSION_DEPTH];
    int depth = 0;
    for (int64_t i = expression.start; i < expression.start + expression.count; i++) {
        int64_t op = table[i].op, operand = table[i].operand;
        if (op == TW_CONST || op == TW_SIZE) {
            stack[depth++] = op == TW_CONST ? operand : sizes[operand];
        } else if (op == TW_NOT) {
            stack[depth - 1] = stack[depth - 1] == 0;
        } else if (op == TW_SELECT) {
            depth -= 2;
            stack[depth - 1] = stack[depth - 1] != 0 ? stack[depth] : stack[depth + 1];
        } else {
            depth--;
            if (!apply(op, stack[depth - 1], stack[depth], &stack[depth - 1]))
                return false;
        }
    }
    *value = stack[0];
    return true;
}
