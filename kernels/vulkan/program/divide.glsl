// SPDX-License-Identifier: MIT
// n / d for any n by a product and shifts, after T. Granlund and P. Montgomery, "Division by
// invariant integers using multiplication": GPUs and processors' vectors have no division of
// integers. program_class.c computes `factor` and `shifts` of a d from 1 on.
uint divide(uint n, uint factor, uint shifts)
{
    uint high, low;
    umulExtended(n, factor, high, low);
    return (high + ((n - high) >> (shifts & 1u))) >> (shifts >> 1u);
}
