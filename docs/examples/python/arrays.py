# SPDX-License-Identifier: MIT
"""Arrays in ten lines. Prints:

[[0.09003057 0.24472848 0.66524094]
 [0.09003057 0.24472848 0.66524094]]
[3. 6. 9.] tenon.float32
"""

import tenon as tn

x = tn.array([[1.0, 2.0, 3.0], [2.0, 3.0, 4.0]])
y = tn.softmax(x)  # nothing is computed yet
print(y)
x[0, 1:] = x[1, 1:] * 2 - 3  # the object takes a new value
total = tn.sum(x, axis=0)
print(total, total.dtype)
