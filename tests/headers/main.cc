// SPDX-License-Identifier: MIT
// The test is that everything beside this file compiled.
int main()
{
    return 0;
}
