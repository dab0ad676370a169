"""Fingerprints of errors: one for one fault, whatever changes from run to run; another for another fault."""

from __future__ import annotations

import random
import re
import sys
from collections.abc import Callable
from hashlib import sha256
from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemarch.text.fingerprint import CORE_CHARS_MAX, FINGERPRINT_VERSION, Fingerprint, fingerprint
from mnemarch.text.fingerprint_skeleton import LINE_CHARS_MAX

Faults = dict[str, tuple[str, ...]]
# Each fault as two runs show it: other lines, addresses, folders, times, values. No two of a language are the same.

PYTHON: Faults = {
    "a key is missing": (
        """Traceback (most recent call last):
  File "/home/ann/shop/cart.py", line 41, in <module>
    main()
  File "/home/ann/shop/cart.py", line 33, in main
    total(order)
  File "/home/ann/shop/prices.py", line 12, in total
    return rates[order.currency]
           ~~~~~^^^^^^^^^^^^^^^^
KeyError: 'CHF'
""",
        """Traceback (most recent call last):
  File "/tmp/pytest-of-bo/pytest-7/shop/cart.py", line 52, in <module>
    main()
  File "/tmp/pytest-of-bo/pytest-7/shop/cart.py", line 44, in main
    total(order)
  File "/tmp/pytest-of-bo/pytest-7/shop/prices.py", line 19, in total
    return rates[order.currency]
KeyError: 'NOK'
""",
    ),
    "the same message from another function": (
        """Traceback (most recent call last):
  File "/home/ann/shop/prices.py", line 30, in discount
    return rates[code]
KeyError: 'CHF'
""",
        """Traceback (most recent call last):
  File "/srv/shop/prices.py", line 31, in discount
    return rates[code]
KeyError: 'EUR'
""",
    ),
    "another message from the same function": (
        """Traceback (most recent call last):
  File "/home/ann/shop/prices.py", line 9, in total
    raise ValueError(f"amount {amount} is below zero")
ValueError: amount -3 is below zero
""",
        """Traceback (most recent call last):
  File "prices.py", line 7, in total
    raise ValueError(f"amount {amount} is below zero")
ValueError: amount -12.50 is below zero
""",
    ),
    "another value error there": (
        """Traceback (most recent call last):
  File "/home/ann/shop/prices.py", line 10, in total
    raise ValueError(f"currency {code!r} is unknown")
ValueError: currency 'XXX' is unknown
""",
        """Traceback (most recent call last):
  File "prices.py", line 11, in total
    raise ValueError(f"currency {code!r} is unknown")
ValueError: currency 'ZZZ' is unknown
""",
    ),
    "raised in a library": (
        """Traceback (most recent call last):
  File "/home/ann/shop/feed.py", line 8, in fetch
    body = client.get(url)
  File "/home/ann/shop/.venv/lib/python3.11/site-packages/httpish/client.py", line 204, in get
    return self._send(url)
  File "/home/ann/shop/.venv/lib/python3.11/site-packages/httpish/pool.py", line 88, in _send
    raise ConnectTimeout(f"no answer from {host}:{port} within {seconds} s")
httpish.errors.ConnectTimeout: no answer from 10.1.2.3:8443 within 5.0 s
""",
        """Traceback (most recent call last):
  File "C:\\Users\\Bo\\shop\\feed.py", line 9, in fetch
    body = client.get(url)
  File "C:\\Python312\\Lib\\site-packages\\httpish\\client.py", line 211, in get
    return self._send(url)
httpish.errors.ConnectTimeout: no answer from 10.9.9.9:443 within 30.0 s
""",
    ),
    "the last of a chain": (
        """Traceback (most recent call last):
  File "/home/ann/shop/store.py", line 20, in load
    return json.loads(text)
  File "/usr/lib/python3.11/json/__init__.py", line 346, in loads
    return _default_decoder.decode(s)
json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/home/ann/shop/app.py", line 5, in start
    store.load(path)
  File "/home/ann/shop/store.py", line 22, in load
    raise StoreBroken(f"{path} cannot be read")
shop.errors.StoreBroken: /home/ann/shop/data.json cannot be read
""",
        """Traceback (most recent call last):
  File "/srv/shop/store.py", line 19, in load
    return json.loads(text)
UnicodeDecodeError: 'utf-8' codec can't decode byte 0xff in position 0: invalid start byte

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "/srv/shop/app.py", line 6, in start
    store.load(path)
  File "/srv/shop/store.py", line 23, in load
    raise StoreBroken(f"{path} cannot be read")
shop.errors.StoreBroken: /srv/shop/data.json cannot be read
""",
    ),
    "a group": (
        """  + Exception Group Traceback (most recent call last):
  |   File "/home/ann/shop/jobs.py", line 14, in run
  |     raise ExceptionGroup("jobs failed", errors)
  | ExceptionGroup: jobs failed (2 sub-exceptions)
  +-+---------------- 1 ----------------
    | Traceback (most recent call last):
    |   File "/home/ann/shop/jobs.py", line 9, in resize
    |     raise OSError("no space left for 3 images")
    | OSError: no space left for 3 images
    +---------------- 2 ----------------
    | Traceback (most recent call last):
    |   File "/home/ann/shop/jobs.py", line 5, in notify
    |     raise TimeoutError("mail server is silent")
    | TimeoutError: mail server is silent
    +------------------------------------
""",
        """  + Exception Group Traceback (most recent call last):
  |   File "/srv/shop/jobs.py", line 15, in run
  |     raise ExceptionGroup("jobs failed", errors)
  | ExceptionGroup: jobs failed (2 sub-exceptions)
  +-+---------------- 1 ----------------
    | Traceback (most recent call last):
    |   File "/srv/shop/jobs.py", line 6, in notify
    |     raise TimeoutError("mail server is silent")
    | TimeoutError: mail server is silent
    +---------------- 2 ----------------
    | Traceback (most recent call last):
    |   File "/srv/shop/jobs.py", line 10, in resize
    |     raise OSError("no space left for 41 images")
    | OSError: no space left for 41 images
    +------------------------------------
""",
    ),
    "a syntax error, worded by two versions": (
        """  File "/home/ann/shop/cart.py", line 7
    if order.total > 100
                        ^
SyntaxError: invalid syntax
""",
        """  File "/home/bo/shop/cart.py", line 12
    if order.total > 250
                        ^
SyntaxError: expected ':'
""",
    ),
    "a syntax error on another line": (
        """  File "/home/ann/shop/cart.py", line 9
    return order total
           ^^^^^^^^^^^
SyntaxError: invalid syntax. Perhaps you forgot a comma?
""",
        """  File "/home/ann/shop/cart.py", line 10
    return order total
                 ^
SyntaxError: invalid syntax
""",
    ),
    "a bracket that stays open": (
        """  File "/home/ann/shop/cart.py", line 3
    rows = [
           ^
SyntaxError: '[' was never closed
""",
        """  File "/home/ann/shop/cart.py", line 88

                       ^
SyntaxError: unexpected EOF while parsing
""",
    ),
    "a name that only newer versions guess": (
        """Traceback (most recent call last):
  File "/home/ann/shop/cart.py", line 3, in add
    total += prise
NameError: name 'prise' is not defined. Did you mean: 'price'?
""",
        """Traceback (most recent call last):
  File "/home/ann/shop/cart.py", line 4, in add
    total += prise
NameError: name 'prise' is not defined
""",
    ),
    "an attribute that only newer versions guess": (
        """Traceback (most recent call last):
  File "/home/ann/shop/cart.py", line 3, in add
    cart.sums()
AttributeError: 'Cart' object has no attribute 'sums'. Did you mean: 'sum'?
""",
        """Traceback (most recent call last):
  File "/home/ann/shop/cart.py", line 4, in add
    cart.sums()
AttributeError: 'Cart' object has no attribute 'sums'
""",
    ),
    "a circular import, as three versions say it": (
        """Traceback (most recent call last):
  File "/home/ann/shop/cart.py", line 1, in <module>
    from shop.menu import Menu
ImportError: cannot import name 'M' from partially initialized module 'm' (most likely due to a circular import) (/a.py)
""",
        """Traceback (most recent call last):
  File "/home/ann/shop/cart.py", line 1, in <module>
    from shop.menu import Menu
ImportError: cannot import name 'Menu' from 'shop.menu' (/srv/shop/menu.py)
""",
        """Traceback (most recent call last):
  File "/home/ann/shop/cart.py", line 1, in <module>
    from shop.menu import Menu
ImportError: cannot import name 'Menu'
""",
    ),
    "a function that newer versions name in full": (
        """Traceback (most recent call last):
  File "/home/ann/shop/cart.py", line 3, in add
    self.put(1, 2)
TypeError: Cart.put() takes 2 positional arguments but 3 were given
""",
        """Traceback (most recent call last):
  File "/home/ann/shop/cart.py", line 4, in add
    self.put(1, 2)
TypeError: put() takes 2 positional arguments but 3 were given
""",
    ),
    "a comprehension, with and without a frame": (
        """Traceback (most recent call last):
  File "/home/ann/shop/cart.py", line 3, in sums
    return [row["sum"] for row in rows]
  File "/home/ann/shop/cart.py", line 3, in <listcomp>
    return [row["sum"] for row in rows]
KeyError: 'sum'
""",
        """Traceback (most recent call last):
  File "/home/ann/shop/cart.py", line 3, in sums
    return [row["sum"] for row in rows]
            ~~~^^^^^^^
KeyError: 'sum'
""",
    ),
}

PYTEST: Faults = {
    "an error in the code under test": (
        """============================= test session starts ==============================
collected 12 items

tests/test_cart.py ....F.......                                          [100%]

=================================== FAILURES ===================================
_______________________________ test_total_of_two ______________________________

    def test_total_of_two():
>       assert total([1, 2]) == 3

tests/test_cart.py:14:
_ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _

rows = [1, 2]

    def total(rows):
>       raise ValueError(f"row {rows[0]} has no currency")
E       ValueError: row 1 has no currency

shop/prices.py:8: ValueError
=========================== short test summary info ============================
FAILED tests/test_cart.py::test_total_of_two - ValueError: row 1 has no curre...
========================= 1 failed, 11 passed in 0.21s =========================
""",
        "FAILED tests/test_cart.py::test_total_of_two - ValueError: row 77 has no currency\n1 failed in 3.10s\n",
        "[gw3] [ 41%] FAILED tests/test_cart.py::test_total_of_two \n"
        "FAILED tests/test_cart.py::test_total_of_two - ValueError: row 5 has no currency\n",
        """_______________________________ test_total_of_two ______________________________
[gw1] linux -- Python 3.12.1 /home/bo/.venv/bin/python
tests/test_cart.py:19: in test_total_of_two
    assert total([1, 2]) == 3
shop/prices.py:9: in total
    raise ValueError(f"row {rows[0]} has no currency")
E   ValueError: row 4 has no currency
""",
    ),
    "the same error in another test": (
        "FAILED tests/test_cart.py::test_total_of_three - ValueError: row 1 has no currency\n",
        "\x1b[31mFAILED\x1b[0m tests/test_cart.py::\x1b[1mtest_total_of_three\x1b[0m"
        " - ValueError: row 2 has no currency\r\n",
    ),
    "another error in the first test": (
        "FAILED tests/test_cart.py::test_total_of_two - ZeroDivisionError: division by zero\n",
        "FAILED tests/test_cart.py::test_total_of_two - ZeroDivisionError: float division by zero\n",
    ),
    "a file that cannot be collected": (
        """==================================== ERRORS ====================================
_____________________ ERROR collecting tests/test_menu.py ______________________
ImportError while importing test module '/home/ann/shop/tests/test_menu.py'.
tests/test_menu.py:1: in <module>
    from shop import menu
E   ModuleNotFoundError: No module named 'shop'
=========================== short test summary info ============================
ERROR tests/test_menu.py
!!!!!!!!!!!!!!!!!!!! Interrupted: 1 error during collection !!!!!!!!!!!!!!!!!!!!
""",
        "ERROR tests/test_menu.py - ModuleNotFoundError: No module named 'shop.menu'\n",
    ),
    "two tests of one name": (
        """_________________________________ TestA.test_x _________________________________
tests/test_a.py:3: in test_x
    f()
E   KeyError: 'a'
_________________________________ TestB.test_x _________________________________
tests/test_a.py:9: in test_x
    f()
E   OSError: disk 3 is full
=========================== short test summary info ============================
FAILED tests/test_a.py::TestA::test_x - KeyError: 'a'
FAILED tests/test_a.py::TestB::test_x - OSError: dis...
""",
        "FAILED tests/test_a.py::TestB::test_x - OSError: disk 17 is full\n"
        "FAILED tests/test_a.py::TestA::test_x - KeyError: 'b'\n",
    ),
    "a summary cut to the terminal's width": (
        "FAILED tests/test_cart.py::test_width - ValueError: row 1 of the table has no curr...\n",
        "FAILED tests/test_cart.py::test_width - ValueError: row 1000 of the table has no c...\n",
    ),
    "an assertion": (
        "FAILED tests/test_cart.py::test_count - assert 3 == 4\n",
        "FAILED tests/test_cart.py::test_count - AssertionError: assert None == 12\n",
        """______________________________ test_count _______________________________

    def test_count():
>       assert count("a") == 4
E       AssertionError: assert 17 == 4
E        +  where 17 = count('a')

tests/test_cart.py:30: AssertionError
""",
    ),
    "one test with several parameters": (
        "FAILED tests/test_tax.py::test_rate[CH-0.077] - KeyError: 'CH'\n",
        "FAILED tests/test_tax.py::test_rate[NO-0.25] - KeyError: 'NO'\n"
        "FAILED tests/test_tax.py::test_rate[SE-0.25] - KeyError: 'SE'\n",
    ),
    "parameters that fail in two ways, in any order": (
        "FAILED tests/test_tax.py::test_rate[CH] - KeyError: 'CH'\n"
        "FAILED tests/test_tax.py::test_rate[NO] - TypeError: 'int' object is not iterable\n",
        "FAILED tests/test_tax.py::test_rate[SE] - TypeError: 'str' object is not iterable\n"
        "FAILED tests/test_tax.py::test_rate[CH] - KeyError: 'CH'\n",
    ),
    "two failures in any order": (
        "FAILED tests/test_a.py::test_x - KeyError: 'a'\nFAILED tests/test_b.py::test_y - OSError: disk 3 is full\n",
        "FAILED tests/test_b.py::test_y - OSError: disk 4 is full\nFAILED tests/test_a.py::test_x - KeyError: 'b'\n",
    ),
    "a section that ends where the next chapter begins": (
        """==================================== ERRORS ====================================
_________________________ ERROR at setup of test_rows __________________________
tests/test_a.py:5: in rows
    raise ConnectionError(port)
E   ConnectionError: no answer at port 5432
=================================== FAILURES ===================================
E   RuntimeError: order 17 is lost
=========================== short test summary info ============================
ERROR tests/test_a.py::test_rows - ConnectionError: no answer at...
""",
        "ERROR tests/test_a.py::test_rows - ConnectionError: no answer at port 6543\n",
    ),
    "a fixture that breaks": (
        "ERROR tests/test_a.py::test_x - ConnectionError: no database at 127.0.0.1:5432\n",
        "ERROR tests/test_a.py::test_x - ConnectionError: no database at 127.0.0.1:40123\n",
    ),
    "only the lines marked E": (
        "E       AttributeError: 'Cart' object has no attribute 'sum'\n",
        "E   AttributeError: 'Basket' object has no attribute 'total'\n",
    ),
}

JAVASCRIPT: Faults = {
    "undefined is read": (
        """/home/ann/web/src/cart.js:14
  return order.items.length;
               ^

TypeError: Cannot read properties of undefined (reading 'items')
    at countItems (/home/ann/web/src/cart.js:14:16)
    at Object.<anonymous> (/home/ann/web/src/index.js:3:1)
    at Module._compile (node:internal/modules/cjs/loader:1256:14)

Node.js v18.17.0
""",
        """TypeError: Cannot read properties of undefined (reading 'rows')
    at countItems (C:\\work\\web\\src\\cart.js:20:9)
    at async main (C:\\work\\web\\src\\index.js:8:3)
    at node:internal/main/run_main_module:23:47
""",
    ),
    "the same in another function": (
        """TypeError: Cannot read properties of undefined (reading 'items')
    at sumItems (/home/ann/web/src/cart.js:22:16)
""",
        """Uncaught TypeError: Cannot read properties of undefined (reading 'items')
    at Cart.sumItems (/srv/web/src/cart.js:25:1)
""",
    ),
    "a dependency throws": (
        """Error: connect ECONNREFUSED 127.0.0.1:5432
    at TCPConnectWrap.afterConnect [as oncomplete] (node:net:1555:16)
    at Client.open (/home/ann/web/node_modules/dbish/lib/client.js:80:11)
    at async openPool (/home/ann/web/src/db.mjs:9:3) {
  errno: -111,
  code: 'ECONNREFUSED'
}
""",
        """Error: connect ECONNREFUSED 10.0.0.7:6543
    at TCPConnectWrap.afterConnect [as oncomplete] (node:net:1607:16)
    at async openPool (file:///srv/web/src/db.mjs:12:3)
""",
    ),
    "a file that cannot be parsed": (
        """/home/ann/web/src/menu.js:3
const = 4;
      ^

SyntaxError: Unexpected token '='
    at wrapSafe (node:internal/modules/cjs/loader:1153:16)
    at Module._compile (node:internal/modules/cjs/loader:1205:27)
""",
        """/srv/web/src/menu.js:9
const = 4;
      ^

SyntaxError: Unexpected token '}'
    at wrapSafe (node:internal/modules/cjs/loader:1281:20)
""",
    ),
    "another file that cannot be parsed": (
        """/home/ann/web/src/page.js:3
const = 4;
      ^

SyntaxError: Unexpected token '='
    at wrapSafe (node:internal/modules/cjs/loader:1153:16)
""",
    ),
    "an error with a cause": (
        """Error: order 17 is lost
    at load (/home/ann/web/src/order.js:9:9) {
  [cause]: RangeError: Invalid array length
      at read (/home/ann/web/src/disk.js:4:3)
}
""",
        """Error: order 3 is lost
    at load (/home/ann/web/src/order.js:11:9) {
  [cause]: TypeError: fetch failed
      at send (/home/ann/web/src/net.js:4:3)
}
""",
    ),
    "jest: a suite that cannot start": (
        "FAIL src/menu.test.js\n  ● Test suite failed to run\n\n    Cannot find module './a' from 'src/menu.test.js'\n",
        "FAIL src/menu.test.js\n  ● Test suite failed to run\n\n    Cannot find module './x' from 'src/menu.test.js'\n",
    ),
    "jest: another suite that cannot start": (
        "FAIL src/page.test.js\n  ● Test suite failed to run\n\n    Cannot find module './a' from 'src/page.test.js'\n",
    ),
    "jest: a value": (
        """FAIL src/cart.test.js
  Cart
    ✓ is empty at first (2 ms)
    ✕ counts rows (5 ms)

  ● Cart › counts rows

    expect(received).toBe(expected) // Object.is equality

    Expected: 2
    Received: 3

      10 |   test("counts rows", () => {
    > 11 |     expect(cart.count()).toBe(2);
         |                          ^

      at Object.toBe (src/cart.test.js:11:26)

Tests:       1 failed, 1 passed, 2 total
Time:        0.8 s
""",
        """FAIL src/cart.test.js (5.31 s)
  ● Cart › counts rows

    expect(received).toBe(expected) // Object.is equality

    Expected: "two"
    Received: "four"

      at Object.toBe (src/cart.test.js:19:26)
""",
    ),
    "jest: the same in another test": (
        """  ● Cart › counts columns

    expect(received).toBe(expected) // Object.is equality

    Expected: 2
    Received: 3
""",
        """  ● Cart › counts columns

    expect(received).toBe(expected) // Object.is equality

    Expected: 8
    Received: 9
""",
    ),
    "jest: something else in the first test": (
        """  ● Cart › counts rows

    TypeError: cart.count is not a function

      at Object.<anonymous> (src/cart.test.js:11:17)
""",
        """  ● Cart › counts rows

    TypeError: cart.count is not a function

      at Object.<anonymous> (src/cart.test.js:12:17)
""",
    ),
    "vitest": (
        """ FAIL  src/cart.test.ts > Cart > adds
AssertionError: expected 3 to be 4 // Object.is equality
 ❯ src/cart.test.ts:9:21
""",
        """ FAIL  src/cart.test.ts > Cart > adds
AssertionError: expected 5 to be 9 // Object.is equality
 ❯ src/cart.test.ts:31:21
""",
    ),
    "tsc: a name": (
        "src/cart.ts(12,5): error TS2304: Cannot find name 'ordr'.\n",
        "src/cart.ts:30:11 - error TS2304: Cannot find name 'odrer'.\n\n30   return odrer;\n             ~~~~~\n",
    ),
    "tsc: a type": (
        "src/cart.ts(12,5): error TS2322: Type 'string' is not assignable to type 'number'.\n",
        "src/cart.ts(14,9): error TS2322: Type 'boolean' is not assignable to type 'string'.\n",
    ),
}

GO: Faults = {
    "an index out of range": (
        """panic: runtime error: index out of range [5] with length 3

goroutine 1 [running]:
main.pick(...)
	/home/ann/shop/main.go:11
main.main()
	/home/ann/shop/main.go:18 +0x1d
exit status 2
""",
        """panic: runtime error: index out of range [7] with length 4 [recovered]
	panic: runtime error: index out of range [7] with length 4

goroutine 34 [running]:
panic({0x4a1d20?, 0xc0000b2000?})
	/usr/local/go/src/runtime/panic.go:884 +0x213
main.pick({0xc00007af60, 0x4}, 0x7)
	/tmp/build-118/shop/main.go:15 +0x5e
""",
    ),
    "the same in a method": (
        """panic: runtime error: index out of range [5] with length 3

goroutine 1 [running]:
example.com/shop/cart.(*Cart).Pick(0xc000012345, 0x5)
	/home/ann/shop/cart/cart.go:40 +0x65
""",
        """panic: runtime error: index out of range [1] with length 0

goroutine 1 [running]:
example.com/shop/cart.(*Cart).Pick.func1()
	/srv/shop/cart/cart.go:44 +0x99
""",
    ),
    "a nil pointer": (
        """panic: runtime error: invalid memory address or nil pointer dereference
[signal SIGSEGV: segmentation violation code=0x1 addr=0x0 pc=0x47e8a4]

goroutine 1 [running]:
main.pick(...)
	/home/ann/shop/main.go:11
""",
        """panic: runtime error: invalid memory address or nil pointer dereference
[signal SIGSEGV: segmentation violation code=0x1 addr=0x18 pc=0x5012ff]

goroutine 1 [running]:
main.pick(...)
	/home/bo/shop/main.go:13
""",
    ),
    "a test": (
        """--- FAIL: TestTotal (0.00s)
    cart_test.go:21: total of 3 rows: got 12, want 13
FAIL
FAIL	example.com/shop/cart	0.004s
FAIL
""",
        """=== RUN   TestTotal
    cart_test.go:25: total of 9 rows: got 1, want 4
--- FAIL: TestTotal (0.12s)
=== RUN   TestOther
--- PASS: TestOther (0.00s)
FAIL
exit status 1
FAIL	example.com/shop/cart	1.204s
""",
    ),
    "another message in the first test": (
        "--- FAIL: TestTotal (0.00s)\n    cart_test.go:30: no rows after 3 tries\nFAIL\n",
        "--- FAIL: TestTotal (0.00s)\n    cart_test.go:31: no rows after 5 tries\nFAIL\n",
    ),
    "another test": (
        "--- FAIL: TestCount (0.00s)\n    cart_test.go:21: total of 3 rows: got 12, want 13\nFAIL\n",
        "--- FAIL: TestCount (0.01s)\n    cart_test.go:22: total of 4 rows: got 12, want 13\nFAIL\n",
    ),
    "a part of a test": (
        """--- FAIL: TestParse (0.00s)
    --- FAIL: TestParse/empty_line (0.00s)
        parse_test.go:9: unexpected end of "x"
""",
        """--- FAIL: TestParse (0.30s)
    --- FAIL: TestParse/empty_line (0.20s)
        parse_test.go:14: unexpected end of "yy"
""",
    ),
    "the build: a name": (
        "# example.com/shop\n./main.go:12:3: undefined: totl\n",
        "# example.com/shop\n./main.go:40:9: undefined: totl\n",
    ),
    "the build: an import": (
        '# example.com/shop\n./main.go:4:2: "os" imported and not used\n',
        '# example.com/shop\n./main.go:5:2: "fmt" imported and not used\n',
    ),
}

RUST: Faults = {
    "an index out of bounds": (
        """thread 'main' panicked at src/cart.rs:10:5:
index out of bounds: the len is 3 but the index is 5
note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace
""",
        """thread 'main' panicked at 'index out of bounds: the len is 2 but the index is 9', src/cart.rs:14:9
note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace
""",
        """thread 'main' (48213) panicked at /home/ann/shop/src/cart.rs:8:1:
index out of bounds: the len is 1 but the index is 1
stack backtrace:
   0: rust_begin_unwind
             at /rustc/90b35a6239c3d8bdabc530a6a0816f7ff89a0aaf/library/std/src/panicking.rs:645:5
   1: core::panicking::panic_fmt
             at /rustc/90b35a6239c3d8bdabc530a6a0816f7ff89a0aaf/library/core/src/panicking.rs:72:14
   2: shop::cart::pick
             at ./src/cart.rs:8:1
""",
    ),
    "an unwrap": (
        """thread 'main' panicked at src/cart.rs:22:30:
called `Result::unwrap()` on an `Err` value: Os { code: 2, kind: NotFound, message: "No such file or directory" }
""",
        """thread 'main' panicked at src/cart.rs:25:30:
called `Result::unwrap()` on an `Err` value: Os { code: 2, kind: NotFound, message: "Datei nicht gefunden" }
""",
    ),
    "the same in another file": (
        "thread 'main' panicked at src/menu.rs:10:5:\nindex out of bounds: the len is 3 but the index is 5\n",
        "thread 'main' panicked at src/menu.rs:99:5:\nindex out of bounds: the len is 1 but the index is 5\n",
    ),
    "a test": (
        """running 2 tests
test tests::adds ... FAILED
test tests::is_empty ... ok

failures:

---- tests::adds stdout ----
thread 'tests::adds' panicked at src/lib.rs:31:9:
assertion `left == right` failed
  left: 3
 right: 4

failures:
    tests::adds

test result: FAILED. 1 passed; 1 failed; 0 ignored; finished in 0.00s
""",
        """---- tests::adds stdout ----
thread 'tests::adds' panicked at src/lib.rs:47:9:
assertion `left == right` failed
  left: 10
 right: 11
""",
    ),
    "another test": (
        "---- tests::sums stdout ----\nthread 'tests::sums' panicked at src/lib.rs:31:9:\n"
        "assertion `left == right` failed\n  left: 3\n right: 4\n",
        "---- tests::sums stdout ----\nthread 'tests::sums' panicked at src/lib.rs:32:9:\n"
        "assertion `left == right` failed\n  left: 1\n right: 2\n",
    ),
    "a test that returns an error": (
        '---- tests::loads stdout ----\nError: ParseError("row 3")\n',
        '---- tests::loads stdout ----\nError: ParseError("row 14")\n',
    ),
    "another test that returns that error": ('---- tests::saves stdout ----\nError: ParseError("row 3")\n',),
    "the compiler: types": (
        """error[E0308]: mismatched types
 --> src/cart.rs:4:18
  |
4 |     let n: u32 = "a";
  |            ---   ^^^ expected `u32`, found `&str`

error: aborting due to 1 previous error

For more information about this error, try `rustc --explain E0308`.
error: could not compile `shop` (bin "shop") due to 1 previous error
""",
        """error[E0308]: mismatched types
  --> src/cart.rs:17:18
   |
17 |     let n: u32 = "bb";
   |            ---   ^^^^ expected `u32`, found `&str`

error: could not compile `shop` (lib) due to 1 previous error; 2 warnings emitted
""",
    ),
    "the compiler: a name": (
        "error[E0425]: cannot find value `totl` in this scope\n --> src/cart.rs:9:5\n",
        "error[E0425]: cannot find value `sm` in this scope\n   --> src/cart.rs:120:13\n",
    ),
    "the compiler: the same in another file": (
        "error[E0425]: cannot find value `totl` in this scope\n --> src/menu.rs:9:5\n",
        "error[E0425]: cannot find value `totl` in this scope\n --> src/menu.rs:10:5\n",
    ),
}

JAVA: Faults = {
    "a null": (
        """Exception in thread "main" java.lang.NullPointerException: Cannot invoke "A.b()" because "name" is null
	at com.example.shop.Cart.label(Cart.java:31)
	at com.example.shop.Main.main(Main.java:9)
""",
        """2024-05-06 10:11:12.345 ERROR 4711 --- [nio-8080-exec-3] c.e.s.Web : request 17 failed
java.lang.NullPointerException: Cannot invoke "String.trim()" because "title" is null
	at com.example.shop.Cart.label(Cart.java:44)
	at java.base/java.lang.Thread.run(Thread.java:1583)
""",
    ),
    "the same in another method": (
        """java.lang.NullPointerException: Cannot invoke "String.length()" because "name" is null
	at com.example.shop.Cart.total(Cart.java:50)
""",
        """java.lang.NullPointerException: Cannot invoke "String.length()" because "name" is null
	at com.example.shop.Cart.lambda$total$3(Cart.java:53)
	at java.base/java.util.ArrayList.forEach(ArrayList.java:1511)
""",
    ),
    "a cause that is wrapped": (
        """org.springframework.beans.factory.BeanCreationException: Error creating bean with name 'store'
	at org.springframework.beans.factory.Factory.create(Factory.java:628)
	at com.example.shop.Main.main(Main.java:12)
Caused by: java.lang.IllegalStateException: cannot open store
	at com.example.shop.Store.open(Store.java:22)
	... 12 more
Caused by: java.sql.SQLTransientException: too many connections: 101
	at org.postgresql.Driver.connect(Driver.java:300)
	at com.example.shop.Pool.take(Pool.java:61)
	... 14 more
""",
        """java.util.concurrent.ExecutionException: java.lang.IllegalStateException: cannot open store
	at java.base/java.util.concurrent.FutureTask.get(FutureTask.java:191)
Caused by: java.sql.SQLTransientException: too many connections: 200
	at com.example.shop.Pool.take(Pool.java:64)
	... 3 more
""",
    ),
    "a cause whose frames are left out": (
        """java.lang.RuntimeException: start failed
	at com.example.shop.Main.start(Main.java:12)
Caused by: java.io.IOException: port 8080 is taken
	... 2 more
""",
        """java.lang.IllegalStateException: cannot begin
	at com.example.shop.Main.start(Main.java:15)
Caused by: java.io.IOException: port 9090 is taken
	... 5 more
""",
    ),
    "maven: an assertion": (
        """[INFO] Running com.example.shop.CartTest
[ERROR] Tests run: 3, Failures: 1, Errors: 0, Skipped: 0, Time elapsed: 0.052 s <<< FAILURE! - in CartTest
[ERROR] com.example.shop.CartTest.addsRows  Time elapsed: 0.01 s  <<< FAILURE!
org.opentest4j.AssertionFailedError: expected: <3> but was: <4>
	at org.junit.jupiter.api.AssertionUtils.fail(AssertionUtils.java:55)
	at com.example.shop.CartTest.addsRows(CartTest.java:25)

[INFO] Results:
[ERROR] Failures:
[ERROR]   CartTest.addsRows:25 expected: <3> but was: <4>
[ERROR] Tests run: 3, Failures: 1, Errors: 0, Skipped: 0
""",
        """com.example.shop.CartTest > addsRows() FAILED
    org.opentest4j.AssertionFailedError: expected: <1> but was: <12>
        at app//org.junit.jupiter.api.AssertionUtils.fail(AssertionUtils.java:55)
        at app//com.example.shop.CartTest.addsRows(CartTest.java:31)
""",
    ),
    "maven: only the list at the end": (
        "[ERROR] Failures: \n[ERROR]   CartTest.addsRows:25 expected: <3> but was: <4>\n[INFO] \n",
        "[ERROR] Failures: \n[ERROR]   CartTest.addsRows:29 expected: <30> but was: <41>\n[INFO] \n",
    ),
    "maven: another test in that list": (
        "[ERROR]   CartTest.sumsRows:25 expected: <3> but was: <4>\n",
        "[ERROR]   CartTest.sumsRows:26 expected: <5> but was: <6>\n",
    ),
    "the compiler": (
        "[ERROR] /home/ann/shop/src/main/java/com/example/Cart.java:[12,8] cannot find symbol\n",
        "[ERROR] /srv/ci/8123/src/main/java/com/example/Cart.java:[19,20] cannot find symbol\n",
    ),
    "the compiler: something else": (
        "src/main/java/com/example/Cart.java:12: error: incompatible types: String cannot be converted to int\n",
        "src/main/java/com/example/Cart.java:15: error: incompatible types: String cannot be converted to int\n",
    ),
}

LOCALES: Faults = {
    "Korean: a file": (
        "오류: 파일 '설정.json'을 찾을 수 없습니다 (코드 2)",
        "오류: 파일 “데이터”를 찾을 수 없습니다 (코드 17)",
        "오류: 파일 「자료」를 찾을 수 없습니다 (코드 3)",
    ),
    "Korean: a right": ("접근이 거부되었습니다: /home/ann/a.txt", "접근이 거부되었습니다: /srv/b.txt"),
    "Korean: a traceback": (
        'Traceback (most recent call last):\n  File "/home/ann/주문.py", line 3, in 합계\n    raise\n'
        "ValueError: 금액 -3은 0보다 작을 수 없습니다\n",
        'Traceback (most recent call last):\n  File "/srv/주문.py", line 9, in 합계\n    raise\n'
        "ValueError: 금액 -12는 0보다 작을 수 없습니다\n",
    ),
    "German": ("Fehler: Datei „a.txt“ nicht gefunden", "Fehler: Datei „brief neu.doc“ nicht gefunden"),
    "French": ("Erreur : le fichier « a.txt » est introuvable", "Erreur : le fichier « b c.txt » est introuvable"),
    "Japanese": ("エラー: ファイル「甲.txt」が見つかりません", "エラー: ファイル「乙.txt」が見つかりません"),
    "Russian": ("Ошибка: не удалось открыть «а.txt»: код 5", "Ошибка: не удалось открыть «бв.txt»: код 13"),
    "Python on a German system": (
        "PermissionError: [WinError 5] Zugriff verweigert: 'C:\\\\Users\\\\Ann\\\\x.txt'",
        "PermissionError: [WinError 5] Zugriff verweigert: 'D:\\\\Daten\\\\y.txt'",
    ),
    ".NET in Korean": (
        "System.InvalidOperationException: 시퀀스에 요소가 없습니다.\n"
        "   위치: Shop.Cart.First() 파일 C:\\shop\\Cart.cs:줄 12\n",
        "System.InvalidOperationException: 시퀀스에 요소가 없습니다.\n"
        "   위치: System.Linq.Enumerable.First[T](IEnumerable source)\n"
        "   위치: Shop.Cart.First() 파일 D:\\ci\\Cart.cs:줄 19\n",
    ),
    "macOS takes syllables apart": (
        "파일을 열 수 없음",
        normalize("NFD", "파일을 열 수 없음"),
    ),
}

LINES: Faults = {
    "a connection": (
        "2024-05-06T07:08:09.123Z ERROR cannot reach 10.0.0.1:5432 after 3 tries (1.5 s)",
        "[2024-05-06 17:18:19,999] [WARN] cannot reach db-7.example.com:6543 after 12 tries (900 ms)",
        "cannot reach localhost.localdomain:1 after 1 tries (2 min)",
    ),
    "an object": (
        "job 6f1e2d3c-aaaa-bbbb-cccc-0123456789ab failed: Worker@1f2e3d4c is gone",
        "job 00000000-1111-2222-3333-444444444444 failed: Worker@7a6b5c4d is gone",
    ),
    "settings": (
        "login refused: user=ann host=web1 port=22 attempt = 3, reason=expired",
        "login refused: user=bo host=10.2.3.4 port=2222 attempt = 41, reason=locked",
    ),
    "a person": (
        "Failed password for ann from 10.0.0.1 port 4711 ssh2",
        "Failed password for bo from 10.0.0.2 port 22 ssh2",
    ),
    "a list of any length": ("missing fields: 'a', 'b' and 'c'", "missing fields: 'x'"),
    "a request": (
        '10.1.1.1 "GET /v2/orders/17 HTTP/1.1" status: 500 len: 12',
        '10.1.1.2 "GET /v3/users HTTP/1.1" status: 500 len: 1893',
    ),
    "another request": ('10.1.1.1 "DELETE /v2/orders/17 HTTP/1.1" status: 500 len: 12',),
    "an optional remark": ("closed by peer () after 5 bytes", "closed by peer (10.0.0.1) after 17 KB (17408 bytes)"),
    "a command": (
        "$ make all\nmake: *** [Makefile:12: all] Error 2",
        "ann@web1:~/shop$ make all\nmake: *** [Makefile:9: all] Error 1",
    ),
    "a link": ("cannot fetch https://a.example.com/x?y=1: forbidden", "cannot fetch ftp://b.example.org/: forbidden"),
    "a date": (
        "no lease since Mon Jul  4 12:52:44 2005 at all",
        "no lease since Tue 15 Aug 2006 at all",
        "no lease since 2024-05-06 07:08:09 UTC at all",
        "no lease since 5/6/2024 at all",
    ),
    "hex without a digit": ("no object deadbeef in store", "no object abcdefab in store"),
    "a function whose name has a digit": ("sha1_init() failed", "sha1_init() failed\n"),
    "another such function": ("utf8_init() failed",),
    "a folder with a space": (
        "cannot open C:\\Program Files\\Shop x\\a.ini now",
        "cannot open D:\\My Data\\b.ini now",
    ),
    "noise around the error": (
        "step 1 done\nlinking shop\nfatal: no space left on device\n",
        "step 9 done\ncopying files\nchecking\nfatal: no space left on device\n",
    ),
    "a command that speaks of errors": (
        "$ cat errors-of-may.log\naccess denied for role 3\n",
        "$ tail failed.txt\naccess denied for role 4\n",
    ),
    "JSON": (
        '{"level":"error","ts":1700000000.1,"msg":"cannot reach shard 4","host":"web-1"}',
        '{"ts":1800000000,"host":"web-22","level":"error","msg":"cannot reach shard 17"}',
    ),
    "another JSON": ('{"level":"error","ts":1700000000.1,"msg":"shard is read only","host":"web-1"}',),
    "logfmt": (
        'time=2024-05-06T07:08:09Z level=error msg="cannot renew lease" err="timeout after 3s" id=5',
        'time=2025-01-01T00:00:00Z level=error msg="cannot renew lease" err="timeout after 11s" id=6',
    ),
    "another logfmt": ('time=2024-05-06T07:08:09Z level=error msg="lease is lost" err="timeout after 3s" id=5',),
    "a message that is one quotation": ('Error: "the row is too long"', 'Error: "the row is too long"\n'),
    "another quotation": ('Error: "the table is too wide"',),
    "nested objects": (
        "Skipping Token{9f4ef63 Window{1 u0 com.example/.Main t7}} since hidden",
        "Skipping Token{a64f992 Window{22 u10 org.other/.Start t81}} since hidden",
    ),
    "gcc": (
        "main.c:3:5: error: 'x' undeclared (first use in this function)",
        "src/main.c:9:7: error: ‘yy’ undeclared (first use in this function)",
    ),
    "mypy": (
        'shop/cart.py:3: error: "int" not callable  [operator]',
        'shop/cart.py:33: error: "str" not callable  [operator]',
    ),
    "mypy with another rule": ('shop/cart.py:3: error: Name "x" is not defined  [name-defined]',),
    "ruff": (
        "shop/cart.py:1:8: F401 [*] `os` imported but unused",
        "shop/cart.py:2:8: F401 [*] `re` imported but unused",
    ),
    "a warning beside an error": (
        "a.c:1:1: warning: unused variable 'x'\na.c:3:5: error: expected ';' before 'y'",
        "a.c:9:5: error: expected ')' before 'z'",
    ),
    "unittest": (
        """FAIL: test_sum (tests.test_cart.CartTest.test_sum)
----------------------------------------------------------------------
Traceback (most recent call last):
  File "/home/ann/shop/tests/test_cart.py", line 9, in test_sum
    self.assertEqual(total([1]), 2)
AssertionError: 1 != 2

----------------------------------------------------------------------
Ran 3 tests in 0.001s

FAILED (failures=1)
""",
        """Traceback (most recent call last):
  File "/srv/shop/tests/test_cart.py", line 12, in test_sum
    self.assertEqual(total([1]), 2)
AssertionError: 5 != 7

Ran 4 tests in 2.511s
""",
    ),
    "C#": (
        """Unhandled exception. System.ArgumentNullException: Value cannot be null. (Parameter 'name')
   at Shop.Cart.Label(String name) in C:\\shop\\Cart.cs:line 12
""",
        """System.ArgumentNullException: Value cannot be null. (Parameter 'title')
   at System.ThrowHelper.Throw(String name)
   at Shop.Cart.Label(String name) in /srv/shop/Cart.cs:line 40
""",
    ),
    "a card": ("no lease for 00:11:43:e3:ba:c3", "no lease for aa:bb:cc:dd:ee:ff"),
}

ALL: dict[str, Faults] = {
    "python": PYTHON,
    "pytest": PYTEST,
    "javascript": JAVASCRIPT,
    "go": GO,
    "rust": RUST,
    "java": JAVA,
}
ALL |= {"locales": LOCALES, "lines": LINES}
FAULTS = [pytest.param(runs, id=f"{group}: {name}") for group, faults in ALL.items() for name, runs in faults.items()]


@pytest.mark.parametrize("runs", [fault for fault in FAULTS if len(fault.values[0]) > 1])  # type: ignore[arg-type]
def test_one_fault_has_one_fingerprint(runs: tuple[str, ...]) -> None:
    assert len({fingerprint(run) for run in runs}) == 1, [fingerprint(run).core for run in runs]


def test_no_two_faults_have_the_same_fingerprint() -> None:
    known: dict[str, str] = {}
    for group, faults in ALL.items():
        for name, runs in faults.items():
            found = fingerprint(runs[0])
            assert known.setdefault(found.hash, f"{group}: {name}") == f"{group}: {name}", found.core


@pytest.mark.parametrize(
    ("group", "name", "kind"),
    [
        ("python", "a key is missing", "KeyError"),
        ("python", "raised in a library", "ConnectTimeout"),
        ("python", "the last of a chain", "StoreBroken"),
        ("pytest", "an assertion", "AssertionError"),
        ("javascript", "undefined is read", "TypeError"),
        ("javascript", "tsc: a name", "TS2304"),
        ("go", "a nil pointer", "panic"),
        ("go", "a test", "FAIL"),
        ("rust", "an unwrap", "panic"),
        ("rust", "the compiler: types", "E0308"),
        ("java", "a cause that is wrapped", "SQLTransientException"),
        ("java", "maven: an assertion", "AssertionFailedError"),
        ("locales", ".NET in Korean", "InvalidOperationException"),
        ("java", "maven: only the list at the end", "AssertionError"),
        ("lines", "mypy", "operator"),
        ("lines", "ruff", "F401"),
        ("lines", "a person", ""),
    ],
)
def test_the_kind_is_the_type_of_the_error(group: str, name: str, kind: str) -> None:
    assert {fingerprint(run).kind for run in ALL[group][name]} == {kind}


@pytest.mark.parametrize(
    ("group", "name", "core"),
    [
        ("python", "a key is missing", "KeyError in prices.py:total: *"),
        ("python", "a syntax error, worded by two versions", "SyntaxError in cart.py: if order.total > 0"),
        (
            "pytest",
            "an error in the code under test",
            "ValueError in test_cart.py::test_total_of_two: row * has no currency",
        ),
        (
            "javascript",
            "the same in another function",
            "TypeError in cart.js:sumItems: Cannot read properties of undefined (reading *)",
        ),
        (
            "go",
            "the same in a method",
            "panic in cart.go:cart.(*Cart).Pick: runtime error: index out of range * with length *",
        ),
        ("javascript", "jest: a suite that cannot start", "menu.test.js: Cannot find module * from *"),
        (
            "pytest",
            "two tests of one name",
            "KeyError in test_a.py::TestA::test_x: * | OSError in test_a.py::TestB::test_x: disk * is full",
        ),
        ("go", "a part of a test", "FAIL in TestParse/empty_line: unexpected end of *"),
        ("java", "a cause whose frames are left out", "IOException in Main.start: port * is taken"),
        ("rust", "the compiler: types", "E0308 in cart.rs: mismatched types"),
        ("java", "a cause that is wrapped", "SQLTransientException in Pool.take: too many connections: *"),
        ("lines", "a person", "Failed password for * from * port *"),
    ],
)
def test_a_person_can_read_the_core(group: str, name: str, core: str) -> None:
    assert fingerprint(ALL[group][name][0]).core == core


@pytest.mark.parametrize("runs", FAULTS)
def test_how_the_output_was_taken_does_not_matter(runs: tuple[str, ...]) -> None:
    plain = runs[0]
    coloured = "\n".join(f"\x1b[1;31m{line}\x1b[0m" if line.strip() else line for line in plain.split("\n"))
    stamped = "\n".join(f"2024-05-06T07:08:09.1234567Z {line}" for line in plain.split("\n"))
    contained = "\n".join(f"web_1  | {line}" for line in plain.split("\n"))
    ways = {
        "colours": coloured,
        "line ends": plain.replace("\n", "\r\n"),
        "trailing space": plain.replace("\n", "   \n"),
        "blank lines around": f"\n\n{plain}\n\n",
        "stamps": stamped,
        "container": contained,
    }
    expected = fingerprint(plain)
    assert {way: fingerprint(text).core for way, text in ways.items()} == dict.fromkeys(ways, expected.core)


def test_a_prompt_and_a_command_above_do_not_matter() -> None:
    for runs in PYTHON.values():
        assert fingerprint(f"ann@web1:~/shop$ python -m shop\n{runs[0]}") == fingerprint(runs[0])


def test_the_hash_is_that_of_the_core() -> None:
    found = fingerprint(PYTHON["a key is missing"][0])
    assert found.hash == sha256(found.core.encode()).hexdigest()
    assert FINGERPRINT_VERSION == 1


def test_a_type_inside_a_line_is_the_kind_too() -> None:
    assert fingerprint("worker 3 died: ValueError: bad row").kind == "ValueError"


@pytest.mark.parametrize("text", ["", " ", "\n\n\t\r\n", "\x1b[0m"])
def test_silence_has_a_fingerprint_of_its_own(text: str) -> None:
    assert fingerprint(text) == fingerprint("")
    assert fingerprint(text) != fingerprint("0")
    assert fingerprint(text).kind == ""


def test_several_failures_are_a_set() -> None:
    lines = [f"FAILED tests/test_{name}.py::test_{name} - KeyError: '{name}'" for name in "abcdef"]
    shuffled = random.Random(7).sample(lines, len(lines)) + lines[:2]
    assert fingerprint("\n".join(lines)) == fingerprint("\n".join(shuffled))
    assert fingerprint("\n".join(lines)) != fingerprint("\n".join(lines[1:]))


def test_a_long_core_is_cut_and_still_tells_what_was_cut() -> None:
    lines = [f"FAILED tests/test_{name}.py::test_something_long_{name} - KeyError: 'x'" for name in "abcdefghij"]
    whole, without_last = fingerprint("\n".join(lines)), fingerprint("\n".join(lines[:-1]))
    assert len(whole.core) <= CORE_CHARS_MAX
    assert whole.core[:200] == without_last.core[:200]
    assert whole != without_last


def test_a_file_made_for_one_run_has_no_name() -> None:
    shown = (
        'Traceback (most recent call last):\n  File "/tmp/{}", line 3, in <module>\n    f()\nOSError: disk is full\n'
    )
    assert fingerprint(shown.format("tmpab12cd9x.py")) == fingerprint(shown.format("tmpzz88qqxy.py"))
    assert fingerprint(shown.format("import_rows.py")) != fingerprint(shown.format("export_rows.py"))


def test_another_frame_between_does_not_matter() -> None:
    direct, by_way = (
        PYTHON["a key is missing"][0],
        PYTHON["a key is missing"][0].replace(
            "    total(order)\n",
            '    total(order)\n  File "/home/ann/shop/retry.py", line 3, in again\n    return f(*args)\n',
        ),
    )
    assert direct != by_way
    assert fingerprint(direct) == fingerprint(by_way)


numbers = st.integers(0, 10**12).map(str)
addresses = st.integers(0, 2**48).map(hex)
uuids = st.uuids().map(str)
folders = st.lists(st.from_regex(r"[a-z][a-z0-9_-]{0,8}", fullmatch=True), min_size=1, max_size=4).map("/".join)
paths = st.builds(
    "/tmp/{}/{}.{}".format, folders, st.from_regex(r"[a-z]{1,8}", fullmatch=True), st.sampled_from(["py", "txt", "so"])
)
timings = st.builds(
    "{} {}".format, st.decimals(0, 9999, places=2), st.sampled_from(["ms", "s", "seconds", "min", "KB", "MB", "%"])
)
quoted = st.builds(
    "{0[0]}{1}{0[1]}".format,
    st.sampled_from(["''", '""', "``", "“”", "„“", "«»", "「」", "‘’"]),
    st.text(
        st.characters(blacklist_categories=["Cc", "Cs", "Zl", "Zp"], blacklist_characters="'\"`“”„«»「」‘’"),
        max_size=30,
    ),
)
hosts = st.builds(
    "{}.example.{}:{}".format,
    st.from_regex(r"[a-z]{1,8}", fullmatch=True),
    st.sampled_from(["com", "org"]),
    st.integers(1, 65535),
)
values = numbers | addresses | uuids | paths | timings | quoted | hosts


@given(values, values, values, values)
def test_values_of_any_kind_do_not_matter_in_a_line(a: str, b: str, c: str, d: str) -> None:
    line = "cannot move {} into store because {} is held by others"
    assert fingerprint(line.format(a, b)) == fingerprint(line.format(c, d))


@given(st.integers(1, 9999), st.integers(1, 9999), folders, folders, values, values)
def test_values_of_any_kind_do_not_matter_in_a_traceback(m: int, n: int, one: str, two: str, a: str, b: str) -> None:
    shown = (
        'Traceback (most recent call last):\n  File "/{}/shop/store.py", line {}, in move\n'
        "    raise StoreBroken(item)\nshop.StoreBroken: cannot move {} into store\n"
    )
    assert fingerprint(shown.format(one, m, a)) == fingerprint(shown.format(two, n, b))


words = st.lists(st.sampled_from(["cannot", "open", "read", "store", "index", "row", "held"]), min_size=1, max_size=8)


@given(words, numbers)
def test_other_words_are_another_fault(words: list[str], number: str) -> None:
    said = " ".join(words)
    assert fingerprint(f"{said} {number}") == fingerprint(f"{said} 1")
    assert fingerprint(f"{said} never {number}") != fingerprint(f"{said} {number}")


@given(st.text(max_size=400))
def test_any_text_has_a_fingerprint_and_always_the_same(text: str) -> None:
    found = fingerprint(text)
    assert found == fingerprint(text)
    assert re.fullmatch("[0-9a-f]{64}", found.hash)
    assert 0 < len(found.core) <= CORE_CHARS_MAX
    assert isinstance(found, Fingerprint)


def test_a_broken_surrogate_is_no_obstacle() -> None:
    assert fingerprint("cannot read \udcff row") != fingerprint("cannot write \udcff row")


SHORT = [
    "a",
    " ",
    "'",
    '"',
    "`",
    "“",
    "「",
    "(",
    "((",
    "[",
    "{",
    "a{",
    "{}",
    "1",
    "1.",
    "1-",
    "1:",
    ".",
    "a.",
    "a-",
    "a@",
]
SHORT += [
    "a=",
    "a:1 ",
    "/",
    "\\",
    "=",
    "*",
    "*,",
    "::",
    "() ",
    "\u0301",
    "a.Error",
    "in user ",
    "for a from ",
    'File "',
]
SHORT += ["FAILED a.py::b[", "property x object ", "cannot use a as a ", "<locals>.", "mon jan 1 ", '{"msg":"a', "a\\"]
LINES_OF_TOOLS = [
    "  at x (a.js:1:2)\n",
    "Caused by: \n",
    '  File "a", line 1\n',
    "E   x\n",
    "FAILED a.py::b - c\n",
    "● a\n",
]
LINES_OF_TOOLS += [
    "x.py:1: error: a\n",
    "panic: a\n",
    "--- FAIL: TestA\n",
    "error: a\n",
    "thread 'a' panicked at b.rs:1:1\n",
]


def _steps(work: Callable[[], object]) -> int:
    """How many lines of Python a piece of work runs."""
    count = 0

    def trace(*_: object) -> Callable[..., object]:
        nonlocal count
        count += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)  # type: ignore[arg-type]
    try:
        work()
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("piece", [*SHORT, *LINES_OF_TOOLS])
def test_four_times_the_text_is_some_four_times_the_work(piece: str) -> None:
    rows = [f"{piece * (300 // len(piece))}{row % 7}\n" for row in range(80)]
    fingerprint("".join(rows))
    small = _steps(lambda: fingerprint("".join(rows[:20])))
    large = _steps(lambda: fingerprint("".join(rows)))
    assert large <= 6 * small + 500


@pytest.mark.parametrize("piece", SHORT)
def test_no_pattern_sees_more_than_the_head_of_a_line(piece: str) -> None:
    """With the test above: the work for a line is bounded, and the work for lines grows with their number."""
    line = piece * (1_000_000 // len(piece))
    assert fingerprint(line) == fingerprint(line[: LINE_CHARS_MAX + 1])


@pytest.mark.long
@pytest.mark.parametrize("piece", [*LINES_OF_TOOLS, "\x1b[", "\x1b]", "\x1b[31m", "\r", "a\n\n"])
def test_a_megabyte_of_lines_is_read(piece: str) -> None:
    assert fingerprint(piece * (1_000_000 // len(piece))).hash


@pytest.mark.parametrize(("left", "right"), [("1", "137"), ("/tmp/a", "'x'"), ("deadbeef", "...")])
def test_outputs_that_are_nothing_but_values_are_told_apart(left, right):
    assert fingerprint(left).hash != fingerprint(right).hash
    assert fingerprint(left) == fingerprint(f"  {left}\n")
