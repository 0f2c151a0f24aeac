// SPDX-License-Identifier: MIT
// The test is that everything beside this file compiled.
int main(void)
{
    return 0;
}
